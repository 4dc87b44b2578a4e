//! One directory of a walk: its names, and what is new under them.

use std::ffi::CStr;
use std::fs::File;
use std::io::{Seek, SeekFrom};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rustix::fs::{FileType, RawDir, readlinkat};
use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};

use super::{Job, Place, Shared};
use crate::disk::{self, Stat};
use crate::entry::{Kind, Stamp, Why};
use crate::error::{At, UndoResult};
use crate::index::Node;
use crate::limits::DEPTH_MAX;
use crate::objects::c_name;
use crate::rebuildable::Dir;

/// A file that changes while it is read is read again so many times.
const READS_MAX: usize = 3;

/// One tick of the slowest clock by which file systems with fine time stamps go, twice over.
const TICK_NANOS: i128 = 20_000_000;

/// Time stamps without nanoseconds may come from a file system that counts in steps of two seconds.
const COARSE_TICK_NANOS: i128 = 2_000_000_000;

/// What stands under one name.
pub(super) enum Found<'a> {
    /// Everything but a directory, and whether it is what the index had.
    Node(Node, bool),
    Dir {
        id: usize,
        stat: Stat,
        old: Option<&'a Node>,
    },
}

/// Names in order, and what stands under them.
pub(super) type Names<'a> = Vec<(Box<[u8]>, Found<'a>)>;

/// A directory's names in order, or why it was left out.
pub(super) struct Listing<'a> {
    pub(super) found: Result<Names<'a>, Why>,
}

impl Listing<'_> {
    /// Tells a directory the number under which its own listing will be found.
    pub(super) fn give_id(&mut self, job: &Job<'_>, number: usize) {
        let (Ok(found), Place::Below(_, name)) = (&mut self.found, &job.place) else {
            return;
        };
        if let Ok(place) = found.binary_search_by(|(other, _)| other.cmp(name))
            && let Found::Dir { id, .. } = &mut found[place].1
        {
            *id = number;
        }
    }
}

type Read<'a> = (Listing<'a>, Vec<Job<'a>>);

fn without<'a>(why: Why) -> Read<'a> {
    (Listing { found: Err(why) }, Vec::new())
}

impl<'a> Shared<'a> {
    /// Reads one directory.
    pub(super) fn list(&self, job: Job<'a>, buffer: &mut Vec<u8>) -> UndoResult<Read<'a>> {
        let dir = match job.place {
            Place::Root(fd) => Dir::new(fd, Box::default(), None),
            Place::Below(parent, name) => {
                if parent.depth >= DEPTH_MAX {
                    return Ok(without(Why::TooDeep));
                }
                let fd = match disk::open_dir_at(&parent.fd, &c_name(&name)) {
                    Ok(fd) => fd,
                    Err(error @ (Errno::MFILE | Errno::NFILE)) => {
                        return Err(error)
                            .at("can not open a directory of", "the workspace".as_ref());
                    }
                    Err(_) => return Ok(without(Why::Unreadable)),
                };
                Dir::new(fd, name, Some(parent))
            }
        };
        let Ok(names) = names(&dir, buffer) else {
            return Ok(without(Why::Unreadable));
        };
        if dir.is_rebuildable(&names, job.beside_package_json) && !self.was_kept(&dir)? {
            return Ok(without(Why::Rebuildable));
        }
        self.files.fetch_add(names.len() as u64, Ordering::Relaxed);
        self.within_budget()?;
        self.look_at(&Arc::new(dir), names, job.old)
    }

    /// Whether an earlier state has the directory's content.
    fn was_kept(&self, dir: &Dir) -> UndoResult<bool> {
        let path = dir.path();
        for root in &self.walk.kept {
            let entry = self.walk.objects.lookup(root, &path)?;
            if entry.is_some_and(|entry| entry.is_dir()) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn look_at(
        &self,
        dir: &Arc<Dir>,
        names: Vec<Box<[u8]>>,
        old: Option<&'a Node>,
    ) -> UndoResult<Read<'a>> {
        let beside_package_json = names.iter().any(|name| &**name == b"package.json");
        let mut found = Vec::with_capacity(names.len());
        let mut jobs = Vec::new();
        let mut c_name = Vec::with_capacity(256);
        for name in names {
            c_name.clear();
            c_name.extend_from_slice(&name);
            c_name.push(0);
            let Ok(as_c) = CStr::from_bytes_with_nul(&c_name) else {
                continue;
            };
            let stat = match disk::stat_at(&dir.fd, as_c) {
                Ok(stat) => stat,
                Err(Errno::NOENT) => continue,
                // A directory without `x` tells its names and no more. They are not gone.
                Err(_) => return Ok(without(Why::Unreadable)),
            };
            let old = old.and_then(|old| old.child(&name));
            let is_dir = stat.file_type == FileType::Directory;
            if is_dir && self.elsewhere(&stat).is_none() {
                jobs.push(Job {
                    place: Place::Below(Arc::clone(dir), name.clone()),
                    old,
                    id: 0,
                    beside_package_json,
                });
                found.push((name, Found::Dir { id: 0, stat, old }));
            } else if let Some((node, same)) = self.file(&dir.fd, as_c, stat, old)? {
                found.push((name, Found::Node(node, same)));
            }
        }
        Ok((Listing { found: Ok(found) }, jobs))
    }

    /// Whether something lies on another mount, or is the store itself.
    fn elsewhere(&self, stat: &Stat) -> Option<Why> {
        if stat.mount != self.mount || stat.is_mount_root {
            Some(Why::Mount)
        } else if self.walk.never.contains(&(stat.seen.dev, stat.seen.ino)) {
            Some(Why::State)
        } else {
            None
        }
    }

    /// Everything but a directory. `None`: it is gone again.
    pub(super) fn file(
        &self,
        dir: &OwnedFd,
        name: &CStr,
        stat: Stat,
        old: Option<&Node>,
    ) -> UndoResult<Option<(Node, bool)>> {
        let unchanged = old.filter(|old| {
            let size_same = match &old.entry.kind {
                Kind::File { size, .. } => *size == stat.size,
                Kind::Link { .. } => true,
                _ => false,
            };
            old.trusted
                && size_same
                && old.seen == stat.seen
                && old.entry == stat.entry(old.entry.kind.clone())
                && self.elsewhere(&stat).is_none()
        });
        if let Some(old) = unchanged
            && stat.size <= self.walk.budget.file_bytes
        {
            self.count(stat.size);
            return Ok(Some((old.clone(), true)));
        }
        let Some((kind, stat, trusted)) = self.content(dir, name, stat)? else {
            return Ok(None);
        };
        let mut entry = stat.entry(kind);
        if let Kind::LeftOut {
            why: Why::Mount | Why::State,
            ..
        } = entry.kind
        {
            // What happens in there changes no state.
            entry.mtime = (0, 0);
        }
        let same = old.is_some_and(|old| {
            old.entry == entry && old.seen == stat.seen && old.trusted == trusted
        });
        let node = Node {
            entry,
            seen: stat.seen,
            trusted,
            children: Vec::new(),
        };
        Ok(Some((node, same)))
    }

    fn count(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    fn content(
        &self,
        dir: &OwnedFd,
        name: &CStr,
        stat: Stat,
    ) -> UndoResult<Option<(Kind, Stat, bool)>> {
        let left_out = |why, size| Ok(Some((Kind::LeftOut { why, size }, stat, true)));
        if let Some(why) = self.elsewhere(&stat) {
            return left_out(why, 0);
        }
        match stat.file_type {
            FileType::RegularFile if stat.size > self.walk.budget.file_bytes => {
                left_out(Why::TooLarge, stat.size)
            }
            FileType::RegularFile => match disk::open_file_at(dir, name) {
                Ok(file) => {
                    self.within_budget()?;
                    self.keep(file)
                }
                Err(Errno::NOENT | Errno::LOOP) => Ok(None),
                Err(error @ (Errno::MFILE | Errno::NFILE)) => {
                    Err(error).at("can not open a file of", "the workspace".as_ref())
                }
                Err(_) => left_out(Why::Unreadable, stat.size),
            },
            FileType::Symlink => {
                let read_at = now();
                let Ok(target) = readlinkat(dir, name, Vec::new()) else {
                    return Ok(None);
                };
                let target = target.into_bytes().into();
                Ok(Some((Kind::Link { target }, stat, is_old(&stat, read_at))))
            }
            _ => left_out(Why::Special, 0),
        }
    }

    /// Reads a file, again where it changes meanwhile. A file that keeps changing is kept as it was read
    /// last, and not trusted.
    fn keep(&self, mut file: File) -> UndoResult<Option<(Kind, Stat, bool)>> {
        for round in 1.. {
            let read_at = now();
            let Ok(before) = disk::stat_of(file.as_fd()) else {
                return Ok(None);
            };
            if before.file_type != FileType::RegularFile {
                return Ok(None);
            }
            let (hash, size) = self.walk.objects.put_file(&mut file, before.size)?;
            let still = disk::stat_of(file.as_fd()).is_ok_and(|after| before.is_same(&after));
            if (still && size == before.size) || round == READS_MAX {
                self.count(size);
                let kind = Kind::File { hash, size };
                return Ok(Some((kind, before, still && is_old(&before, read_at))));
            }
            file.seek(SeekFrom::Start(0))
                .at("can not read again", "the workspace".as_ref())?;
        }
        Ok(None)
    }
}

/// The names of a directory in order.
fn names(dir: &Dir, buffer: &mut Vec<u8>) -> Result<Vec<Box<[u8]>>, Errno> {
    let mut names: Vec<Box<[u8]>> = Vec::new();
    buffer.clear();
    let mut entries = RawDir::new(&dir.fd, buffer.spare_capacity_mut());
    while let Some(entry) = entries.next() {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name != b"." && name != b".." {
            names.push(name.into());
        }
    }
    names.sort_unstable();
    Ok(names)
}

/// The time by which the file system stamps files. It is the kernel's own coarse clock, never an injected
/// one: the two would have nothing to do with each other.
fn now() -> Stamp {
    let now = clock_gettime(ClockId::RealtimeCoarse);
    (now.tv_sec, u32::try_from(now.tv_nsec).unwrap_or(0))
}

/// Whether a file's last change is so old that a later one shows in its time stamp.
fn is_old(stat: &Stat, read_at: Stamp) -> bool {
    let nanos = |(seconds, nanos): Stamp| i128::from(seconds) * 1_000_000_000 + i128::from(nanos);
    let (changed, modified) = (stat.seen.ctime, stat.mtime);
    let tick = if changed.1 == 0 && modified.1 == 0 {
        COARSE_TICK_NANOS
    } else {
        TICK_NANOS
    };
    nanos(changed) + tick < nanos(read_at)
}
