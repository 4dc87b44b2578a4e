//! A skill is what it was when somebody looked at it, or it is said that it is not.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use holdfast_trust::skill::{
    Entry, Register, SIGNATURE_FILE, SecretKey, Signature, Signed, SkillDigest, SkillError,
    SkillProblem, Standing, judge,
};
use proptest::prelude::*;

/// What is changed, and how.
type Change<'a> = (&'a str, Box<dyn Fn() + 'a>);

fn skill(parent: &Path) -> PathBuf {
    let dir = parent.join("weather");
    fs::create_dir_all(dir.join("scripts")).unwrap();
    fs::write(dir.join("SKILL.md"), "# Weather\nRun scripts/get.sh.").unwrap();
    fs::write(dir.join("scripts/get.sh"), "echo sunny").unwrap();
    dir
}

fn entry(digest: SkillDigest, pinned: bool) -> Entry {
    Entry {
        digest,
        pinned,
        at_ms: 0,
        by: None,
    }
}

#[test]
fn every_change_of_a_skill_changes_its_digest() {
    let parent = tempfile::tempdir().unwrap();
    let dir = skill(parent.path());
    let first = SkillDigest::of(&dir).unwrap();
    assert_eq!(SkillDigest::of(&dir).unwrap(), first);
    let script = dir.join("scripts/get.sh");
    let changes: [Change<'_>; 5] = [
        (
            "a byte",
            Box::new(|| fs::write(&script, "echo Sunny").unwrap()),
        ),
        (
            "a new file",
            Box::new(|| fs::write(dir.join("x"), "").unwrap()),
        ),
        (
            "a name",
            Box::new(|| fs::rename(&script, dir.join("scripts/got.sh")).unwrap()),
        ),
        (
            "the right to run",
            Box::new(|| fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap()),
        ),
        (
            "a file less",
            Box::new(|| fs::remove_file(&script).unwrap()),
        ),
    ];
    for (what, change) in changes {
        change();
        assert_ne!(SkillDigest::of(&dir).unwrap(), first, "{what}");
        fs::remove_dir_all(&dir).unwrap();
        skill(parent.path());
        assert_eq!(SkillDigest::of(&dir).unwrap(), first, "{what}");
    }
    fs::write(dir.join(SIGNATURE_FILE), "not a part of it").unwrap();
    assert_eq!(SkillDigest::of(&dir).unwrap(), first);
}

#[test]
fn moving_bytes_between_files_does_not_go_unnoticed() {
    let parent = tempfile::tempdir().unwrap();
    let dir = skill(parent.path());
    fs::write(dir.join("a"), "12").unwrap();
    fs::write(dir.join("b"), "3").unwrap();
    let first = SkillDigest::of(&dir).unwrap();
    fs::write(dir.join("a"), "1").unwrap();
    fs::write(dir.join("b"), "23").unwrap();
    assert_ne!(SkillDigest::of(&dir).unwrap(), first);
}

#[test]
fn links_and_what_is_no_skill_are_refused() {
    let parent = tempfile::tempdir().unwrap();
    let dir = skill(parent.path());
    symlink("/etc/hostname", dir.join("link")).unwrap();
    assert!(matches!(SkillDigest::of(&dir), Err(SkillError::Special(_))));
    fs::remove_file(dir.join("link")).unwrap();
    let alias = parent.path().join("alias");
    symlink(&dir, &alias).unwrap();
    assert!(SkillDigest::of(&dir).is_ok());
    assert!(matches!(
        SkillDigest::of(&alias),
        Err(SkillError::Special(_))
    ));
    let other = parent.path().join("other");
    fs::create_dir(&other).unwrap();
    assert!(matches!(
        SkillDigest::of(&other),
        Err(SkillError::NoSkill(_))
    ));
}

#[test]
fn every_standing_by_record_and_signature() {
    let parent = tempfile::tempdir().unwrap();
    let dir = skill(parent.path());
    let now = SkillDigest::of(&dir).unwrap();
    fs::write(dir.join("SKILL.md"), "other").unwrap();
    let then = SkillDigest::of(&dir).unwrap();
    let by = Signed::By("ana".to_owned());
    let broken = Signed::Broken("why".to_owned());
    let stranger = Signed::ByStranger(SecretKey::from_seed(&[7; 32]).public());
    let pinned = SkillProblem::ChangedSincePinned { was: then, is: now };
    let seen = SkillProblem::ChangedSinceSeen { was: then, is: now };
    let bad = SkillProblem::BadSignature("why".to_owned());
    let table = [
        (None, &Signed::No, Standing::Unknown, vec![]),
        (None, &stranger, Standing::Unknown, vec![]),
        (None, &by, Standing::Signed, vec![]),
        (None, &broken, Standing::Unknown, vec![bad.clone()]),
        (
            Some(entry(now, false)),
            &Signed::No,
            Standing::Known,
            vec![],
        ),
        (Some(entry(now, false)), &by, Standing::Signed, vec![]),
        (
            Some(entry(now, true)),
            &Signed::No,
            Standing::Pinned,
            vec![],
        ),
        (Some(entry(now, true)), &by, Standing::Pinned, vec![]),
        (
            Some(entry(now, true)),
            &broken,
            Standing::Unknown,
            vec![bad],
        ),
        (
            Some(entry(then, false)),
            &Signed::No,
            Standing::Unknown,
            vec![seen],
        ),
        (Some(entry(then, false)), &by, Standing::Signed, vec![]),
        (
            Some(entry(then, true)),
            &Signed::No,
            Standing::Unknown,
            vec![pinned.clone()],
        ),
        (
            Some(entry(then, true)),
            &by,
            Standing::Unknown,
            vec![pinned],
        ),
    ];
    for (entry, signed, standing, problems) in table {
        let verdict = judge(now, entry.as_ref(), signed);
        assert_eq!(verdict.standing, standing, "{entry:?} {signed:?}");
        assert_eq!(verdict.problems, problems, "{entry:?} {signed:?}");
    }
}

#[test]
fn a_signature_is_of_one_skill_by_one_key() {
    let parent = tempfile::tempdir().unwrap();
    let dir = skill(parent.path());
    let digest = SkillDigest::of(&dir).unwrap();
    let key = SecretKey::from_seed(&[1; 32]);
    key.sign("weather", digest).write(&dir).unwrap();
    let read = Signature::read(&dir).unwrap().unwrap();
    assert_eq!(read.key, key.public());
    assert!(read.holds("weather", digest));
    assert!(!read.holds("mail", digest), "another name");
    fs::write(dir.join("SKILL.md"), "changed").unwrap();
    assert!(!read.holds("weather", SkillDigest::of(&dir).unwrap()));
    // Another key's name on the same signature does not make it another's.
    let other = SecretKey::from_seed(&[2; 32]).public().to_string();
    let text = fs::read_to_string(dir.join(SIGNATURE_FILE)).unwrap();
    let forged = text.replace(&key.public().to_string(), &other);
    fs::write(dir.join(SIGNATURE_FILE), forged).unwrap();
    let forged = Signature::read(&dir).unwrap().unwrap();
    assert!(!forged.holds("weather", digest));
}

#[test]
fn a_secret_key_is_its_owners_alone() {
    let parent = tempfile::tempdir().unwrap();
    let path = parent.path().join("key");
    let key = SecretKey::from_seed(&[3; 32]);
    key.write_new(&path).unwrap();
    assert!(
        key.write_new(&path).is_err(),
        "an old key is not overwritten"
    );
    assert_eq!(SecretKey::read(&path).unwrap().public(), key.public());
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    assert!(SecretKey::read(&path).is_err());
    assert!(!format!("{key:?}").contains("0303"));
}

#[test]
fn a_register_is_kept_whole_and_never_taken_for_empty() {
    let parent = tempfile::tempdir().unwrap();
    let path = parent.path().join("skills.json");
    assert_eq!(Register::read(&path).unwrap(), Register::default());
    let dir = skill(parent.path());
    let mut register = Register::default();
    register
        .skills
        .insert(dir.clone(), entry(SkillDigest::of(&dir).unwrap(), true));
    register.write(&path).unwrap();
    assert_eq!(Register::read(&path).unwrap(), register);
    fs::write(&path, "{\"version\": 2, \"skills\": {}}").unwrap();
    assert!(Register::read(&path).is_err());
    fs::write(&path, "").unwrap();
    assert!(Register::read(&path).is_err());
}

proptest! {
    #[test]
    fn no_other_bytes_pass_for_a_signature(at in 0_usize..64, flip in 1_u8..=255) {
        let parent = tempfile::tempdir().unwrap();
        let dir = skill(parent.path());
        let digest = SkillDigest::of(&dir).unwrap();
        let signature = SecretKey::from_seed(&[4; 32]).sign("weather", digest);
        let mut value = serde_json::to_value(&signature).unwrap();
        let hex = value["signature"].as_str().unwrap().to_owned();
        let byte = u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).unwrap() ^ flip;
        value["signature"] = format!("{}{byte:02x}{}", &hex[..2 * at], &hex[2 * at + 2..]).into();
        let changed: Signature = serde_json::from_value(value).unwrap();
        prop_assert!(!changed.holds("weather", digest));
    }
}
