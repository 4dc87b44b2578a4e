//! Random trees, random commands: undo gives back every byte, mode, link and `.git`.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use holdfast_undo::{Options, Where};
use proptest::prelude::*;

use crate::tree::{Room, also, assert_same};

const NAMES: &[&[u8]] = &[
    b"a",
    b"b",
    b"c",
    b"dir",
    b"x y",
    b"-rf",
    b"\xff\xfe",
    b"new\nline",
    b".hidden",
    b"a-b",
];

/// One thing that is made or done.
#[derive(Debug, Clone)]
enum Deed {
    File(Vec<usize>, Vec<u8>, u32),
    Dir(Vec<usize>, u32),
    Link(Vec<usize>, Vec<usize>),
    HardLink(Vec<usize>, Vec<usize>),
    Remove(Vec<usize>),
    Rename(Vec<usize>, Vec<usize>),
    Mode(Vec<usize>, u32),
    Truncate(Vec<usize>, u64),
    Shell(usize),
}

const COMMANDS: &[&str] = &[
    "rm -rf .git",
    "rm -rf -- *",
    "git init -q . 2>/dev/null; git add -A; git -c user.name=a -c user.email=a@b commit -qm x",
    "git gc -q --prune=now",
    "git reset -q --hard; git clean -qfdx",
    "git checkout -q -b branch; git branch -D master",
    "git stash -q -u",
    "chmod -R a-w .",
    "chmod -R u+rwx .",
    "find . -name 'a*' -delete",
    "mv ./* dir 2>/dev/null",
    "for f in *; do echo more >> \"$f\"; done",
    "truncate -s 0 ./*",
    "ln -sfn /etc dir; ln -s . loop",
    "cp -a . /tmp/undo-copy-$$ && cp -a /tmp/undo-copy-$$ inner; rm -rf /tmp/undo-copy-$$",
    "mkdir -p p/q/r/s; echo deep > p/q/r/s/t; touch -d 1999-01-01 p/q",
    "find . -type f -exec touch {} +",
    "sed -i 's/a/b/' ./* 2>/dev/null",
];

fn path() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(0..NAMES.len(), 1..4)
}

fn mode() -> impl Strategy<Value = u32> {
    prop::sample::select(vec![
        0o644, 0o600, 0o755, 0o400, 0o444, 0o555, 0o700, 0o1777, 0o2755,
    ])
}

fn deed() -> impl Strategy<Value = Deed> {
    let content = prop::collection::vec(any::<u8>(), 0..200);
    prop_oneof![
        4 => (path(), content, mode()).prop_map(|(path, content, mode)| Deed::File(path, content, mode)),
        2 => (path(), mode()).prop_map(|(path, mode)| Deed::Dir(path, mode)),
        1 => (path(), path()).prop_map(|(path, to)| Deed::Link(path, to)),
        1 => (path(), path()).prop_map(|(path, to)| Deed::HardLink(path, to)),
        2 => path().prop_map(Deed::Remove),
        2 => (path(), path()).prop_map(|(from, to)| Deed::Rename(from, to)),
        1 => (path(), mode()).prop_map(|(path, mode)| Deed::Mode(path, mode)),
        1 => (path(), 0..5000_u64).prop_map(|(path, size)| Deed::Truncate(path, size)),
        3 => (0..COMMANDS.len()).prop_map(Deed::Shell),
    ]
}

fn real(path: &[usize]) -> PathBuf {
    path.iter()
        .map(|name| std::ffi::OsStr::from_bytes(NAMES[*name]))
        .collect()
}

/// Does a deed as far as the tree lets it.
fn act(room: &Room, deed: &Deed) {
    let work = room.work();
    let at = |path: &Vec<usize>| work.join(real(path));
    let above = |path: &Path| fs::create_dir_all(path.parent().unwrap());
    let chmod = |path: &Path, mode: u32| {
        // A link would have its target changed, which may lie anywhere.
        if fs::symlink_metadata(path).is_ok_and(|found| !found.is_symlink()) {
            // What its owner may not read is no matter of this property, unless the owner is root.
            let readable = if path.is_dir() { 0o500 } else { 0o400 };
            let _ = fs::set_permissions(path, PermissionsExt::from_mode(mode | readable));
        }
    };
    match deed {
        Deed::File(path, content, mode) => {
            let path = at(path);
            if above(&path).is_ok() && inside(&work, &path) && fs::write(&path, content).is_ok() {
                chmod(&path, *mode);
            }
        }
        Deed::Dir(path, mode) => {
            let path = at(path);
            if inside(&work, &path) && fs::create_dir_all(&path).is_ok() {
                chmod(&path, *mode);
            }
        }
        Deed::Link(path, to) => {
            let _ = std::os::unix::fs::symlink(real(to), at(path));
        }
        Deed::HardLink(path, to) => {
            let _ = fs::hard_link(at(to), at(path));
        }
        Deed::Remove(path) => {
            let path = at(path);
            if inside(&work, &path) {
                let _ = fs::remove_file(&path).or_else(|_| fs::remove_dir_all(&path));
            }
        }
        Deed::Rename(from, to) => {
            let _ = fs::rename(at(from), at(to));
        }
        Deed::Mode(path, mode) => {
            if inside(&work, &at(path)) {
                chmod(&at(path), *mode);
            }
        }
        Deed::Truncate(path, size) => {
            if inside(&work, &at(path)) {
                let _ = fs::OpenOptions::new()
                    .write(true)
                    .open(at(path))
                    .and_then(|file| file.set_len(*size));
            }
        }
        Deed::Shell(number) => room.sh(COMMANDS[*number]),
    }
}

/// Whether a path leads out of the workspace through no link.
fn inside(work: &Path, path: &Path) -> bool {
    path.ancestors()
        .take_while(|path| *path != work)
        .all(|path| !fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink()))
}

fn check(tree: &[Deed], calls: &[Vec<Deed>], with_git: bool, paths: Option<&Vec<Vec<usize>>>) {
    let room = Room::new();
    if with_git {
        room.sh(COMMANDS[2]);
    }
    for deed in tree {
        act(&room, deed);
    }
    let mut states = vec![room.snapshot()];
    let mut points = Vec::new();
    for call in calls {
        let store = room.store();
        let writes = paths.map_or(Where::Anywhere, |paths| {
            Where::Paths(paths.iter().map(|path| real(path)).collect())
        });
        let open = store.before(&room.work(), "call", &writes).unwrap();
        for deed in call {
            match (deed, paths) {
                // A call that names its paths writes nothing else.
                (Deed::File(_, content, mode), Some(paths)) => {
                    for path in paths {
                        act(&room, &Deed::File(path.clone(), content.clone(), *mode));
                    }
                }
                (_, Some(paths)) => act(&room, &Deed::Remove(paths[0].clone())),
                _ => act(&room, deed),
            }
        }
        let point = store.after(open).unwrap();
        let state = room.snapshot();
        match point {
            Some(point) => {
                points.push(point);
                states.push(state);
            }
            // Without a point there is nothing to undo.
            None => assert_same(&states[points.len()], &state, "without a point"),
        }
    }
    let store = room.store();
    if points.is_empty() {
        room.sh("chmod -R u+rwx .");
        return;
    }
    // One back, forth again, and then all of it at once.
    let last = points.len() - 1;
    let undone = store.undo(&points[last].id, &Options::default()).unwrap();
    assert!(
        undone.conflicts.is_empty() && undone.failed.is_empty(),
        "{undone:?}"
    );
    assert_same(
        &states[last],
        &room.snapshot(),
        "after undo of the last call",
    );
    store
        .undo(&undone.new_point.unwrap().id, &Options::default())
        .unwrap();
    assert_same(
        &states[last + 1],
        &room.snapshot(),
        "after undo of that undo",
    );
    let undone = store.undo(&points[0].id, &also()).unwrap();
    assert!(
        undone.conflicts.is_empty() && undone.failed.is_empty(),
        "{undone:?}"
    );
    assert_same(&states[0], &room.snapshot(), "after undo of all calls");
    room.sh("chmod -R u+rwx .");
}

fn cases() -> u32 {
    std::env::var("UNDO_CASES")
        .ok()
        .and_then(|cases| cases.parse().ok())
        .unwrap_or(40)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn undo_gives_back_every_byte_mode_and_link(
        tree in prop::collection::vec(deed(), 0..25),
        calls in prop::collection::vec(prop::collection::vec(deed(), 1..6), 1..4),
        with_git in any::<bool>(),
    ) {
        check(&tree, &calls, with_git, None);
    }

    #[test]
    fn undo_of_calls_that_name_their_files_gives_them_back(
        // Through a hard link, a call would change a path that it does not name.
        tree in prop::collection::vec(deed().prop_filter("hard link", |deed| !matches!(deed, Deed::HardLink(..))), 0..25),
        calls in prop::collection::vec(prop::collection::vec(deed(), 1..4), 1..4),
        paths in prop::collection::vec(path(), 1..4),
    ) {
        check(&tree, &calls, false, Some(&paths));
    }
}
