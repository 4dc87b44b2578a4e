//! Real files on a real disk: killed writers, live files, stores, hostile content.

use std::cell::Cell;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use crate::common::{lines, made_up, text};
use holdfast_contract::redact::Redactor;
use holdfast_transcript::checkpoint::{
    CheckpointError, Operation, archive_and_reset, checkpoint, checkpoints, roll_back,
};
use holdfast_transcript::discover::{Candidate, Claim, candidates};
use holdfast_transcript::scan::{Action, Report, scan, scan_bytes};
use holdfast_transcript::write::{RepairError, repair_bytes, repair_file};
use holdfast_transcript::{Fault, Format, Strategy};

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    u64::try_from(since.expect("after 1970").as_millis()).expect("fits")
}

/// A broken session: its first result is gone and a strange one is there.
fn broken(format: Format) -> String {
    let mut said = made_up().remove(3);
    let ghost = crate::common::Said {
        id: "ghost".to_owned(),
        ..crate::common::Said::new(
            0,
            crate::common::What::Result {
                call: "ghost".to_owned(),
                text: "boo".to_owned(),
            },
        )
    };
    said.insert(6, ghost);
    said.remove(2);
    text(&lines(format, &said))
}

/// Writes a file that nobody has written for a while.
fn quiet(dir: &Path, name: &str, content: &[u8]) -> PathBuf {
    let path = dir.join(name);
    fs::write(&path, content).expect("writes");
    make_quiet(&path);
    path
}

fn make_quiet(path: &Path) {
    let file = fs::File::options().write(true).open(path).expect("opens");
    file.set_modified(SystemTime::now() - Duration::from_mins(1))
        .expect("sets the time");
}

fn look(path: &Path, action: Action) -> Report {
    let candidate = Candidate {
        path: path.to_owned(),
        claim: Claim::Named,
    };
    scan(&candidate, action, now_ms(), &Redactor::default())
}

fn beside(path: &Path, mark: &str) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = fs::read_dir(path.parent().expect("a directory"))
        .expect("lists")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.to_string_lossy().contains(mark))
        .collect();
    found.sort();
    found
}

#[test]
fn a_repair_keeps_mode_and_backup_and_is_done_once() {
    let dir = tempfile::tempdir().expect("a directory");
    let old = broken(Format::OpenClaw);
    let path = quiet(dir.path(), "s.jsonl", old.as_bytes());
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).expect("sets the mode");
    let report = look(&path, Action::Repair(Strategy::Reconstruct));
    assert_eq!(
        (report.findings.len(), report.repaired, report.error),
        (2, 2, None)
    );
    assert_eq!(fs::metadata(&path).expect("there").mode() & 0o7777, 0o640);
    assert_eq!(
        fs::read_to_string(report.backup.expect("a backup")).expect("reads"),
        old
    );
    assert_eq!(
        look(&path, Action::Repair(Strategy::Reconstruct)).findings,
        Vec::new()
    );
    assert_eq!(beside(&path, ".lock"), Vec::<PathBuf>::new());
    assert_eq!(beside(&path, ".holdfast-new"), Vec::<PathBuf>::new());
}

#[test]
fn only_so_many_backups_are_kept() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("s.jsonl");
    for _ in 0..9 {
        quiet(dir.path(), "s.jsonl", broken(Format::Anthropic).as_bytes());
        let report = look(&path, Action::Repair(Strategy::Truncate));
        assert_eq!(report.error, None);
    }
    assert_eq!(
        beside(&path, ".holdfast-backup-").len(),
        holdfast_transcript::limits::BACKUPS_MAX
    );
}

#[test]
fn a_link_stays_a_link() {
    let dir = tempfile::tempdir().expect("a directory");
    let real = quiet(dir.path(), "real.jsonl", broken(Format::Codex).as_bytes());
    let link = dir.path().join("link.jsonl");
    std::os::unix::fs::symlink(&real, &link).expect("links");
    assert_eq!(
        look(&link, Action::Repair(Strategy::RemoveOrphans)).error,
        None
    );
    assert!(fs::symlink_metadata(&link).expect("there").is_symlink());
    assert_eq!(look(&real, Action::Report).findings.len(), 1);
}

#[test]
fn live_files_are_left_alone_and_said_so() {
    let dir = tempfile::tempdir().expect("a directory");
    let old = broken(Format::OpenClaw);
    let path = quiet(dir.path(), "s.jsonl", old.as_bytes());
    let untouched = |why: &str| {
        let report = look(&path, Action::Repair(Strategy::RemoveOrphans));
        let said = report.left_alone.unwrap_or_default();
        assert!(said.contains(why), "{said:?} is not {why:?}");
        assert_eq!(fs::read_to_string(&path).expect("reads"), old);
        assert_eq!(beside(&path, ".holdfast-"), Vec::<PathBuf>::new());
    };
    // A living process's lock, as OpenClaw writes it.
    let mut other = Command::new("sleep").arg("60").spawn().expect("starts");
    let lock = dir.path().join("s.jsonl.lock");
    fs::write(
        &lock,
        format!(
            "{{\"pid\": {}, \"createdAt\": \"2026-11-15T00:00:00.000Z\"}}",
            other.id()
        ),
    )
    .expect("writes");
    untouched("holds its lock");
    other.kill().expect("ends");
    other.wait().expect("ended");
    fs::remove_file(&lock).expect("removes");
    // A process that has it open to write.
    let append = format!("exec >>'{}'; read wait", path.display());
    let mut writer = Command::new("sh")
        .args(["-c", &append])
        .stdin(std::process::Stdio::piped())
        .spawn()
        .expect("starts");
    let fds = format!("/proc/{}/fd", writer.id());
    while !fs::read_dir(&fds)
        .expect("lists")
        .any(|fd| fs::read_link(fd.expect("an entry").path()).is_ok_and(|to| to == path))
    {
        std::thread::yield_now();
    }
    make_quiet(&path);
    untouched("has it open to write");
    drop(writer.stdin.take());
    writer.wait().expect("ended");
    // Written just now.
    fs::write(&path, &old).expect("writes");
    untouched("ms ago");
    // A stale lock is no reason.
    make_quiet(&path);
    fs::write(&lock, "{\"pid\": 999999999}").expect("writes");
    // Its process may be in a container that can not be looked into.
    untouched("holds its lock");
    let hour_ago = SystemTime::now() - Duration::from_hours(1);
    let file = fs::File::options().write(true).open(&lock).expect("opens");
    file.set_modified(hour_ago).expect("sets the time");
    assert_eq!(
        look(&path, Action::Repair(Strategy::RemoveOrphans)).repaired,
        1
    );
}

#[test]
fn an_append_in_the_last_moment_is_not_lost() {
    let dir = tempfile::tempdir().expect("a directory");
    let old = broken(Format::OpenClaw);
    let path = quiet(dir.path(), "s.jsonl", old.as_bytes());
    let result = repair_file(&path, Strategy::Truncate, now_ms(), &|step| {
        if step == holdfast_transcript::write::Step::Rename {
            let mut file = fs::File::options().append(true).open(&path).expect("opens");
            file.write_all(b"{\"type\":\"custom\",\"id\":\"late\",\"parentId\":null}\n")
                .expect("appends");
        }
    });
    assert!(result.is_err_and(|error| error.is_live()));
    assert!(
        fs::read_to_string(&path)
            .expect("reads")
            .ends_with("\"late\",\"parentId\":null}\n")
    );
}

const KILLED: &str = "HOLDFAST_TEST_KILLED_FILE";

/// Not a test of its own: what [`a_kill_at_any_step_leaves_the_old_or_the_new_file`] kills.
#[test]
fn killed_child() {
    let Ok(file) = std::env::var(KILLED) else {
        return;
    };
    let (at, file) = file.split_once(':').expect("a step and a file");
    let at: u32 = at.parse().expect("a number");
    let steps = Cell::new(0);
    let repaired = repair_file(Path::new(file), Strategy::Reconstruct, now_ms(), &|_| {
        steps.set(steps.get() + 1);
        if steps.get() == at {
            let own = rustix::process::getpid();
            rustix::process::kill_process(own, rustix::process::Signal::KILL).expect("kills");
        }
    });
    assert!(repaired.is_ok(), "{repaired:?}");
}

#[test]
fn a_kill_at_any_step_leaves_the_old_or_the_new_file() {
    let dir = tempfile::tempdir().expect("a directory");
    // Long enough for several writes.
    let old = broken(Format::OpenClaw).replace("boo", &"boo ".repeat(300_000));
    let old = old.replace("line 0", &"x".repeat(700_000));
    let new = repair_bytes(old.as_bytes(), Strategy::Reconstruct)
        .expect("a session")
        .expect("broken");
    let mut killed = 0;
    for step in 1.. {
        let path = quiet(dir.path(), "s.jsonl", old.as_bytes());
        let child = Command::new(std::env::current_exe().expect("this test"))
            .args(["--exact", "files::killed_child"])
            .env(KILLED, format!("{step}:{}", path.display()))
            .output()
            .expect("runs");
        let found = fs::read(&path).expect("there");
        assert!(found == old.as_bytes() || found == new, "step {step}");
        if child.status.success() {
            break;
        }
        killed += 1;
        // What the killed one left is not in the way of the next.
        make_quiet(&path);
        let again = repair_file(&path, Strategy::Reconstruct, now_ms(), &|_| {}).expect("repairs");
        assert_eq!(again.is_some(), found == old.as_bytes());
        assert_eq!(fs::read(&path).expect("there"), new);
    }
    assert!(killed >= 8, "only {killed} steps");
}

#[test]
fn hostile_content_is_read_to_its_end() {
    let user = br#"{"role":"user","content":"a"}"#;
    let cases: [(&str, Vec<u8>, usize); 8] = [
        (
            "a byte order mark before a document",
            [&b"\xef\xbb\xbf["[..], user, b",", user, b"]"].concat(),
            0,
        ),
        (
            "NUL bytes",
            [user, &b"\n"[..], &[0; 5000], b"\n", user].concat(),
            1,
        ),
        (
            "not UTF-8",
            [
                user,
                &b"\n{\"role\":\"user\",\"content\":\"\xff\xfe\"}\n"[..],
                user,
            ]
            .concat(),
            1,
        ),
        ("CRLF", [user, &b"\r\n"[..], user, b"\r\n"].concat(), 0),
        ("no final newline", [user, &b"\n"[..], user].concat(), 0),
        (
            "half a last line",
            [user, &b"\n{\"role\":\"assist"[..]].concat(),
            1,
        ),
        (
            "blank lines",
            [&b"\n\n  \n"[..], user, b"\n\n\n"].concat(),
            0,
        ),
        (
            "a byte order mark",
            [&b"\xef\xbb\xbf"[..], user, b"\n", user, b"\n", user].concat(),
            0,
        ),
    ];
    for (what, bytes, invalid) in cases {
        let report = scan_bytes("-", &bytes).expect(what);
        let found = report
            .findings
            .iter()
            .filter(|found| found.fault == Fault::InvalidLine)
            .count();
        assert_eq!(
            (found, report.findings.len()),
            (invalid, invalid),
            "{what}: {:?}",
            report.findings
        );
        for strategy in Strategy::ALL {
            let repaired = repair_bytes(&bytes, strategy).expect(what);
            assert_eq!(repaired.is_some(), invalid > 0, "{what}");
        }
    }
}

#[test]
fn a_line_of_a_hundred_megabytes() {
    let dir = tempfile::tempdir().expect("a directory");
    let long = format!(
        "{{\"role\":\"user\",\"content\":\"{}\"}}\n",
        "a\\n".repeat(33_400_000)
    );
    assert!(long.len() > 100_000_000);
    let orphan = "{\"role\":\"tool\",\"tool_call_id\":\"x\",\"content\":\"\"}\n";
    let path = quiet(
        dir.path(),
        "long.jsonl",
        format!("{long}{orphan}").as_bytes(),
    );
    let report = look(&path, Action::Repair(Strategy::RemoveOrphans));
    assert_eq!((report.repaired, report.error), (1, None));
    assert_eq!(report.findings[0].offset, long.len() as u64);
    assert_eq!(fs::read(&path).expect("reads"), long.as_bytes());
}

#[test]
fn loops_of_links_and_what_vanishes() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = quiet(dir.path(), "s.jsonl", broken(Format::ClaudeCode).as_bytes());
    let link = |from: &str, to: &str| {
        std::os::unix::fs::symlink(to, dir.path().join(from)).expect("links");
    };
    link("self", ".");
    // The same session by another name: it is not mended twice.
    link("again.jsonl", "s.jsonl");
    link("a.jsonl", "b.jsonl");
    link("b.jsonl", "a.jsonl");
    link("gone.jsonl", "nowhere.jsonl");
    let mut failed = Vec::new();
    let found = candidates(dir.path(), &mut |path, error| {
        failed.push((path.to_owned(), error.to_string()));
    });
    assert_eq!(
        found.iter().map(|found| &found.path).collect::<Vec<_>>(),
        [&path]
    );
    assert_eq!(failed.len(), 3, "{failed:?}");
    fs::remove_file(&path).expect("removes");
    let error = look(&path, Action::Report).error.unwrap_or_default();
    assert!(error.contains("No such file"), "{error}");
}

#[test]
fn checkpoints_lead_back_if_nothing_before_them_changed() {
    let dir = tempfile::tempdir().expect("a directory");
    let all = text(&lines(Format::OpenClaw, &made_up()[2]));
    let half: String = all.split_inclusive('\n').take(9).collect();
    let path = quiet(dir.path(), "s.jsonl", half.as_bytes());
    let made =
        checkpoint(&path, Operation::ToolCycle, "c1".to_owned(), now_ms()).expect("makes one");
    assert_eq!((made.session_id.as_str(), made.message_index), ("s1", 9));
    assert_eq!(checkpoints(&path).expect("lists"), [made]);
    quiet(dir.path(), "s.jsonl", all.as_bytes());
    let backup = roll_back(&path, "c1", now_ms()).expect("goes back");
    assert_eq!(fs::read_to_string(&path).expect("reads"), half);
    assert_eq!(fs::read_to_string(backup).expect("reads"), all);
    // The beginning is another one now, also in the backups.
    for backup in beside(&path, ".holdfast-backup-") {
        fs::remove_file(backup).expect("removes");
    }
    quiet(
        dir.path(),
        "s.jsonl",
        all.replace("Let me look.", "Let me see.").as_bytes(),
    );
    assert!(matches!(
        roll_back(&path, "c1", now_ms()),
        Err(CheckpointError::Changed)
    ));
    assert!(matches!(
        roll_back(&path, "c9", now_ms()),
        Err(CheckpointError::NotFound(_))
    ));
}

#[test]
fn a_checkpoint_from_before_a_repair_is_in_its_backup() {
    let dir = tempfile::tempdir().expect("a directory");
    let old = broken(Format::OpenClaw);
    let path = quiet(dir.path(), "s.jsonl", old.as_bytes());
    checkpoint(&path, Operation::Manual, "c1".to_owned(), now_ms()).expect("makes one");
    assert_eq!(
        look(&path, Action::Repair(Strategy::Reconstruct)).error,
        None
    );
    make_quiet(&path);
    roll_back(&path, "c1", now_ms()).expect("goes back");
    assert_eq!(fs::read_to_string(&path).expect("reads"), old);
}

#[test]
fn reset_archives_first() {
    let dir = tempfile::tempdir().expect("a directory");
    let old = broken(Format::OpenClaw);
    let path = quiet(dir.path(), "s.jsonl", old.as_bytes());
    let archive = archive_and_reset(&path, now_ms()).expect("resets");
    assert_eq!(fs::read_to_string(archive).expect("reads"), old);
    let header = crate::common::header(Format::OpenClaw).expect("a header");
    assert_eq!(fs::read_to_string(&path).expect("reads"), header + "\n");
    // What we wrote ourselves a moment ago is not in use; what somebody else wrote is.
    archive_and_reset(&path, now_ms()).expect("resets again");
    fs::write(&path, &old).expect("writes");
    assert!(matches!(
        archive_and_reset(&path, now_ms()),
        Err(CheckpointError::Session(RepairError::Replace(_)))
    ));
}
