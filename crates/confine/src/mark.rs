//! A mark that a process can not take off.
//!
//! A variable in the environment is gone with `env -i`, a process group with `setsid`, a parent with
//! a second fork. A resource limit stays: it is handed on through fork and exec, and the filter over
//! system calls refuses to change this one. So the limit on realtime processing, which ordinary
//! programs neither have nor ask for, holds a large random number that is this command's own.

use std::fmt;

/// Every mark lies between this and twice this: far beyond any limit that somebody would set, and
/// short of "no limit".
const FIRST: u64 = 1 << 62;
/// How `/proc/PID/limits` calls the limit.
const LINE: &str = "Max realtime timeout";

/// One command's mark.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Mark(u64);

// It is no secret, but a number in a log helps nobody.
impl fmt::Debug for Mark {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Mark(…)")
    }
}

impl Mark {
    /// The mark made of a random number.
    pub fn new(random: u64) -> Self {
        Self(FIRST | (random & (FIRST - 1)))
    }

    /// Whether `/proc/PID/limits` is that of a process with this mark.
    pub fn is_in(self, limits: &str) -> bool {
        read(limits) == Some(self.0)
    }

    /// Puts the mark on this process. Called between fork and exec: it makes one system call.
    /// Where an administrator has set a lower limit, or this is itself a marked process, it stays.
    pub(crate) fn put_on(self) {
        let limit = libc::rlimit {
            rlim_cur: self.0,
            rlim_max: self.0,
        };
        set(&limit);
    }
}

/// Whether this process, or one that it descends from, was started as a command.
pub fn is_on_this_process() -> bool {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    is_in_any(&limits)
}

/// Whether `/proc/PID/limits` is that of a process with any command's mark.
pub(crate) fn is_in_any(limits: &str) -> bool {
    read(limits).is_some_and(|value| (FIRST..2 * FIRST).contains(&value))
}

fn read(limits: &str) -> Option<u64> {
    let line = limits.lines().find_map(|line| line.strip_prefix(LINE))?;
    // The soft limit, then the hard one, which can not be raised.
    line.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[expect(unsafe_code, reason = "the safe wrapper does not know this limit")]
fn set(limit: &libc::rlimit) {
    // SAFETY: the call reads the struct it is given, and changes a limit of this process.
    let _ = unsafe { libc::setrlimit(libc::RLIMIT_RTTIME, limit) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_found_in_the_kernels_own_words() {
        let mark = Mark::new(7);
        let limits = |soft: &str, hard: &str| {
            format!(
                "Limit                     Soft Limit           Hard Limit           Units\n\
                 Max realtime priority     0                    0\n\
                 Max realtime timeout      {soft}            {hard}            us        \n"
            )
        };
        let own = (FIRST + 7).to_string();
        assert!(mark.is_in(&limits(&own, &own)));
        assert!(mark.is_in(&limits("5", &own)));
        for hard in ["unlimited", "7", &(FIRST + 8).to_string(), ""] {
            assert!(!mark.is_in(&limits(hard, hard)), "{hard}");
        }
        assert!(!mark.is_in(""));
        for random in [0, 1, u64::MAX] {
            let Mark(value) = Mark::new(random);
            assert!((FIRST..2 * FIRST).contains(&value));
        }
    }
}
