//! What is removed, and when.

use std::collections::HashSet;
use std::fs;
use std::path::PathBuf;

use serde::Serialize;

use crate::entry::{Entry, Kind, Tree};
use crate::error::{At, UndoResult};
use crate::hash::Hash;
use crate::index::Node;
use crate::lock::{self, Hold};
use crate::objects::blocks;
use crate::record::{Record, replace};
use crate::store::UndoStore;
use crate::workspace::Workspace;

/// Time between two looks for old points.
const EXPIRE_EVERY_MS: u64 = 60 * 60 * 1000;

/// What [`UndoStore::expire`] did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Expired {
    /// Points that were removed.
    pub points: u64,
    /// Bytes that were freed.
    pub freed_bytes: u64,
    /// Bytes that are still kept.
    pub kept_bytes: u64,
    /// Whether nothing was done, since somebody else uses the store right now.
    pub skipped: bool,
}

/// Contents that are in use, and what they take.
struct Marks<'a> {
    store: &'a UndoStore,
    found: HashSet<Hash>,
    bytes: u64,
}

impl Marks<'_> {
    /// Marks a content, and says whether it was not marked before.
    fn mark(&mut self, hash: Hash, new: &mut Vec<Hash>) -> bool {
        if !self.found.insert(hash) {
            return false;
        }
        self.bytes += self.size(&hash);
        new.push(hash);
        true
    }

    fn size(&self, hash: &Hash) -> u64 {
        let path = self.store.objects.path(hash);
        fs::symlink_metadata(path).map_or(0, |found| blocks(found.len()))
    }

    fn unmark(&mut self, new: Vec<Hash>) {
        for hash in new {
            self.bytes -= self.size(&hash);
            self.found.remove(&hash);
        }
    }

    /// Marks everything below an entry. A damaged tree holds nothing that could be marked.
    fn entry(&mut self, entry: &Entry, new: &mut Vec<Hash>) {
        match &entry.kind {
            Kind::File { hash, .. } => {
                self.mark(*hash, new);
            }
            Kind::Dir { tree } => {
                if self.mark(*tree, new)
                    && let Ok(bytes) = self.store.objects.get(tree)
                {
                    let entries = Tree::read(&bytes).unwrap_or_default().entries;
                    for (_, below) in &entries {
                        self.entry(below, new);
                    }
                }
            }
            _ => {}
        }
    }

    fn record(&mut self, record: &Record) -> Vec<Hash> {
        let mut new = Vec::new();
        let states = std::iter::once(&record.before).chain(&record.after);
        for root in states.flat_map(|state| &state.roots) {
            self.entry(&root.entry, &mut new);
        }
        new
    }
}

impl UndoStore {
    /// Removes points that are too old, too many or too large, and every content that no point needs.
    ///
    /// It is done by itself now and then after calls. Points of calls that still run stay, and so does the
    /// newest point.
    pub fn expire(&self) -> UndoResult<Expired> {
        let Some(_store) = lock::attempt(&self.dir.join("lock"), Hold::Alone)? else {
            return Ok(Expired {
                skipped: true,
                ..Expired::default()
            });
        };
        let mut expired = Expired::default();
        let mut all = self.young_points(&mut expired)?;
        all.sort_by_key(|(_, record)| {
            std::cmp::Reverse((record.ended_ms.is_none(), record.begun_ms))
        });
        let mut marks = Marks {
            store: self,
            found: HashSet::new(),
            bytes: 0,
        };
        let mut is_full = false;
        for (place, (workspace, record)) in all.iter().enumerate() {
            let may_go = place > 0 && record.ended_ms.is_some();
            let new = if is_full && may_go {
                Vec::new()
            } else {
                marks.record(record)
            };
            is_full |= marks.bytes > self.settings.kept_bytes_max;
            if is_full && may_go {
                marks.unmark(new);
                workspace.remove(record.sequence)?;
                expired.points += 1;
            }
        }
        for workspace in self.all_workspaces()? {
            mark_indexes(&workspace, &mut marks)?;
        }
        expired.kept_bytes = marks.bytes;
        expired.freed_bytes = self.remove_unmarked(&marks.found)?;
        self.objects.sweep_new();
        self.set_usage(expired.kept_bytes, true)?;
        Ok(expired)
    }

    /// Every point that is neither too old nor one too many. The others are removed.
    fn young_points(&self, expired: &mut Expired) -> UndoResult<Vec<(Workspace, Record)>> {
        let oldest_ms = self.clock.now_ms().saturating_sub(self.settings.age_ms_max);
        let mut young = Vec::new();
        for workspace in self.all_workspaces()? {
            let records = workspace.records()?;
            let points_max = usize::try_from(self.settings.points_max).unwrap_or(usize::MAX);
            let many = records.len().saturating_sub(points_max);
            for (place, record) in records.into_iter().enumerate() {
                let goes = place < many || record.begun_ms < oldest_ms;
                if goes && record.ended_ms.is_some() {
                    workspace.remove(record.sequence)?;
                    expired.points += 1;
                } else {
                    young.push((workspace.clone(), record));
                }
            }
        }
        Ok(young)
    }

    fn all_workspaces(&self) -> UndoResult<Vec<Workspace>> {
        let dir = self.dir.join("workspaces");
        let entries = fs::read_dir(&dir).at("can not list", &dir)?;
        let workspace = |entry: fs::DirEntry| Workspace {
            path: PathBuf::new(),
            dir: entry.path(),
        };
        Ok(entries.flatten().map(workspace).collect())
    }

    fn remove_unmarked(&self, marked: &HashSet<Hash>) -> UndoResult<u64> {
        let mut freed = 0;
        for (hash, bytes) in self.objects.all()? {
            if !marked.contains(&hash) {
                let path = self.objects.path(&hash);
                fs::remove_file(&path).at("can not remove", &path)?;
                freed += bytes;
            }
        }
        Ok(freed)
    }

    /// Removes every content. Nothing refers to any.
    pub(crate) fn sweep(&self) -> UndoResult<()> {
        self.remove_unmarked(&HashSet::new())?;
        self.objects.sweep_new();
        self.set_usage(0, true)
    }

    /// Writes down what this store has added to the contents.
    pub(crate) fn count_added(&self) -> UndoResult<()> {
        let added = self.objects.take_added();
        if added == 0 {
            return Ok(());
        }
        let _locked = lock::take(&self.dir.join("usage.lock"), Hold::Alone)?;
        self.set_usage(self.usage().bytes + added, false)
    }

    /// Expires when an hour has passed, or when more is kept than may be.
    pub(crate) fn expire_if_due(&self) -> UndoResult<()> {
        let usage = self.usage();
        let now_ms = self.clock.now_ms();
        let max = self.settings.kept_bytes_max;
        // Where the newest point alone is over the limit, looking again at once would find nothing.
        if usage.expired_ms == 0 {
            return self.set_usage(usage.bytes, true);
        }
        let is_over = usage.bytes > max && usage.bytes > usage.then_bytes.saturating_add(max / 16);
        if is_over || now_ms.saturating_sub(usage.expired_ms) > EXPIRE_EVERY_MS {
            self.expire()?;
        }
        Ok(())
    }

    fn usage(&self) -> Usage {
        let text = fs::read_to_string(self.dir.join("usage")).unwrap_or_default();
        let mut numbers = text
            .split_whitespace()
            .map(|number| number.parse().unwrap_or(0));
        Usage {
            bytes: numbers.next().unwrap_or(0),
            then_bytes: numbers.next().unwrap_or(0),
            expired_ms: numbers.next().unwrap_or(0),
        }
    }

    fn set_usage(&self, bytes: u64, expired: bool) -> UndoResult<()> {
        let mut usage = self.usage();
        usage.bytes = bytes;
        if expired {
            usage.then_bytes = bytes;
            usage.expired_ms = self.clock.now_ms();
        }
        let text = format!("{} {} {}", usage.bytes, usage.then_bytes, usage.expired_ms);
        replace(&self.dir.join("usage"), text.as_bytes(), false)
    }
}

/// What the store takes on disk, about: a process that died may not have counted what it kept.
struct Usage {
    bytes: u64,
    /// After the last look.
    then_bytes: u64,
    /// When that was.
    expired_ms: u64,
}

/// An index says that contents are kept; so they are, as long as its workspace has points.
fn mark_indexes(workspace: &Workspace, marks: &mut Marks<'_>) -> UndoResult<()> {
    let is_used = !workspace.sequences()?.is_empty();
    for file in fs::read_dir(&workspace.dir)
        .at("can not list", &workspace.dir)?
        .flatten()
    {
        if !file.file_name().to_string_lossy().starts_with("index-") {
            continue;
        }
        let path = file.path();
        match Node::load(&path).filter(|_| is_used) {
            Some(node) => marks.entry(&node.entry, &mut Vec::new()),
            None => fs::remove_file(&path).at("can not remove", &path)?,
        }
    }
    Ok(())
}
