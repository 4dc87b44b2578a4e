//! What a directory holds, as it is kept: entries, and trees of them.
//!
//! A tree is the list of one directory's entries. It is kept under the hash of its bytes, so two states
//! share every directory in which they agree. A *sparse* tree knows of some names only, and says
//! nothing about the others.

use crate::hash::Hash;
use crate::wire::{Reader, Writer};

/// A time stamp of a file: seconds and nanoseconds.
pub(crate) type Stamp = (i64, u32);

/// What stands under a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Nothing. Only sparse trees and changes hold it.
    Absent,
    File {
        hash: Hash,
        size: u64,
    },
    Link {
        target: Box<[u8]>,
    },
    Dir {
        tree: Hash,
    },
    /// Something whose content is not kept.
    LeftOut {
        why: Why,
        size: u64,
    },
}

/// Why something's content is not kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Why {
    /// A file over the limit for one file.
    TooLarge,
    /// A directory that a `.gitignore` ignores and that a tool can make again.
    Rebuildable,
    /// Another file system, or a directory mounted from elsewhere.
    Mount,
    /// A socket, a FIFO or a device.
    Special,
    /// The user may not read it.
    Unreadable,
    /// More directories within directories than the limit.
    TooDeep,
    /// Holdfast's own state.
    State,
    /// The git directory of a worktree or submodule that could not be verified.
    ForeignGit,
}

impl Why {
    const ALL: [Self; 8] = [
        Self::TooLarge,
        Self::Rebuildable,
        Self::Mount,
        Self::Special,
        Self::Unreadable,
        Self::TooDeep,
        Self::State,
        Self::ForeignGit,
    ];

    /// Whether content that is left out for this reason may be lost: no tool makes it again.
    pub fn may_lose_data(self) -> bool {
        match self {
            Self::TooLarge | Self::Mount | Self::Unreadable | Self::TooDeep | Self::ForeignGit => {
                true
            }
            Self::Rebuildable | Self::Special | Self::State => false,
        }
    }

    /// Whether its content may change without a trace in the state. A too large file shows its size and time.
    pub(crate) fn hides_changes(self) -> bool {
        matches!(
            self,
            Self::Mount | Self::Unreadable | Self::TooDeep | Self::ForeignGit
        )
    }

    /// Whether undo may put something else in its place. Directories that were never looked into stay.
    pub(crate) fn replaceable(self) -> bool {
        matches!(self, Self::TooLarge | Self::Special)
    }
}

/// One name's content and attributes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) kind: Kind,
    pub(crate) mode: u32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) mtime: Stamp,
}

impl Entry {
    pub(crate) const ABSENT: Self = Self {
        kind: Kind::Absent,
        mode: 0,
        uid: 0,
        gid: 0,
        mtime: (0, 0),
    };

    pub(crate) fn is_absent(&self) -> bool {
        self.kind == Kind::Absent
    }

    pub(crate) fn is_dir(&self) -> bool {
        matches!(self.kind, Kind::Dir { .. })
    }

    /// Whether both hold the same, whatever their time stamps and, of directories, whatever is in them.
    pub(crate) fn agrees(&self, other: &Self) -> bool {
        let attributes = (self.mode, self.uid, self.gid) == (other.mode, other.uid, other.gid);
        match (&self.kind, &other.kind) {
            (Kind::Absent, Kind::Absent) => true,
            (Kind::Dir { .. }, Kind::Dir { .. }) => attributes,
            // A link's mode means nothing.
            (Kind::Link { target: one }, Kind::Link { target: two }) => one == two,
            (Kind::File { .. }, Kind::File { .. }) => attributes && self.kind == other.kind,
            (Kind::LeftOut { .. }, Kind::LeftOut { .. }) => {
                self.kind == other.kind && self.mtime == other.mtime
            }
            _ => false,
        }
    }

    pub(crate) fn write(&self, out: &mut Writer) {
        let tag = match &self.kind {
            Kind::Absent => 0,
            Kind::File { .. } => 1,
            Kind::Link { .. } => 2,
            Kind::Dir { .. } => 3,
            Kind::LeftOut { .. } => 4,
        };
        out.u8(tag);
        out.u32(self.mode);
        out.u32(self.uid);
        out.u32(self.gid);
        out.stamp(self.mtime);
        match &self.kind {
            Kind::Absent => {}
            Kind::File { hash, size } => {
                out.raw(&hash.0);
                out.u64(*size);
            }
            Kind::Link { target } => out.bytes(target),
            Kind::Dir { tree } => out.raw(&tree.0),
            Kind::LeftOut { why, size } => {
                let place = Why::ALL.iter().position(|one| one == why).unwrap_or(0);
                out.u8(u8::try_from(place).unwrap_or(0));
                out.u64(*size);
            }
        }
    }

    pub(crate) fn read(bytes: &mut Reader<'_>) -> Option<Self> {
        let tag = bytes.u8()?;
        let (mode, uid, gid) = (bytes.u32()?, bytes.u32()?, bytes.u32()?);
        let mtime = bytes.stamp()?;
        let kind = match tag {
            0 => Kind::Absent,
            1 => Kind::File {
                hash: Hash(bytes.array()?),
                size: bytes.u64()?,
            },
            2 => Kind::Link {
                target: bytes.bytes()?.into(),
            },
            3 => Kind::Dir {
                tree: Hash(bytes.array()?),
            },
            4 => Kind::LeftOut {
                why: *Why::ALL.get(usize::from(bytes.u8()?))?,
                size: bytes.u64()?,
            },
            _ => return None,
        };
        Some(Self {
            kind,
            mode,
            uid,
            gid,
            mtime,
        })
    }
}

/// One directory's entries, sorted by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Tree {
    /// Whether it says nothing about names that it does not list.
    pub(crate) sparse: bool,
    pub(crate) entries: Vec<(Box<[u8]>, Entry)>,
}

/// What every kept tree begins with; the number is the format's version.
const TREE_BEGINS: &[u8] = b"hftree1\n";

impl Tree {
    pub(crate) fn get(&self, name: &[u8]) -> Option<&Entry> {
        let place = self
            .entries
            .binary_search_by(|(other, _)| (**other).cmp(name));
        place.ok().map(|place| &self.entries[place].1)
    }

    pub(crate) fn write(&self) -> Vec<u8> {
        let entries = self.entries.iter().map(|(name, entry)| (&**name, entry));
        Self::write_entries(self.sparse, entries)
    }

    /// The bytes of a tree whose entries are sorted by name.
    pub(crate) fn write_entries<'a>(
        sparse: bool,
        entries: impl Iterator<Item = (&'a [u8], &'a Entry)>,
    ) -> Vec<u8> {
        let mut out = Writer::default();
        out.raw(TREE_BEGINS);
        out.u8(u8::from(sparse));
        for (name, entry) in entries {
            out.bytes(name);
            entry.write(&mut out);
        }
        out.done()
    }

    /// The tree of these bytes, or `None` where a name could lead out of its directory.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let mut bytes = Reader::new(bytes.strip_prefix(TREE_BEGINS)?);
        let sparse = bytes.u8()? == 1;
        let mut entries: Vec<(Box<[u8]>, Entry)> = Vec::new();
        while !bytes.is_done() {
            let name = bytes.bytes()?;
            let in_order = entries.last().is_none_or(|(last, _)| **last < *name);
            if !in_order || !is_name(name) {
                return None;
            }
            entries.push((name.into(), Entry::read(&mut bytes)?));
        }
        Some(Self { sparse, entries })
    }
}

/// Whether a directory can hold this name, and the name leads nowhere else.
pub(crate) fn is_name(name: &[u8]) -> bool {
    !name.is_empty() && name != b"." && name != b".." && !name.contains(&b'/') && !name.contains(&0)
}
