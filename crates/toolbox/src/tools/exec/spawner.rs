//! The one thread that starts all commands.
//!
//! A child asks to be killed when its parent dies (`PR_SET_PDEATHSIG`). The kernel reads "parent"
//! as the *thread* that forked: a child started from a pool thread would be killed as soon as the
//! pool lets that thread go. So every command is started by one thread that lives as long as the
//! process.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Child, Command};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread;

use super::EXEC_CONCURRENT_MAX;
use super::child::{self, Setup};
use super::guardian::Guardian;

struct Job {
    order: Order,
    answer: SyncSender<io::Result<Started>>,
}

/// What is to be started.
pub(super) struct Order {
    pub(super) command: Command,
    pub(super) setup: Setup,
}

/// A command that was started, with what ends it should we be gone.
pub(super) struct Started {
    pub(super) child: Child,
    pub(super) guardian: Guardian,
}

/// The way to the thread, once there is one.
static SPAWNER: Mutex<Option<SyncSender<Job>>> = Mutex::new(None);

/// Starts a command from the spawner thread. Blocks until it has started or failed to.
pub(super) fn spawn(order: Order) -> io::Result<Started> {
    let (answer, answered) = sync_channel(1);
    let gone = |_| io::Error::other("the spawner thread is gone");
    spawner()?
        .send(Job { order, answer })
        .map_err(|_| io::Error::other("the spawner thread is gone"))?;
    answered.recv().map_err(gone)?
}

fn spawner() -> io::Result<SyncSender<Job>> {
    let mut spawner = SPAWNER.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(jobs) = spawner.as_ref() {
        return Ok(jobs.clone());
    }
    let (jobs, queue) = sync_channel::<Job>(EXEC_CONCURRENT_MAX);
    thread::Builder::new()
        .name("holdfast-spawner".into())
        .spawn(move || {
            child::reap_our_own();
            for Job { order, answer } in queue {
                answer_with(&answer, start(order));
            }
        })?;
    *spawner = Some(jobs.clone());
    Ok(jobs)
}

/// Never panics: the end of this thread would kill every running command.
fn start(order: Order) -> io::Result<Started> {
    catch_unwind(AssertUnwindSafe(|| {
        let Order { mut command, setup } = order;
        let guardian = Guardian::start()?;
        child::prepare(&mut command, setup, guardian.introduction());
        // `command` holds descriptors for the child, the lifeline among them; it ends here, so
        // that none of them outlives the answer.
        let child = command.spawn()?;
        Ok(Started { child, guardian })
    }))
    .unwrap_or_else(|_| Err(io::Error::other("starting the command panicked")))
}

fn answer_with(answer: &SyncSender<io::Result<Started>>, started: io::Result<Started>) {
    // Whoever asked is gone, so nobody else would end and reap the child.
    if let Err(unheard) = answer.send(started)
        && let Ok(mut started) = unheard.0
    {
        let _ = started.child.kill();
        drop(started.guardian);
        let _ = started.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_confine::{Confinement, Mark};
    use std::io::{Read, Write};
    use std::process::Stdio;

    fn order(command: Command) -> Order {
        let here = std::fs::File::open(".").expect("opens");
        let unconfined = Confinement::mark_only(Mark::new(0));
        let setup = Setup::new(here, None, unconfined).expect("nothing to lend");
        Order { command, setup }
    }

    #[test]
    fn a_child_survives_the_thread_that_asked_for_it() {
        let asker = thread::spawn(|| {
            let mut command = Command::new("cat");
            command.stdin(Stdio::piped()).stdout(Stdio::piped());
            let started = spawn(order(command)).expect("starts");
            (started, rustix::thread::gettid())
        });
        let (started, asker_id) = asker.join().expect("asks");
        let mut child = started.child;
        // `join` returns a moment before the kernel is done with the thread.
        let task = format!("/proc/self/task/{}", asker_id.as_raw_nonzero());
        while std::fs::exists(&task).expect("looks") {
            thread::yield_now();
        }
        let mut input = child.stdin.take().expect("a pipe");
        input.write_all(b"alive").expect("writes");
        drop(input);
        let mut output = String::new();
        let mut pipe = child.stdout.take().expect("a pipe");
        pipe.read_to_string(&mut output).expect("reads");
        assert_eq!(output, "alive");
        assert!(child.wait().expect("ends").success());
    }

    #[test]
    fn the_spawner_survives_a_command_that_can_not_start() {
        assert!(spawn(order(Command::new("/nonexistent/command"))).is_err());
        let mut started = spawn(order(Command::new("true"))).expect("starts");
        assert!(started.child.wait().expect("ends").success());
    }
}
