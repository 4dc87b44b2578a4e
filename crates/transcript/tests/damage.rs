//! Damage that must not become a loss: what can not be read is kept, and what is not ours is left.

#![expect(
    clippy::expect_used,
    reason = "a helper that fails is a test that fails"
)]

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use holdfast_transcript::checkpoint::{CheckpointError, archive_and_reset};

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    u64::try_from(since.expect("after 1970").as_millis()).expect("fits")
}

/// Writes a file that nobody has written for a while.
fn quiet(dir: &Path, name: &str, content: &[u8]) -> PathBuf {
    let path = dir.join(name);
    fs::write(&path, content).expect("writes");
    let file = fs::File::options().write(true).open(&path).expect("opens");
    file.set_modified(SystemTime::now() - Duration::from_mins(1))
        .expect("sets the time");
    path
}

fn names(dir: &Path) -> usize {
    fs::read_dir(dir).expect("lists").count()
}

#[test]
fn what_is_no_session_is_not_reset() {
    let dir = tempfile::tempdir().expect("a directory");
    let cases: [(&str, &[u8]); 5] = [
        ("store.sqlite", b"SQLite format 3\0 and pages"),
        ("notes.txt", b"buy milk\nand bread\n"),
        (
            "package.json",
            b"{\n \"name\": \"x\",\n \"scripts\": {}\n}\n",
        ),
        ("setting.json", b"{\n \"role\": {\n  \"a\": 1\n }\n}\n"),
        ("image.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"),
    ];
    for (name, content) in cases {
        let path = quiet(dir.path(), name, content);
        let before = names(dir.path());
        let reset = archive_and_reset(&path, now_ms());
        assert!(
            matches!(reset, Err(CheckpointError::NotASession(_))),
            "{name}: {reset:?}"
        );
        assert_eq!(fs::read(&path).expect("reads"), content, "{name}");
        assert_eq!(names(dir.path()), before, "{name}");
    }
}

#[test]
fn what_is_left_of_a_session_is_reset() {
    let dir = tempfile::tempdir().expect("a directory");
    let cases: [(&str, &[u8]); 3] = [
        ("zeros.jsonl", &[0; 4096]),
        (
            "half.jsonl",
            b"{\"type\":\"message\",\"parentId\":\"a\",\"messa",
        ),
        ("torn.jsonl", b"\xffxx\"parentUuid\":null}\n\0\0\0\0"),
    ];
    for (name, content) in cases {
        let path = quiet(dir.path(), name, content);
        let archive = archive_and_reset(&path, now_ms()).expect(name);
        assert_eq!(fs::read(archive).expect("reads"), content, "{name}");
        assert_eq!(fs::read(&path).expect("reads"), b"", "{name}");
    }
}
