//! `kill -9` at any moment.
//!
//! The children are this same test binary: it runs one ignored test, which does what the environment says.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use holdfast_contract::SystemClock;
use holdfast_undo::{Options, UndoSettings, UndoStore, Where};

use crate::tree::{Room, also, assert_same};

/// What a child does.
#[derive(Debug, Clone, Copy)]
pub(crate) enum TestProgram {
    /// Twenty calls that each write a file.
    Calls,
    /// One call that changes everything, or its undo.
    Change,
    Undo,
}

/// A child that works on a room.
pub(crate) fn program(room: &Room, what: TestProgram) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "kill::child", "--ignored", "--nocapture"])
        .env("UNDO_TEST_WHAT", format!("{what:?}"))
        .env("UNDO_TEST_WORK", room.work())
        .env("UNDO_TEST_STATE", room.state())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

#[test]
#[ignore = "a program for the other tests: it does what its environment says"]
fn child() {
    let Ok(what) = std::env::var("UNDO_TEST_WHAT") else {
        return;
    };
    let path = |name| PathBuf::from(std::env::var_os(name).unwrap());
    let (work, state) = (path("UNDO_TEST_WORK"), path("UNDO_TEST_STATE"));
    let settings = UndoSettings {
        durable: false,
        ..UndoSettings::default()
    };
    let store = UndoStore::open(&state, settings, Arc::new(SystemClock)).unwrap();
    match what.as_str() {
        "Calls" => {
            let name = std::env::var("UNDO_TEST_NAME").unwrap();
            for round in 0..20 {
                let call = format!("{name}-{round}");
                let open = store.before(&work, &call, &Where::Anywhere).unwrap();
                fs::write(work.join(&call), &call).unwrap();
                store.after(open).unwrap().unwrap();
            }
        }
        "Change" => {
            say("before");
            let open = store.before(&work, "change", &Where::Anywhere).unwrap();
            say("change");
            // Done here and not by a shell, which would go on after this process is killed.
            change(&work).unwrap();
            say("after");
            store.after(open).unwrap();
        }
        _ => {
            let id = std::env::var("UNDO_TEST_NAME").unwrap();
            say("undo");
            store.undo(&id, &Options::default()).unwrap();
        }
    }
    say("done");
}

/// Tells the parent how far the child is.
fn say(phase: &str) {
    println!("\nphase {phase}");
}

fn change(work: &Path) -> std::io::Result<()> {
    fs::remove_dir_all(work.join("d1"))?;
    fs::create_dir(work.join("d1"))?;
    fs::write(work.join("d1/new"), "n")?;
    for file in fs::read_dir(work.join("d2"))? {
        fs::write(file?.path(), "changed")?;
    }
    fs::rename(work.join("d3"), work.join("d4"))
}

/// A workspace of a few hundred files in four directories.
fn filled() -> Room {
    let room = Room::new();
    for dir in 1..4 {
        for number in 0..60 {
            room.write(
                &format!("d{dir}/f{number}"),
                &format!("{dir} {number}").repeat(500),
            );
        }
    }
    room
}

/// A child that has come to a phase.
fn started(mut command: Command, phase: &str) -> (Child, BufReader<ChildStdout>) {
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(child.stdout.take().unwrap());
    wait_for(&mut said, phase);
    (child, said)
}

fn wait_for(said: &mut impl BufRead, phase: &str) {
    let phase = format!("phase {phase}");
    assert!(
        said.lines().any(|line| line.unwrap() == phase),
        "no {phase}"
    );
}

/// Kills a child some time after it came to a phase. Says whether it was killed before its end.
fn killed(command: Command, phase: &str, after: Duration) -> bool {
    let (mut child, _said) = started(command, phase);
    thread::sleep(after);
    let early = child.try_wait().unwrap().is_none();
    let _ = child.kill();
    child.wait().unwrap();
    early
}

/// How long a child takes from a phase to its end.
fn duration(command: Command, phase: &str) -> Duration {
    let (mut child, mut said) = started(command, phase);
    let begun = Instant::now();
    wait_for(&mut said, "done");
    let whole = begun.elapsed();
    child.wait().unwrap();
    whole
}

/// Moments spread over a duration.
fn moments(whole: Duration, count: u32) -> impl Iterator<Item = Duration> {
    (0..count).map(move |number| whole * number / count)
}

#[test]
fn call_that_is_killed_anywhere_leaves_a_whole_point_or_none() {
    let whole = duration(program(&filled(), TestProgram::Change), "before");
    let mut points = 0;
    let phases = ["before", "before", "change", "after"].into_iter().cycle();
    for (moment, phase) in moments(whole, 24).zip(phases) {
        let room = filled();
        let was = room.snapshot();
        killed(program(&room, TestProgram::Change), phase, moment);
        let store = room.store();
        let listed = store.list(&room.work()).unwrap();
        if let Some(point) = listed.first() {
            points += 1;
            store.undo(&point.id, &also()).unwrap();
            assert_same(
                &was,
                &room.snapshot(),
                &format!("killed {moment:?} after {phase}"),
            );
        } else {
            // Killed before the call began: the point comes first.
            assert_same(
                &was,
                &room.snapshot(),
                &format!("killed {moment:?} after {phase}"),
            );
        }
        let next = room.call("echo next > next");
        room.undo(&next);
        assert_same(&was, &room.snapshot(), "the store still works");
    }
    assert!(points > 0, "every child was killed too early");
}

#[test]
fn undo_that_is_killed_anywhere_can_be_run_again_to_its_end() {
    let prepared = || {
        let room = filled();
        let was = room.snapshot();
        assert!(
            program(&room, TestProgram::Change)
                .status()
                .unwrap()
                .success()
        );
        let point = room.store().list(&room.work()).unwrap().remove(0);
        (room, was, point)
    };
    let undo = |room: &Room, id: &str| {
        let mut command = program(room, TestProgram::Undo);
        command.env("UNDO_TEST_NAME", id);
        command
    };
    let (room, _, point) = prepared();
    let whole = duration(undo(&room, &point.id), "undo");
    let mut early = 0;
    for moment in moments(whole, 24) {
        let (room, was, point) = prepared();
        early += u32::from(killed(undo(&room, &point.id), "undo", moment));
        let taken = room.store().find(&point.id).unwrap().taken_back_by;
        if taken.is_none() {
            let undone = room.store().undo(&point.id, &Options::default()).unwrap();
            assert!(
                undone.conflicts.is_empty() && undone.failed.is_empty(),
                "{undone:?}"
            );
        }
        assert_same(&was, &room.snapshot(), &format!("killed after {moment:?}"));
    }
    assert!(early > 0, "no child was killed before its end");
}
