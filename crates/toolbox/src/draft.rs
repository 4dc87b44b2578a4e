//! A file that has no name until it is whole.
//!
//! A process that is killed leaves nothing of it behind, because the kernel drops a file without a
//! name (`O_TMPFILE`). Where the file system has none of those, it is written beside under a name
//! of its own, which only a kill leaves behind.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{Access, AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;

/// A file to be, in a directory.
///
/// ```
/// use std::io::Write as _;
/// use holdfast_toolbox::draft::{Draft, place_of};
///
/// let home = tempfile::tempdir().unwrap();
/// let file = home.path().join("file");
/// let (dir, name) = place_of(&file).unwrap();
/// let draft = Draft::begin(&dir, 0o600).unwrap();
/// draft.file().write_all(b"all of it").unwrap();
/// draft.sync().unwrap();
/// assert!(!file.exists());
/// draft.finish(name).unwrap();
/// assert_eq!(std::fs::read(&file).unwrap(), b"all of it");
/// ```
pub struct Draft<'a> {
    dir: BorrowedFd<'a>,
    file: File,
    /// What it is called meanwhile, where it has to have a name.
    name: Option<String>,
}

impl<'a> Draft<'a> {
    /// An empty one with this mode, less the umask. The directory may be open for look-ups only.
    pub fn begin(dir: &'a impl AsFd, mode: u32) -> io::Result<Self> {
        let (dir, mode) = (dir.as_fd(), Mode::from_raw_mode(mode));
        match unnamed(dir, mode) {
            Some(file) => Ok(Self {
                dir,
                file,
                name: None,
            }),
            None => Self::named(dir, mode),
        }
    }

    fn named(dir: BorrowedFd<'a>, mode: Mode) -> io::Result<Self> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let (file, name) = under_a_free_name(|name| rustix::fs::openat(dir, name, flags, mode))?;
        Ok(Self {
            dir,
            file: File::from(file),
            name: Some(name),
        })
    }

    /// Where to write.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Sees what was written to the disk. Without it a power cut may leave a name with nothing, or
    /// a part, behind it.
    pub fn sync(&self) -> io::Result<()> {
        self.file.sync_all()
    }

    /// Gives it its name, in the place of whatever has it.
    pub fn finish(mut self, name: &OsStr) -> io::Result<()> {
        if self.name.is_none() {
            match self.link(name) {
                Err(Errno::EXIST) => {}
                linked => return Ok(linked?),
            }
            // A link takes nobody's place, so it needs a name that can be renamed.
            let ((), beside) = under_a_free_name(|beside| self.link(OsStr::new(beside)))?;
            self.name = Some(beside);
        }
        if let Some(beside) = &self.name {
            rustix::fs::renameat(self.dir, beside.as_str(), self.dir, name)?;
            self.name = None;
        }
        Ok(())
    }

    fn link(&self, name: &OsStr) -> Result<(), Errno> {
        let opened = proc_path(&self.file);
        rustix::fs::linkat(CWD, opened, self.dir, name, AtFlags::SYMLINK_FOLLOW)
    }
}

impl Drop for Draft<'_> {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            let _ = rustix::fs::unlinkat(self.dir, name.as_str(), AtFlags::empty());
        }
    }
}

/// Where the file of this path is to be: its directory, open for look-ups, and its name there.
pub fn place_of(path: &Path) -> io::Result<(OwnedFd, &OsStr)> {
    let name = path.file_name().ok_or_else(|| {
        let reason = "it is not the name of a file";
        io::Error::new(io::ErrorKind::InvalidInput, reason)
    })?;
    let dir = match path.parent() {
        Some(dir) if !dir.as_os_str().is_empty() => dir,
        _ => Path::new("."),
    };
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok((rustix::fs::open(dir, flags, Mode::empty())?, name))
}

/// A file without a name, if it can be given one later.
fn unnamed(dir: BorrowedFd<'_>, mode: Mode) -> Option<File> {
    let flags = OFlags::WRONLY | OFlags::TMPFILE | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::openat(dir, ".", flags, mode).ok()?);
    rustix::fs::access(proc_path(&file), Access::EXISTS).ok()?;
    Some(file)
}

fn proc_path(file: &File) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

/// Does something under a name that nobody has.
fn under_a_free_name<T>(mut act: impl FnMut(&str) -> Result<T, Errno>) -> io::Result<(T, String)> {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    loop {
        let count = COUNTER.fetch_add(1, Ordering::Relaxed);
        let name = format!(".holdfast-{}-{count}.tmp", std::process::id());
        match act(&name) {
            Ok(done) => return Ok((done, name)),
            // Left behind by a process with our id that was killed: the counter moves on.
            Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn names(dir: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(dir).expect("lists");
        let name = |entry: io::Result<std::fs::DirEntry>| entry.expect("an entry").file_name();
        entries
            .map(|it| name(it).to_string_lossy().into_owned())
            .collect()
    }

    /// Both ways end alike, over a file and where there is none, and dropped they leave nothing.
    #[test]
    fn a_draft_takes_its_place_whole_or_leaves_no_trace() {
        let dir = tempfile::tempdir().expect("a directory");
        let opened = File::open(dir.path()).expect("opens");
        let mode = Mode::from_raw_mode(0o600);
        for content in ["one", "two"] {
            let nameless = Draft::begin(&opened, 0o600).expect("begins");
            assert_eq!(nameless.name, None, "the tests' file system has O_TMPFILE");
            let named = Draft::named(opened.as_fd(), mode).expect("begins");
            for (draft, name) in [(nameless, "a"), (named, "b")] {
                draft.file().write_all(content.as_bytes()).expect("writes");
                draft.finish(OsStr::new(name)).expect("finishes");
                let found = std::fs::read_to_string(dir.path().join(name));
                assert_eq!(found.expect("reads"), content);
            }
        }
        drop(Draft::begin(&opened, 0o600).expect("begins"));
        drop(Draft::named(opened.as_fd(), mode).expect("begins"));
        let mut left = names(dir.path());
        left.sort();
        assert_eq!(left, ["a", "b"]);
    }

    #[test]
    fn what_takes_nobodys_place_leaves_no_trace_either() {
        let dir = tempfile::tempdir().expect("a directory");
        std::fs::create_dir(dir.path().join("a")).expect("a directory");
        let opened = File::open(dir.path()).expect("opens");
        let draft = Draft::begin(&opened, 0o600).expect("begins");
        assert!(draft.finish(OsStr::new("a")).is_err());
        assert_eq!(names(dir.path()), ["a"]);
    }
}
