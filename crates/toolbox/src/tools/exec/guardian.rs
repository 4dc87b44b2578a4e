//! What ends a command when this process is gone.
//!
//! The kernel's parent-death signal reaches the shell that we started and nobody below it: what
//! that shell started would live on after a `kill -9` of ours, with its effects and with the lock
//! that says the call is still running. So each command has a guardian: a small shell that waits
//! for a pipe to close whose other end only this process holds, and then kills the command's
//! process group. The kernel closes the pipe however we end.
//!
//! - The guardian is there before the command, and learns the group from the command's own process
//!   before that process becomes the command; at no time does a command run unguarded. Without a
//!   guardian nothing is started.
//! - It has a process group of its own, so that neither Ctrl-C nor a command that signals its own
//!   group reaches it, and has none of our descriptors: it keeps no lock and no output open.
//! - It is killed before the command is reaped. Until then the group's number can not pass to
//!   another group, so it never kills a stranger on our behalf; and what a command leaves in the
//!   background after its own end lives on.
//!
//! Once this process is dead somebody else reaps the command, and in theory its number could be
//! given away in the moment before the guardian acts. Process numbers are handed out in a circle,
//! so that would take tens of thousands of new processes in that moment.

use std::io::{self, PipeReader, PipeWriter};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use std::os::unix::process::CommandExt;

use rustix::process::Pid;

/// Only a whole line counts: the group of a command that was never there is not guessed at.
const SCRIPT: &str = "trap '' HUP INT QUIT TERM; \
                      read -r group && { read -r gone; kill -s KILL -- \"-$group\"; }";
/// Wherever there is a shell it is here. By its full name, because `PATH` is the host's.
const SHELL: &str = "/bin/sh";
/// Digits of the largest process number, and a line's end.
const LINE_BYTES: usize = 11;

/// A process that outlives us by a moment. Dropping this ends it without it doing anything.
pub(super) struct Guardian {
    process: Child,
    lifeline: Arc<PipeWriter>,
    /// Kept so that a guardian which died early can not raise SIGPIPE in the command's process.
    _other_end: PipeReader,
}

impl Guardian {
    /// Starts one that does not know yet what to guard.
    pub(super) fn start() -> io::Result<Self> {
        let (reader, writer) = io::pipe()?;
        let process = Command::new(SHELL)
            .args(["-c", SCRIPT])
            .env_clear()
            .current_dir("/")
            .stdin(reader.try_clone()?)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()?;
        Ok(Self {
            process,
            lifeline: Arc::new(writer),
            _other_end: reader,
        })
    }

    /// For the command's own process, to say who it is.
    pub(super) fn introduction(&self) -> Introduction {
        Introduction(self.lifeline.clone())
    }
}

impl Drop for Guardian {
    fn drop(&mut self) {
        // By our own child's handle, so it is this process or nobody.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The guardian's pipe, on the way through a fork.
pub(super) struct Introduction(Arc<PipeWriter>);

impl Introduction {
    /// Tells the guardian which group to guard. Called between fork and exec: it makes one system
    /// call and neither allocates nor locks.
    pub(super) fn group(&self, leader: Pid) -> io::Result<()> {
        let mut line = [b'\n'; LINE_BYTES];
        let mut rest = leader.as_raw_nonzero().get().unsigned_abs();
        let mut start = LINE_BYTES - 1;
        while rest > 0 && start > 0 {
            start -= 1;
            line[start] = b'0' + u8::try_from(rest % 10).unwrap_or(0);
            rest /= 10;
        }
        // So short a write to an empty pipe is done whole or not at all.
        rustix::io::write(&*self.0, &line[start..])?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn a_group_is_told_as_one_line() {
        for number in [1, 9, 10, 4711, i32::MAX] {
            let (mut reader, writer) = io::pipe().expect("a pipe");
            let introduction = Introduction(Arc::new(writer));
            let leader = Pid::from_raw(number).expect("a number");
            introduction.group(leader).expect("tells");
            drop(introduction);
            let mut told = String::new();
            reader.read_to_string(&mut told).expect("reads");
            assert_eq!(told, format!("{number}\n"));
        }
    }

    #[test]
    fn a_guardian_that_never_heard_of_a_group_ends_by_itself() {
        let mut guardian = Guardian::start().expect("starts");
        let (_, unrelated) = io::pipe().expect("a pipe");
        guardian.lifeline = Arc::new(unrelated);
        let status = guardian.process.wait().expect("ends");
        assert_eq!(status.code(), Some(1));
    }
}
