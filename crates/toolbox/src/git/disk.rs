//! Files by the descriptor of their directory: nothing here follows a link that a command has put there.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{
    AtFlags, CWD, Gid, Mode, OFlags, ResolveFlags, Uid, fchmod, fchown, openat, openat2, renameat,
    statat, symlinkat, unlinkat,
};
use rustix::io::Errno;

const DIR: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);
/// What a file is called until it is whole.
const UNFINISHED: &str = ".holdfast-unfinished";

fn no_name() -> io::Error {
    io::Error::other("the path has no name")
}

/// The directory of a path without links, and the last name.
pub(super) fn place(path: &Path) -> io::Result<(OwnedFd, &OsStr)> {
    let (Some(dir), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(no_name());
    };
    let opened = match openat2(CWD, dir, DIR, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
        // A sandbox may not know the call. Then the last name at least is no link.
        Err(Errno::NOSYS | Errno::PERM) => openat(CWD, dir, DIR, Mode::empty()),
        opened => opened,
    };
    Ok((opened?, name))
}

/// A regular file, to be read. One that is something else by now is an error.
pub(super) fn open(path: &Path) -> io::Result<File> {
    let (dir, name) = place(path)?;
    let flags =
        OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(openat(dir, name, flags, Mode::empty())?);
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::other("no regular file"))
    }
}

/// The content of a file up to a limit; `None` where there is more.
pub(super) fn read(path: &Path, bytes_max: u64) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    let mut file = open(path)?.take(bytes_max + 1);
    file.read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= bytes_max).then_some(bytes))
}

/// Puts a file in the place of whatever stands there, whole or not at all.
pub(super) fn write(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let (dir, name) = place(path)?;
    let mut unfinished = name.to_owned();
    unfinished.push(UNFINISHED);
    let _ = unlinkat(&dir, &unfinished, AtFlags::empty());
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = openat(&dir, &unfinished, flags, Mode::from_raw_mode(0o600))?;
    let mut file = File::from(opened);
    // As root: it stays its owner's. Elsewhere this changes nothing, and may fail.
    if let Ok(old) = statat(&dir, name, AtFlags::SYMLINK_NOFOLLOW) {
        let _ = fchown(
            &file,
            Some(Uid::from_raw(old.st_uid)),
            Some(Gid::from_raw(old.st_gid)),
        );
    }
    let written = file
        .write_all(bytes)
        .and_then(|()| Ok(fchmod(&file, Mode::from_raw_mode(mode & 0o777))?))
        .and_then(|()| Ok(renameat(&dir, &unfinished, &dir, name)?));
    if written.is_err() {
        let _ = unlinkat(&dir, &unfinished, AtFlags::empty());
    }
    written
}

/// Puts a symbolic link in the place of whatever stands there.
pub(super) fn link(path: &Path, target: &Path) -> io::Result<()> {
    let (dir, name) = place(path)?;
    let _ = unlinkat(&dir, name, AtFlags::empty());
    Ok(symlinkat(target, &dir, name)?)
}

/// Removes a file or a link.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    let (dir, name) = place(path)?;
    Ok(unlinkat(&dir, name, AtFlags::empty())?)
}
