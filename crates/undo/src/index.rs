//! A workspace as it was last read, so that unchanged files are not read again.

use std::fs;
use std::path::Path;

use crate::disk::Seen;
use crate::entry::{Entry, is_name};
use crate::error::UndoResult;
use crate::hash::Hash;
use crate::record;
use crate::wire::{Reader, Writer};

/// One file or directory as it was last read.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) entry: Entry,
    pub(crate) seen: Seen,
    /// Whether the file's time stamps were old when it was read. A file that changes twice within one
    /// tick of the file system's clock looks unchanged, so a young one is read again.
    pub(crate) trusted: bool,
    /// Of a directory: sorted by name.
    pub(crate) children: Vec<(Box<[u8]>, Node)>,
}

/// What an index begins with; the number is the format's version.
const INDEX_BEGINS: &[u8] = b"hfindex1\n";

impl Node {
    pub(crate) fn absent() -> Self {
        Self {
            entry: Entry::ABSENT,
            seen: Seen::default(),
            trusted: false,
            children: Vec::new(),
        }
    }

    pub(crate) fn child(&self, name: &[u8]) -> Option<&Self> {
        let place = self
            .children
            .binary_search_by(|(other, _)| (**other).cmp(name));
        place.ok().map(|place| &self.children[place].1)
    }

    /// What stands at a path below.
    pub(crate) fn at(&self, path: &[u8]) -> Option<&Self> {
        path.split(|byte| *byte == b'/')
            .filter(|name| !name.is_empty())
            .try_fold(self, |node, name| node.child(name))
    }

    fn write(&self, out: &mut Writer) {
        self.entry.write(out);
        self.seen.write(out);
        out.u8(u8::from(self.trusted));
        if self.entry.is_dir() {
            out.u32(u32::try_from(self.children.len()).unwrap_or(u32::MAX));
            for (name, child) in &self.children {
                out.bytes(name);
                child.write(out);
            }
        }
    }

    fn read(bytes: &mut Reader<'_>) -> Option<Self> {
        let entry = Entry::read(bytes)?;
        let seen = Seen::read(bytes)?;
        let trusted = bytes.u8()? == 1;
        let count = if entry.is_dir() { bytes.u32()? } else { 0 };
        let children = (0..count)
            .map(|_| {
                let name = bytes.bytes().filter(|name| is_name(name))?;
                Some((name.into(), Self::read(bytes)?))
            })
            .collect::<Option<_>>()?;
        Some(Self {
            entry,
            seen,
            trusted,
            children,
        })
    }

    /// Reads an index. A torn or foreign file counts as none, and every file is read again.
    pub(crate) fn load(path: &Path) -> Option<Self> {
        let bytes = fs::read(path).ok()?;
        let (sum, rest) = bytes.strip_prefix(INDEX_BEGINS)?.split_at_checked(8)?;
        if sum != checksum(rest) {
            return None;
        }
        Self::read(&mut Reader::new(rest))
    }

    pub(crate) fn save(&self, path: &Path) -> UndoResult<()> {
        let mut out = Writer::default();
        self.write(&mut out);
        let rest = out.done();
        let mut bytes = Vec::with_capacity(rest.len() + 32);
        bytes.extend_from_slice(INDEX_BEGINS);
        bytes.extend_from_slice(&checksum(&rest));
        bytes.extend_from_slice(&rest);
        record::replace(path, &bytes, false)
    }
}

fn checksum(bytes: &[u8]) -> [u8; 8] {
    let mut sum = [0; 8];
    sum.copy_from_slice(&Hash::of(bytes).0[..8]);
    sum
}
