//! Watches one command from its start to its end.

use std::io::{self, PipeReader, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Child, ChildStderr, ChildStdout, ExitStatus};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use holdfast_contract::{Cause, ToolError};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};
use tokio::sync::oneshot;

use super::at_work::AtWork;
use super::capture::Capture;
use super::family::{self, Gone, Since, Tag};
use super::guardian::Guardian;
use super::spawner::{Order, Started};
use super::{
    BUSY_RETRY_AFTER_MS, DRAIN_GRACE_MS, EXEC_CONCURRENT_MAX, left, order::not_startable, spawner,
};

/// Read from a pipe at once: what a pipe holds.
const CHUNK_BYTES: usize = 64 * 1024;

/// How a command that was started ended.
pub(super) enum Ended {
    Exited(Finished),
    TimedOut {
        elapsed: Duration,
        stdout: Capture,
        stderr: Capture,
        /// Whether everything of it was seen to end.
        gone: Gone,
    },
}

/// What a command that ended by itself left.
pub(super) struct Finished {
    pub(super) status: ExitStatus,
    pub(super) stdout: Capture,
    pub(super) stderr: Capture,
    /// Processes that it left in the background live on, until its time is up.
    pub(super) still_running: bool,
}

/// Runs what `prepare` makes, on a thread of its own, for at most `limit`. When the future is
/// dropped the command is killed.
pub(super) async fn run(
    prepare: impl FnOnce() -> Result<Order, ToolError> + Send + 'static,
    tag: Tag,
    limit: Duration,
) -> Result<Ended, ToolError> {
    let place = Place::take()?;
    let at_work = AtWork::in_workspace(&tag.workspace);
    let (answer, answered) = oneshot::channel();
    // The thread sees the other end close when this future is dropped.
    let (caller_gone, _caller) = io::pipe().map_err(|error| not_startable(&error))?;
    thread::Builder::new()
        .name("holdfast-exec".into())
        .spawn(move || {
            let _place = place;
            match start(prepare, tag, &caller_gone) {
                Err(error) => drop(answer.send(Err(error))),
                Ok(mut running) => {
                    let ended = running.watch(&caller_gone, limit);
                    // What it left is counted apart, and whoever hears the answer may ask.
                    drop(at_work);
                    // Nobody hears it when the caller is gone.
                    let _ = answer.send(ended);
                    // `running` is reaped here, after the answer: it may take its time to die.
                }
            }
        })
        .map_err(|error| not_startable(&error))?;
    answered.await.unwrap_or_else(|_| {
        Err(ToolError::lost_track(
            "the command's supervisor ended early",
        ))
    })
}

/// How many commands are running.
struct Places {
    taken: Mutex<usize>,
    freed: Condvar,
}

static PLACES: Places = Places {
    taken: Mutex::new(0),
    freed: Condvar::new(),
};

/// One of the places for running commands.
struct Place;

impl Place {
    fn take() -> Result<Self, ToolError> {
        let mut taken = PLACES.taken.lock().unwrap_or_else(PoisonError::into_inner);
        if *taken < EXEC_CONCURRENT_MAX {
            *taken += 1;
            return Ok(Self);
        }
        let message = format!("{EXEC_CONCURRENT_MAX} commands are already running");
        Err(throttled(message, Some(BUSY_RETRY_AFTER_MS)))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        *PLACES.taken.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        PLACES.freed.notify_all();
    }
}

/// Waits until no command is running, for at most `limit`, and ends what commands left behind; says
/// whether none is.
pub(super) fn wait_until_idle(limit: Duration) -> bool {
    let taken = PLACES.taken.lock().unwrap_or_else(PoisonError::into_inner);
    let (_taken, wait) = PLACES
        .freed
        .wait_timeout_while(taken, limit, |taken| *taken > 0)
        .unwrap_or_else(PoisonError::into_inner);
    left::end_all();
    !wait.timed_out()
}

fn throttled(message: String, retry_after_ms: Option<u64>) -> ToolError {
    ToolError::ExecutionError {
        message,
        cause: Cause::Throttled { retry_after_ms },
    }
}

fn start(
    prepare: impl FnOnce() -> Result<Order, ToolError>,
    tag: Tag,
    caller_gone: &PipeReader,
) -> Result<Running, ToolError> {
    let order = prepare()?;
    let failed = |error: io::Error| match Errno::from_io_error(&error) {
        // Nothing ran and a later attempt may find room.
        Some(Errno::AGAIN | Errno::NOMEM) => {
            throttled(format!("the command could not be started: {error}"), None)
        }
        _ => not_startable(&error),
    };
    if is_gone(caller_gone) {
        return Err(cancelled());
    }
    // From here on the command runs, whatever else goes wrong.
    Running::new(spawner::spawn(order).map_err(failed)?, tag).map_err(|error| {
        ToolError::lost_track(format!(
            "the command was started and could not be watched: {error}"
        ))
    })
}

fn is_gone(caller_gone: &PipeReader) -> bool {
    let mut polled = [PollFd::new(caller_gone, PollFlags::IN)];
    let at_once = Timespec::default();
    matches!(poll(&mut polled, Some(&at_once)), Ok(1..))
}

fn cancelled() -> ToolError {
    ToolError::coded("cancelled", "the caller went away")
}

/// A command that was started. Dropping it ends and reaps it.
struct Running {
    child: Child,
    /// Until the command is about to be reaped.
    guardian: Option<Guardian>,
    leader: Pid,
    handle: OwnedFd,
    began: Since,
    tag: Tag,
    stdout: Output<ChildStdout>,
    stderr: Output<ChildStderr>,
    /// It ended by itself, or its end was seen to.
    over: bool,
}

impl Running {
    fn new(started: Started, tag: Tag) -> io::Result<Self> {
        let Started {
            mut child,
            guardian,
        } = started;
        let leader = Pid::from_child(&child);
        let handle = match pidfd_open(leader, PidfdFlags::empty()) {
            Ok(handle) => handle,
            Err(error) => {
                // The whole family, not only the shell: nobody will watch it any more.
                let _ = kill_process_group(leader, Signal::KILL);
                let _ = child.kill();
                drop(guardian);
                let _ = child.wait();
                return Err(error.into());
            }
        };
        let mut running = Self {
            stdout: Output::new(child.stdout.take()),
            stderr: Output::new(child.stderr.take()),
            child,
            guardian: Some(guardian),
            leader,
            handle,
            began: Since::start_of(leader),
            tag,
            over: false,
        };
        running.stdout.unblock()?;
        running.stderr.unblock()?;
        Ok(running)
    }

    fn watch(&mut self, caller_gone: &PipeReader, limit: Duration) -> Result<Ended, ToolError> {
        let started = Instant::now();
        let deadline = started.checked_add(limit);
        let outcome = self.wait(caller_gone, deadline);
        let gone = match outcome {
            Ok(Waited::Exited) => Gone::NotAll,
            _ => self.end(),
        };
        match outcome {
            Ok(Waited::Exited) => self.finish(deadline),
            Ok(Waited::TimedOut) => Ok(Ended::TimedOut {
                gone,
                elapsed: started.elapsed(),
                stdout: std::mem::take(&mut self.stdout.capture),
                stderr: std::mem::take(&mut self.stderr.capture),
            }),
            Ok(Waited::CallerGone) => Err(cancelled()),
            Err(error) => Err(ToolError::lost_track(format!(
                "the command could not be watched and was killed: {error}"
            ))),
        }
    }

    /// Reads output until the command has ended and its output as well, or something else ends
    /// the wait. The command is not reaped, so that its process group keeps its number.
    fn wait(&mut self, caller_gone: &PipeReader, deadline: Option<Instant>) -> io::Result<Waited> {
        let mut chunk = vec![0; CHUNK_BYTES];
        let mut deadline = deadline;
        let mut exited = false;
        loop {
            if exited && self.stdout.is_over() && self.stderr.is_over() {
                return Ok(Waited::Exited);
            }
            let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                // After the command's own end only a background process keeps its output open.
                return Ok(if exited {
                    Waited::Exited
                } else {
                    Waited::TimedOut
                });
            }
            let ready = self.poll(caller_gone, exited, left)?;
            if ready.caller_gone {
                return Ok(Waited::CallerGone);
            }
            if ready.stdout {
                self.stdout.read(&mut chunk)?;
            }
            if ready.stderr {
                self.stderr.read(&mut chunk)?;
            }
            if ready.exited {
                exited = true;
                deadline = Some(Instant::now() + Duration::from_millis(DRAIN_GRACE_MS));
            }
        }
    }

    fn poll(
        &self,
        caller_gone: &PipeReader,
        exited: bool,
        left: Option<Duration>,
    ) -> io::Result<Ready> {
        let mut polled = vec![PollFd::new(caller_gone, PollFlags::IN)];
        let mut add = |fd| {
            polled.push(PollFd::from_borrowed_fd(fd, PollFlags::IN));
            polled.len() - 1
        };
        let exit = (!exited).then(|| add(self.handle.as_fd()));
        let stdout = self.stdout.pipe.as_ref().map(|pipe| add(pipe.as_fd()));
        let stderr = self.stderr.pipe.as_ref().map(|pipe| add(pipe.as_fd()));
        let timeout = left.and_then(|left| Timespec::try_from(left).ok());
        match poll(&mut polled, timeout.as_ref()) {
            Ok(_) => {}
            Err(Errno::INTR) => return Ok(Ready::default()),
            Err(error) => return Err(error.into()),
        }
        let is_ready =
            |index: Option<usize>| index.is_some_and(|index| !polled[index].revents().is_empty());
        Ok(Ready {
            caller_gone: is_ready(Some(0)),
            exited: is_ready(exit),
            stdout: is_ready(stdout),
            stderr: is_ready(stderr),
        })
    }

    /// The result of a command that ended by itself. What it left behind has until the deadline.
    fn finish(&mut self, deadline: Option<Instant>) -> Result<Ended, ToolError> {
        self.over = true;
        let status = self.reap().map_err(|error| {
            ToolError::lost_track(format!("the command ended, and nobody knows how: {error}"))
        })?;
        // One that took its mark off, where the kernel lets it, may still hold the output open.
        let held_open = !(self.stdout.is_over() && self.stderr.is_over());
        let still_running = held_open || family::has_left(&self.tag, self.began);
        if let Some(deadline) = deadline.filter(|_| still_running) {
            left::end_at(self.tag.clone(), deadline);
        }
        Ok(Ended::Exited(Finished {
            status,
            stdout: std::mem::take(&mut self.stdout.capture),
            stderr: std::mem::take(&mut self.stderr.capture),
            still_running,
        }))
    }

    /// The guardian goes first: after the command is reaped its group's number may be another's.
    fn reap(&mut self) -> io::Result<ExitStatus> {
        drop(self.guardian.take());
        self.child.wait()
    }

    /// Ends the command and everything it started, and waits a moment for it to be gone. What is not
    /// by then is looked for once more without anybody waiting.
    fn end(&mut self) -> Gone {
        self.over = true;
        let gone = family::end(self.leader, &self.handle, &self.tag);
        if gone == Gone::NotAll {
            left::end_at(self.tag.clone(), Instant::now());
        }
        gone
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.over {
            self.end();
        }
        let _ = self.reap();
    }
}

enum Waited {
    Exited,
    TimedOut,
    CallerGone,
}

#[derive(Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "one per polled descriptor; any of them can be ready together"
)]
struct Ready {
    caller_gone: bool,
    exited: bool,
    stdout: bool,
    stderr: bool,
}

/// One of the command's outputs.
struct Output<P> {
    /// Open until its end was read.
    pipe: Option<P>,
    capture: Capture,
}

impl<P: Read + AsFd> Output<P> {
    fn new(pipe: Option<P>) -> Self {
        Self {
            pipe,
            capture: Capture::default(),
        }
    }

    fn is_over(&self) -> bool {
        self.pipe.is_none()
    }

    /// Only our end of the pipe; the command's end keeps blocking as programs expect.
    fn unblock(&mut self) -> io::Result<()> {
        if let Some(pipe) = &self.pipe {
            fcntl_setfl(pipe, fcntl_getfl(pipe)? | OFlags::NONBLOCK)?;
        }
        Ok(())
    }

    /// Takes what is there, at most one chunk, so that a command that never stops printing does
    /// not keep the other descriptors from being looked at.
    fn read(&mut self, chunk: &mut [u8]) -> io::Result<()> {
        let Some(pipe) = &mut self.pipe else {
            return Ok(());
        };
        match pipe.read(chunk) {
            Ok(0) => self.pipe = None,
            Ok(count) => self.capture.push(&chunk[..count]),
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
                ) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }
}
