//! Processes as `/proc` tells of them.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use rustix::io::Errno;

use crate::tools::exec::ENVIRON_BYTES_MAX;

/// What `/proc/PID/stat` says that matters here.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Stat {
    pub(super) parent: i32,
    pub(super) group: i32,
    pub(super) started: u64,
}

impl Stat {
    /// `None` when there is no such process or it only waits to be reaped.
    pub(super) fn of(pid: i32) -> io::Result<Option<Self>> {
        // A process may name itself with bytes that are not text.
        let stat = told(std::fs::read(format!("/proc/{pid}/stat")))?;
        Ok(stat.and_then(|stat| Self::parse(&String::from_utf8_lossy(&stat))))
    }

    fn parse(stat: &str) -> Option<Self> {
        // The name in parentheses may itself contain anything, also a parenthesis.
        let (_, fields) = stat.rsplit_once(')')?;
        let mut fields = fields.split_ascii_whitespace();
        let state = fields.next()?;
        let (parent, group) = (fields.next()?, fields.next()?);
        // 14 fields lie between the group and the number of threads, one between that and the time
        // the process began.
        let threads: u64 = fields.nth(14)?.parse().ok()?;
        // The state is that of its first thread, which may have ended while others go on.
        if state == "X" || (state == "Z" && threads < 2) {
            return None;
        }
        Some(Self {
            parent: parent.parse().ok()?,
            group: group.parse().ok()?,
            started: fields.nth(1)?.parse().ok()?,
        })
    }
}

pub(super) fn processes() -> io::Result<HashMap<i32, Stat>> {
    processes_in(Path::new("/proc"))
}

pub(super) fn processes_in(proc: &Path) -> io::Result<HashMap<i32, Stat>> {
    let mut found = HashMap::new();
    for entry in std::fs::read_dir(proc)? {
        let name = entry?.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        if let Some(stat) = Stat::of(pid)? {
            found.insert(pid, stat);
        }
    }
    Ok(found)
}

/// What a file of `/proc` holds; nothing when its process is gone or another's. That we have no file to
/// read it with says nothing about the process.
pub(super) fn told<T>(read: io::Result<T>) -> io::Result<Option<T>> {
    match read {
        Ok(held) => Ok(Some(held)),
        Err(error) => match Errno::from_io_error(&error) {
            Some(Errno::MFILE | Errno::NFILE | Errno::NOMEM) => Err(error),
            _ => Ok(None),
        },
    }
}

pub(super) fn environ(pid: i32) -> io::Result<Vec<u8>> {
    let file = File::open(format!("/proc/{pid}/environ"))?;
    let mut environ = Vec::new();
    file.take(ENVIRON_BYTES_MAX as u64)
        .read_to_end(&mut environ)?;
    Ok(environ)
}

#[cfg(test)]
mod tests {
    use rustix::process::getpid;

    use super::*;

    #[test]
    fn stat_lines_are_read_whatever_the_name() {
        let rest = "S 7 8 9 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 4711 100 200";
        let expected = Stat {
            parent: 7,
            group: 8,
            started: 4711,
        };
        for name in ["sh", "a b", "a) S 1 1", "(((", ""] {
            let stat = Stat::parse(&format!("12 ({name}) {rest}"));
            assert_eq!(stat.as_ref(), Some(&expected), "{name}");
        }
        let ended = rest.replacen('S', "Z", 1);
        assert_eq!(Stat::parse(&format!("12 (sh) {ended}")), None);
        // Its first thread has ended, and another one has not.
        let threads = ended.replacen(" 20 0 1 0 ", " 20 0 2 0 ", 1);
        assert_eq!(Stat::parse(&format!("12 (sh) {threads}")), Some(expected));
        assert_eq!(Stat::parse("12 (sh) S 7"), None);
    }

    #[test]
    fn a_lack_of_files_says_nothing_about_a_process() {
        for short in [Errno::MFILE, Errno::NFILE, Errno::NOMEM] {
            assert!(told::<()>(Err(short.into())).is_err(), "{short}");
        }
        for other in [Errno::NOENT, Errno::SRCH, Errno::PERM, Errno::ACCESS] {
            assert!(told::<()>(Err(other.into())).is_ok(), "{other}");
        }
    }

    #[test]
    fn our_own_process_is_among_the_processes() {
        let own_pid = getpid().as_raw_nonzero().get();
        let mut all = processes().expect("can be read");
        let own = all.remove(&own_pid).expect("is there");
        assert_eq!(Some(own), Stat::of(own_pid).expect("can be read"));
    }
}
