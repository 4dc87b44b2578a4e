//! One call, and its undo.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::PathBuf;

use holdfast_undo::{Content, Coverage, Options, Origin, Thing, UndoError, What, Where};

use crate::tree::{Room, also, assert_same, snapshot};

const REPOSITORY: &str = "git init -q . && git config user.email a@b && git config user.name a \
    && echo one > src/a && echo two > b && git add . && git commit -qm first \
    && echo three > src/a && git commit -qam second";

#[test]
fn removed_repository_and_sources_come_back_whole() {
    let room = Room::new();
    room.write("src/deep/er/x", "x");
    room.sh(REPOSITORY);
    let was = room.snapshot();
    let point = room.call("rm -rf .git src");
    assert_eq!(room.read("src/a"), None);
    let undone = room.undo(&point);
    assert!(
        undone.conflicts.is_empty() && undone.failed.is_empty(),
        "{undone:?}"
    );
    assert_same(&was, &room.snapshot(), "after undo");
}

#[test]
fn undo_is_undone_by_undoing_its_point() {
    let room = Room::new();
    room.write("a", "one");
    let point = room.call("echo two > a; mkdir d; echo x > d/x; ln -s a l; chmod 600 a");
    let changed = room.snapshot();
    let undone = room.undo(&point);
    assert_eq!(room.read("a").as_deref(), Some("one"));
    let new = undone.new_point.unwrap();
    assert_eq!(
        new.origin,
        Origin::Undo {
            of: point.id.clone()
        }
    );
    room.undo(&new);
    assert_same(&changed, &room.snapshot(), "after undo of undo");
    // The call is in force again, and can be undone again.
    let again = room.undo(&point);
    assert!(again.conflicts.is_empty(), "{again:?}");
    assert_eq!(room.read("a").as_deref(), Some("one"));
}

#[test]
fn odd_names_modes_links_and_holes_come_back() {
    let room = Room::new();
    let work = room.work();
    let odd = OsStr::from_bytes(b"not utf-8 \xff\xfe \n end");
    fs::write(work.join(odd), "odd").unwrap();
    fs::write(work.join("x".repeat(255)), "long").unwrap();
    fs::create_dir(work.join("empty")).unwrap();
    fs::create_dir(work.join("sticky")).unwrap();
    fs::set_permissions(work.join("sticky"), PermissionsExt::from_mode(0o1777)).unwrap();
    room.sh(
        "echo r > ro; chmod 400 ro; mkdir rodir; echo i > rodir/i; chmod 555 rodir; \
        ln -s /etc/passwd out; ln -s nowhere dangling; truncate -s 3000000 holes; \
        printf x | dd of=holes bs=1 seek=2000000 conv=notrunc; echo s > s; chmod 4755 s; \
        touch -d 2001-02-03 old; touch -h -d 2002-02-03 dangling; echo h > h1; ln h1 h2; \
        p=$(printf 'n%.0s' {1..200}); for i in {1..30}; do mkdir $p; cd $p; done; echo deep > deep",
    );
    let was = room.snapshot();
    let point = room.call("chmod -R u+w .; rm -rf ./* && echo new > s");
    assert_eq!(point.coverage, Coverage::Full);
    let undone = room.undo(&point);
    assert!(
        undone.failed.is_empty() && undone.conflicts.is_empty(),
        "{undone:?}"
    );
    assert_same(&was, &room.snapshot(), "after undo");
    // A hole of the original is a hole in the copy: its blocks are not written.
    assert!(fs::metadata(work.join("holes")).unwrap().blocks() < 1000);
}

#[test]
fn store_is_for_its_owner_alone_and_shares_no_file() {
    let room = Room::new();
    room.write("a", "secret");
    room.sh("truncate -s 2M big; ln a other");
    room.call("echo b > b");
    let links = fs::metadata(room.work().join("a")).unwrap().nlink();
    assert_eq!(links, 2, "the store never links to a file of the workspace");
    let mut left = vec![room.state().join("undo")];
    while let Some(path) = left.pop() {
        let stat = fs::symlink_metadata(&path).unwrap();
        let mode = stat.mode() & 0o777;
        if stat.is_dir() {
            assert_eq!(mode, 0o700, "{}", path.display());
            left.extend(
                fs::read_dir(&path)
                    .unwrap()
                    .map(|entry| entry.unwrap().path()),
            );
        } else {
            assert_eq!(mode, 0o600, "{}", path.display());
            assert_eq!(stat.nlink(), 1);
        }
    }
}

#[test]
fn same_content_is_kept_once() {
    let room = Room::new();
    for number in 0..50 {
        room.write(&format!("f{number}"), &"same".repeat(2000));
    }
    room.call("echo new > new");
    room.call("touch f1; cp f1 g");
    let objects = walk_files(&room.state().join("undo/objects"));
    let large = objects.iter().filter(|size| **size >= 8000).count();
    assert_eq!(large, 1);
}

fn walk_files(dir: &std::path::Path) -> Vec<u64> {
    let mut sizes = Vec::new();
    for entry in fs::read_dir(dir).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_dir() {
            sizes.extend(walk_files(&entry.path()));
        } else {
            sizes.push(entry.metadata().unwrap().len());
        }
    }
    sizes
}

#[test]
fn two_changes_within_one_tick_are_both_seen() {
    let room = Room::new();
    for round in 0..40 {
        room.write("a", &format!("{round:04}"));
        assert!(room.called("true", &Where::Anywhere).is_none());
        // The same length, and often the same time stamp.
        room.write("a", &format!("{:04}", 9000 + round));
        let next = room.call("rm a");
        room.undo(&next);
        assert_eq!(room.read("a"), Some(format!("{:04}", 9000 + round)));
    }
}

#[test]
fn shown_diff_names_what_a_call_did() {
    let room = Room::new();
    room.write("text", "one\ntwo\nthree\n");
    room.write("gone", "x\n");
    room.write("mode", "m\n");
    room.sh("printf 'a\\0b' > binary; ln -s text link");
    let point = room.call(
        "sed -i s/two/2/ text; rm gone; chmod 755 mode; printf 'a\\0c' > binary; \
         ln -sf mode link; mkdir new; echo n > new/n",
    );
    let diff = room.store().show(&point.id).unwrap();
    let find = |path: &str| {
        let found = diff.changes.iter().find(|shown| shown.path == *path);
        found.unwrap_or_else(|| panic!("{path} is not in {:?}", diff.changes))
    };
    let Content::Text(text) = &find("text").content else {
        panic!("{:?}", find("text"))
    };
    assert!(text.contains("-two\n+2\n"), "{text}");
    assert_eq!(find("gone").what, What::Removed);
    assert_eq!(
        find("gone").content,
        Content::Text("@@ -1 +0,0 @@\n-x\n".to_owned())
    );
    assert_eq!(find("mode").what, What::Attributes);
    assert_eq!(find("binary").content, Content::Binary);
    assert_eq!(find("link").new, Some(Thing::Link { to: "mode".into() }));
    assert_eq!(find("new").what, What::Added);
    assert_eq!(find("new/n").what, What::Added);
    assert_eq!(diff.changes.len(), 7);
}

#[test]
fn later_calls_are_asked_about_and_taken_back_too() {
    let room = Room::new();
    room.write("a", "0");
    let was = room.snapshot();
    let first = room.call("echo 1 > a");
    let second = room.call("echo 2 > a; echo b > b");
    let refused = room.store().undo(&first.id, &Options::default());
    let Err(UndoError::AlsoTakesBack(points)) = refused else {
        panic!("{refused:?}")
    };
    assert_eq!(points.len(), 1);
    assert_eq!(points[0].id, second.id);
    assert_eq!(room.read("a").as_deref(), Some("2\n"));
    let undone = room.store().undo(&first.id, &also()).unwrap();
    assert_eq!(undone.also_takes_back, points);
    assert_same(&was, &room.snapshot(), "after undo of both");
    let refused = room.store().undo(&second.id, &also());
    assert!(
        matches!(refused, Err(UndoError::TakenBack { .. })),
        "{refused:?}"
    );
}

#[test]
fn stepwise_undo_asks_nothing() {
    let room = Room::new();
    room.write("a", "0");
    let was = room.snapshot();
    let first = room.call("echo 1 > a");
    let second = room.call("echo 2 > a");
    room.undo(&second);
    room.undo(&first);
    assert_same(&was, &room.snapshot(), "after two undos");
}

#[test]
fn dry_run_changes_nothing() {
    let room = Room::new();
    room.write("a", "0");
    let point = room.call("rm a");
    let was = room.snapshot();
    let options = Options {
        dry_run: true,
        ..Default::default()
    };
    let undone = room.store().undo(&point.id, &options).unwrap();
    assert_eq!(undone.restored[0].what, What::Added);
    assert!(undone.new_point.is_none());
    assert_same(&was, &room.snapshot(), "after a dry run");
    assert_eq!(room.store().list(&room.work()).unwrap().len(), 1);
}

#[test]
fn point_is_found_by_its_call() {
    let room = Room::new();
    let point = room.call("echo x > x");
    assert_eq!(room.store().find("echo x > x").unwrap().id, point.id);
    assert!(matches!(
        room.store().find("nothing"),
        Err(UndoError::Unknown(_))
    ));
}

#[test]
fn removed_workspace_comes_back() {
    let room = Room::new();
    room.write("a/b", "c");
    let was = room.snapshot();
    let point = room.call("rm -rf \"$PWD\"");
    assert!(!room.work().exists());
    room.undo(&point);
    assert_same(&was, &room.snapshot(), "after undo");
}

#[test]
fn linked_worktree_has_its_shared_git_directory_kept() {
    let room = Room::new();
    let main = room.dir.path().join("main");
    fs::create_dir_all(main.join("src")).unwrap();
    room.sh(&format!(
        "cd {0} && {REPOSITORY} && git worktree add -q ../work -f",
        main.display()
    ));
    let (was, git) = (room.snapshot(), snapshot(&main.join(".git")));
    let point = room.call(
        "echo x > x && git add x && git commit -qm third && git branch -D x; \
        rm -rf ../main/.git/refs ../main/.git/worktrees",
    );
    let undone = room.undo(&point);
    assert!(
        undone.conflicts.is_empty() && undone.failed.is_empty(),
        "{undone:?}"
    );
    assert_same(&was, &room.snapshot(), "the worktree");
    assert_same(
        &git,
        &snapshot(&main.join(".git")),
        "the shared git directory",
    );
}

#[test]
fn git_file_that_points_to_a_stranger_is_not_followed() {
    let room = Room::new();
    let other = room.dir.path().join("other");
    fs::create_dir(&other).unwrap();
    room.sh(&format!("cd {} && git init -q .", other.display()));
    room.sh("echo 'gitdir: ../other/.git' > .git");
    let point = room.call("rm -rf ../other/.git");
    assert_eq!(point.coverage, Coverage::Partial);
    room.undo(&point);
    assert!(!other.join(".git").exists());
}

#[test]
fn call_that_names_its_files_is_undone_without_reading_the_rest() {
    let mut room = Room::new();
    room.settings.files_max = 3;
    for number in 0..20 {
        room.write(&format!("f{number}"), "x");
    }
    room.write("d/keep", "k");
    let was = room.snapshot();
    let paths = vec![
        PathBuf::from("f1"),
        room.work().join("new/deep/file"),
        "d/y".into(),
    ];
    let point = room.call_where(
        "echo changed > f1; mkdir -p new/deep; echo n > new/deep/file; echo y > d/y",
        &Where::Paths(paths),
    );
    assert_eq!(point.coverage, Coverage::Full);
    assert_eq!(room.store().show(&point.id).unwrap().changes.len(), 5);
    let undone = room.undo(&point);
    assert!(undone.conflicts.is_empty(), "{undone:?}");
    assert_same(&was, &room.snapshot(), "after undo");
}

#[test]
fn what_a_call_made_unreadable_comes_back() {
    let room = Room::new();
    room.write("d/e/f", "f");
    room.write("d/g", "g");
    room.write("x/y", "y");
    room.write("z", "z");
    let was = room.snapshot();
    let point = room.call("rm d/e/f; chmod 000 z d/g d/e d; chmod 644 x");
    let undone = room.undo(&point);
    assert!(
        undone.conflicts.is_empty() && undone.failed.is_empty(),
        "{undone:?}"
    );
    assert_same(&was, &room.snapshot(), "after undo");
}
