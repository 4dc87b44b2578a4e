//! Laying all of it on a process.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use seccompiler::BpfProgram;

use crate::config::Mode;
use crate::kernel::{Has, Kernel};
use crate::mark::Mark;
use crate::plan::Plan;
use crate::view::View;
use crate::{calls, files};

/// Powers of root that builds, tests and package managers need, by their numbers in the kernel's
/// header. All others are taken away, those too that later kernels bring. Some of them see through
/// the other rules: `NET_RAW` reads what others send, `PERFMON` the environment of every process.
const POWERS_LEFT: &[libc::c_ulong] = &[
    0,  // CHOWN: unpacking as root
    1,  // DAC_OVERRIDE: files of other users, where Landlock lets them be touched at all
    3,  // FOWNER: their modes
    4,  // FSETID: and those modes after a change
    5,  // KILL: what was started as another user; Landlock keeps it from the rest
    6,  // SETGID: package managers download as a user of their own
    7,  // SETUID
    10, // NET_BIND_SERVICE
];
/// Numbers of powers that are asked about; kernels of today have 41 of them.
const POWERS_MAX: libc::c_ulong = 64;

/// Why a command can not be confined, and is not started.
#[derive(Debug, thiserror::Error)]
pub enum ConfineError {
    /// The configuration insists on what the kernel has not.
    #[error(
        "confinement.mode is required, and this kernel has no {0}; `holdfast doctor` says what \
         can be done"
    )]
    Missing(&'static str),
    /// The kernel gave no ruleset.
    #[error("the kernel gave no Landlock ruleset")]
    NoLandlock,
    /// The ruleset could not be made.
    #[error("the file rules can not be made: {0}")]
    Files(#[from] landlock::RulesetError),
    /// A directory could not be looked at, or its name holds a NUL character.
    #[error("the file rules can not be made: {0}")]
    Io(#[from] io::Error),
    /// The directories above what is hidden hold too much.
    #[error(
        "the directories that lead to the state hold too many files; keep the state outside the \
         workspace"
    )]
    TooManyRules,
    /// The filter could not be made.
    #[error("the filter over system calls can not be made: {0}")]
    Calls(#[from] seccompiler::BackendError),
}

/// Everything that is laid on one command, made before the fork.
#[derive(Debug)]
pub struct Confinement {
    view: Option<View>,
    ruleset: Option<OwnedFd>,
    filters: Vec<BpfProgram>,
    mark: Mark,
}

impl Confinement {
    /// What holds a command to this plan, as far as the kernel and the mode go.
    pub fn new(plan: &Plan, mode: Mode, kernel: Kernel, mark: Mark) -> Result<Self, ConfineError> {
        let lands = kernel.confines_files();
        let filters = kernel.seccomp == Has::Yes;
        match mode {
            Mode::Off => return Ok(Self::mark_only(mark)),
            Mode::Required if !lands => return Err(ConfineError::Missing("Landlock")),
            Mode::Required if !filters => return Err(ConfineError::Missing("seccomp filters")),
            Mode::Required | Mode::BestEffort => {}
        }
        let ruleset = lands
            .then(|| files::ruleset(plan, kernel.landlock_abi))
            .transpose()?;
        let filters = if filters {
            calls::filters(plan)?
        } else {
            Vec::new()
        };
        Ok(Self {
            view: View::new(kernel.views, &plan.covers)?,
            ruleset,
            filters,
            mark,
        })
    }

    /// The mark alone, for a command that runs with other rights or where nothing is to be confined.
    pub fn mark_only(mark: Mark) -> Self {
        Self {
            view: None,
            ruleset: None,
            filters: Vec::new(),
            mark,
        }
    }

    /// Whether the command gets a view of its own, in which its working directory has to be entered
    /// again by name.
    pub fn has_view(&self) -> bool {
        self.view.is_some()
    }

    /// Puts this process into its view, if it has one. Called between fork and exec, before
    /// [`Self::enter`], which forbids it: it makes system calls only, and neither allocates nor locks.
    pub fn enter_view(&self) -> io::Result<()> {
        self.view.as_ref().map_or(Ok(()), View::enter)
    }

    /// Lays the rest of it on this process, and on everything it will start. Called between fork and
    /// exec: it makes system calls only, and neither allocates nor locks.
    pub fn enter(&self) -> io::Result<()> {
        self.mark.put_on();
        if self.ruleset.is_some() || !self.filters.is_empty() {
            drop_powers();
        }
        if let Some(ruleset) = &self.ruleset {
            no_new_privileges()?;
            restrict(ruleset)?;
        }
        for filter in &self.filters {
            // Sets `no_new_privs` as well. The reason is dropped: it could not be told without
            // allocating, and there is but one number to tell.
            seccompiler::apply_filter(filter)
                .map_err(|_| io::Error::from_raw_os_error(libc::EPERM))?;
        }
        Ok(())
    }
}

/// Takes the powers out of what a program can be given when it starts. An ordinary user has none of
/// them and may not do this; that is as well.
#[expect(
    unsafe_code,
    reason = "the safe wrapper is not made for use after a fork"
)]
fn drop_powers() {
    for power in (0..POWERS_MAX).filter(|power| !POWERS_LEFT.contains(power)) {
        // SAFETY: the call takes numbers, and changes this process only. Those that the kernel does
        // not know it refuses.
        let _ = unsafe { libc::prctl(libc::PR_CAPBSET_DROP, power, 0, 0, 0) };
    }
}

#[expect(
    unsafe_code,
    reason = "the safe wrapper is not made for use after a fork"
)]
fn no_new_privileges() -> io::Result<()> {
    // SAFETY: the call takes numbers, and changes this process only.
    let done = unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
    if done == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

#[expect(
    unsafe_code,
    reason = "the crate's own call takes the ruleset away, which frees memory"
)]
fn restrict(ruleset: &OwnedFd) -> io::Result<()> {
    // SAFETY: the descriptor is open, owned by the caller, and the call takes numbers only.
    let done = unsafe { libc::syscall(libc::SYS_landlock_restrict_self, ruleset.as_raw_fd(), 0) };
    if done == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
