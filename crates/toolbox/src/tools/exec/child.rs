//! What the new process does between fork and exec.
//!
//! Other threads do not exist in the child but their locks may be held for ever, so only calls
//! that are async-signal-safe are allowed here: bare system calls, no allocation, no locks.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

use holdfast_confine::Confinement;
use holdfast_contract::Lifeline;
use rustix::fs::{CWD, Mode, OFlags, fstat, openat};
use rustix::io::{Errno, FdFlags, fcntl_getfd, fcntl_setfd};
use rustix::process::{
    Pid, Signal, fchdir, getpid, getppid, set_parent_process_death_signal, setsid,
};

use super::guardian::Introduction;

/// What the child needs, allocated before the fork.
pub(super) struct Setup {
    directory: File,
    /// Its name, where it has to be entered again in a view of the command's own.
    directory_name: Option<CString>,
    lifeline: Option<File>,
    confinement: Confinement,
    parent: Pid,
}

impl Setup {
    /// Fails when the call has ended meanwhile, and its command comes too late.
    pub(super) fn new(
        directory: File,
        lifeline: Option<Lifeline>,
        confinement: Confinement,
    ) -> io::Result<Self> {
        let directory_name = if confinement.has_view() {
            let link = format!("/proc/self/fd/{}", directory.as_raw_fd());
            let name = std::fs::read_link(link)?.into_os_string().into_vec();
            Some(CString::new(name).map_err(io::Error::other)?)
        } else {
            None
        };
        Ok(Self {
            directory,
            directory_name,
            lifeline: lifeline.map(|lifeline| lifeline.lend()).transpose()?,
            confinement,
            parent: getpid(),
        })
    }

    fn apply(&self, guardian: &Introduction) -> io::Result<()> {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // The parent may have died between fork and the line above; then no signal will come.
        if getppid() != Some(self.parent) {
            return Err(Errno::SRCH.into());
        }
        // A session of its own: a group to be killed as one, and no terminal on which it could
        // answer for the person who sits there.
        setsid()?;
        guardian.group(getpid())?;
        // By descriptor, so that it is the directory that was resolved beneath the workspace and
        // not what has taken its name since.
        fchdir(&self.directory)?;
        close_on_exec_from_3();
        if let Some(name) = &self.directory_name {
            self.confinement.enter_view()?;
            self.enter_again(name)?;
            // A change of what this process may do takes the signal back.
            set_parent_process_death_signal(Some(Signal::KILL))?;
            if getppid() != Some(self.parent) {
                return Err(Errno::SRCH.into());
            }
        }
        if let Some(lifeline) = &self.lifeline {
            // Here and not in the parent, where another command could inherit it meanwhile.
            let flags = fcntl_getfd(lifeline)?;
            fcntl_setfd(lifeline, flags.difference(FdFlags::CLOEXEC))?;
        }
        // Last: from here on most of the above would be refused.
        self.confinement.enter()
    }

    /// Enters the directory as it is in the view: the descriptor leads to the same one outside of it.
    fn enter_again(&self, name: &CString) -> io::Result<()> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let inside = openat(CWD, name.as_c_str(), flags, Mode::empty())?;
        let (is, was) = (fstat(&inside)?, fstat(&self.directory)?);
        if (is.st_dev, is.st_ino) != (was.st_dev, was.st_ino) {
            return Err(Errno::STALE.into());
        }
        fchdir(&inside)?;
        Ok(())
    }
}

/// Hands `setup` to the process that `command` will start, and that process to `guardian`.
#[expect(
    unsafe_code,
    reason = "the parent-death signal, the working directory by descriptor and the inherited lock \
              can only be set up by the child itself"
)]
pub(super) fn prepare(command: &mut Command, setup: Setup, guardian: Introduction) {
    // SAFETY: `apply` makes system calls only (prctl, getppid, setsid, getpid, write, fchdir,
    // close_range, unshare, open, mount, open_tree, move_mount, fstat, fcntl, setrlimit,
    // landlock_restrict_self, seccomp). It neither allocates nor takes a lock: errors are made from bare error numbers, and the
    // descriptors it borrows are owned by the closure, so they are open in the child.
    unsafe {
        command.pre_exec(move || setup.apply(&guardian));
    }
}

/// Keeps descriptors that this process was itself started with, or that foreign code opened
/// carelessly, from reaching commands. Kernels before 5.11 do not know the call; there the
/// descriptors of Rust code are closed by their own flag all the same.
#[expect(unsafe_code, reason = "no safe wrapper for close_range is at hand")]
fn close_on_exec_from_3() {
    // SAFETY: close_range with CLOSE_RANGE_CLOEXEC closes nothing now; it only sets a flag on
    // descriptors of the child, and takes plain integers.
    unsafe {
        libc::syscall(
            libc::SYS_close_range,
            3 as libc::c_uint,
            libc::c_uint::MAX,
            libc::CLOSE_RANGE_CLOEXEC,
        );
    }
}

/// A parent that ignored `SIGCHLD` has left that to us, and then the kernel reaps our children
/// before we can ask how they ended. Commands have to be waited for, so the default comes back.
#[expect(
    unsafe_code,
    reason = "no safe wrapper for signal dispositions is at hand"
)]
pub(super) fn reap_our_own() {
    // SAFETY: the first call only reads into a zeroed struct of our own; the second sets a default
    // disposition, which installs no code. A handler that somebody installed is left alone.
    unsafe {
        let mut current: libc::sigaction = std::mem::zeroed();
        let asked = libc::sigaction(libc::SIGCHLD, std::ptr::null(), &raw mut current);
        if asked == 0 && current.sa_sigaction == libc::SIG_IGN {
            libc::signal(libc::SIGCHLD, libc::SIG_DFL);
        }
    }
}
