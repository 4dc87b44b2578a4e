//! Repair, done: a plan for a file carried out so that nothing can be lost.

mod assemble;
pub(crate) mod diff;
mod lock;
mod replace;

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};

pub use diff::diff;
pub use lock::{InUse, Live};
pub(crate) use lock::{Lock, Use, look, user_of};
pub use replace::{ReplaceError, Step};
pub(crate) use replace::{
    Stamp, archive_path, backup_path, backups, beside, forget_old_backups, is_ours, is_own_write,
    replace,
};

use crate::adapter::adapter;
use crate::check::{Found, check};
use crate::finding::{Finding, describe};
use crate::index::Index;
use crate::plan::{Changes, Plan, Strategy, plan};
use crate::read::{self, ReadError, Shape};

/// What is known of a transcript before it is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct How {
    /// What its end is.
    pub tail: Tail,
    /// When it is taken for one that somebody uses, and is not repaired.
    pub in_use: InUse,
}

/// What the end of a transcript is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tail {
    /// The last reply's calls may still run.
    #[default]
    MayRun,
    /// It is over, or about to be sent: every call has to have its result.
    Complete,
}

impl Tail {
    /// Tells an index what its end is.
    pub(crate) const fn close(self, index: &mut Index) {
        if matches!(self, Self::Complete) {
            index.end_here();
        }
    }
}

/// What a repair did.
#[derive(Debug)]
pub struct Repaired {
    /// Where the file as it was is kept.
    pub backup: PathBuf,
    /// What is wrong with it now.
    pub left: Vec<Finding>,
    /// How much was changed.
    pub changes: Changes,
}

/// Why a repair was not made.
#[derive(Debug, thiserror::Error)]
pub enum RepairError {
    /// It can not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// It can not be replaced.
    #[error(transparent)]
    Replace(#[from] ReplaceError),
}

impl RepairError {
    /// Whether the file is in use, which is no failure.
    pub const fn is_live(&self) -> bool {
        matches!(self, Self::Replace(ReplaceError::Live(_)))
    }
}

impl From<io::Error> for RepairError {
    fn from(error: io::Error) -> Self {
        Self::Read(error.into())
    }
}

impl From<Live> for RepairError {
    fn from(live: Live) -> Self {
        Self::Replace(live.into())
    }
}

/// Repairs a file of lines or a JSON document. `Ok(None)` when there is nothing that the strategy
/// would change.
///
/// A file that somebody writes is left alone. The file as it was stays beside it, and the new one
/// takes its place whole, with the same owner and mode.
pub fn repair_file(
    path: &Path,
    strategy: Strategy,
    now_ms: u64,
    tell: &dyn Fn(Step),
) -> Result<Option<Repaired>, RepairError> {
    repair_file_as(path, strategy, How::default(), now_ms, tell)
}

/// The same, when more is known of the file.
pub fn repair_file_as(
    path: &Path,
    strategy: Strategy,
    how: How,
    now_ms: u64,
    tell: &dyn Fn(Step),
) -> Result<Option<Repaired>, RepairError> {
    let name = path.display().to_string();
    // Links stay links: what they point to is replaced.
    let path = path.canonicalize()?;
    let mut file = File::open(&path)?;
    let stamp = Stamp::of(&file.metadata()?);
    let (shape, mut index) = read::index_to_repair(&file)?;
    how.tail.close(&mut index);
    let plan = plan(&index, adapter(shape.format).pairing(), strategy);
    if plan.is_empty() {
        return Ok(None);
    }
    shape.writable()?;
    if let Some(live) = look(&path, how.in_use, now_ms)? {
        return Err(live.into());
    }
    let _lock = match Lock::take(&path, now_ms) {
        Ok(taken) => taken?,
        Err(error) => {
            let what = "can not write beside it";
            return Err(ReplaceError::Io { what, error }.into());
        }
    };
    let mut left = Vec::new();
    let backup = replace(
        &path,
        stamp,
        now_ms,
        tell,
        |mut out| assemble::assemble(shape, &index, &plan, &mut file, &mut out),
        |new| {
            let mut new = File::open(new)?;
            let (index, found) = verify(shape, strategy, how.tail, &new)?;
            left = describe(&name, shape, &index, &found, &mut new)?;
            Ok(())
        },
    )?;
    Ok(Some(Repaired {
        backup,
        left,
        changes: Changes::of(&plan, &index),
    }))
}

/// Reads the new transcript before it takes the place of the old one.
fn verify(
    shape: Shape,
    strategy: Strategy,
    tail: Tail,
    new: impl Read,
) -> io::Result<(Index, Vec<Found>)> {
    let mut index = match read::index(new) {
        Ok((_, index)) => index,
        // Nothing may be left of a transcript.
        Err(ReadError::UnknownFormat | ReadError::NotUnderstood(_)) => Index::default(),
        Err(error) => return Err(io::Error::other(error)),
    };
    tail.close(&mut index);
    let left = check(&index, adapter(shape.format).pairing());
    let is_left = |found: &Found| strategy.leaves(found.fault, found.is_compacted);
    if left.iter().all(is_left) {
        Ok((index, left))
    } else {
        Err(io::Error::other("the repaired transcript still has faults"))
    }
}

/// Replaces a file with a part of it, or of another file: the writing side of roll back and reset.
pub(crate) fn replace_with(
    path: &Path,
    now_ms: u64,
    content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<PathBuf, RepairError> {
    let path = path.canonicalize()?;
    let stamp = Stamp::of(&std::fs::metadata(&path)?);
    if let Some(live) = look(&path, InUse::default(), now_ms)? {
        return Err(live.into());
    }
    let _lock = Lock::take(&path, now_ms)??;
    Ok(replace(&path, stamp, now_ms, &|_| {}, content, |_| Ok(()))?)
}

/// Repairs a transcript in memory. `Ok(None)` when there is nothing that the strategy would change.
pub fn repair_bytes(text: &[u8], strategy: Strategy) -> Result<Option<Vec<u8>>, ReadError> {
    let (shape, index) = read::index_to_repair(text)?;
    let plan = plan(&index, adapter(shape.format).pairing(), strategy);
    if plan.is_empty() {
        return Ok(None);
    }
    shape.writable()?;
    let mut out = Vec::new();
    write_plan(shape, &index, &plan, &mut io::Cursor::new(text), &mut out)?;
    // As with a file: what is not whole afterwards is not given out as repaired.
    verify(shape, strategy, Tail::MayRun, &out[..])?;
    Ok(Some(out))
}

/// What would be wrong with a transcript after a plan was carried out.
pub(crate) fn left_by<S: Read + Seek>(
    name: &str,
    shape: Shape,
    index: &Index,
    plan: &Plan,
    source: &mut S,
) -> io::Result<Vec<Finding>> {
    let mut out = Vec::new();
    write_plan(shape, index, plan, source, &mut out)?;
    let is_over = index.is_over();
    let mut index = match read::index(&out[..]) {
        Ok((_, index)) => index,
        // Nothing may be left of a transcript.
        Err(ReadError::UnknownFormat | ReadError::NotUnderstood(_)) => return Ok(Vec::new()),
        Err(error) => return Err(io::Error::other(error)),
    };
    if is_over {
        index.end_here();
    }
    let found = check(&index, adapter(shape.format).pairing());
    describe(name, shape, &index, &found, &mut io::Cursor::new(out))
}

/// Writes what a plan makes of a transcript.
pub fn write_plan<S: Read + Seek>(
    shape: Shape,
    index: &Index,
    plan: &Plan,
    source: &mut S,
    out: &mut impl Write,
) -> io::Result<()> {
    assemble::assemble(shape, index, plan, source, out)
}
