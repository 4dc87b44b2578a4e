//! What a point's calls changed, for a person to read.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;
use similar::TextDiff;

use crate::diff::{Change, diff};
use crate::entry::{Entry, Kind, Why};
use crate::error::UndoResult;
use crate::find::points;
use crate::limits::{DIFF_BYTES_MAX, DIFF_FILE_BYTES_MAX};
use crate::lock::Hold;
use crate::point::Point;
use crate::record::{path_of, path_text};
use crate::store::UndoStore;

/// Time to find the shortest diff of one file; then a longer one is shown.
const DIFF_TIME_MAX: Duration = Duration::from_millis(200);

/// What happened to one path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum What {
    /// It was not there.
    Added,
    /// It is gone.
    Removed,
    /// It holds something else, or is something else.
    Changed,
    /// Only its mode or owner differ.
    Attributes,
    /// Only its time stamp differs.
    Touched,
}

impl What {
    pub(crate) fn of(old: &Entry, new: &Entry) -> Self {
        match (old.is_absent(), new.is_absent()) {
            (true, _) => Self::Added,
            (_, true) => Self::Removed,
            _ if old.agrees(new) => Self::Touched,
            _ if old.kind == new.kind || (old.is_dir() && new.is_dir()) => Self::Attributes,
            _ => Self::Changed,
        }
    }
}

/// What stands at a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", tag = "is", rename_all_fields = "camelCase")]
pub enum Thing {
    /// A file.
    File {
        /// Its size.
        bytes: u64,
        /// Its permissions.
        mode: u32,
    },
    /// A directory.
    Directory {
        /// Its permissions.
        mode: u32,
    },
    /// A symbolic link.
    Link {
        /// Where it points.
        #[serde(with = "path_text")]
        to: PathBuf,
    },
    /// Something whose content is not kept.
    LeftOut {
        /// Why.
        why: Why,
    },
}

impl Thing {
    fn of(entry: &Entry) -> Option<Self> {
        match &entry.kind {
            Kind::Absent => None,
            Kind::File { size, .. } => Some(Self::File {
                bytes: *size,
                mode: entry.mode,
            }),
            Kind::Dir { .. } => Some(Self::Directory { mode: entry.mode }),
            Kind::Link { target } => Some(Self::Link {
                to: path_of(target),
            }),
            Kind::LeftOut { why, .. } => Some(Self::LeftOut { why: *why }),
        }
    }
}

/// How the content of a file changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Content {
    /// The lines that changed, as a unified diff. They are not redacted.
    Text(String),
    /// The file is no text.
    Binary,
    /// The lines would be more than the limit.
    TooLong,
    /// No file, or the same content.
    None,
}

/// One path that a point's calls changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Shown {
    /// From the workspace, or absolute outside of it.
    #[serde(with = "path_text")]
    pub path: PathBuf,
    /// What happened to it.
    pub what: What,
    /// What it was.
    pub old: Option<Thing>,
    /// What it became.
    pub new: Option<Thing>,
    /// How its content changed.
    pub content: Content,
}

/// What a point's calls changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Diff {
    /// The point.
    pub point: Point,
    /// Whether the state after the calls is known. Without it nothing is shown as changed.
    pub after_known: bool,
    /// The changes, by path.
    pub changes: Vec<Shown>,
}

impl UndoStore {
    /// What a point's calls changed. `id` names a point or a call of any workspace.
    pub fn show(&self, id: &str) -> UndoResult<Diff> {
        self.show_within(None, id)
    }

    /// What a point's calls changed. `id` names a point or a call of this workspace.
    pub fn show_in(&self, workspace: &Path, id: &str) -> UndoResult<Diff> {
        self.show_within(Some(workspace), id)
    }

    fn show_within(&self, within: Option<&Path>, id: &str) -> UndoResult<Diff> {
        let _store = self.lock(Hold::Shared)?;
        let (workspace, records, place) = self.locate(within, id)?;
        let record = &records[place];
        let mut shown = Diff {
            point: points(&records).swap_remove(place),
            after_known: record.after.is_some(),
            changes: Vec::new(),
        };
        let Some(after) = &record.after else {
            return Ok(shown);
        };
        let mut room = DIFF_BYTES_MAX;
        for root in &record.before.roots {
            let after = after.root(&root.path).unwrap_or(&Entry::ABSENT);
            for change in diff(&self.objects, &root.entry, after)? {
                if change.is_touch() {
                    continue;
                }
                let mut path = path_of(&change.path);
                if root.path != workspace.path {
                    path = root.path.join(path);
                }
                let content = self.content(&change, &mut room);
                shown.changes.push(Shown {
                    path,
                    what: What::of(&change.old, &change.new),
                    old: Thing::of(&change.old),
                    new: Thing::of(&change.new),
                    content,
                });
            }
        }
        Ok(shown)
    }

    fn content(&self, change: &Change, room: &mut usize) -> Content {
        let (old, new) = (&change.old.kind, &change.new.kind);
        let is_file = |kind: &Kind| matches!(kind, Kind::File { .. });
        if old == new || !(is_file(old) || is_file(new)) {
            return Content::None;
        }
        if *room == 0 {
            return Content::TooLong;
        }
        let (Some(old), Some(new)) = (self.text(old), self.text(new)) else {
            return Content::TooLong;
        };
        if [&old, &new].iter().any(|bytes| bytes.contains(&0)) {
            return Content::Binary;
        }
        let diff = TextDiff::configure()
            .timeout(DIFF_TIME_MAX)
            .diff_lines(&*old, &*new);
        let mut bytes = Vec::new();
        if diff.unified_diff().to_writer(&mut bytes).is_err() || bytes.len() > *room {
            // The first files that fit are shown; a later small one would not tell that others are missing.
            *room = 0;
            return Content::TooLong;
        }
        *room -= bytes.len();
        Content::Text(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// A file's bytes; none where there is no file. `None`: they are too many or not kept.
    fn text(&self, kind: &Kind) -> Option<Vec<u8>> {
        match kind {
            Kind::File { hash, size } if *size <= DIFF_FILE_BYTES_MAX => {
                self.objects.get(hash).ok()
            }
            Kind::File { .. } => None,
            _ => Some(Vec::new()),
        }
    }
}
