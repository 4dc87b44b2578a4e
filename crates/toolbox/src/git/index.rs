//! Which submodules a repository's index names. Git looks into each of them at a `git status` above.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use memchr::memchr;
use parking_lot::Mutex;

use super::text::hex;
use super::{GIT_INDEX_BYTES_MAX, GIT_INDEXES_MAX, disk};

/// Where the mode of an entry is, and its hash.
const MODE_AT: usize = 24;
const HASH_AT: usize = 40;
const TYPE_BITS: u32 = 0o170_000;
const SUBMODULE: u32 = 0o160_000;
const IS_EXTENDED: u16 = 0x4000;
/// A file that was written so lately may be written again and bear the same time.
const SETTLED: Duration = Duration::from_secs(1);

type Stamp = (u64, u64, i64, i64);
type Links = Arc<Vec<Vec<u8>>>;

/// Indexes that were read, until they change.
#[derive(Default)]
pub(super) struct Indexes(Mutex<BTreeMap<PathBuf, (Stamp, Links)>>);

impl Indexes {
    /// The paths of submodules; `None` where the index is too large, or none that we know.
    pub(super) fn submodules(&self, git: &Path, hash_bytes: usize) -> Option<Links> {
        let path = git.join("index");
        let Ok(found) = fs::symlink_metadata(&path) else {
            return Some(Links::default());
        };
        let stamp = (found.ino(), found.size(), found.ctime(), found.ctime_nsec());
        if let Some((_, links)) = self.0.lock().get(&path).filter(|it| it.0 == stamp) {
            return Some(links.clone());
        }
        let links = Arc::new(read(&path, hash_bytes)?);
        let age = u64::try_from(found.ctime()).ok().and_then(|changed| {
            let changed = SystemTime::UNIX_EPOCH + Duration::from_secs(changed);
            SystemTime::now().duration_since(changed).ok()
        });
        if age.is_some_and(|age| age > SETTLED) {
            let mut kept = self.0.lock();
            if kept.len() >= GIT_INDEXES_MAX {
                kept.clear();
            }
            kept.insert(path, (stamp, links.clone()));
        }
        Some(links)
    }
}

fn read(path: &Path, hash_bytes: usize) -> Option<Vec<Vec<u8>>> {
    let bytes = disk::read(path, GIT_INDEX_BYTES_MAX).ok()??;
    let (mut links, base) = parse(&bytes, hash_bytes)?;
    if let Some(base) = base {
        // A split index has most of its entries in another file.
        let shared = path.with_file_name(format!("sharedindex.{base}"));
        let bytes = disk::read(&shared, GIT_INDEX_BYTES_MAX).ok()??;
        links.extend(parse(&bytes, hash_bytes)?.0);
    }
    Some(links)
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let word = bytes.get(at..at + 4)?;
    Some(u32::from_be_bytes(word.try_into().ok()?))
}

/// The submodules of an index, and the name of the file that it is based on.
pub(super) fn parse(bytes: &[u8], hash_bytes: usize) -> Option<(Vec<Vec<u8>>, Option<String>)> {
    let version = word(bytes, 4).filter(|_| bytes.starts_with(b"DIRC"))?;
    if !(2..=4).contains(&version) {
        return None;
    }
    let mut links = Vec::new();
    let mut name = Vec::new();
    let mut at = 12;
    for _ in 0..word(bytes, 8)? {
        let mode = word(bytes, at + MODE_AT)?;
        let mut text = at + HASH_AT + hash_bytes;
        let flags = u16::from_be_bytes(bytes.get(text..text + 2)?.try_into().ok()?);
        text += if flags & IS_EXTENDED == 0 { 2 } else { 4 };
        let mut kept = 0;
        if version == 4 {
            let (removed, begin) = count(bytes, text)?;
            kept = name.len().checked_sub(removed)?;
            text = begin;
        }
        let end = text + memchr(0, bytes.get(text..)?)?;
        name.truncate(kept);
        name.extend_from_slice(&bytes[text..end]);
        at = match version {
            4 => end + 1,
            _ => at + ((end - at + 8) & !7),
        };
        if mode & TYPE_BITS == SUBMODULE {
            links.push(name.clone());
        }
    }
    let is_split = bytes.get(at..at + 4) == Some(b"link");
    let base = bytes.get(at + 8..at + 8 + hash_bytes).filter(|_| is_split);
    Some((links, base.map(hex)))
}

/// A number as git writes it in version 4, and what follows it.
fn count(bytes: &[u8], mut at: usize) -> Option<(usize, usize)> {
    let mut byte = *bytes.get(at)?;
    let mut value = usize::from(byte & 127);
    while byte & 128 != 0 {
        at += 1;
        byte = *bytes.get(at)?;
        value = value.checked_add(1)?.checked_mul(128)? + usize::from(byte & 127);
    }
    Some((value, at + 1))
}
