//! What differs between two states.

use crate::entry::{Entry, Kind, Tree, Why};
use crate::error::UndoResult;
use crate::objects::Objects;

/// One path at which two states differ.
#[derive(Debug, Clone)]
pub(crate) struct Change {
    /// From the root, with slashes between.
    pub(crate) path: Vec<u8>,
    pub(crate) old: Entry,
    pub(crate) new: Entry,
}

impl Change {
    /// Whether nothing but a time stamp differs.
    pub(crate) fn is_touch(&self) -> bool {
        self.old.agrees(&self.new)
    }
}

/// Every path at which both states know something, and something else. Directories come before what is
/// in them.
pub(crate) fn diff(objects: &Objects, old: &Entry, new: &Entry) -> UndoResult<Vec<Change>> {
    let mut differ = Differ {
        objects,
        path: Vec::new(),
        changes: Vec::new(),
    };
    differ.pair(old, new)?;
    Ok(differ.changes)
}

struct Differ<'a> {
    objects: &'a Objects,
    path: Vec<u8>,
    changes: Vec<Change>,
}

impl Differ<'_> {
    fn pair(&mut self, old: &Entry, new: &Entry) -> UndoResult<()> {
        if old == new {
            return Ok(());
        }
        if !old.agrees(new) || old.mtime != new.mtime {
            self.changes.push(Change {
                path: self.path.clone(),
                old: old.clone(),
                new: new.clone(),
            });
        }
        // Nobody knows what is in a directory that was left out.
        if is_unknown(old) || is_unknown(new) || !(old.is_dir() || new.is_dir()) {
            return Ok(());
        }
        let (one, two) = (self.objects.tree(old)?, self.objects.tree(new)?);
        self.trees(&one, &two)
    }

    fn trees(&mut self, old: &Tree, new: &Tree) -> UndoResult<()> {
        let (mut olds, mut news) = (old.entries.iter().peekable(), new.entries.iter().peekable());
        loop {
            let order = match (olds.peek(), news.peek()) {
                (None, None) => return Ok(()),
                (Some(_), None) => std::cmp::Ordering::Less,
                (None, Some(_)) => std::cmp::Ordering::Greater,
                (Some((one, _)), Some((two, _))) => one.cmp(two),
            };
            let one = if order.is_le() { olds.next() } else { None };
            let two = if order.is_ge() { news.next() } else { None };
            let Some((name, _)) = one.or(two) else {
                return Ok(());
            };
            if (one.is_none() && old.sparse) || (two.is_none() && new.sparse) {
                continue;
            }
            let depth = self.path.len();
            if depth > 0 {
                self.path.push(b'/');
            }
            self.path.extend_from_slice(name);
            self.pair(
                one.map_or(&Entry::ABSENT, |(_, entry)| entry),
                two.map_or(&Entry::ABSENT, |(_, entry)| entry),
            )?;
            self.path.truncate(depth);
        }
    }
}

/// Whether an entry may be a directory into which nobody looked.
fn is_unknown(entry: &Entry) -> bool {
    match entry.kind {
        Kind::LeftOut { why, .. } => !matches!(why, Why::TooLarge | Why::Special),
        _ => false,
    }
}
