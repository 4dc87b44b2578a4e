//! Calls that change nothing leave no point.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use holdfast_undo::{Coverage, Options, Where};

use crate::tree::{Room, also, assert_same};

fn anywhere(room: &Room, command: &str) -> Option<holdfast_undo::Point> {
    room.called(command, &Where::Anywhere)
}

#[test]
fn call_that_changes_nothing_leaves_no_point() {
    let room = Room::new();
    room.write("src/a", "a");
    let was = room.snapshot();
    let point = room.call("rm -rf src");
    assert!(anywhere(&room, "ls").is_none());
    let paths = Where::Paths(vec!["new".into()]);
    assert!(room.called("true", &paths).is_none());
    let listed = room.store().list(&room.work()).unwrap();
    assert_eq!(listed.last().unwrap().id, point.id);
    // No later point is in the way.
    room.undo(&point);
    assert_same(&was, &room.snapshot(), "after undo");
    // Nothing of the calls is left behind.
    let left = fs::read_dir(room.state().join("undo/workspaces")).unwrap();
    for workspace in left.map(|it| it.unwrap().path()) {
        let holders = fs::read_dir(workspace.join("holders")).unwrap();
        assert_eq!(holders.count(), 0);
    }
}

#[test]
fn calls_that_change_nothing_push_no_point_out() {
    let mut room = Room::new();
    room.settings.points_max = 2;
    room.write("a", "0");
    let point = room.call("rm a");
    for _ in 0..5 {
        assert!(anywhere(&room, "ls").is_none());
    }
    room.undo(&point);
    assert_eq!(room.read("a").as_deref(), Some("0"));
}

#[test]
fn numbers_of_removed_points_are_not_given_again() {
    let room = Room::new();
    let store = room.store();
    let open = store.before(&room.work(), "ls", &Where::Anywhere).unwrap();
    let id = open.id().unwrap().to_owned();
    assert!(store.after(open).unwrap().is_none());
    assert_ne!(room.call("echo x > x").id, id);
}

#[test]
fn overlapping_calls_that_change_nothing_leave_no_point() {
    let room = Room::new();
    room.write("a", "0");
    let store = room.store();
    let paths = Where::Paths(vec!["a".into()]);
    let one = store.before(&room.work(), "one", &paths).unwrap();
    let two = store.before(&room.work(), "two", &Where::Anywhere).unwrap();
    assert!(store.after(one).unwrap().is_some(), "the other still runs");
    assert!(store.after(two).unwrap().is_none());
    assert!(store.list(&room.work()).unwrap().is_empty());
}

#[test]
fn time_stamp_is_a_change() {
    let room = Room::new();
    room.write("a", "0");
    let was = room.snapshot();
    let point = room.call("touch -d 2001-02-03 a");
    room.undo(&point);
    assert_same(&was, &room.snapshot(), "after undo");
}

#[test]
fn dropped_call_that_changed_nothing_keeps_its_point() {
    let room = Room::new();
    room.write("a", "0");
    let store = room.store();
    let open = store.before(&room.work(), "one", &Where::Anywhere).unwrap();
    let id = open.id().unwrap().to_owned();
    drop(open);
    // The state after it is taken by the undo itself, which still finds the point.
    store.undo(&id, &Options::default()).unwrap();
    assert!(store.find(&id).unwrap().interrupted);
}

#[test]
fn undo_that_changed_nothing_keeps_its_point() {
    let room = Room::new();
    room.write("a", "0");
    let point = room.call("echo 1 > a");
    room.write("a", "mine");
    let undone = room.undo(&point);
    assert_eq!(undone.conflicts.len(), 1);
    let found = room.store().find(&point.id).unwrap();
    assert_eq!(found.taken_back_by, Some(undone.new_point.unwrap().id));
}

#[test]
fn point_stays_where_left_out_content_may_have_changed() {
    let room = Room::new();
    // The git directory names no worktree here, so undo does not read it.
    fs::create_dir(room.dir.path().join("other")).unwrap();
    room.sh("cd ../other && git init -q . && echo 'gitdir: ../other/.git' > ../work/.git");
    let point = anywhere(&room, "ls").unwrap();
    assert_eq!(point.coverage, Coverage::Partial);
}

#[test]
fn left_out_directories_of_tools_keep_no_point() {
    let mut room = Room::new();
    room.settings.file_bytes_max = 1000;
    room.write("web/package.json", "{}");
    room.write("web/node_modules/x", "x");
    room.write(".gitignore", "node_modules\n");
    room.write("large", &"x".repeat(2000));
    assert!(anywhere(&room, "echo y > web/node_modules/y").is_none());
    // A large file shows that it changed, but its content is not kept.
    assert!(anywhere(&room, "echo y >> large").is_some());
}

#[test]
fn point_stays_that_stands_for_an_unknown_state() {
    let mut room = Room::new();
    room.settings.files_max = 4;
    room.write("a", "0");
    // Over budget after the call: the state after it is not known.
    let point = room.call("echo 1 > a; touch b c d e f");
    assert!(!room.store().show(&point.id).unwrap().after_known);
    let next = room.called("true", &Where::Paths(vec!["a".into()]));
    assert!(next.is_some());
    // The one after it is needed by nobody.
    let last = room.called("true", &Where::Paths(vec!["a".into()]));
    assert!(last.is_none());
    room.write("a", "mine");
    let undone = room.store().undo(&point.id, &also()).unwrap();
    assert_eq!(undone.conflicts.len(), 1, "{undone:?}");
    assert_eq!(room.read("a").as_deref(), Some("mine"));
}

#[test]
fn expiry_between_calls_that_change_nothing_loses_nothing() {
    let room = Room::new();
    room.write("a", "0");
    fs::set_permissions(room.work().join("a"), PermissionsExt::from_mode(0o640)).unwrap();
    assert!(anywhere(&room, "ls").is_none());
    room.store().expire().unwrap();
    let was = room.snapshot();
    let point = room.call("rm a");
    room.undo(&point);
    assert_same(&was, &room.snapshot(), "after undo");
}
