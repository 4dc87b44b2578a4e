//! A plan made into text: which entries go on as they are, and what stands in for the others.

mod change;
mod made;

use std::io;

use crate::format::Format;
use crate::index::{Index, Number};
use crate::plan::{Change, Insert, NewParent, Plan};
use crate::read;

/// The texts of a session's entries, wherever they are kept.
pub(crate) trait Texts {
    /// The beginning of an entry's text, and how long all of it is.
    fn beginning(&mut self, number: Number, bytes_max: usize) -> io::Result<(Vec<u8>, u64)>;

    /// An entry's text.
    fn text(&mut self, number: Number) -> io::Result<Vec<u8>> {
        self.beginning(number, usize::MAX).map(|(text, _)| text)
    }
}

/// A part of the repaired session.
#[derive(Debug)]
pub(crate) enum Piece {
    /// These entries, as they are.
    Same(std::ops::Range<Number>),
    /// This entry, altered.
    Altered(Number, Vec<u8>),
    /// This entry, from another place.
    Moved(Number, Vec<u8>),
    /// A new entry, made for the one before it.
    Made(Vec<u8>),
}

/// Hands out the repaired session piece by piece.
pub(crate) fn pieces(
    format: Format,
    index: &Index,
    plan: &Plan,
    texts: &mut impl Texts,
    mut piece: impl FnMut(Piece) -> io::Result<()>,
) -> io::Result<()> {
    let mut render = Render {
        format,
        index,
        plan,
        texts,
    };
    let end = plan
        .end
        .unwrap_or(Number::try_from(index.len()).unwrap_or(Number::MAX));
    let mut at = 0;
    // Only entries that something happens to, or behind, are looked at.
    let changed = plan.changes.keys().chain(plan.inserts.keys());
    let changed: std::collections::BTreeSet<Number> = changed.copied().collect();
    for number in changed.into_iter().take_while(|number| *number < end) {
        if at < number {
            piece(Piece::Same(at..number))?;
        }
        at = number + 1;
        match plan.changes.get(&number) {
            Some(Change::Drop) => {}
            Some(Change::Alter { parent, cut, kept }) => {
                let text = render.altered(number, *parent, cut, *kept)?;
                piece(Piece::Altered(number, text))?;
            }
            None => piece(Piece::Same(number..number + 1))?,
        }
        for (nth, insert) in plan.inserts.get(&number).into_iter().flatten().enumerate() {
            piece(render.inserted(number, nth, *insert)?)?;
        }
    }
    if at < end {
        piece(Piece::Same(at..end))?;
    }
    Ok(())
}

struct Render<'r, T> {
    format: Format,
    index: &'r Index,
    plan: &'r Plan,
    texts: &'r mut T,
}

impl<T: Texts> Render<'_, T> {
    fn altered(
        &mut self,
        number: Number,
        parent: Option<NewParent>,
        cut: &[usize],
        kept: Option<Number>,
    ) -> io::Result<Vec<u8>> {
        let text = self.texts.text(number)?;
        let parent = match parent {
            Some(parent) => Some(self.parent_value(parent)?),
            None => None,
        };
        let text = change::alter(self.format, text, parent.as_deref(), cut);
        let text = text.map_err(changed_meanwhile)?;
        let Some(kept) = kept else { return Ok(text) };
        let kept = self.id_value(kept)?;
        change::keep(self.format, text, &kept).map_err(changed_meanwhile)
    }

    /// What names a parent, as JSON.
    fn parent_value(&mut self, parent: NewParent) -> io::Result<Vec<u8>> {
        match parent {
            NewParent::Root => Ok(b"null".to_vec()),
            NewParent::Entry(number) => self.id_value(number),
            NewParent::InsertedBehind(number) => {
                let count = self.plan.inserts.get(&number).map_or(0, Vec::len);
                self.inserted_id(number, count.saturating_sub(1))
            }
        }
    }

    /// The id of an entry, as JSON; null when it has none.
    fn id_value(&mut self, number: Number) -> io::Result<Vec<u8>> {
        let text = self.texts.text(number)?;
        let seen = read::entry(self.format, &text).map_err(changed_meanwhile)?;
        Ok(seen.id.map_or(b"null".to_vec(), |span| {
            [b"\"", span.text(&text).raw(), b"\""].concat()
        }))
    }

    /// The id of something inserted behind an entry.
    fn inserted_id(&mut self, behind: Number, nth: usize) -> io::Result<Vec<u8>> {
        match self.plan.inserts.get(&behind).and_then(|all| all.get(nth)) {
            Some(Insert::Moved(number)) => self.id_value(*number),
            Some(Insert::Answer(item) | Insert::Extracted(item)) => {
                let (text, block) = self.item(*item)?;
                Ok(made::id(self.format, &text, block).unwrap_or_else(|| b"null".to_vec()))
            }
            None => Ok(b"null".to_vec()),
        }
    }

    fn inserted(&mut self, behind: Number, nth: usize, insert: Insert) -> io::Result<Piece> {
        // The first continues the entry it is behind, each other one the one before it.
        let parent = match nth.checked_sub(1) {
            None => self.id_value(behind)?,
            Some(before) => self.inserted_id(behind, before)?,
        };
        match insert {
            Insert::Moved(number) => {
                let text = self.texts.text(number)?;
                let text = change::alter(self.format, text, Some(&parent), &[])
                    .map_err(changed_meanwhile)?;
                Ok(Piece::Moved(number, text))
            }
            Insert::Answer(item) => {
                let (text, block) = self.item(item)?;
                let made = made::answer(self.format, &text, block, &parent);
                made.map(Piece::Made).ok_or_else(vanished)
            }
            Insert::Extracted(item) => {
                let (text, block) = self.item(item)?;
                let call_entry = self.texts.text(behind)?;
                let made = made::extracted(self.format, &text, block, &call_entry, &parent);
                made.map(Piece::Made).ok_or_else(vanished)
            }
        }
    }

    /// The entry of a call or result, and which of its blocks it is.
    fn item(&mut self, item: u32) -> io::Result<(Vec<u8>, usize)> {
        let entry = self
            .index
            .item(item as usize)
            .map(|item| item.entry)
            .ok_or_else(vanished)?;
        let block = item as usize - self.index.items_of(entry).start;
        Ok((self.texts.text(entry)?, block))
    }
}

fn changed_meanwhile(why: crate::json::Invalid) -> io::Error {
    io::Error::other(format!("an entry changed while it was repaired: {why}"))
}

/// Bytes as people write hashes.
pub(crate) fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let halves = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    halves
        .map(|half| char::from(DIGITS[half as usize]))
        .collect()
}

fn vanished() -> io::Error {
    io::Error::other("an entry vanished while it was repaired")
}
