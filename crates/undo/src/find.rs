//! Finds points again: of one workspace, or of all.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{At, UndoError, UndoResult};
use crate::lock::Hold;
use crate::point::Point;
use crate::record::Record;
use crate::store::UndoStore;
use crate::workspace::{Workspace, taken_back};

impl UndoStore {
    /// The points of a workspace, oldest first.
    pub fn list(&self, workspace: &Path) -> UndoResult<Vec<Point>> {
        let _store = self.lock(Hold::Shared)?;
        let workspace = Workspace::new(&self.dir, resolved(workspace));
        Ok(points(&workspace.records()?))
    }

    /// The point of this id, or else the last one that holds a call of this id, of any workspace.
    pub fn find(&self, id: &str) -> UndoResult<Point> {
        self.find_within(None, id)
    }

    /// The point of a workspace that has this id, or else its last one that holds a call of this id.
    pub fn find_in(&self, workspace: &Path, id: &str) -> UndoResult<Point> {
        self.find_within(Some(workspace), id)
    }

    fn find_within(&self, within: Option<&Path>, id: &str) -> UndoResult<Point> {
        let _store = self.lock(Hold::Shared)?;
        let (_, records, place) = self.locate(within, id)?;
        Ok(points(&records).swap_remove(place))
    }

    /// The workspace, all its records, and the place of the record that is meant. `within` is the only
    /// workspace that is looked at, where it is given.
    pub(crate) fn locate(
        &self,
        within: Option<&Path>,
        id: &str,
    ) -> UndoResult<(Workspace, Vec<Record>, usize)> {
        let workspaces = match within {
            None => self.workspaces()?,
            Some(path) => vec![Workspace::new(&self.dir, resolved(path))],
        };
        let mut found: Option<(Workspace, Vec<Record>, usize)> = None;
        for workspace in workspaces {
            let records = workspace.records()?;
            if let Some(place) = records.iter().position(|record| record.id == id) {
                return Ok((workspace, records, place));
            }
            let has_call = |record: &Record| record.calls.iter().any(|call| call == id);
            if let Some(place) = records.iter().rposition(has_call) {
                let is_later = found
                    .as_ref()
                    .is_none_or(|(_, other, at)| other[*at].begun_ms < records[place].begun_ms);
                if is_later {
                    found = Some((workspace, records, place));
                }
            }
        }
        found.ok_or_else(|| UndoError::Unknown(id.to_owned()))
    }

    /// Every workspace that has points.
    pub(crate) fn workspaces(&self) -> UndoResult<Vec<Workspace>> {
        let dir = self.dir.join("workspaces");
        let mut found = Vec::new();
        for entry in fs::read_dir(&dir).at("can not list", &dir)?.flatten() {
            let mut workspace = Workspace {
                path: PathBuf::new(),
                dir: entry.path(),
            };
            let mut sequences = workspace.sequences()?.into_iter().rev();
            let last = sequences.find_map(|last| workspace.record(last).ok());
            if let Some(last) = last {
                workspace.path = last.workspace;
                found.push(workspace);
            }
        }
        Ok(found)
    }
}

/// A path without links, also where nothing is there any more.
fn resolved(path: &Path) -> PathBuf {
    let whole = path.canonicalize().ok();
    let from_parent = || {
        let parent = path.parent()?.canonicalize().ok()?;
        Some(parent.join(path.file_name()?))
    };
    whole
        .or_else(from_parent)
        .unwrap_or_else(|| path.to_owned())
}

/// What callers see of records, with what undo has taken back.
pub(crate) fn points(records: &[Record]) -> Vec<Point> {
    let by_sequence = |wanted: u64| records.iter().find(|record| record.sequence == wanted);
    taken(records)
        .into_iter()
        .zip(records)
        .map(|(by, record)| {
            let by = by.and_then(by_sequence).map(|record| record.id.clone());
            record.point(by)
        })
        .collect()
}

/// Which undo has taken each record back.
pub(crate) fn taken(records: &[Record]) -> Vec<Option<u64>> {
    let numbers: Vec<_> = records
        .iter()
        .map(|record| {
            let finished = record.ended_ms.is_some() && !record.interrupted;
            (record.sequence, record.goes_back_to.filter(|_| finished))
        })
        .collect();
    taken_back(&numbers)
}
