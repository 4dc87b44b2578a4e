//! Kept contents, each under its hash.
//!
//! A small content is written under its own name at once, which takes a third of the time of a temporary
//! name. Where a process dies meanwhile, the file is too short; so the size is compared before a content
//! is taken for kept, and the hash before it is given back. No record refers to a content that is not
//! whole yet.

use std::ffi::CString;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rustix::fs::ioctl_ficlone;
use sha2::{Digest, Sha256};

use crate::disk::{self, CHUNK};
use crate::entry::{Entry, Kind, Tree};
use crate::error::{At, UndoError, UndoResult};
use crate::hash::{Hash, hex};

/// Files up to this size are read whole before anything is written.
const WHOLE_BYTES_MAX: u64 = 1024 * 1024;

/// The store's contents.
pub(crate) struct Objects {
    dir: PathBuf,
    /// Names temporary files of this process.
    counter: AtomicU64,
    /// Bytes that this object has added.
    added: AtomicU64,
    /// Whether the file system once refused to share blocks, which it then always does.
    no_reflinks: AtomicBool,
}

impl Objects {
    pub(crate) fn open(dir: PathBuf) -> UndoResult<Self> {
        create_private(&dir)?;
        create_private(&dir.join("new"))?;
        Ok(Self {
            dir,
            counter: AtomicU64::new(0),
            added: AtomicU64::new(0),
            no_reflinks: AtomicBool::new(false),
        })
    }

    /// Bytes added that are not yet taken.
    pub(crate) fn added(&self) -> u64 {
        self.added.load(Ordering::Relaxed)
    }

    /// Bytes added since the last question.
    pub(crate) fn take_added(&self) -> u64 {
        self.added.swap(0, Ordering::Relaxed)
    }

    pub(crate) fn path(&self, hash: &Hash) -> PathBuf {
        let name = hash.hex();
        let (first, rest) = name.split_at(2);
        self.dir.join(first).join(rest)
    }

    fn new_file(&self) -> UndoResult<(PathBuf, File)> {
        let number = self.counter.fetch_add(1, Ordering::Relaxed);
        // Two stores of one process must not meet, so the name holds the address of this one's counter.
        let owner = std::ptr::from_ref(&self.counter) as usize;
        let name = format!("{}-{owner:x}-{number}", std::process::id());
        let path = self.dir.join("new").join(name);
        // A dead process may have had the same number.
        let _ = fs::remove_file(&path);
        let file = fs::OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)
            .at("can not create", &path)?;
        Ok((path, file))
    }

    fn settle(&self, new: &Path, path: &Path, size: u64) -> UndoResult<()> {
        if fs::rename(new, path).is_err() {
            create_private(path.parent().unwrap_or(&self.dir))?;
            fs::rename(new, path).at("can not keep", path)?;
        }
        self.added.fetch_add(blocks(size), Ordering::Relaxed);
        Ok(())
    }

    /// Keeps bytes.
    pub(crate) fn put(&self, bytes: &[u8]) -> UndoResult<Hash> {
        let hash = Hash::of(bytes);
        let path = self.path(&hash);
        let size = bytes.len() as u64;
        let mut file = match self.create(&path)? {
            Some(file) => file,
            None if is_whole(&path, size) => return Ok(hash),
            // Somebody died while writing it, or still writes it. The renamed file takes the name.
            None => {
                let (new, mut file) = self.new_file()?;
                file.write_all(bytes).at("can not write", &new)?;
                self.settle(&new, &path, size)?;
                return Ok(hash);
            }
        };
        file.write_all(bytes).at("can not write", &path)?;
        self.added.fetch_add(blocks(size), Ordering::Relaxed);
        Ok(hash)
    }

    /// A new file under the name of a content. `None`: there is one.
    fn create(&self, path: &Path) -> UndoResult<Option<File>> {
        let create = || {
            fs::OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(path)
        };
        let mut created = create();
        if created
            .as_ref()
            .is_err_and(|error| error.kind() == ErrorKind::NotFound)
        {
            create_private(path.parent().unwrap_or(&self.dir))?;
            created = create();
        }
        match created {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(None),
            Err(error) => Err(error).at("can not create", path),
        }
    }

    /// Keeps the content of an open file, and says how much that was.
    pub(crate) fn put_file(&self, file: &mut File, size: u64) -> UndoResult<(Hash, u64)> {
        if size <= WHOLE_BYTES_MAX {
            let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(0) + 1);
            let read = file.take(WHOLE_BYTES_MAX * 2).read_to_end(&mut bytes);
            read.at("can not read a file of", Path::new("the workspace"))?;
            return Ok((self.put(&bytes)?, bytes.len() as u64));
        }
        let (new, mut kept) = self.new_file()?;
        let read = self.copy(file, &mut kept);
        let (hash, size) = read.at("can not copy to", &new)?;
        let path = self.path(&hash);
        if is_whole(&path, size) {
            fs::remove_file(&new).at("can not remove", &new)?;
        } else {
            self.settle(&new, &path, size)?;
        }
        Ok((hash, size))
    }

    /// Copies a file and hashes the copy. A reflink can not change while it is hashed.
    fn copy(&self, from: &mut File, to: &mut File) -> io::Result<(Hash, u64)> {
        let mut hasher = Sha256::new();
        let size = if self.reflink(from, to) {
            let mut chunk = vec![0; CHUNK];
            let mut size = 0;
            loop {
                let count = disk::read_full(to, &mut chunk)?;
                if count == 0 {
                    break size;
                }
                hasher.update(&chunk[..count]);
                size += count as u64;
            }
        } else {
            disk::copy(from, to, |bytes| hasher.update(bytes))?
        };
        Ok((Hash(hasher.finalize().into()), size))
    }

    fn reflink(&self, from: &File, to: &File) -> bool {
        if self.no_reflinks.load(Ordering::Relaxed) {
            return false;
        }
        let shared = ioctl_ficlone(to.as_fd(), from.as_fd()).is_ok();
        self.no_reflinks.store(!shared, Ordering::Relaxed);
        shared
    }

    /// The bytes of a content, checked against its name.
    pub(crate) fn get(&self, hash: &Hash) -> UndoResult<Vec<u8>> {
        let path = self.path(hash);
        let bytes = fs::read(&path).at("can not read", &path)?;
        if Hash::of(&bytes) == *hash {
            Ok(bytes)
        } else {
            Err(damaged(hash))
        }
    }

    /// The entries of a kept directory; none of anything else.
    pub(crate) fn tree(&self, entry: &Entry) -> UndoResult<Tree> {
        match &entry.kind {
            Kind::Dir { tree } => Tree::read(&self.get(tree)?).ok_or_else(|| damaged(tree)),
            _ => Ok(Tree::default()),
        }
    }

    /// What stands at a path below a kept directory. `None`: the state says nothing about it.
    pub(crate) fn lookup(&self, root: &Entry, path: &[u8]) -> UndoResult<Option<Entry>> {
        let mut entry = root.clone();
        for name in path
            .split(|byte| *byte == b'/')
            .filter(|name| !name.is_empty())
        {
            if matches!(entry.kind, Kind::LeftOut { .. }) {
                return Ok(None);
            }
            let tree = self.tree(&entry)?;
            entry = match tree.get(name) {
                Some(found) => found.clone(),
                None if tree.sparse => return Ok(None),
                None => return Ok(Some(Entry::ABSENT)),
            };
        }
        Ok(Some(entry))
    }

    /// Writes a content into a new file, and fails where it is not what was kept.
    pub(crate) fn restore(&self, hash: &Hash, to: &mut File) -> UndoResult<()> {
        let path = self.path(hash);
        let mut from = File::open(&path).at("can not read", &path)?;
        let (copied, _) = self.copy(&mut from, to).at("can not copy", &path)?;
        if copied == *hash {
            Ok(())
        } else {
            Err(damaged(hash))
        }
    }

    /// Every kept content, with its size on disk.
    pub(crate) fn all(&self) -> UndoResult<Vec<(Hash, u64)>> {
        let mut found = Vec::new();
        for shelf in fs::read_dir(&self.dir)
            .at("can not list", &self.dir)?
            .flatten()
        {
            let Some(first) = shelf.file_name().to_str().map(str::to_owned) else {
                continue;
            };
            for object in fs::read_dir(shelf.path()).into_iter().flatten().flatten() {
                let name = format!("{first}{}", object.file_name().to_string_lossy());
                let bytes = crate::hash::unhex(&name).and_then(|bytes| bytes.try_into().ok());
                let size = object.metadata().map_or(0, |found| blocks(found.len()));
                found.extend(bytes.map(|bytes| (Hash(bytes), size)));
            }
        }
        Ok(found)
    }

    /// Removes what dead processes have left half written. Nobody else may use the store meanwhile.
    pub(crate) fn sweep_new(&self) {
        for file in fs::read_dir(self.dir.join("new"))
            .into_iter()
            .flatten()
            .flatten()
        {
            let _ = fs::remove_file(file.path());
        }
    }
}

fn damaged(hash: &Hash) -> UndoError {
    UndoError::Damaged(format!("content {} is not what was kept", hex(&hash.0)))
}

/// Whether a content is kept whole, as far as its size tells.
fn is_whole(path: &Path, size: u64) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_file() && found.len() == size)
}

/// What a file of this size takes on disk.
pub(crate) fn blocks(size: u64) -> u64 {
    size.div_ceil(4096) * 4096
}

/// A directory for its owner alone.
pub(crate) fn create_private(dir: &Path) -> UndoResult<()> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(dir)
        .at("can not create", dir)
}

/// A name as the system takes it. Names come from directories or checked trees, so they hold no NUL.
pub(crate) fn c_name(name: &[u8]) -> CString {
    CString::new(name).unwrap_or_default()
}
