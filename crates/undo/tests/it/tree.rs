//! A directory with everything in it, to compare.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use holdfast_contract::Clock;
use holdfast_undo::{Options, Point, UndoSettings, UndoStore, Undone, Where};

/// Everything that undo promises to bring back of one path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    kind: &'static str,
    mode: u32,
    owner: (u32, u32),
    mtime: (i64, i64),
    content: Vec<u8>,
}

pub(crate) type Snapshot = BTreeMap<Vec<u8>, Seen>;

/// Reads a directory with everything in it.
pub(crate) fn snapshot(root: &Path) -> Snapshot {
    let mut found = Snapshot::new();
    read(root, root, &mut found);
    found
}

fn read(root: &Path, path: &Path, found: &mut Snapshot) {
    let Ok(stat) = fs::symlink_metadata(path) else {
        return;
    };
    let kind = stat.file_type();
    let (kind, content) = if kind.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            read(root, &entry.unwrap().path(), found);
        }
        ("dir", Vec::new())
    } else if kind.is_symlink() {
        let target = fs::read_link(path).unwrap();
        ("link", target.as_os_str().as_bytes().to_vec())
    } else if kind.is_fifo() || kind.is_socket() {
        ("special", Vec::new())
    } else {
        ("file", fs::read(path).unwrap())
    };
    let name = path.strip_prefix(root).unwrap().as_os_str().as_bytes();
    let seen = Seen {
        kind,
        mode: stat.mode() & 0o7777,
        owner: (stat.uid(), stat.gid()),
        mtime: (stat.mtime(), stat.mtime_nsec()),
        content,
    };
    found.insert(name.to_vec(), seen);
}

/// Fails with the paths that differ, and not with all their bytes.
pub(crate) fn assert_same(was: &Snapshot, is: &Snapshot, what: &str) {
    let names: std::collections::BTreeSet<_> = was.keys().chain(is.keys()).collect();
    let mut differ = Vec::new();
    for name in names {
        let (one, two) = (was.get(name), is.get(name));
        if one != two {
            let short = |seen: Option<&Seen>| {
                seen.map(|seen| {
                    let begins = &seen.content[..seen.content.len().min(40)];
                    format!(
                        "{} {:o} {:?} {:?} {} bytes {}",
                        seen.kind,
                        seen.mode,
                        seen.owner,
                        seen.mtime,
                        seen.content.len(),
                        begins.escape_ascii()
                    )
                })
            };
            differ.push(format!(
                "{}: {:?} -> {:?}",
                name.escape_ascii(),
                short(one),
                short(two)
            ));
        }
    }
    assert!(differ.is_empty(), "{what}:\n{}", differ.join("\n"));
}

/// A clock that stands until it is moved.
#[derive(Debug)]
pub(crate) struct Hand(AtomicU64);

impl Hand {
    pub(crate) fn forward(&self, ms: u64) {
        self.0.fetch_add(ms, Ordering::Relaxed);
    }
}

impl Clock for Hand {
    fn now_ms(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed)
    }
}

/// A workspace and a store beside it.
pub(crate) struct Room {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) clock: Arc<Hand>,
    pub(crate) settings: UndoSettings,
}

impl Room {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("work")).unwrap();
        fs::create_dir(dir.path().join("state")).unwrap();
        Self {
            dir,
            clock: Arc::new(Hand(AtomicU64::new(1_700_000_000_000))),
            // What the disk has does not matter here, and waiting for it takes long on a busy machine.
            settings: UndoSettings {
                durable: false,
                ..UndoSettings::default()
            },
        }
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.dir.path().join("work")
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.dir.path().join("state")
    }

    pub(crate) fn store(&self) -> UndoStore {
        let clock = Arc::clone(&self.clock) as Arc<dyn Clock>;
        UndoStore::open(&self.state(), self.settings.clone(), clock).unwrap()
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.work().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(crate) fn read(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.work().join(path)).ok()
    }

    /// Runs a command as a call.
    pub(crate) fn call(&self, command: &str) -> Point {
        self.call_where(command, &Where::Anywhere)
    }

    pub(crate) fn call_where(&self, command: &str, writes: &Where) -> Point {
        self.called(command, writes).unwrap()
    }

    /// Runs a command as a call that may change nothing.
    pub(crate) fn called(&self, command: &str, writes: &Where) -> Option<Point> {
        let store = self.store();
        let open = store.before(&self.work(), command, writes).unwrap();
        self.sh(command);
        store.after(open).unwrap()
    }

    /// Runs a command as a person would, without the store.
    pub(crate) fn sh(&self, command: &str) {
        let status = Command::new("bash")
            .args(["-c", command])
            .current_dir(self.work())
            .env("HOME", self.dir.path())
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .status();
        status.unwrap();
    }

    pub(crate) fn undo(&self, point: &Point) -> Undone {
        self.store().undo(&point.id, &Options::default()).unwrap()
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        snapshot(&self.work())
    }
}

/// Options that also take back later calls.
pub(crate) fn also() -> Options {
    Options {
        also: true,
        ..Options::default()
    }
}
