//! Undo itself.

use std::collections::BTreeSet;
use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, openat, syncfs};
use serde::Serialize;

use crate::disk;
use crate::entry::{Entry, Kind, Why};
use crate::error::{At, UndoError, UndoResult};
use crate::find::{points, taken};
use crate::index::Node;
use crate::limits::DEPTH_MAX;
use crate::lock::Hold;
use crate::objects::c_name;
use crate::plan::{Plan, Planner};
use crate::point::{LeftOut, Origin, Point};
use crate::record::{Record, State, path_of};
use crate::restore::{Ended, Restorer};
use crate::scope::Scope;
use crate::show::What;
use crate::store::{UndoStore, own_name};
use crate::take::Taken;
use crate::walk::Budget;
use crate::workspace::Workspace;

/// How an undo is meant.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Options {
    /// Also take back the calls that followed.
    pub also: bool,
    /// Overwrite what somebody changed since. What is overwritten is still in the new point.
    pub force: bool,
    /// Change nothing, and say what would be done.
    pub dry_run: bool,
}

/// One path that was brought back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Restored {
    /// From the workspace, or absolute outside of it.
    #[serde(with = "crate::record::path_text")]
    pub path: PathBuf,
    /// What happened to it.
    pub what: What,
}

/// One path that somebody changed after the calls that are taken back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Conflict {
    /// From the workspace, or absolute outside of it.
    #[serde(with = "crate::record::path_text")]
    pub path: PathBuf,
    /// Whether it was overwritten all the same.
    pub overwritten: bool,
}

/// One path that could not be brought back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Failed {
    /// From the workspace, or absolute outside of it.
    #[serde(with = "crate::record::path_text")]
    pub path: PathBuf,
    /// What the system said.
    pub why: String,
}

/// What an undo did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Undone {
    /// What was brought back.
    pub restored: Vec<Restored>,
    /// Later calls that were taken back too.
    pub also_takes_back: Vec<Point>,
    /// What somebody changed since.
    pub conflicts: Vec<Conflict>,
    /// What no point holds.
    pub left_out: Vec<LeftOut>,
    /// What went wrong. The same undo can be run again.
    pub failed: Vec<Failed>,
    /// The point by which this undo can be undone. None in a dry run.
    pub new_point: Option<Point>,
}

impl UndoStore {
    /// Brings a workspace back to where it was before a point. `id` names a point or a call of any workspace.
    pub fn undo(&self, id: &str, options: &Options) -> UndoResult<Undone> {
        self.undo_within(None, id, *options)
    }

    /// Brings a workspace back to where it was before a point. `id` names a point or a call of this workspace.
    pub fn undo_in(&self, workspace: &Path, id: &str, options: &Options) -> UndoResult<Undone> {
        self.undo_within(Some(workspace), id, *options)
    }

    fn undo_within(&self, within: Option<&Path>, id: &str, options: Options) -> UndoResult<Undone> {
        let undone = self.undo_locked(within, id, options)?;
        self.count_added()?;
        if !options.dry_run {
            self.expire_if_due()?;
        }
        Ok(undone)
    }

    fn undo_locked(&self, within: Option<&Path>, id: &str, options: Options) -> UndoResult<Undone> {
        let _store = self.lock(Hold::Shared)?;
        let (workspace, records, place) = self.locate(within, id)?;
        let sequence = records[place].sequence;
        let _locked = workspace.lock()?;
        self.settle(&workspace)?;
        if let Some(live) = workspace.held(None)?.live.first() {
            return Err(UndoError::Running(workspace.record(*live)?.id));
        }
        let records = workspace.records()?;
        let place = records
            .iter()
            .position(|record| record.sequence == sequence);
        let place = place.ok_or_else(|| UndoError::Unknown(id.to_owned()))?;
        let also = may_go_back(&records, place, options)?;
        let range = &records[place..];
        let taken = self.now(&workspace, range, options)?;
        let plans = self.plans(range, &taken, options)?;
        let mut undone = Undone {
            also_takes_back: also,
            ..Undone::default()
        };
        for (plan, root) in plans.iter().zip(&taken.state.roots) {
            let prefix = Prefix::new(&workspace, &root.path);
            foretell(plan, &prefix, &mut undone);
        }
        if !options.dry_run {
            self.carry_out(&workspace, range, taken, &plans, &mut undone)?;
        }
        Ok(undone)
    }

    /// The state of the workspace now. It is what the new point begins with.
    fn now(&self, workspace: &Workspace, range: &[Record], options: Options) -> UndoResult<Taken> {
        let mut scope = Scope::default();
        for record in range {
            match record.before.root(&workspace.path) {
                Some(entry) => scope.join(Scope::like(&self.objects, entry)?),
                None => scope = Scope::whole(),
            }
        }
        let kept: Vec<&State> = range.iter().map(|record| &record.before).collect();
        let is_gone = !disk::is_dir(&workspace.path);
        if is_gone && !options.dry_run {
            let path = &workspace.path;
            fs::create_dir(path).at("can not create", path)?;
        }
        let taker = self.taker(workspace, Budget::of_undo(&self.settings));
        for _ in 0..DEPTH_MAX {
            let now = taker.scoped(&scope, &kept)?;
            if options.dry_run || !self.open_up(&now, range)? {
                return Ok(now);
            }
        }
        taker.scoped(&scope, &kept)
    }

    /// Makes readable what calls have made unreadable, so that it can be compared and kept.
    fn open_up(&self, taken: &Taken, range: &[Record]) -> UndoResult<bool> {
        let mut changed = false;
        for (root, node) in taken.state.roots.iter().zip(&taken.nodes) {
            let mut hidden = BTreeSet::new();
            unreadable(node, &mut Vec::new(), &mut hidden);
            for path in hidden {
                let mut was_readable = false;
                for before in range
                    .iter()
                    .filter_map(|record| record.before.root(&root.path))
                {
                    let entry = self.objects.lookup(before, &path)?;
                    was_readable |= entry.is_some_and(|entry| {
                        matches!(entry.kind, Kind::Dir { .. } | Kind::File { .. })
                    });
                }
                if was_readable {
                    let dir = disk::open_root(&root.path).at("can not open", &root.path)?;
                    changed |= make_readable(dir, &path).is_some();
                }
            }
        }
        Ok(changed)
    }

    /// One plan a root, in the order of the state's roots.
    fn plans(&self, range: &[Record], taken: &Taken, options: Options) -> UndoResult<Vec<Plan>> {
        let roots = taken.state.roots.iter().zip(&taken.nodes);
        roots
            .map(|(root, node)| {
                let mut planner = Planner::new(&self.objects, node, options.force);
                let mut later = &node.entry;
                for record in range.iter().rev() {
                    let Some(before) = record.before.root(&root.path) else {
                        continue;
                    };
                    let after = match &record.after {
                        // Without a state after the call, the next one that is known stands for it.
                        None => later,
                        Some(after) => after.root(&root.path).unwrap_or(&Entry::ABSENT),
                    };
                    planner.take_back(before, after)?;
                    later = before;
                }
                Ok(planner.finish())
            })
            .collect()
    }

    fn carry_out(
        &self,
        workspace: &Workspace,
        range: &[Record],
        taken: Taken,
        plans: &[Plan],
        undone: &mut Undone,
    ) -> UndoResult<()> {
        let first = &range[0];
        let origin = Origin::Undo {
            of: first.id.clone(),
        };
        let sequence = workspace.next_sequence()?;
        let mut record = Record::new(&workspace.path, sequence, origin, taken.state);
        record.goes_back_to = Some(first.sequence);
        record.begun_ms = self.clock.now_ms();
        // From here on the open record says that an undo is under way, and what was there before it.
        let holder = workspace.hold(sequence)?;
        workspace.save(&record)?;
        self.sync(&self.dir)?;
        undone.restored.clear();
        let name = own_name(&record);
        for (plan, (root, node)) in plans
            .iter()
            .zip(record.before.roots.iter().zip(&taken.nodes))
        {
            if plan.steps.is_empty() {
                continue;
            }
            let dir = disk::open_root(&root.path).at("can not open", &root.path)?;
            let ended = Restorer::new(&self.objects, dir, node, &name)?.run(plan);
            report(plan, ended, &Prefix::new(workspace, &root.path), undone);
            self.sync(&root.path)?;
        }
        record.interrupted = !undone.failed.is_empty();
        self.close(workspace, &mut record)?;
        holder.release();
        undone.new_point = Some(record.point(None));
        Ok(())
    }

    /// Waits until a file system has everything on disk: thousands of files at once, not one by one.
    fn sync(&self, path: &Path) -> UndoResult<()> {
        if !self.settings.durable {
            return Ok(());
        }
        let dir = disk::open_dir(path).at("can not open", path)?;
        syncfs(dir).at("can not sync", path)
    }
}

/// Which later calls an undo also takes back, or why it can not be.
fn may_go_back(records: &[Record], place: usize, options: Options) -> UndoResult<Vec<Point>> {
    let taken = taken(records);
    let all = points(records);
    if let Some(by) = taken[place] {
        let is_last = records.last().is_some_and(|last| last.sequence == by);
        // What the undo left as a conflict can still be forced.
        if !(options.force && is_last) {
            return Err(UndoError::TakenBack {
                point: records[place].id.clone(),
                by: all[place].taken_back_by.clone().unwrap_or_default(),
            });
        }
    }
    let first = records[place].sequence;
    let is_later_call = |at: &usize| {
        // An undo whose calls all lie in the range cancels out with them.
        let cancels = records[*at].goes_back_to.is_some_and(|back| back >= first);
        taken[*at].is_none()
            && !cancels
            && !(records[*at].interrupted && records[*at].goes_back_to.is_some())
    };
    let also: Vec<Point> = (place + 1..records.len())
        .filter(is_later_call)
        .map(|at| all[at].clone())
        .collect();
    if also.is_empty() || options.also || options.dry_run {
        Ok(also)
    } else {
        Err(UndoError::AlsoTakesBack(also))
    }
}

/// How paths of a root are shown: from the workspace, or absolute outside of it.
struct Prefix(Option<PathBuf>);

impl Prefix {
    fn new(workspace: &Workspace, root: &Path) -> Self {
        Self((root != workspace.path).then(|| root.to_owned()))
    }

    fn path(&self, path: &[u8]) -> PathBuf {
        match &self.0 {
            None => path_of(path),
            Some(root) => root.join(path_of(path)),
        }
    }
}

/// What a plan will do.
fn foretell(plan: &Plan, prefix: &Prefix, undone: &mut Undone) {
    for (path, overwritten) in &plan.conflicts {
        undone.conflicts.push(Conflict {
            path: prefix.path(path),
            overwritten: *overwritten,
        });
    }
    for (path, why) in &plan.left_out {
        undone.left_out.push(LeftOut {
            path: prefix.path(path),
            why: *why,
            bytes: 0,
        });
    }
    report(
        plan,
        plan.steps.iter().map(|_| Ended::Done).collect(),
        prefix,
        undone,
    );
}

fn report(plan: &Plan, ended: Vec<Ended>, prefix: &Prefix, undone: &mut Undone) {
    for (step, ended) in plan.steps.iter().zip(ended) {
        let path = prefix.path(&step.path);
        match ended {
            // The time stamp of a directory moves with everything in it.
            Ended::Done if step.now.agrees(&step.target) && step.now.is_dir() => {}
            Ended::Done => undone.restored.push(Restored {
                path,
                what: What::of(&step.now, &step.target),
            }),
            Ended::Changed => undone.conflicts.push(Conflict {
                path,
                overwritten: false,
            }),
            Ended::Failed(why) => undone.failed.push(Failed { path, why }),
        }
    }
}

/// Paths that can not be read.
fn unreadable(node: &Node, path: &mut Vec<u8>, found: &mut BTreeSet<Vec<u8>>) {
    if let Kind::LeftOut {
        why: Why::Unreadable,
        ..
    } = node.entry.kind
    {
        found.insert(path.clone());
    }
    for (name, child) in &node.children {
        let depth = path.len();
        if depth > 0 {
            path.push(b'/');
        }
        path.extend_from_slice(name);
        unreadable(child, path, found);
        path.truncate(depth);
    }
}

/// Gives the owner the rights to read a file or directory. `None`: it is something else, or not ours.
fn make_readable(root: OwnedFd, path: &[u8]) -> Option<()> {
    let mut at = root;
    for name in path
        .split(|byte| *byte == b'/')
        .filter(|name| !name.is_empty())
    {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        at = openat(&at, c_name(name), flags, Mode::empty()).ok()?;
    }
    let stat = disk::stat_of(&at).ok()?;
    let rights = if stat.file_type.is_dir() {
        0o700
    } else if stat.file_type.is_file() {
        0o400
    } else {
        return None;
    };
    if stat.mode & rights == rights {
        return None;
    }
    // The descriptor itself: no name is looked up again.
    let itself = format!("/proc/self/fd/{}", at.as_raw_fd());
    fs::set_permissions(itself, fs::Permissions::from_mode(stat.mode | rights)).ok()
}
