//! What the store holds for one workspace: records, indexes, and who has a call under way.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

use crate::error::{At, UndoError, UndoResult};
use crate::hash::{Hash, hex};
use crate::limits::OVER_BUDGET_REMEMBERED_MS;
use crate::lock::{self, Hold, Locked};
use crate::objects::create_private;
use crate::point::NotKept;
use crate::record::{Record, replace, workspace_name};
use crate::settings::UndoSettings;

/// One workspace's part of the store.
#[derive(Debug, Clone)]
pub(crate) struct Workspace {
    /// The workspace itself.
    pub(crate) path: PathBuf,
    /// Its directory in the store.
    pub(crate) dir: PathBuf,
}

/// A workspace that was over its budget.
#[derive(Debug, Serialize, Deserialize)]
struct Over {
    why: NotKept,
    at_ms: u64,
    /// The limits that it was over. With others it is read again.
    limits: [u64; 4],
}

fn limits(settings: &UndoSettings) -> [u64; 4] {
    [
        settings.files_max,
        settings.bytes_max,
        settings.file_bytes_max,
        settings.walk_ms_max,
    ]
}

/// A call under way. The kernel unlocks its file when its process dies.
#[derive(Debug)]
pub(crate) struct Holder {
    path: PathBuf,
    _locked: Locked,
}

impl Holder {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The call has ended, and its record says so.
    pub(crate) fn release(self) {
        let _ = fs::remove_file(&self.path);
    }
}

impl Workspace {
    pub(crate) fn new(store: &Path, path: PathBuf) -> Self {
        let dir = store.join("workspaces").join(workspace_name(&path));
        Self { path, dir }
    }

    /// The workspace's directory in the store, locked for this caller alone.
    pub(crate) fn lock(&self) -> UndoResult<Locked> {
        create_private(&self.points())?;
        create_private(&self.holders())?;
        lock::take(&self.dir.join("lock"), Hold::Alone)
    }

    fn points(&self) -> PathBuf {
        self.dir.join("points")
    }

    fn holders(&self) -> PathBuf {
        self.dir.join("holders")
    }

    /// Where the index of one of its roots is.
    pub(crate) fn index(&self, root: &Path) -> PathBuf {
        let name = hex(&Hash::of(root.as_os_str().as_bytes()).0[..6]);
        self.dir.join(format!("index-{name}"))
    }

    /// The numbers of its points in order.
    pub(crate) fn sequences(&self) -> UndoResult<Vec<u64>> {
        let points = self.points();
        let files = match fs::read_dir(&points) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            files => files.at("can not list", &points)?,
        };
        let mut found: Vec<u64> = files
            .flatten()
            .filter_map(|file| {
                file.file_name()
                    .to_str()?
                    .strip_suffix(".json")?
                    .parse()
                    .ok()
            })
            .collect();
        found.sort_unstable();
        Ok(found)
    }

    pub(crate) fn record(&self, sequence: u64) -> UndoResult<Record> {
        Record::load(&self.points().join(format!("{sequence}.json")))
    }

    /// Its points in order.
    pub(crate) fn records(&self) -> UndoResult<Vec<Record>> {
        let mut records = Vec::new();
        for sequence in self.sequences()? {
            match self.record(sequence) {
                Ok(record) => records.push(record),
                // A power cut left no more of it.
                Err(UndoError::Damaged(_)) => {}
                // Somebody else removed it meanwhile, as one point too many.
                Err(UndoError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(records)
    }

    pub(crate) fn save(&self, record: &Record) -> UndoResult<()> {
        record.save(&self.points())
    }

    pub(crate) fn remove(&self, sequence: u64) -> UndoResult<()> {
        let path = self.points().join(format!("{sequence}.json"));
        fs::remove_file(&path).at("can not remove", &path)
    }

    /// A number that no point of the workspace ever had.
    pub(crate) fn next_sequence(&self) -> UndoResult<u64> {
        let path = self.dir.join("sequence");
        let last = fs::read_to_string(&path)
            .ok()
            .and_then(|text| text.parse().ok());
        let highest = self.sequences()?.last().copied().unwrap_or(0);
        let next = last.unwrap_or(0).max(highest) + 1;
        replace(&path, next.to_string().as_bytes(), false)?;
        Ok(next)
    }

    /// Says that a call of a point is under way, as long as this process lives.
    pub(crate) fn hold(&self, sequence: u64) -> UndoResult<Holder> {
        static COUNTER: AtomicU64 = AtomicU64::new(0);
        loop {
            let number = COUNTER.fetch_add(1, Ordering::Relaxed);
            let name = format!("{sequence}-{}-{number}", std::process::id());
            let path = self.holders().join(name);
            // A dead process may have had the same number; a live one of another PID namespace holds it.
            if let Some(locked) = lock::attempt(&path, Hold::Alone)? {
                return Ok(Holder {
                    path,
                    _locked: locked,
                });
            }
        }
    }

    /// Which points have calls under way, and which have calls whose process died.
    pub(crate) fn held(&self, but: Option<&Path>) -> UndoResult<Held> {
        let mut held = Held::default();
        for file in fs::read_dir(self.holders())
            .at("can not list", &self.holders())?
            .flatten()
        {
            let path = file.path();
            let name = file.file_name();
            let sequence = name
                .to_str()
                .and_then(|name| name.split('-').next()?.parse().ok());
            let Some(sequence) = sequence.filter(|_| Some(&*path) != but) else {
                continue;
            };
            if lock::attempt(&path, Hold::Alone)?.is_some() {
                held.dead.push((sequence, path));
            } else {
                held.live.push(sequence);
            }
        }
        Ok(held)
    }

    /// Why the workspace was over its budget a short while ago.
    pub(crate) fn over(&self, settings: &UndoSettings, now_ms: u64) -> Option<NotKept> {
        let bytes = fs::read(self.dir.join("over")).ok()?;
        let over: Over = serde_json::from_slice(&bytes).ok()?;
        let age_ms = now_ms.checked_sub(over.at_ms)?;
        let holds = age_ms < OVER_BUDGET_REMEMBERED_MS && over.limits == limits(settings);
        holds.then_some(over.why)
    }

    pub(crate) fn set_over(
        &self,
        why: &NotKept,
        settings: &UndoSettings,
        now_ms: u64,
    ) -> UndoResult<()> {
        let over = Over {
            why: why.clone(),
            at_ms: now_ms,
            limits: limits(settings),
        };
        let bytes = serde_json::to_vec(&over).unwrap_or_default();
        replace(&self.dir.join("over"), &bytes, false)
    }
}

/// Calls of a workspace by what became of their processes.
#[derive(Debug, Default)]
pub(crate) struct Held {
    pub(crate) live: Vec<u64>,
    pub(crate) dead: Vec<(u64, PathBuf)>,
}

/// Which undo has taken each point back, if any. `points` are in order: number, and the number to which an
/// undo that came to its end went back.
///
/// An undo takes back every point from there up to itself. Points before it that a now taken-back undo had
/// taken back are in force again.
pub(crate) fn taken_back(points: &[(u64, Option<u64>)]) -> Vec<Option<u64>> {
    let mut taken: Vec<Option<u64>> = vec![None; points.len()];
    for (place, (number, goes_back_to)) in points.iter().enumerate() {
        let Some(first) = goes_back_to else {
            continue;
        };
        for (by, (other, _)) in taken.iter_mut().zip(points).take(place) {
            if other >= first {
                *by = Some(*number);
            } else if by.is_some_and(|by| by >= *first) {
                *by = None;
            }
        }
    }
    taken
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn undo_of_undo_brings_its_points_into_force_again() {
        // Calls 1 and 2; 3 takes both back; 4 takes 3 back.
        let points = [(1, None), (2, None), (3, Some(1)), (4, Some(3))];
        assert_eq!(taken_back(&points[..3]), [Some(3), Some(3), None]);
        assert_eq!(taken_back(&points), [None, None, Some(4), None]);
    }

    #[test]
    fn stepwise_undo_takes_back_one_call_after_the_other() {
        let points = [(1, None), (2, None), (3, Some(2)), (4, Some(1))];
        assert_eq!(taken_back(&points), [Some(4), Some(4), Some(4), None]);
    }
}
