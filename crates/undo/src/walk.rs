//! Reads a directory with everything below it, on a few threads, and keeps what is new.

use std::ffi::CStr;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;

use crate::disk::{self, Stat};
use crate::entry::{Entry, Kind, Tree, Why};
use crate::error::{UndoError, UndoResult};
use crate::hash::Hash;
use crate::index::Node;
use crate::limits::{LEFT_OUT_NAMED_MAX, WALK_THREADS_MAX};
use crate::objects::Objects;
use crate::point::{LeftOut, NotKept};
use crate::rebuildable::Dir;
use crate::settings::UndoSettings;

mod listing;

use listing::{Found, Listing};

/// What bounds a walk.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Budget {
    pub(crate) files: u64,
    pub(crate) bytes: u64,
    pub(crate) file_bytes: u64,
    pub(crate) time: Duration,
}

impl Budget {
    pub(crate) fn of(settings: &UndoSettings) -> Self {
        Self {
            files: settings.files_max,
            bytes: settings.bytes_max,
            file_bytes: settings.file_bytes_max,
            time: Duration::from_millis(settings.walk_ms_max),
        }
    }

    /// An undo that a person asked for may take its time.
    pub(crate) fn of_undo(settings: &UndoSettings) -> Self {
        Self {
            files: u64::MAX,
            bytes: u64::MAX,
            file_bytes: settings.file_bytes_max,
            time: Duration::from_hours(24),
        }
    }
}

/// How a directory is read.
pub(crate) struct Walk<'a> {
    pub(crate) objects: &'a Objects,
    pub(crate) budget: Budget,
    /// Directories that are never kept, by device and inode: the state of Holdfast.
    pub(crate) never: &'a [(u64, u64)],
    /// States in which a directory may be kept already. Such a directory is not left out now: else a
    /// command could have it forgotten by what it writes into a `.gitignore`.
    pub(crate) kept: Vec<Entry>,
}

/// A directory as it was read.
pub(crate) struct Walked {
    pub(crate) node: Node,
    /// Whether it differs from the index that the walk was given.
    pub(crate) changed: bool,
    pub(crate) left_out: Vec<LeftOut>,
    pub(crate) left_out_count: u64,
    /// Each reason for which something was left out.
    pub(crate) left_out_for: Vec<Why>,
}

/// A directory that waits to be read.
struct Job<'a> {
    place: Place,
    old: Option<&'a Node>,
    id: usize,
    beside_package_json: bool,
}

enum Place {
    Root(OwnedFd),
    Below(Arc<Dir>, Box<[u8]>),
}

struct Queue<'a> {
    jobs: Vec<Job<'a>>,
    /// Threads that read a directory and may add jobs.
    busy: usize,
    ids: usize,
    failed: Option<UndoError>,
}

struct Shared<'a> {
    walk: &'a Walk<'a>,
    mount: u64,
    queue: Mutex<Queue<'a>>,
    ready: Condvar,
    files: AtomicU64,
    bytes: AtomicU64,
    until: Option<Instant>,
}

impl Walk<'_> {
    /// Reads a directory. `old` is what is known of it. A walk that takes too long leaves in `so_far` what
    /// it has read, so that the next one gets further.
    pub(crate) fn run(
        &self,
        root: OwnedFd,
        old: Option<&Node>,
        so_far: &mut Option<Node>,
    ) -> UndoResult<Walked> {
        let stat = disk::stat_of(&root).map_err(unreadable)?;
        let job = Job {
            place: Place::Root(root),
            old,
            id: 0,
            beside_package_json: false,
        };
        let shared = self.shared(stat.mount, vec![job]);
        let threads =
            thread::available_parallelism().map_or(1, |count| count.get().min(WALK_THREADS_MAX));
        let mut parts = Vec::new();
        thread::scope(|scope| {
            let others: Vec<_> = (1..threads)
                .map(|_| scope.spawn(|| shared.work()))
                .collect();
            parts.extend(shared.work());
            for other in others {
                parts.extend(other.join().unwrap_or_default());
            }
        });
        let queue = shared
            .queue
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        let mut listings: Vec<Option<Listing>> = Vec::new();
        listings.resize_with(queue.ids, || None);
        for (id, listing) in parts {
            listings[id] = Some(listing);
        }
        let mut assembly = Assembly {
            objects: self.objects,
            listings,
            left_out: Vec::new(),
            left_out_count: 0,
            left_out_for: Vec::new(),
            path: Vec::new(),
            is_whole: queue.failed.is_none(),
        };
        if let Some(failed) = queue.failed {
            if matches!(failed, UndoError::Over(NotKept::TooSlow { .. })) {
                *so_far = assembly.dir(0, stat, old)?.map(|(node, _)| node);
            }
            return Err(failed);
        }
        let (node, same) = assembly
            .dir(0, stat, old)?
            .ok_or_else(|| unreadable(Errno::NOENT))?;
        Ok(Walked {
            node,
            changed: !same,
            left_out: assembly.left_out,
            left_out_count: assembly.left_out_count,
            left_out_for: assembly.left_out_for,
        })
    }
}

impl Walk<'_> {
    /// Reads one file that is no directory. `None`: it is gone again.
    pub(crate) fn one(&self, dir: &OwnedFd, name: &CStr, stat: Stat) -> UndoResult<Option<Node>> {
        let shared = self.shared(stat.mount, Vec::new());
        let read = shared.file(dir, name, stat, None)?;
        Ok(read.map(|(node, _)| node))
    }

    fn shared<'a>(&'a self, mount: u64, jobs: Vec<Job<'a>>) -> Shared<'a> {
        Shared {
            walk: self,
            mount,
            queue: Mutex::new(Queue {
                ids: jobs.len(),
                jobs,
                busy: 0,
                failed: None,
            }),
            ready: Condvar::new(),
            files: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            until: Instant::now().checked_add(self.budget.time),
        }
    }
}

/// The root itself can not be read.
fn unreadable(error: Errno) -> UndoError {
    UndoError::Io {
        what: "can not read",
        path: "the workspace".into(),
        source: error.into(),
    }
}

impl<'a> Shared<'a> {
    fn queue(&self) -> std::sync::MutexGuard<'_, Queue<'a>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next(&self) -> Option<Job<'a>> {
        let mut queue = self.queue();
        loop {
            if queue.failed.is_some() {
                return None;
            }
            if let Some(job) = queue.jobs.pop() {
                queue.busy += 1;
                return Some(job);
            }
            if queue.busy == 0 {
                return None;
            }
            queue = self
                .ready
                .wait(queue)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Reads directories until none is left.
    fn work(&self) -> Vec<(usize, Listing<'a>)> {
        let mut done = Vec::new();
        let mut buffer = Vec::with_capacity(32 * 1024);
        while let Some(job) = self.next() {
            let id = job.id;
            let read = self
                .within_budget()
                .and_then(|()| self.list(job, &mut buffer));
            let mut queue = self.queue();
            queue.busy -= 1;
            match read {
                Ok((mut listing, jobs)) => {
                    for mut job in jobs {
                        job.id = queue.ids;
                        listing.give_id(&job, queue.ids);
                        queue.ids += 1;
                        queue.jobs.push(job);
                    }
                    done.push((id, listing));
                }
                Err(error) => queue.failed = Some(error),
            }
            drop(queue);
            self.ready.notify_all();
        }
        done
    }

    fn within_budget(&self) -> UndoResult<()> {
        let budget = &self.walk.budget;
        if self.files.load(Ordering::Relaxed) > budget.files {
            return Err(NotKept::TooManyFiles { max: budget.files }.into());
        }
        if self.bytes.load(Ordering::Relaxed) > budget.bytes {
            return Err(NotKept::TooManyBytes { max: budget.bytes }.into());
        }
        if self.until.is_some_and(|until| Instant::now() > until) {
            let max_ms = u64::try_from(budget.time.as_millis()).unwrap_or(u64::MAX);
            return Err(NotKept::TooSlow { max_ms }.into());
        }
        Ok(())
    }
}

/// Puts the listings of all directories together, from the innermost outwards.
struct Assembly<'a> {
    objects: &'a Objects,
    listings: Vec<Option<Listing<'a>>>,
    left_out: Vec<LeftOut>,
    left_out_count: u64,
    left_out_for: Vec<Why>,
    path: Vec<u8>,
    /// Whether every directory was read.
    is_whole: bool,
}

impl Assembly<'_> {
    /// A directory's node, and whether it is what the index had. `None`: nothing is known of it.
    fn dir(
        &mut self,
        id: usize,
        stat: Stat,
        old: Option<&Node>,
    ) -> UndoResult<Option<(Node, bool)>> {
        let listing = self.listings[id].take();
        if listing.is_none() && !self.is_whole {
            return Ok(old.map(|old| (old.clone(), true)));
        }
        let found = match listing.map_or(Err(Why::Unreadable), |listing| listing.found) {
            Ok(found) => found,
            Err(why) => return Ok(Some(self.left_out(stat, why, old))),
        };
        let mut children = Vec::with_capacity(found.len());
        let mut same =
            old.is_some_and(|old| old.entry.is_dir() && old.children.len() == found.len());
        let depth = self.path.len();
        for (name, found) in found {
            if depth > 0 {
                self.path.push(b'/');
            }
            self.path.extend_from_slice(&name);
            let child = match found {
                Found::Node(node, same) => {
                    if let Kind::LeftOut { why, size } = node.entry.kind {
                        self.name_left_out(why, size);
                    }
                    Some((node, same))
                }
                Found::Dir { id, stat, old } => self.dir(id, stat, old)?,
            };
            self.path.truncate(depth);
            match child {
                Some((child, child_same)) => {
                    same &= child_same;
                    children.push((name, child));
                }
                None => same = false,
            }
        }
        let tree = match old.map(|old| &old.entry.kind) {
            Some(Kind::Dir { tree }) if same => *tree,
            _ => self.put_tree(&children)?,
        };
        let entry = stat.entry(Kind::Dir { tree });
        let same = same && old.is_some_and(|old| old.entry == entry && old.seen == stat.seen);
        let node = Node {
            entry,
            seen: stat.seen,
            trusted: true,
            children,
        };
        Ok(Some((node, same)))
    }

    fn put_tree(&self, children: &[(Box<[u8]>, Node)]) -> UndoResult<Hash> {
        let entries = children.iter().map(|(name, node)| (&**name, &node.entry));
        self.objects.put(&Tree::write_entries(false, entries))
    }

    fn left_out(&mut self, stat: Stat, why: Why, old: Option<&Node>) -> (Node, bool) {
        self.name_left_out(why, 0);
        let mut entry = stat.entry(Kind::LeftOut { why, size: 0 });
        if why != Why::Unreadable {
            // What happens in a directory that is left out changes no state.
            entry.mtime = (0, 0);
        }
        let same = old.is_some_and(|old| old.entry == entry);
        let node = Node {
            entry,
            seen: stat.seen,
            trusted: true,
            children: Vec::new(),
        };
        (node, same)
    }

    fn name_left_out(&mut self, why: Why, bytes: u64) {
        self.left_out_count += 1;
        if !self.left_out_for.contains(&why) {
            self.left_out_for.push(why);
        }
        if self.left_out.len() < LEFT_OUT_NAMED_MAX {
            self.left_out.push(LeftOut {
                path: crate::record::path_of(&self.path),
                why,
                bytes,
            });
        }
    }
}
