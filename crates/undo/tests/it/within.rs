//! Ids that are looked up in one workspace only.

use std::fs;
use std::path::PathBuf;

use holdfast_undo::{Options, Point, UndoError, Where};

use crate::tree::Room;

/// Two workspaces of one store, each with a call of the same id. The call of the second is newer.
fn same_call_twice() -> (Room, PathBuf, Point, Point) {
    let room = Room::new();
    let other = room.dir.path().join("other");
    fs::create_dir(&other).unwrap();
    let store = room.store();
    let call = |workspace: PathBuf| {
        let open = store.before(&workspace, "same", &Where::Anywhere).unwrap();
        fs::write(workspace.join("new"), "n").unwrap();
        store.after(open).unwrap().unwrap()
    };
    let (first, second) = (call(room.work()), call(other.clone()));
    (room, other, first, second)
}

#[test]
fn call_is_found_in_its_workspace() {
    let (room, other, first, second) = same_call_twice();
    let store = room.store();
    assert_eq!(store.find("same").unwrap().id, second.id);
    for (workspace, point) in [(room.work(), &first), (other, &second)] {
        assert_eq!(store.find_in(&workspace, "same").unwrap().id, point.id);
        assert_eq!(store.find_in(&workspace, &point.id).unwrap().id, point.id);
        let shown = store.show_in(&workspace, "same").unwrap();
        assert_eq!(shown.point.id, point.id);
        assert_eq!(shown.changes.len(), 1);
    }
}

#[test]
fn undo_in_a_workspace_leaves_others_alone() {
    let (room, other, first, _) = same_call_twice();
    let options = Options::default();
    let undone = room.store().undo_in(&room.work(), "same", &options);
    let new = undone.unwrap().new_point.unwrap();
    assert_eq!(new.workspace, first.workspace);
    assert!(!room.work().join("new").exists() && other.join("new").exists());
}

#[test]
fn ids_of_other_workspaces_are_unknown() {
    let (room, other, first, _) = same_call_twice();
    let store = room.store();
    room.call("echo x > x");
    let is_unknown = |refused: Option<UndoError>| matches!(refused, Some(UndoError::Unknown(_)));
    let nowhere = room.dir.path().join("nowhere");
    for workspace in [other, nowhere.clone()] {
        for id in [&*first.id, "echo x > x"] {
            let undone = store.undo_in(&workspace, id, &Options::default());
            assert!(is_unknown(undone.err()), "{id}");
            assert!(is_unknown(store.show_in(&workspace, id).err()), "{id}");
            assert!(is_unknown(store.find_in(&workspace, id).err()), "{id}");
        }
    }
    assert!(room.work().join("new").exists() && !nowhere.exists());
}

#[test]
fn removed_workspace_comes_back_by_its_path() {
    let room = Room::new();
    room.write("a", "0");
    room.call("rm -rf \"$PWD\"");
    let id = "rm -rf \"$PWD\"";
    let undone = room.store().undo_in(&room.work(), id, &Options::default());
    assert!(undone.unwrap().failed.is_empty());
    assert_eq!(room.read("a").as_deref(), Some("0"));
}
