//! Files by directory descriptors: nothing here follows a link or takes a path apart.

use std::ffi::CStr;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, Statx, StatxAttributes, StatxFlags, openat,
    openat2, statx,
};
use rustix::io::Errno;

use crate::entry::{Entry, Kind, Stamp};
use crate::wire::{Reader, Writer};

/// Bytes that are read at once.
pub(crate) const CHUNK: usize = 64 * 1024;

/// What tells an unchanged file from a changed one, beside its entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Seen {
    pub(crate) dev: u64,
    pub(crate) ino: u64,
    pub(crate) ctime: Stamp,
}

impl Seen {
    pub(crate) fn write(self, out: &mut Writer) {
        out.u64(self.dev);
        out.u64(self.ino);
        out.stamp(self.ctime);
    }

    pub(crate) fn read(bytes: &mut Reader<'_>) -> Option<Self> {
        Some(Self {
            dev: bytes.u64()?,
            ino: bytes.u64()?,
            ctime: bytes.stamp()?,
        })
    }
}

/// What the system says of a file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stat {
    pub(crate) seen: Seen,
    pub(crate) file_type: FileType,
    pub(crate) mode: u32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) size: u64,
    pub(crate) mtime: Stamp,
    pub(crate) mount: u64,
    pub(crate) is_mount_root: bool,
}

impl Stat {
    fn new(stat: &Statx) -> Self {
        let mode = u32::from(stat.stx_mode);
        Self {
            seen: Seen {
                dev: (u64::from(stat.stx_dev_major) << 32) | u64::from(stat.stx_dev_minor),
                ino: stat.stx_ino,
                ctime: (stat.stx_ctime.tv_sec, stat.stx_ctime.tv_nsec),
            },
            file_type: FileType::from_raw_mode(mode),
            mode: mode & 0o7777,
            uid: stat.stx_uid,
            gid: stat.stx_gid,
            size: stat.stx_size,
            mtime: (stat.stx_mtime.tv_sec, stat.stx_mtime.tv_nsec),
            mount: stat.stx_mnt_id,
            is_mount_root: stat.stx_attributes.contains(StatxAttributes::MOUNT_ROOT),
        }
    }

    /// The entry of a file with this content.
    pub(crate) fn entry(&self, kind: Kind) -> Entry {
        Entry {
            kind,
            mode: self.mode,
            uid: self.uid,
            gid: self.gid,
            mtime: self.mtime,
        }
    }

    /// Whether nothing happened to the file between two looks.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.seen == other.seen && self.size == other.size && self.mtime == other.mtime
    }
}

fn wanted() -> StatxFlags {
    StatxFlags::BASIC_STATS | StatxFlags::MNT_ID
}

/// What stands under a name of this directory.
pub(crate) fn stat_at(dir: impl AsFd, name: &CStr) -> Result<Stat, Errno> {
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
    statx(dir, name, flags, wanted()).map(|stat| Stat::new(&stat))
}

/// What an open file is.
pub(crate) fn stat_of(file: impl AsFd) -> Result<Stat, Errno> {
    statx(file, c"", AtFlags::EMPTY_PATH, wanted()).map(|stat| Stat::new(&stat))
}

/// Opens a directory below another, and nothing but a directory.
pub(crate) fn open_dir_at(dir: impl AsFd, name: &CStr) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(dir, name, flags, Mode::empty())
}

/// Opens a directory by its path. The path itself is the caller's word.
pub(crate) fn open_dir(path: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    openat(CWD, path, flags, Mode::empty())
}

/// Opens a workspace by its path, which was resolved when its point was made. A link in the path was put
/// there since, and leads nobody knows where.
pub(crate) fn open_root(path: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
        // A sandbox may not know the call. Then the last name at least is no link.
        Err(Errno::NOSYS | Errno::PERM) => openat(CWD, path, flags, Mode::empty()),
        opened => opened,
    }
}

/// Whether a directory is there, and no link to one.
pub(crate) fn is_dir(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|found| found.is_dir())
}

/// Opens a file to read. A FIFO that took its place does not block.
pub(crate) fn open_file_at(dir: impl AsFd, name: &CStr) -> Result<File, Errno> {
    let flags =
        OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    openat(dir, name, flags, Mode::empty()).map(File::from)
}

/// Creates a file that is not there yet, for its owner alone.
pub(crate) fn create_at(dir: impl AsFd, name: &CStr) -> Result<File, Errno> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(dir, name, flags, Mode::from_raw_mode(0o600)).map(File::from)
}

/// Copies what is left of a file chunk by chunk, and says every chunk. Holes stay holes.
pub(crate) fn copy(
    from: &mut impl Read,
    to: &mut File,
    mut said: impl FnMut(&[u8]),
) -> io::Result<u64> {
    let mut chunk = vec![0; CHUNK];
    let mut size = 0;
    let mut ends_in_hole = false;
    loop {
        let count = read_full(from, &mut chunk)?;
        let bytes = &chunk[..count];
        if bytes.is_empty() {
            break;
        }
        said(bytes);
        size += count as u64;
        ends_in_hole = count == CHUNK && bytes.iter().all(|byte| *byte == 0);
        if ends_in_hole {
            to.seek(SeekFrom::Start(size))?;
        } else {
            to.write_all(bytes)?;
        }
    }
    if ends_in_hole {
        to.set_len(size)?;
    }
    Ok(size)
}

/// Fills the buffer as far as the file goes.
pub(crate) fn read_full(from: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match from.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}
