//! What an adapter sees in an entry: places in its text, and nothing copied.

use crate::json::Text;

/// A string's place in an entry's text, without its quotation marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// The first byte.
    pub start: u32,
    /// The byte behind the last.
    pub end: u32,
    /// Whether it holds escapes.
    pub is_escaped: bool,
}

impl Span {
    /// The string in the text it was found in.
    pub fn text(self, entry: &[u8]) -> Text<'_> {
        let range = self.start as usize..self.end as usize;
        Text::new(entry.get(range).unwrap_or_default(), self.is_escaped)
    }
}

/// What an entry is to the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum Kind {
    /// Not part of what a provider is sent: settings, snapshots, events, unknown entries.
    #[default]
    Neutral,
    /// The first line of a session.
    Header,
    /// Something said to the model: it ends the turn before it.
    Message,
    /// Something the model said, with or without calls.
    Assistant,
    /// Results of calls and nothing else.
    Results,
    /// Results of calls, and more in the same message.
    Mixed,
    /// The history before it is no longer sent.
    Cut,
    /// The history before the entry it names is no longer sent.
    Compaction,
    /// A line that is not JSON.
    Invalid,
}

impl Kind {
    pub(crate) const ALL: [Self; 9] = [
        Self::Neutral,
        Self::Header,
        Self::Message,
        Self::Assistant,
        Self::Results,
        Self::Mixed,
        Self::Cut,
        Self::Compaction,
        Self::Invalid,
    ];
}

/// Which entry an entry continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Parent {
    /// The one before it: the format has no parents, or this entry names none.
    #[default]
    Before,
    /// None: a conversation begins here.
    Root,
    /// The one with this id.
    Named(Span),
}

/// A call or a result inside an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    /// What it is.
    pub kind: BlockKind,
    /// The call's id; absent when the entry forgot it.
    pub id: Option<Span>,
    /// The tool's name.
    pub name: Option<Span>,
    /// What is peculiar about it.
    pub marks: Marks,
    /// The whole block in the entry's text.
    pub start: u32,
    /// The byte behind it.
    pub end: u32,
}

/// See [`Block`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockKind {
    /// A call that needs a result.
    Call,
    /// A call of a message that broke off; agents do not send it again, so it needs no result.
    BrokenOffCall,
    /// The result of a call.
    Result,
    /// A result that the host no longer sends; see [`Kind::Neutral`].
    UnsentResult,
}

/// What is peculiar about a call or a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each says one thing, and most of them can be said together"
)]
pub struct Marks {
    /// It only stands in for a result that was lost; see [`Strategy::Reconstruct`](crate::Strategy).
    pub is_stand_in: bool,
    /// Something else stands before it in its message, where results have to come first.
    pub is_late: bool,
    /// It is a call that the list in its own entry goes on behind, so that it does not run any more.
    pub is_past: bool,
    /// It is a result that names its tool and no call, as Ollama has it.
    pub is_by_name: bool,
    /// A number for what the result says: results that say the same, byte for byte, have the same. 0
    /// where nobody asked; see [`Seen::compares_results`].
    pub says: u32,
}

/// The number for what a result says.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "half of a hash is a hash")]
pub(crate) fn says(content: &[u8]) -> u32 {
    (xxhash_rust::xxh3::xxh3_64(content) as u32).max(1)
}

/// The model's last reply, where results come anywhere behind their calls: its calls may still run,
/// also when others of them have their results.
#[derive(Debug, Default)]
pub(crate) struct Reply {
    /// Where it begins.
    pub(crate) first: usize,
    /// Whether what the model says next belongs to it.
    pub(crate) is_going_on: bool,
}

impl Reply {
    /// Takes what is at a place; `next` is the place behind it.
    pub(crate) const fn step(&mut self, kind: Kind, at: usize, next: usize) {
        match kind {
            Kind::Assistant if self.is_going_on => {}
            Kind::Assistant | Kind::Cut => {
                self.first = at;
                self.is_going_on = true;
            }
            Kind::Message | Kind::Mixed => {
                self.first = next;
                self.is_going_on = false;
            }
            Kind::Results => self.is_going_on = false,
            Kind::Neutral | Kind::Header | Kind::Compaction | Kind::Invalid => {}
        }
    }
}

/// What an adapter found in an entry. Kept and used again for the next one.
#[derive(Debug, Default, Clone)]
pub struct Seen {
    /// What the entry is.
    pub kind: Kind,
    /// Who speaks, as written.
    pub role: Option<Span>,
    /// The entry's own id.
    pub id: Option<Span>,
    /// Which entry it continues.
    pub parent: Parent,
    /// The value that names the parent, quotation marks included, so that it can be replaced.
    pub parent_value: Option<(u32, u32)>,
    /// The model's message that the entry is a part of, where a message can span entries.
    pub group: Option<Span>,
    /// The first entry that a compaction keeps.
    pub kept: Option<Span>,
    /// Calls and results, in order.
    pub blocks: Vec<Block>,
    /// Whether the entry holds anything beside `blocks`: text, images, reasoning.
    pub has_more: bool,
    /// The session's own id, in a header.
    pub session: Option<Span>,
    /// Whose calls it holds that were passed over, because nobody can read them.
    pub strange: Option<&'static str>,
    /// Whether somebody asks which results say the same. Only a repair does, and it takes time.
    pub compares_results: bool,
}

impl Seen {
    /// Empties it for the next entry.
    pub fn clear(&mut self) {
        let mut blocks = std::mem::take(&mut self.blocks);
        blocks.clear();
        *self = Self {
            blocks,
            compares_results: self.compares_results,
            ..Self::default()
        };
    }
}
