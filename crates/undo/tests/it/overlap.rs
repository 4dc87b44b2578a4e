//! Calls at the same time, in one process and in two.

use std::process::Command;
use std::sync::Barrier;

use holdfast_undo::{Coverage, Options, UndoError, Where};

use crate::kill::{TestProgram, program};
use crate::tree::{Room, assert_same};

#[test]
fn overlapping_calls_share_one_point() {
    let room = Room::new();
    room.write("a", "0");
    let was = room.snapshot();
    let store = room.store();
    let one = store.before(&room.work(), "one", &Where::Anywhere).unwrap();
    room.write("a", "1");
    let two = store.before(&room.work(), "two", &Where::Anywhere).unwrap();
    assert_eq!(one.id(), two.id());
    room.write("b", "2");
    let point = store.after(one).unwrap().unwrap();
    assert_eq!(point.ended_ms, None, "the other call still runs");
    let refused = store.undo(&point.id, &Options::default());
    assert!(matches!(refused, Err(UndoError::Running(_))), "{refused:?}");
    room.write("c", "3");
    let point = store.after(two).unwrap().unwrap();
    assert!(point.ended_ms.is_some() && !point.interrupted);
    assert_eq!(point.calls, ["one", "two"]);
    room.undo(&point);
    assert_same(&was, &room.snapshot(), "after undo of both");
}

#[test]
fn call_that_may_write_anywhere_widens_an_open_point() {
    let room = Room::new();
    room.write("a", "0");
    room.write("d/b", "0");
    let was = room.snapshot();
    let store = room.store();
    let paths = Where::Paths(vec!["a".into(), "d/new".into()]);
    let one = store.before(&room.work(), "one", &paths).unwrap();
    room.sh("echo 1 > a; echo n > d/new");
    let two = store.before(&room.work(), "two", &Where::Anywhere).unwrap();
    assert_eq!(one.id(), two.id());
    room.sh("echo 2 > a; rm d/b; echo c > c");
    store.after(one).unwrap();
    let point = store.after(two).unwrap().unwrap();
    assert_eq!(point.coverage, Coverage::Full);
    let undone = room.undo(&point);
    assert!(undone.conflicts.is_empty(), "{undone:?}");
    assert_same(&was, &room.snapshot(), "after undo of both");
}

#[test]
fn dropped_call_ends_when_the_workspace_is_next_used() {
    let room = Room::new();
    room.write("a", "0");
    let store = room.store();
    let open = store
        .before(&room.work(), "dropped", &Where::Anywhere)
        .unwrap();
    let id = open.id().unwrap().to_owned();
    room.write("a", "1");
    drop(open);
    let next = room.call("echo b > b");
    assert_ne!(next.id, id);
    let dropped = store.find("dropped").unwrap();
    assert!(dropped.interrupted && dropped.ended_ms.is_some());
    store.undo(&id, &crate::tree::also()).unwrap();
    assert_eq!(room.read("a").as_deref(), Some("0"));
}

#[test]
fn two_workspaces_do_not_meet() {
    let room = Room::new();
    let other = room.dir.path().join("other");
    std::fs::create_dir(&other).unwrap();
    let store = room.store();
    let one = store.before(&room.work(), "one", &Where::Anywhere).unwrap();
    let two = store.before(&other, "two", &Where::Anywhere).unwrap();
    assert_ne!(one.id(), two.id());
    room.write("a", "1");
    std::fs::write(other.join("b"), "2").unwrap();
    store.after(one).unwrap();
    store.after(two).unwrap();
    assert_eq!(store.list(&other).unwrap().len(), 1);
}

#[test]
fn threads_of_one_store_keep_every_call() {
    let room = Room::new();
    room.write("a", "0");
    let store = room.store();
    let barrier = Barrier::new(4);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (store, room, barrier) = (&store, &room, &barrier);
            scope.spawn(move || {
                barrier.wait();
                for round in 0..10 {
                    let call = format!("{thread}-{round}");
                    let open = store.before(&room.work(), &call, &Where::Anywhere).unwrap();
                    room.write(&call, &call);
                    store.after(open).unwrap().unwrap();
                }
            });
        }
    });
    let points = store.list(&room.work()).unwrap();
    let calls: usize = points.iter().map(|point| point.calls.len()).sum();
    assert_eq!(calls, 40);
    assert!(points.iter().all(|point| point.ended_ms.is_some()));
    store.undo(&points[0].id, &crate::tree::also()).unwrap();
    assert_eq!(room.snapshot().len(), 2, "the workspace and its one file");
}

#[test]
fn two_processes_use_one_store() {
    let room = Room::new();
    room.write("a", "0");
    let was = room.snapshot();
    let children: Vec<_> = ["one", "two"]
        .into_iter()
        .map(|name| {
            let mut command: Command = program(&room, TestProgram::Calls);
            command.env("UNDO_TEST_NAME", name).spawn().unwrap()
        })
        .collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let points = room.store().list(&room.work()).unwrap();
    let calls: usize = points.iter().map(|point| point.calls.len()).sum();
    assert_eq!(calls, 40);
    let undone = room
        .store()
        .undo(&points[0].id, &crate::tree::also())
        .unwrap();
    assert!(undone.conflicts.is_empty(), "{undone:?}");
    assert_same(&was, &room.snapshot(), "after undo of all");
}
