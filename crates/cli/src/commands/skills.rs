//! `holdfast skills`

use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use holdfast_trust::config::SkillConfig;
use holdfast_trust::skill::{
    Entry, KeyError, PublicKey, Register, RegisterError, SecretKey, Signature, Signed, SkillDigest,
    SkillError, Standing, Verdict, is_skill, judge,
};
use serde_json::{Value, json};

use super::approvals::person_only;
use crate::app::App;
use crate::args::trust::{Require, SkillsCommand};
use crate::config::expand;
use crate::fail::{Failure, Outcome};
use crate::output::{self, harmless};

/// In the state directory, where no tool gets.
const REGISTER_FILE: &str = "skills.json";
const LOCK_FILE: &str = "skills.lock";

pub(super) fn run(app: &App, command: SkillsCommand, json: bool) -> Outcome<ExitCode> {
    match command {
        SkillsCommand::Verify {
            dirs,
            require,
            remember,
        } => verify(app, &dirs, require, remember, json),
        SkillsCommand::Pin { dirs, by } => {
            owner_only(app)?;
            pin(app, &dirs, &by.by, json)
        }
        SkillsCommand::Unpin { dirs } => {
            owner_only(app)?;
            unpin(app, &dirs, json)
        }
        SkillsCommand::Sign { key, dirs } => sign(&key, &dirs, json),
        SkillsCommand::Keygen { file } => keygen(&file, json),
    }
}

/// What is pinned is a person's word, like an answer. The state may not be there yet.
fn owner_only(app: &App) -> Outcome<()> {
    app.open_state()?;
    person_only(app)
}

/// Who changes the register is alone with it: it is read, changed and written as a whole.
fn lock(app: &App) -> Outcome<File> {
    let path = app.state_dir.join(LOCK_FILE);
    let mut options = File::options();
    let opened = options.create(true).append(true).mode(0o600).open(&path);
    let locked = opened.and_then(|file| file.lock().map(|()| file));
    locked
        .map_err(|error| Failure::failed(format!("{} can not be locked: {error}", path.display())))
}

fn unusable(error: &RegisterError) -> Failure {
    Failure::failed(error.to_string())
}

fn key_failure(error: &KeyError) -> Failure {
    Failure::failed(error.to_string())
}

/// Where to look, and what is found there.
struct Named {
    /// The skills that are named, or the directories that are configured.
    roots: Vec<PathBuf>,
    /// The skills.
    skills: Vec<PathBuf>,
}

/// The skills that are named; else all in the configured directories.
fn named(app: &App, register: &Register, dirs: &[PathBuf]) -> Outcome<Named> {
    let mut named = Named {
        roots: Vec::new(),
        skills: Vec::new(),
    };
    for dir in dirs {
        let dir = own_name(dir)?;
        if !register.skills.contains_key(&dir) {
            present(&dir)?;
        }
        named.roots.push(dir.clone());
        named.skills.push(dir);
    }
    if dirs.is_empty() {
        for dir in &app.config.trust.skills.dirs {
            let (root, skills) = beneath(dir)?;
            named.roots.push(root);
            named.skills.extend(skills);
        }
    }
    Ok(named)
}

fn unreadable_dir(dir: &Path) -> impl Fn(std::io::Error) -> Failure {
    move |error| Failure::usage(format!("{} can not be read: {error}", dir.display()))
}

/// Refuses what is not there, which is mostly misspelt.
fn present(dir: &Path) -> Outcome<()> {
    let looked = std::fs::symlink_metadata(dir);
    looked.map(|_| ()).map_err(unreadable_dir(dir))
}

/// The real place of a skill under the name it is used by: what a link leads to has another.
fn own_name(dir: &Path) -> Outcome<PathBuf> {
    let whole = std::path::absolute(dir).map_err(unreadable_dir(dir))?;
    let (Some(parent), Some(name)) = (whole.parent(), whole.file_name()) else {
        return whole.canonicalize().map_err(unreadable_dir(dir));
    };
    // Of what is gone the rest of the way may be gone too.
    let parent = parent
        .canonicalize()
        .unwrap_or_else(|_| parent.to_path_buf());
    Ok(parent.join(name))
}

/// A configured directory, and what in it may be taken for a skill.
fn beneath(written: &str) -> Outcome<(PathBuf, Vec<PathBuf>)> {
    let dir = expand(written);
    let default = SkillConfig::default();
    let dir = match dir.canonicalize() {
        Ok(dir) => dir,
        // Not everybody has the directory that nobody has named.
        Err(error)
            if error.kind() == ErrorKind::NotFound
                && default.dirs.iter().any(|it| it == written) =>
        {
            return Ok((own_name(&dir)?, Vec::new()));
        }
        Err(error) => return Err(unreadable_dir(&dir)(error)),
    };
    let mut found = Vec::new();
    for entry in std::fs::read_dir(&dir).map_err(unreadable_dir(&dir))? {
        let entry = entry.map_err(unreadable_dir(&dir))?;
        let kind = entry.file_type().map_err(unreadable_dir(&dir))?;
        let path = entry.path();
        let may_be_skill = if kind.is_symlink() {
            // Whatever it leads to, or will.
            !path.is_file()
        } else {
            is_skill(&path) || is_closed(&path)
        };
        if may_be_skill {
            found.push(path);
        }
    }
    found.sort();
    Ok((dir, found))
}

/// Whether nobody can tell what is in a directory.
fn is_closed(dir: &Path) -> bool {
    let looked = std::fs::read_dir(dir);
    looked.is_err_and(|error| error.kind() == ErrorKind::PermissionDenied)
}

fn name_of(dir: &Path) -> String {
    let name = dir.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

fn signed(app: &App, dir: &Path, digest: SkillDigest) -> Signed {
    let signature = match Signature::read(dir) {
        Ok(None) => return Signed::No,
        Ok(Some(signature)) => signature,
        Err(error) => return Signed::Broken(error.to_string()),
    };
    if !signature.holds(&name_of(dir), digest) {
        return Signed::Broken("it is not of this skill as it is".to_owned());
    }
    let keys = &app.config.trust.skills.keys;
    let owner = keys.iter().find(|(_, key)| {
        let key = key.parse::<PublicKey>();
        key.is_ok_and(|key| key == signature.key)
    });
    match owner {
        Some((owner, _)) => Signed::By(owner.clone()),
        None => Signed::ByStranger(signature.key),
    }
}

/// What is said of one skill.
struct Looked {
    dir: PathBuf,
    digest: Option<SkillDigest>,
    verdict: Verdict,
    note: String,
}

fn look(app: &App, register: &Register, dir: PathBuf) -> Looked {
    let pinned = register.skills.get(&dir).is_some_and(|it| it.pinned);
    let digest = match SkillDigest::of(&dir) {
        Ok(digest) => digest,
        Err(_) if pinned && std::fs::symlink_metadata(&dir).is_err() => return missing(dir),
        Err(error) => return unreadable(dir, &error),
    };
    let signed = signed(app, &dir, digest);
    let verdict = judge(digest, register.skills.get(&dir), &signed);
    let mut notes: Vec<String> = verdict.problems.iter().map(ToString::to_string).collect();
    match &signed {
        Signed::By(owner) => notes.push(format!("signed by {owner}")),
        Signed::ByStranger(key) => notes.push(format!("signed by {key}, which is not configured")),
        Signed::No | Signed::Broken(_) => {}
    }
    Looked {
        dir,
        digest: Some(digest),
        note: notes.join("; "),
        verdict,
    }
}

fn unreadable(dir: PathBuf, error: &SkillError) -> Looked {
    Looked {
        dir,
        digest: None,
        verdict: Verdict {
            standing: Standing::Unknown,
            problems: Vec::new(),
        },
        note: error.to_string(),
    }
}

/// Skills that somebody pinned where it was looked, and that are there no more.
fn gone(register: &Register, named: &Named) -> Vec<Looked> {
    let pinned = register.skills.iter().filter(|(dir, entry)| {
        let is_here = named.roots.iter().any(|root| dir.starts_with(root));
        entry.pinned && is_here && !named.skills.contains(dir) && !is_skill(dir)
    });
    pinned.map(|(dir, _)| missing(dir.clone())).collect()
}

/// Pinned skills outside of the configured directories that are not as they were: those that are need
/// no word.
fn pinned_elsewhere(register: &Register, named: &Named) -> Vec<PathBuf> {
    let pinned = register.skills.iter().filter(|(dir, entry)| {
        let is_here = named.roots.iter().any(|root| dir.starts_with(root));
        let is_same = SkillDigest::of(dir).is_ok_and(|digest| digest == entry.digest);
        entry.pinned && !is_here && !is_same
    });
    pinned.map(|(dir, _)| dir.clone()).collect()
}

fn missing(dir: PathBuf) -> Looked {
    Looked {
        dir,
        digest: None,
        verdict: Verdict {
            standing: Standing::Unknown,
            problems: Vec::new(),
        },
        note: "it is pinned, and gone; `holdfast skills unpin` forgets it".to_owned(),
    }
}

impl Looked {
    fn is_good(&self, require: Standing) -> bool {
        self.digest.is_some()
            && self.verdict.problems.is_empty()
            && self.verdict.standing >= require
    }

    fn view(&self, require: Standing) -> Value {
        let problems = self.verdict.problems.iter().map(ToString::to_string);
        json!({"skill": self.dir, "standing": self.verdict.standing, "digest": self.digest,
               "ok": self.is_good(require), "problems": problems.collect::<Vec<_>>(),
               "note": self.note})
    }
}

fn verify(
    app: &App,
    dirs: &[PathBuf],
    require: Option<Require>,
    remember: bool,
    json: bool,
) -> Outcome<ExitCode> {
    let require = match require {
        None => app.config.trust.skills.require,
        Some(Require::Unknown) => Standing::Unknown,
        Some(Require::Known) => Standing::Known,
        Some(Require::Signed) => Standing::Signed,
        Some(Require::Pinned) => Standing::Pinned,
    };
    let path = app.state_dir.join(REGISTER_FILE);
    let _lock = if remember {
        owner_only(app)?;
        Some(lock(app)?)
    } else {
        None
    };
    let mut register = Register::read(&path).map_err(|error| unusable(&error))?;
    if remember {
        for dir in named(app, &register, dirs)?.skills {
            if let Ok(digest) = SkillDigest::of(&dir) {
                register.skills.entry(dir).or_insert(Entry {
                    digest,
                    pinned: false,
                    at_ms: app.clock.now_ms(),
                    by: None,
                });
            }
        }
        register.write(&path).map_err(|error| unusable(&error))?;
    }
    let mut named = named(app, &register, dirs)?;
    if dirs.is_empty() {
        named.skills.extend(pinned_elsewhere(&register, &named));
    }
    let gone = gone(&register, &named);
    let skills = named.skills.into_iter();
    let looked: Vec<Looked> = skills
        .map(|it| look(app, &register, it))
        .chain(gone)
        .collect();
    let all_good = looked.iter().all(|it| it.is_good(require));
    if json {
        let shown: Vec<Value> = looked.iter().map(|it| it.view(require)).collect();
        output::json(&shown);
    } else if looked.is_empty() {
        output::line("There are no skills in trust.skills.dirs.");
    } else {
        let rows = looked.iter().map(|it| {
            let good = it.is_good(require);
            let mark = if good { "✓" } else { "✗" }.to_owned();
            let standing = it.verdict.standing.as_str().to_owned();
            vec![mark, name_of(&it.dir), standing, harmless(&it.note)]
        });
        output::line(&output::table(&["", "skill", "standing", ""], rows));
    }
    Ok(if all_good {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(1)
    })
}

fn digest_of(dir: &Path) -> Outcome<SkillDigest> {
    SkillDigest::of(dir).map_err(|error| Failure::failed(error.to_string()))
}

fn pin(app: &App, dirs: &[PathBuf], by: &str, json: bool) -> Outcome<ExitCode> {
    let _lock = lock(app)?;
    let path = app.state_dir.join(REGISTER_FILE);
    let mut register = Register::read(&path).map_err(|error| unusable(&error))?;
    for dir in named(app, &register, dirs)?.skills {
        let digest = digest_of(&dir)?;
        if json {
            output::json(&json!({"pinned": dir, "digest": digest}));
        } else {
            output::line(&harmless(&format!(
                "{} is pinned at {digest}",
                dir.display()
            )));
        }
        let entry = Entry {
            digest,
            pinned: true,
            at_ms: app.clock.now_ms(),
            by: Some(by.to_owned()),
        };
        register.skills.insert(dir, entry);
    }
    register.write(&path).map_err(|error| unusable(&error))?;
    Ok(ExitCode::SUCCESS)
}

fn unpin(app: &App, dirs: &[PathBuf], json: bool) -> Outcome<ExitCode> {
    let _lock = lock(app)?;
    let path = app.state_dir.join(REGISTER_FILE);
    let mut register = Register::read(&path).map_err(|error| unusable(&error))?;
    let mut forgotten = 0_u64;
    for dir in dirs {
        // A skill that is gone is still to be forgotten.
        let place = own_name(dir)?;
        if register.skills.remove(&place).is_none() {
            return Err(
                Failure::failed(format!("{} is not pinned", place.display()))
                    .hint("Name it by its path; `holdfast skills verify --json` shows them."),
            );
        }
        forgotten += 1;
    }
    register.write(&path).map_err(|error| unusable(&error))?;
    if json {
        output::json(&json!({"forgotten": forgotten}));
    } else {
        output::line(&format!("Forgot {}.", output::counted(forgotten, "skill")));
    }
    Ok(ExitCode::SUCCESS)
}

fn sign(key: &Path, dirs: &[PathBuf], json: bool) -> Outcome<ExitCode> {
    let key = SecretKey::read(key).map_err(|error| key_failure(&error))?;
    for dir in dirs {
        let dir = own_name(dir)?;
        present(&dir)?;
        let digest = digest_of(&dir)?;
        let signature = key.sign(&name_of(&dir), digest);
        signature.write(&dir).map_err(|error| key_failure(&error))?;
        if json {
            output::json(&json!({"signed": dir, "digest": digest, "key": key.public()}));
        } else {
            let shown = format!("{} is signed at {digest}", dir.display());
            output::line(&harmless(&shown));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn keygen(file: &Path, json: bool) -> Outcome<ExitCode> {
    let key = SecretKey::generate().map_err(|error| key_failure(&error))?;
    key.write_new(file).map_err(|error| key_failure(&error))?;
    if json {
        output::json(&json!({"key": key.public(), "file": file}));
    } else {
        output::line(&key.public().to_string());
    }
    Ok(ExitCode::SUCCESS)
}
