//! Commands that work against an undo while it runs.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};

use holdfast_undo::Options;

use crate::tree::{Room, assert_same, snapshot};

#[test]
fn directory_exchanged_for_a_link_leads_nowhere() {
    let room = Room::new();
    let victim = room.dir.path().join("victim");
    fs::create_dir(&victim).unwrap();
    for number in 0..40 {
        room.write(&format!("d/e/f{number}"), "inside");
        fs::write(victim.join(format!("f{number}")), "theirs").unwrap();
    }
    let outside = snapshot(&victim);
    for round in 0..30 {
        let point = room.call("for f in d/e/*; do echo changed > $f; done; rm d/e/f1 d/e/f2");
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let (work, victim) = (room.work(), &victim);
                while !stop.load(Ordering::Relaxed) {
                    let _ = fs::rename(work.join("d/e"), work.join("d/aside"));
                    let _ = std::os::unix::fs::symlink(victim, work.join("d/e"));
                    let _ = fs::remove_file(work.join("d/e"));
                    let _ = fs::rename(work.join("d/aside"), work.join("d/e"));
                }
            });
            let _ = room.store().undo(&point.id, &Options::default());
            stop.store(true, Ordering::Relaxed);
        });
        assert_same(&outside, &snapshot(&victim), &format!("round {round}"));
    }
}

#[test]
fn link_in_place_of_a_directory_is_replaced_and_not_followed() {
    let room = Room::new();
    let victim = room.dir.path().join("victim");
    fs::create_dir(&victim).unwrap();
    fs::write(victim.join("a"), "theirs").unwrap();
    room.write("d/a", "inside");
    let (was, outside) = (room.snapshot(), snapshot(&victim));
    let point = room.call("rm -r d; ln -s ../victim d; echo changed > x");
    room.undo(&point);
    assert_same(&was, &room.snapshot(), "the workspace");
    assert_same(&outside, &snapshot(&victim), "outside");
}

#[test]
fn file_shared_with_a_name_outside_is_parted_from_it() {
    let room = Room::new();
    let victim = room.dir.path().join("victim");
    fs::write(&victim, "theirs").unwrap();
    room.write("a", "inside");
    let point = room.call("ln -f ../victim a; chmod 600 a");
    room.undo(&point);
    assert_eq!(fs::read_to_string(&victim).unwrap(), "theirs");
    assert_eq!(room.read("a").as_deref(), Some("inside"));
}

#[test]
fn file_that_becomes_a_pipe_does_not_stop_the_walk() {
    let room = Room::new();
    room.write("a", "0");
    let was = room.snapshot();
    let point = room.call("rm a; mkfifo a");
    room.undo(&point);
    assert_same(&was, &room.snapshot(), "after undo");
}

#[test]
fn workspace_exchanged_for_a_link_is_not_restored_elsewhere() {
    let room = Room::new();
    let victim = room.dir.path().join("victim");
    fs::create_dir(&victim).unwrap();
    fs::write(victim.join("a"), "theirs").unwrap();
    room.write("a", "inside");
    room.write("b", "inside");
    let outside = snapshot(&victim);
    let point = room.call("rm a b; cd ..; mv work aside; ln -s victim work");
    let options = Options {
        force: true,
        ..Options::default()
    };
    let undone = room.store().undo(&point.id, &options);
    assert!(undone.is_err(), "{undone:?}");
    assert_same(&outside, &snapshot(&victim), "outside");
    // Once the link is gone, the workspace comes back.
    fs::remove_file(room.work()).unwrap();
    room.undo(&point);
    assert_eq!(room.read("a").as_deref(), Some("inside"));
    assert_same(&outside, &snapshot(&victim), "outside");
}

#[test]
fn undo_waits_for_no_pipe_and_follows_no_link_in_git() {
    let room = Room::new();
    room.sh("git init -q . && echo x > x && git add x");
    let was = room.snapshot();
    let point = room.call("mv .git aside; ln -s aside .git; rm aside/index; mkfifo aside/index");
    let undone = room.undo(&point);
    assert!(
        undone.failed.is_empty() && undone.conflicts.is_empty(),
        "{undone:?}"
    );
    assert_same(&was, &room.snapshot(), "after undo");
}
