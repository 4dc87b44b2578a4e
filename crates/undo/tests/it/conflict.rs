//! What somebody changed after a call.

use holdfast_undo::{Options, What};

use crate::tree::{Room, also, assert_same};

fn force() -> Options {
    Options {
        force: true,
        ..Options::default()
    }
}

#[test]
fn file_changed_since_is_shown_and_kept() {
    let room = Room::new();
    room.write("a", "before");
    room.write("b", "before");
    let point = room.call("echo call > a; echo call > b");
    room.write("a", "mine");
    let undone = room.undo(&point);
    assert_eq!(room.read("a").as_deref(), Some("mine"));
    assert_eq!(room.read("b").as_deref(), Some("before"));
    assert_eq!(undone.conflicts.len(), 1);
    assert_eq!(undone.conflicts[0].path.to_str(), Some("a"));
    assert!(!undone.conflicts[0].overwritten);
}

#[test]
fn forced_undo_keeps_the_overwritten_version_in_its_point() {
    let room = Room::new();
    room.write("a", "before");
    let point = room.call("echo call > a");
    room.write("a", "mine");
    let undone = room.store().undo(&point.id, &force()).unwrap();
    assert_eq!(room.read("a").as_deref(), Some("before"));
    assert!(undone.conflicts[0].overwritten);
    room.undo(&undone.new_point.unwrap());
    assert_eq!(room.read("a").as_deref(), Some("mine"));
}

#[test]
fn conflict_that_undo_kept_can_be_forced_afterwards() {
    let room = Room::new();
    room.write("a", "before");
    let point = room.call("echo call > a");
    room.write("a", "mine");
    assert_eq!(room.undo(&point).conflicts.len(), 1);
    let undone = room.store().undo(&point.id, &force()).unwrap();
    assert_eq!(undone.restored.len(), 1);
    assert_eq!(room.read("a").as_deref(), Some("before"));
}

#[test]
fn own_files_in_a_directory_of_the_call_keep_it() {
    let room = Room::new();
    let point = room.call("mkdir d; echo call > d/theirs");
    room.write("d/mine", "mine");
    let undone = room.undo(&point);
    assert_eq!(room.read("d/mine").as_deref(), Some("mine"));
    assert_eq!(room.read("d/theirs"), None);
    assert_eq!(undone.conflicts.len(), 1);
    assert_eq!(undone.conflicts[0].path.to_str(), Some("d"));
}

#[test]
fn nothing_comes_back_below_a_file_that_took_its_directory() {
    let room = Room::new();
    room.write("d/a", "a");
    let point = room.call("rm -rf d");
    room.write("d", "mine");
    let undone = room.undo(&point);
    assert_eq!(room.read("d").as_deref(), Some("mine"));
    assert_eq!(undone.conflicts.len(), 2);
    assert!(undone.restored.is_empty());
}

#[test]
fn files_that_no_call_changed_stay_as_they_are() {
    let room = Room::new();
    room.write("a", "before");
    room.write("other", "before");
    let point = room.call("echo call > a");
    room.write("other", "mine");
    room.write("new", "mine");
    let undone = room.undo(&point);
    assert!(undone.conflicts.is_empty());
    assert_eq!(room.read("a").as_deref(), Some("before"));
    assert_eq!(room.read("other").as_deref(), Some("mine"));
    assert_eq!(room.read("new").as_deref(), Some("mine"));
}

#[test]
fn change_between_two_calls_survives_the_undo_of_both() {
    let room = Room::new();
    room.write("a", "before");
    room.write("b", "before");
    let first = room.call("echo one > a");
    room.write("b", "mine");
    room.write("a", "mine");
    room.call("rm a b");
    let undone = room.store().undo(&first.id, &also()).unwrap();
    // The second call is taken back, the person's versions are kept.
    assert_eq!(room.read("b").as_deref(), Some("mine"));
    assert_eq!(room.read("a").as_deref(), Some("mine"));
    assert_eq!(undone.conflicts.len(), 1);
}

#[test]
fn change_that_is_already_taken_back_is_no_conflict() {
    let room = Room::new();
    room.write("a", "before");
    let point = room.call("echo call > a; echo call > b");
    room.write("a", "before");
    let undone = room.undo(&point);
    assert!(undone.conflicts.is_empty());
    assert_eq!(undone.restored.len(), 1);
    assert_eq!(undone.restored[0].what, What::Removed);
}

#[test]
fn mode_changed_since_is_a_conflict() {
    let room = Room::new();
    room.write("a", "before");
    let point = room.call("echo call > a");
    room.sh("chmod 711 a");
    let was = room.snapshot();
    assert_eq!(room.undo(&point).conflicts.len(), 1);
    let is = room.snapshot();
    assert_same(&was, &is, "the person's version");
}
