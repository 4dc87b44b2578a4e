//! Everything that a command started.
//!
//! A process group holds what did not leave it. What did leave it (`setsid`) is found as a
//! descendant while its ancestors live, and by its mark afterwards: a resource limit that is handed
//! on to everything a command starts and that, where the kernel filters system calls, nothing of it
//! can change. Where it does not, a variable in the environment has to do, which a process can clear.
//! All of them are found in `/proc`, so a process that forks faster than it is found escapes.

mod proc;

use std::collections::{HashMap, HashSet, VecDeque};
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use holdfast_confine::{Mark, mark};
use holdfast_contract::{Entropy, SystemEntropy};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, getpid, kill_process_group, pidfd_open, pidfd_send_signal,
};

use self::proc::{Stat, environ, processes, told};
use super::{REAP_WAIT_MS, SWEEP_PROCESSES_MAX, SWEEP_TIME_MS_MAX, TERM_GRACE_MS};

const VARIABLE: &str = "HOLDFAST_CALL";
/// Wait for what one search found and killed to be gone before the next search.
const SWEEP_WAIT: Duration = Duration::from_millis(50);

/// So many searches that find nobody say that nobody is left.
const SEARCHES_IN_VAIN: u32 = 2;

/// What everything that one command starts carries.
#[derive(Debug, Clone)]
pub(super) struct Tag {
    variable: String,
    mark: Mark,
    /// Where it works, as its session calls it.
    pub(super) workspace: PathBuf,
}

impl Tag {
    /// A mark that no other process on the machine has. It is not the request's id, because a
    /// caller may use that twice, and this decides who gets killed.
    pub(super) fn new(workspace: PathBuf) -> Self {
        let random = SystemEntropy;
        let variable = format!("{:016x}{:016x}", random.next_u64(), random.next_u64());
        Self {
            variable,
            mark: Mark::new(random.next_u64()),
            workspace,
        }
    }

    /// The mark to be put on.
    pub(super) fn mark(&self) -> Mark {
        self.mark
    }

    /// The variable to be set.
    pub(super) fn variable(&self) -> (&'static str, String) {
        (VARIABLE, self.variable.clone())
    }

    fn is_on(&self, pid: i32) -> io::Result<bool> {
        let limits = told(std::fs::read_to_string(format!("/proc/{pid}/limits")))?;
        if self.mark.is_in(&limits.unwrap_or_default()) {
            return Ok(true);
        }
        let environ = told(environ(pid))?;
        Ok(environ.is_some_and(|environ| self.is_in(&environ)))
    }

    fn is_in(&self, environ: &[u8]) -> bool {
        environ.split(|byte| *byte == 0).any(|entry| {
            entry
                .strip_prefix(VARIABLE.as_bytes())
                .and_then(|rest| rest.strip_prefix(b"="))
                == Some(self.variable.as_bytes())
        })
    }
}

/// Ancestors that are looked at.
const ANCESTORS_MAX: usize = 64;

/// Whether this process or one above it carries any command's mark.
pub(super) fn is_marked() -> bool {
    if mark::is_on_this_process() || std::env::var_os(VARIABLE).is_some() {
        return true;
    }
    let mut pid = std::os::unix::process::parent_id().cast_signed();
    for _ in 0..ANCESTORS_MAX {
        if pid <= 1 {
            return false;
        }
        let prefix = format!("{VARIABLE}=");
        let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        if environ
            .split(|byte| *byte == 0)
            .any(|entry| entry.starts_with(prefix.as_bytes()))
        {
            return true;
        }
        let Ok(Some(stat)) = Stat::of(pid) else {
            return false;
        };
        pid = stat.parent;
    }
    false
}

/// A process that was found.
struct Member {
    pid: i32,
    stat: Stat,
}

impl Member {
    /// A handle by which it can be signalled without mistaking another one for it.
    fn handle(&self) -> Option<OwnedFd> {
        let handle = pidfd_open(Pid::from_raw(self.pid)?, PidfdFlags::empty()).ok()?;
        // The number may have passed to another process before the handle was there; that one
        // would have begun later.
        let same = Stat::of(self.pid).ok()??.started == self.stat.started;
        same.then_some(handle)
    }
}

/// Whether all of a family was seen to have ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Gone {
    All,
    /// Some of it was killed, and the kernel is not done with it: a process that waits for a disk
    /// ends when the disk has answered. Or nobody can tell, because `/proc` can not be read.
    NotAll,
}

/// Everybody that was looked for, unless that could not be done.
type Found = io::Result<Vec<Member>>;

/// Ends the family of `leader`, which must not have been reaped: as long as it is not, its number
/// can not be given to another process group.
pub(super) fn end(leader: Pid, leader_handle: &OwnedFd, tag: &Tag) -> Gone {
    end_found(&|| find(leader, tag), Some((leader, leader_handle)))
}

/// Ends everything that carries the tag, when the command itself is gone and was reaped.
pub(super) fn end_left(tag: &Tag) -> Gone {
    end_found(&|| left(tag, Since::Ever), None)
}

fn end_found(find: &dyn Fn() -> Found, leader: Option<(Pid, &OwnedFd)>) -> Gone {
    let (group, leader_handle) = leader.unzip();
    let signal_group = |signal| group.map(|group| kill_process_group(group, signal));
    // Whoever can not be found now is looked for again below.
    let known = find().unwrap_or_default();
    let _ = signal_group(Signal::TERM);
    let own = group.map(raw);
    let outside = known.iter().filter(|member| Some(member.stat.group) != own);
    signal_all(outside, Signal::TERM);
    let handles = known.iter().take(SWEEP_PROCESSES_MAX);
    let handles: Vec<OwnedFd> = handles.filter_map(Member::handle).collect();
    let everyone: Vec<&OwnedFd> = handles.iter().chain(leader_handle).collect();
    wait_for_end(&everyone, Duration::from_millis(TERM_GRACE_MS));

    let _ = signal_group(Signal::KILL);
    signal_all(known.iter(), Signal::KILL);
    wait_for_end(&everyone, Duration::from_millis(REAP_WAIT_MS));
    drop(handles);
    let deadline = Instant::now() + Duration::from_millis(SWEEP_TIME_MS_MAX);
    let gone = sweep(find, deadline);
    // The searches leave the leader out. On a busy machine the kernel may need longer than the
    // wait above to let it end.
    let left = deadline.saturating_duration_since(Instant::now());
    let leader: Vec<&OwnedFd> = leader_handle.into_iter().collect();
    if wait_for_end(&leader, left) == Gone::All {
        gone
    } else {
        Gone::NotAll
    }
}

/// Kills until none is found, however many there are: each search may find what was started
/// meanwhile. Twice in a row: a process that forks and ends while it is searched for hides its child.
fn sweep(find: &dyn Fn() -> Found, deadline: Instant) -> Gone {
    let mut searches_in_vain = 0;
    while searches_in_vain < SEARCHES_IN_VAIN {
        if Instant::now() >= deadline {
            return Gone::NotAll;
        }
        let Ok(escaped) = find() else {
            // That nobody was found says nothing.
            searches_in_vain = 0;
            std::thread::sleep(SWEEP_WAIT);
            continue;
        };
        if escaped.is_empty() {
            searches_in_vain += 1;
            continue;
        }
        searches_in_vain = 0;
        let handles = signal_all(escaped.iter(), Signal::KILL);
        wait_for_end(&handles.iter().collect::<Vec<_>>(), SWEEP_WAIT);
    }
    Gone::All
}

/// Signals them one by one, so that there may be more of them than we can have open files. The
/// handles of the last ones, to wait for.
fn signal_all<'m>(members: impl Iterator<Item = &'m Member>, signal: Signal) -> Vec<OwnedFd> {
    let mut kept = VecDeque::new();
    for handle in members.filter_map(Member::handle) {
        let _ = pidfd_send_signal(&handle, signal);
        if kept.len() == SWEEP_PROCESSES_MAX {
            kept.pop_front();
        }
        kept.push_back(handle);
    }
    kept.into()
}

/// Waits until all of them have ended, or for `time`.
fn wait_for_end(handles: &[&OwnedFd], time: Duration) -> Gone {
    let deadline = Instant::now() + time;
    let mut waiting = handles.to_vec();
    while !waiting.is_empty() {
        let left = deadline.saturating_duration_since(Instant::now());
        let mut polled: Vec<PollFd<'_>> = waiting
            .iter()
            .map(|handle| PollFd::new(*handle, PollFlags::IN))
            .collect();
        let timeout = Timespec::try_from(left).ok();
        match rustix::event::poll(&mut polled, timeout.as_ref()) {
            Ok(0) => return Gone::NotAll,
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            Err(_) => return Gone::NotAll,
        }
        let ended: Vec<bool> = polled.iter().map(|fd| !fd.revents().is_empty()).collect();
        let mut ended = ended.into_iter();
        waiting.retain(|_| !ended.next().unwrap_or(false));
    }
    Gone::All
}

/// When a process has to have begun to be looked at closely.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Since {
    Ever,
    /// In the kernel's count of time; what began earlier was not started by a command of then.
    Then(u64),
}

impl Since {
    /// The time at which this process began.
    pub(super) fn start_of(process: Pid) -> Self {
        let stat = Stat::of(raw(process)).ok().flatten();
        stat.map_or(Self::Ever, |stat| Self::Then(stat.started))
    }

    fn includes(self, stat: &Stat) -> bool {
        match self {
            Self::Ever => true,
            Self::Then(started) => stat.started >= started,
        }
    }
}

/// Whether something lives that carries the tag, or may do so.
pub(super) fn has_left(tag: &Tag, since: Since) -> bool {
    may_live(&left(tag, since))
}

fn may_live(found: &Found) -> bool {
    found.as_ref().map_or(true, |found| !found.is_empty())
}

/// All that carries the tag.
fn left(tag: &Tag, since: Since) -> Found {
    let own = raw(getpid());
    let belongs =
        |pid: i32, stat: &Stat| Ok(pid != own && since.includes(stat) && tag.is_on(pid)?);
    members(processes()?, belongs)
}

/// All living members of the family but the leader.
fn find(leader: Pid, tag: &Tag) -> Found {
    let (leader, own) = (raw(leader), raw(getpid()));
    let processes = processes()?;
    let descendants = descendants(leader, &processes);
    let belongs = |pid: i32, stat: &Stat| {
        let is_known = stat.group == leader || descendants.contains(&pid);
        Ok(pid != leader && pid != own && (is_known || tag.is_on(pid)?))
    };
    members(processes, belongs)
}

fn members(
    processes: HashMap<i32, Stat>,
    belongs: impl Fn(i32, &Stat) -> io::Result<bool>,
) -> Found {
    let mut found = Vec::new();
    for (pid, stat) in processes {
        if belongs(pid, &stat)? {
            found.push(Member { pid, stat });
        }
    }
    Ok(found)
}

fn descendants(ancestor: i32, processes: &HashMap<i32, Stat>) -> HashSet<i32> {
    let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
    for (pid, stat) in processes {
        children.entry(stat.parent).or_default().push(*pid);
    }
    let mut found = HashSet::new();
    let mut next = vec![ancestor];
    while let Some(pid) = next.pop() {
        for child in children.get(&pid).into_iter().flatten() {
            if found.insert(*child) {
                next.push(*child);
            }
        }
    }
    found
}

fn raw(pid: Pid) -> i32 {
    pid.as_raw_nonzero().get()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_still_found_is_not_said_to_be_gone() {
        let lasting = || {
            let stat = Stat {
                parent: 1,
                group: 1,
                started: 0,
            };
            Ok(vec![Member {
                pid: i32::MAX,
                stat,
            }])
        };
        let nobody = || Ok(Vec::new());
        let soon = Instant::now() + Duration::from_millis(10);
        assert_eq!(sweep(&lasting, soon), Gone::NotAll);
        let late = Instant::now() + Duration::from_mins(1);
        assert_eq!(sweep(&nobody, late), Gone::All);
        assert_eq!(sweep(&nobody, Instant::now()), Gone::NotAll);
    }

    /// As when we have as many files open as we may.
    #[test]
    fn who_can_not_be_looked_for_is_not_said_to_be_gone() {
        let unread = || {
            let processes = proc::processes_in(std::path::Path::new("/nonexistent"))?;
            members(processes, |_, _| Ok(true))
        };
        assert!(may_live(&unread()));
        assert!(!may_live(&Ok(Vec::new())));
        let soon = Instant::now() + Duration::from_millis(10);
        assert_eq!(sweep(&unread, soon), Gone::NotAll);
    }

    /// It is looked for until it can be.
    #[test]
    fn a_search_that_fails_is_made_again() {
        let searches = std::cell::Cell::new(0);
        let at_last = || {
            searches.set(searches.get() + 1);
            match searches.get() {
                1 | 3 => Err(Errno::MFILE.into()),
                _ => Ok(Vec::new()),
            }
        };
        let late = Instant::now() + Duration::from_mins(1);
        assert_eq!(sweep(&at_last, late), Gone::All);
        assert_eq!(searches.get(), 5);
    }

    #[test]
    fn a_mark_is_matched_whole() {
        let tag = Tag {
            variable: "abc".into(),
            mark: Mark::new(0),
            workspace: PathBuf::new(),
        };
        assert!(tag.is_in(b"PATH=/bin\0HOLDFAST_CALL=abc\0"));
        for environ in [
            &b""[..],
            b"HOLDFAST_CALL=abcd\0",
            b"XHOLDFAST_CALL=abc\0",
            b"X=HOLDFAST_CALL=abc\0",
        ] {
            assert!(!tag.is_in(environ));
        }
    }
}
