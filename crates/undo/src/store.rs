//! The store: takes the state before and after calls, and finds it again.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use holdfast_contract::Clock;

use crate::disk;
use crate::entry::Why;
use crate::error::{At, UndoError, UndoResult};
use crate::failed::Failures;
use crate::lock::{self, Hold, Locked};
use crate::objects::{Objects, create_private};
use crate::point::{Coverage, LeftOut, NotKept, Origin, Point, Where};
use crate::record::Record;
use crate::restore::remove_own;
use crate::scope::{Scope, overlay};
use crate::settings::UndoSettings;
use crate::take::Taker;
use crate::walk::Budget;
use crate::workspace::{Holder, Workspace};

/// Keeps what workspaces were before calls, and brings it back.
///
/// ```
/// use std::{fs, sync::Arc};
/// use holdfast_contract::SystemClock;
/// use holdfast_undo::{Options, UndoSettings, UndoStore, Where};
///
/// let (state, workspace) = (tempfile::tempdir()?, tempfile::tempdir()?);
/// fs::write(workspace.path().join("notes"), "kept")?;
/// let store = UndoStore::open(state.path(), UndoSettings::default(), Arc::new(SystemClock))?;
///
/// let open = store.before(workspace.path(), "call-1", &Where::Anywhere)?;
/// fs::remove_file(workspace.path().join("notes"))?;
/// let point = store.after(open)?.unwrap();
///
/// store.undo(&point.id, &Options::default())?;
/// assert_eq!(fs::read_to_string(workspace.path().join("notes"))?, "kept");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct UndoStore {
    pub(crate) dir: PathBuf,
    pub(crate) settings: UndoSettings,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) objects: Objects,
    pub(crate) never: Vec<(u64, u64)>,
    failures: Failures,
}

/// A call under way. Give it to [`UndoStore::after`] when the call has ended.
///
/// Where it is dropped instead, the next use of the workspace takes the state after the call.
#[derive(Debug)]
#[must_use = "the state after the call is taken by `UndoStore::after`"]
pub struct OpenPoint {
    kept: Result<Open, NotKept>,
}

#[derive(Debug)]
struct Open {
    workspace: Workspace,
    record: Record,
    holder: Holder,
}

impl OpenPoint {
    /// The point's id, where there is one.
    pub fn id(&self) -> Option<&str> {
        self.kept.as_ref().ok().map(|open| &*open.record.id)
    }

    /// How much of the workspace an undo would bring back.
    pub fn coverage(&self) -> Coverage {
        self.kept
            .as_ref()
            .map_or(Coverage::None, |open| open.record.coverage())
    }

    /// Why nothing was kept, where that is so.
    pub fn not_kept(&self) -> Option<&NotKept> {
        self.kept.as_ref().err()
    }

    /// Whether the call may lose something that undo does not bring back and no tool makes again: a file
    /// that is too large or unreadable, another mount, or all of a workspace that is not kept.
    ///
    /// Directories that tools make again, sockets, devices and the state of Holdfast do not count.
    pub fn may_lose_data(&self) -> bool {
        self.kept.as_ref().map_or(true, |open| {
            open.record.before.leaves_out(Why::may_lose_data)
        })
    }

    /// What was left out, as far as it is named.
    pub fn left_out(&self) -> &[LeftOut] {
        self.kept
            .as_ref()
            .map_or(&[], |open| &open.record.before.left_out)
    }
}

impl UndoStore {
    /// Opens the store of a state directory, and creates it where there is none.
    pub fn open(
        state_dir: &Path,
        settings: UndoSettings,
        clock: Arc<dyn Clock>,
    ) -> UndoResult<Self> {
        let dir = state_dir.join("undo");
        create_private(&dir.join("workspaces"))?;
        let objects = Objects::open(dir.join("objects"))?;
        let never = std::iter::once(state_dir)
            .chain(settings.never.iter().map(PathBuf::as_path))
            .filter_map(|path| disk::stat_of(disk::open_dir(path).ok()?).ok())
            .map(|stat| (stat.seen.dev, stat.seen.ino))
            .collect();
        Ok(Self {
            dir,
            settings,
            clock,
            objects,
            never,
            failures: Failures::default(),
        })
    }

    /// Whether a workspace is kept, as far as is known: only its first walk shows that it is too large.
    ///
    /// It is not for a while after [`UndoStore::before`] failed with an error, until that succeeds again.
    pub fn keeps(&self, workspace: &Path) -> bool {
        let Ok(path) = workspace.canonicalize() else {
            return false;
        };
        let known = Workspace::new(&self.dir, path.clone());
        let now_ms = self.clock.now_ms();
        let over = known.over(&self.settings, now_ms);
        !self.is_home(&path) && over.is_none() && !self.failures.is_recent(&path, now_ms)
    }

    /// Takes the state of a workspace before a call. Calls that overlap share one point.
    pub fn before(&self, workspace: &Path, call_id: &str, writes: &Where) -> UndoResult<OpenPoint> {
        let path = workspace.canonicalize().at("can not find", workspace)?;
        let opened = self.before_in(path.clone(), call_id, writes);
        match &opened {
            Err(_) => self.failures.add(path, self.clock.now_ms()),
            Ok(open) if open.kept.is_ok() => self.failures.clear(&path),
            Ok(_) => {}
        }
        opened
    }

    fn before_in(&self, path: PathBuf, call_id: &str, writes: &Where) -> UndoResult<OpenPoint> {
        let scope = match writes {
            Where::Anywhere => Ok(Scope::whole()),
            Where::Paths(paths) => Scope::of(&path, paths).map_err(NotKept::Outside),
        };
        let scope = match scope {
            Ok(scope) if scope == Scope::whole() && self.is_home(&path) => Err(NotKept::Home),
            scope => scope,
        };
        let kept = match scope {
            Err(why) => Err(why),
            Ok(scope) => match self.begin(path, call_id, &scope) {
                Ok(open) => Ok(open),
                Err(UndoError::Over(why)) => Err(why),
                Err(error) => return Err(error),
            },
        };
        self.count_added()?;
        Ok(OpenPoint { kept })
    }

    /// Whether a workspace is too much to be walked, whatever it holds.
    fn is_home(&self, path: &Path) -> bool {
        let home = self.settings.home.as_ref();
        let home = home.and_then(|home| home.canonicalize().ok());
        path.parent().is_none() || home.is_some_and(|home| home.starts_with(path))
    }

    fn begin(&self, path: PathBuf, call_id: &str, scope: &Scope) -> UndoResult<Open> {
        let _store = self.lock(Hold::Shared)?;
        let workspace = Workspace::new(&self.dir, path);
        let _locked = workspace.lock()?;
        let now_ms = self.clock.now_ms();
        if *scope == Scope::whole()
            && let Some(why) = workspace.over(&self.settings, now_ms)
        {
            return Err(why.into());
        }
        self.settle(&workspace)?;
        let kept_bytes = self.objects.added();
        let live = workspace.held(None)?.live.last().copied();
        let record = match live {
            Some(sequence) => self.widen(&workspace, workspace.record(sequence)?, scope),
            None => self.take_before(&workspace, scope),
        };
        let mut record = match record {
            Err(UndoError::Over(why)) => {
                // A first walk that is too slow gets further the next time.
                let slow = matches!(why, NotKept::TooSlow { .. });
                if !slow || self.objects.added() == kept_bytes {
                    workspace.set_over(&why, &self.settings, now_ms)?;
                }
                return Err(why.into());
            }
            record => record?,
        };
        record.calls.push(call_id.to_owned());
        let holder = workspace.hold(record.sequence)?;
        if let Err(error) = workspace.save(&record) {
            holder.release();
            return Err(error);
        }
        Ok(Open {
            workspace,
            record,
            holder,
        })
    }

    pub(crate) fn taker<'a>(&'a self, workspace: &'a Workspace, budget: Budget) -> Taker<'a> {
        Taker {
            objects: &self.objects,
            workspace,
            budget,
            never: &self.never,
        }
    }

    fn take_before(&self, workspace: &Workspace, scope: &Scope) -> UndoResult<Record> {
        let taker = self.taker(workspace, Budget::of(&self.settings));
        let before = taker.scoped(scope, &[])?.state;
        let sequence = workspace.next_sequence()?;
        let mut record = Record::new(&workspace.path, sequence, Origin::Calls, before);
        record.begun_ms = self.clock.now_ms();
        Ok(record)
    }

    /// Lets another call share an open point. What the point does not know yet is taken now.
    fn widen(
        &self,
        workspace: &Workspace,
        mut record: Record,
        scope: &Scope,
    ) -> UndoResult<Record> {
        let known = match record.before.root(&workspace.path) {
            Some(entry) => scope.is_known(&self.objects, entry)?,
            None => false,
        };
        if known {
            return Ok(record);
        }
        let taker = self.taker(workspace, Budget::of(&self.settings));
        let mut wider = taker.scoped(scope, &[])?.state;
        for root in &mut wider.roots {
            if let Some(first) = record.before.root(&root.path) {
                root.entry = overlay(&self.objects, first, &root.entry)?;
            }
        }
        record.before = wider;
        Ok(record)
    }

    /// Takes the state after a call. The last of overlapping calls ends their point.
    ///
    /// `None`: there is no point. Nothing was kept, the calls changed nothing, or the store was cleared
    /// meanwhile.
    pub fn after(&self, open: OpenPoint) -> UndoResult<Option<Point>> {
        let Ok(open) = open.kept else {
            return Ok(None);
        };
        let point = self.end(open)?;
        self.count_added()?;
        self.expire_if_due()?;
        Ok(point)
    }

    fn end(&self, open: Open) -> UndoResult<Option<Point>> {
        let _store = self.lock(Hold::Shared)?;
        let Open {
            workspace,
            record,
            holder,
        } = open;
        let _locked = workspace.lock()?;
        let sequence = record.sequence;
        if !workspace.sequences()?.contains(&sequence) {
            return Ok(None);
        }
        // Others may have joined.
        let mut record = workspace.record(sequence)?;
        let held = workspace.held(Some(holder.path()))?;
        if !held.live.contains(&sequence) {
            self.take_after(&workspace, &mut record)?;
            if changed_nothing(&workspace, &record)? {
                workspace.remove(sequence)?;
                holder.release();
                return Ok(None);
            }
            workspace.save(&record)?;
        }
        holder.release();
        self.drop_oldest(&workspace)?;
        Ok(Some(record.point(None)))
    }

    /// Keeps to the number of points. Their contents go when the store is next swept.
    fn drop_oldest(&self, workspace: &Workspace) -> UndoResult<()> {
        let sequences = workspace.sequences()?;
        let points_max = usize::try_from(self.settings.points_max).unwrap_or(usize::MAX);
        let many = sequences.len().saturating_sub(points_max.max(1));
        for sequence in sequences.into_iter().take(many) {
            workspace.remove(sequence)?;
        }
        Ok(())
    }

    /// Takes the state after a point's last call, and ends the point. The point stays also where nothing
    /// changed: an undo says what it took back, and after a crash a child of the call may still run.
    pub(crate) fn close(&self, workspace: &Workspace, record: &mut Record) -> UndoResult<()> {
        self.take_after(workspace, record)?;
        workspace.save(record)
    }

    /// Takes the state after a point's last call. Over budget the point ends without.
    fn take_after(&self, workspace: &Workspace, record: &mut Record) -> UndoResult<()> {
        let budget = match record.origin {
            Origin::Calls => Budget::of(&self.settings),
            Origin::Undo { .. } => Budget::of_undo(&self.settings),
        };
        let taker = self.taker(workspace, budget);
        let scope = match record.before.root(&workspace.path) {
            Some(entry) => Scope::like(&self.objects, entry)?,
            None => Scope::whole(),
        };
        record.after = match taker.scoped(&scope, &[&record.before]) {
            Ok(after) => Some(after.state),
            Err(UndoError::Over(why)) => {
                workspace.set_over(&why, &self.settings, self.clock.now_ms())?;
                None
            }
            Err(error) => return Err(error),
        };
        record.ended_ms = Some(self.clock.now_ms());
        Ok(())
    }

    /// Ends the points of calls whose process died, and tidies up after an undo that was cut off.
    pub(crate) fn settle(&self, workspace: &Workspace) -> UndoResult<()> {
        let held = workspace.held(None)?;
        for (sequence, path) in &held.dead {
            let is_open = workspace.sequences()?.contains(sequence);
            if is_open && !held.live.contains(sequence) {
                let mut record = workspace.record(*sequence)?;
                if record.ended_ms.is_none() {
                    tidy(&record);
                    record.interrupted = true;
                    self.close(workspace, &mut record)?;
                }
            }
            fs::remove_file(path).at("can not remove", path)?;
        }
        Ok(())
    }

    /// Removes everything that is kept.
    pub fn clear(&self) -> UndoResult<()> {
        let _store = self.lock(Hold::Alone)?;
        let workspaces = self.dir.join("workspaces");
        let gone = fs::remove_dir_all(&workspaces);
        gone.at("can not remove", &workspaces)?;
        create_private(&workspaces)?;
        self.sweep()?;
        Ok(())
    }

    pub(crate) fn lock(&self, hold: Hold) -> UndoResult<Locked> {
        lock::take(&self.dir.join("lock"), hold)
    }
}

/// Whether the calls of a point changed nothing, so that nobody needs the point.
fn changed_nothing(workspace: &Workspace, record: &Record) -> UndoResult<bool> {
    let before = &record.before;
    let Some(after) = record.after.as_ref().filter(|it| it.roots == before.roots) else {
        return Ok(false);
    };
    if before.leaves_out(Why::hides_changes) || after.leaves_out(Why::hides_changes) {
        return Ok(false);
    }
    // Where the point before this one has no state after its calls, this point's state stands for it.
    let mut sequences = workspace.sequences()?.into_iter().rev();
    let last = sequences.find(|it| *it < record.sequence);
    Ok(match last.map(|last| workspace.record(last)) {
        None => true,
        Some(last) => last.is_ok_and(|last| last.after.is_some()),
    })
}

/// Removes what an undo that was cut off has left in the workspace.
fn tidy(record: &Record) {
    if let Origin::Undo { .. } = record.origin {
        for root in &record.before.roots {
            if let Ok(dir) = disk::open_root(&root.path) {
                remove_own(&dir, &crate::objects::c_name(own_name(record).as_bytes()));
            }
        }
    }
}

/// The directory in which an undo makes files before they are renamed to their places.
pub(crate) fn own_name(record: &Record) -> String {
    format!(".holdfast-undo-{}", record.id)
}
