//! Paths that stay beneath a root.
//!
//! The kernel resolves every path with the root as its ceiling (`openat2` with `RESOLVE_BENEATH`,
//! through cap-std). What is compared as text here only turns an absolute path into a relative
//! one and gives a clear answer early; the defence does not rest on it.

use std::ffi::{OsStr, OsString};
use std::os::fd::AsRawFd;
use std::path::{Component, Path, PathBuf};

use cap_std::ambient_authority;
use cap_std::fs::{Dir, File, Metadata, MetadataExt, OpenOptions, OpenOptionsExt};
use holdfast_contract::{PathGrant, PermissionTier, ToolError};
use rustix::fs::OFlags;

use super::place::{self, Place};
use super::{args, bounds, fault};

/// Length of a path argument, as the kernel has it.
pub(super) const PATH_BYTES_MAX: usize = 4096;

/// Links in a row that are followed, as the kernel has it.
const LINKS_FOLLOWED_MAX: usize = 40;

/// How far symbolic links are followed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Links {
    /// As long as they stay beneath the root.
    Beneath,
    /// Not at all: a person has approved this very path.
    None,
}

/// A path argument, opened as far as its root.
pub(super) struct Beneath {
    root: Dir,
    links: Links,
    reserved: Vec<PathBuf>,
    /// What was asked for, for messages.
    asked: String,
    /// Relative to the root; never empty.
    relative: PathBuf,
    /// For answers.
    shown: PathBuf,
}

/// Where a file is to be replaced: its real directory and its name there.
pub(super) struct Slot {
    pub(super) parent: Dir,
    pub(super) name: OsString,
}

impl Beneath {
    /// Checks the argument `field` and opens the root. Nothing of the path is touched yet.
    pub(super) fn new(place: &Place, field: &str, asked: &str) -> Result<Self, ToolError> {
        args::path_text(field, asked)?;
        if let Some(grant) = place.granted.iter().find(|grant| grant.asked == asked) {
            return Self::granted(place, grant);
        }
        let (root, relative, shown) = match relative_to(&place.root, asked) {
            Ok(relative) => (place.root.clone(), relative.clone(), relative),
            Err(outside) => {
                let own = place.in_own(asked).ok_or(outside)?;
                let root = own.root().ok_or_else(|| fault::outside(asked))?;
                (root, own.relative, own.shown)
            }
        };
        let root = Dir::open_ambient_dir(&root, ambient_authority()).map_err(|error| {
            ToolError::coded(
                "io_error",
                format!("the workspace root can not be opened: {error}"),
            )
        })?;
        Ok(Self {
            root,
            links: Links::Beneath,
            reserved: place.reserved.clone(),
            asked: asked.to_owned(),
            relative,
            shown,
        })
    }

    /// An approved path: its directory by the real name that was approved, without links.
    fn granted(place: &Place, grant: &PathGrant) -> Result<Self, ToolError> {
        let flags = OFlags::DIRECTORY | OFlags::PATH | OFlags::CLOEXEC;
        let open = rustix::fs::openat2(
            rustix::fs::CWD,
            &grant.root,
            flags,
            rustix::fs::Mode::empty(),
            rustix::fs::ResolveFlags::NO_SYMLINKS,
        );
        let root = open.map_err(|error| fault::from_io(&grant.asked, "open", &error.into()))?;
        Ok(Self {
            root: Dir::from_std_file(root.into()),
            links: Links::None,
            reserved: place.reserved.clone(),
            asked: grant.asked.clone(),
            relative: grant.relative.clone(),
            shown: grant.root.join(&grant.relative),
        })
    }

    /// Refuses what really lies where no tool may go, however the path got there; with a name, the
    /// file of that name in the opened directory.
    fn out_of_bounds(&self, opened: &impl AsRawFd, name: &OsStr) -> Result<(), ToolError> {
        if self.reserved.is_empty() {
            return Ok(());
        }
        let real = std::fs::read_link(format!("/proc/self/fd/{}", opened.as_raw_fd()));
        let mut real = real.map_err(|error| self.fault("look at", &error))?;
        if !name.is_empty() {
            real.push(name);
        }
        match bounds::around(&self.reserved, &real) {
            Some(dir) => Err(refused(dir)),
            None => Ok(()),
        }
    }

    /// Refuses a file that has another name where no tool may go.
    fn not_reserved(&self, seen: &Metadata) -> Result<(), ToolError> {
        if self.reserved.is_empty() {
            return Ok(());
        }
        match bounds::names(&self.reserved, (seen.dev(), seen.ino())) {
            Ok(None) => Ok(()),
            Ok(Some(dir)) => Err(refused(dir)),
            Err(error) => Err(ToolError::PermissionDenied {
                tier: PermissionTier::Elevated,
                reason: format!(
                    "{:?} is a file with several names, and whether one of them is reserved can \
                     not be told: {error}",
                    self.asked
                ),
            }),
        }
    }

    /// A link in the place of an approved file is not that file.
    fn linkless(&self) -> Result<(), ToolError> {
        let is_link = self.links == Links::None
            && self
                .root
                .symlink_metadata(&self.relative)
                .is_ok_and(|seen| seen.is_symlink());
        if is_link {
            Err(fault::outside(&self.asked))
        } else {
            Ok(())
        }
    }

    /// What was asked for.
    pub(super) fn asked(&self) -> &str {
        &self.asked
    }

    /// The path for the answer: relative to the workspace, or the whole of one that lies outside,
    /// whose name alone could be taken for one in the workspace.
    pub(super) fn shown(&self) -> String {
        self.shown.to_string_lossy().into_owned()
    }

    /// Opens the regular file for reading.
    ///
    /// It is looked at before it is opened, because opening a device can have effects, and once
    /// more afterwards, because it may have been exchanged. `O_NONBLOCK` makes opening a FIFO
    /// that took its place return instead of waiting for a writer; on a regular file it has no
    /// meaning.
    pub(super) fn open_file(&self) -> Result<(File, Metadata), ToolError> {
        self.linkless()?;
        let seen = self.root.metadata(&self.relative);
        self.regular(&seen.map_err(|error| self.fault("read", &error))?)?;
        let mut flags = OFlags::NONBLOCK | OFlags::NOCTTY;
        if self.links == Links::None {
            flags |= OFlags::NOFOLLOW;
        }
        let mut options = OpenOptions::new();
        options.read(true).custom_flags(flags.bits().cast_signed());
        let file = self
            .root
            .open_with(&self.relative, &options)
            .map_err(|error| self.fault("read", &error))?;
        let opened = file
            .metadata()
            .map_err(|error| self.fault("read", &error))?;
        self.regular(&opened)?;
        self.out_of_bounds(&file, OsStr::new(""))?;
        // Only one with several names is looked for there.
        if opened.nlink() > 1 || bounds::is_mounted(&file) {
            self.not_reserved(&opened)?;
        }
        Ok((file, opened))
    }

    /// Opens the directory, to be made a working directory.
    pub(super) fn open_dir(&self) -> Result<Dir, ToolError> {
        let dir = self
            .root
            .open_dir(&self.relative)
            .map_err(|error| self.fault("enter", &error))?;
        self.out_of_bounds(&dir, OsStr::new(""))?;
        Ok(dir)
    }

    /// Finds where the file is to be replaced and creates missing directories.
    ///
    /// A symbolic link is followed to the file it names, so that a replaced file is still the one
    /// behind the link. A link to nothing is refused: creating a file in a place that the caller
    /// did not name is rarely meant.
    pub(super) fn slot(&self) -> Result<Slot, ToolError> {
        let failed = |error: std::io::Error| self.fault("write", &error);
        self.linkless()?;
        let real = match self.root.metadata(&self.relative) {
            Ok(seen) => {
                self.regular(&seen)?;
                // One that is mounted can not be replaced.
                if seen.nlink() > 1 {
                    self.not_reserved(&seen)?;
                }
                self.behind_links()?
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                if self.root.symlink_metadata(&self.relative).is_ok() {
                    return Err(ToolError::coded(
                        "dangling_symlink",
                        format!(
                            "{:?} is a symbolic link to something that does not exist",
                            self.asked
                        ),
                    ));
                }
                self.relative.clone()
            }
            Err(error) => return Err(failed(error)),
        };
        let name = real.file_name().filter(|_| !self.asked.ends_with('/'));
        let Some(name) = name else {
            return Err(ToolError::coded(
                "is_directory",
                format!("{:?} names a directory, not a file", self.asked),
            ));
        };
        let parent = self.directory(directory_of(&real))?;
        self.out_of_bounds(&parent, name)?;
        Ok(Slot {
            parent,
            name: name.to_owned(),
        })
    }

    /// Opens a directory, and makes what is missing of it: one after the other, each in a directory
    /// that was opened and looked at before, so that nothing is made where no tool may go.
    fn directory(&self, path: &Path) -> Result<Dir, ToolError> {
        use std::io::ErrorKind::{AlreadyExists, NotFound};
        let failed = |error: std::io::Error| self.fault("write", &error);
        match self.root.open_dir(path) {
            Err(error) if error.kind() == NotFound => {}
            opened => return opened.map_err(failed),
        }
        let mut reached = self.root.try_clone().map_err(failed)?;
        let mut so_far = PathBuf::new();
        for part in path.components() {
            so_far.push(part);
            reached = match self.root.open_dir(&so_far) {
                Err(error) if error.kind() == NotFound => {
                    self.out_of_bounds(&reached, part.as_os_str())?;
                    match reached.create_dir(part) {
                        // Somebody else has made it.
                        Err(error) if error.kind() == AlreadyExists => {}
                        made => made.map_err(failed)?,
                    }
                    self.root.open_dir(&so_far).map_err(failed)?
                }
                opened => opened.map_err(failed)?,
            };
        }
        Ok(reached)
    }

    /// The path with the links at its end followed, up to a name that is none.
    ///
    /// By reading them, and not by asking the kernel what an open file is called: a file that
    /// another call replaces at this moment is called "name (deleted)" there.
    fn behind_links(&self) -> Result<PathBuf, ToolError> {
        let failed = |error: std::io::Error| self.fault("write", &error);
        let mut path = self.relative.clone();
        for _ in 0..LINKS_FOLLOWED_MAX {
            match self.root.read_link(&path) {
                // As the kernel reads it: beside the link, whatever leads there.
                Ok(target) => path = directory_of(&path).join(target),
                // It is no link.
                Err(error) if error.kind() == std::io::ErrorKind::InvalidInput => return Ok(path),
                Err(error) => return Err(failed(error)),
            }
        }
        Err(failed(rustix::io::Errno::LOOP.into()))
    }

    /// A failed operation on this path.
    pub(super) fn fault(&self, doing: &str, error: &std::io::Error) -> ToolError {
        fault::from_io(&self.asked, doing, error)
    }

    /// Refuses everything but a regular file.
    pub(super) fn regular(&self, metadata: &Metadata) -> Result<(), ToolError> {
        if metadata.is_dir() {
            Err(ToolError::coded(
                "is_directory",
                format!("{:?} is a directory, not a file", self.asked),
            ))
        } else if metadata.is_file() {
            Ok(())
        } else {
            Err(ToolError::coded(
                "special_file",
                format!(
                    "{:?} is a FIFO, socket or device, not a regular file",
                    self.asked
                ),
            ))
        }
    }
}

fn refused(dir: &Path) -> ToolError {
    ToolError::PermissionDenied {
        tier: PermissionTier::Elevated,
        reason: place::reserved(dir).text,
    }
}

/// Where the last name of a path stands.
fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// What is left of `../space/a` in `/home/space`: it leads out and back in.
fn back_in<'p>(root: &Path, path: &'p Path) -> Option<&'p Path> {
    let is_up = |it: &Component<'_>| *it == Component::ParentDir;
    let up = path.components().take_while(is_up).count();
    let above = root.ancestors().nth(up).filter(|_| up > 0)?;
    let mut rest = path.components();
    rest.by_ref().take(up).for_each(drop);
    rest.as_path()
        .strip_prefix(root.strip_prefix(above).ok()?)
        .ok()
}

/// `asked` relative to `root`, refused when its `..` outnumber its names.
pub(super) fn relative_to(root: &Path, asked: &str) -> Result<PathBuf, ToolError> {
    let path = Path::new(asked);
    let relative = if path.is_absolute() {
        // The root may have been given through a symbolic link; its real name is as good.
        path.strip_prefix(root)
            .ok()
            .or_else(|| {
                let real = root.canonicalize().ok()?;
                path.strip_prefix(real).ok()
            })
            .ok_or_else(|| fault::outside(asked))?
    } else {
        back_in(root, path).unwrap_or(path)
    };
    let mut depth = 0_usize;
    let mut clean = PathBuf::new();
    for component in relative.components() {
        match component {
            Component::Normal(_) => depth += 1,
            // Kept for the kernel: after a symbolic link, `..` is not the name before it.
            Component::ParentDir => {
                depth = depth.checked_sub(1).ok_or_else(|| fault::outside(asked))?;
            }
            Component::CurDir => continue,
            Component::RootDir | Component::Prefix(_) => return Err(fault::outside(asked)),
        }
        clean.push(component);
    }
    if clean.as_os_str().is_empty() {
        clean.push(".");
    }
    Ok(clean)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absolute_paths_within_the_root_become_relative() {
        let root = Path::new("/home/space");
        for (asked, expected) in [
            ("a.txt", "a.txt"),
            ("./a//b.txt", "a/b.txt"),
            ("/home/space/a.txt", "a.txt"),
            ("/home/space", "."),
            ("../space/a.txt", "a.txt"),
            ("../../home/space/a/../b.txt", "a/../b.txt"),
            ("../space", "."),
            ("a/../b", "a/../b"),
        ] {
            assert_eq!(
                relative_to(root, asked),
                Ok(PathBuf::from(expected)),
                "{asked}"
            );
        }
    }

    #[test]
    fn a_file_that_is_being_replaced_keeps_its_name() {
        let house = tempfile::tempdir().expect("a directory");
        let place = |name: &str| house.path().join(name);
        std::fs::write(place("file"), "old").expect("writes");
        std::os::unix::fs::symlink("file", place("link")).expect("links");
        let done = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(std::sync::atomic::Ordering::Relaxed) {
                    std::fs::write(place("new"), "new").expect("writes");
                    std::fs::rename(place("new"), place("file")).expect("renames");
                }
            });
            let names = (0..5000).flat_map(|_| ["file", "link"]).map(|asked| {
                let target = Beneath {
                    root: Dir::open_ambient_dir(house.path(), ambient_authority()).expect("opens"),
                    links: Links::Beneath,
                    reserved: Vec::new(),
                    asked: asked.to_owned(),
                    relative: asked.into(),
                    shown: asked.into(),
                };
                target.slot().map(|slot| slot.name)
            });
            let wrong: Vec<_> = names.filter(|name| *name != Ok("file".into())).collect();
            done.store(true, std::sync::atomic::Ordering::Relaxed);
            assert!(wrong.is_empty(), "{}: {:?}", wrong.len(), wrong[0]);
        });
    }

    #[test]
    fn a_path_outside_is_told_as_a_whole() {
        let house = tempfile::tempdir().expect("a directory");
        let base = house.path().canonicalize().expect("a real name");
        let outside = base.join("notes").display().to_string();
        let grant = PathGrant {
            asked: outside.clone(),
            root: base.clone(),
            relative: "notes".into(),
        };
        let place = Place {
            root: base.clone(),
            granted: vec![grant],
            reserved: Vec::new(),
            own_places: Vec::new(),
            workspace: PathBuf::new(),
        };
        let shown = |asked: &str| Beneath::new(&place, "path", asked).map(|it| it.shown());
        assert_eq!(shown(&outside).as_deref(), Ok(outside.as_str()));
        assert_eq!(shown("a/notes").as_deref(), Ok("a/notes"));
    }

    #[test]
    fn paths_that_leave_the_root_are_denied() {
        let root = Path::new("/home/space");
        for asked in [
            "..",
            "../a",
            "a/../../b",
            "/",
            "/etc/passwd",
            "/work",
            "/home/spaceship/a",
            "/home/space/../a",
        ] {
            assert!(
                matches!(
                    relative_to(root, asked),
                    Err(ToolError::PermissionDenied { .. })
                ),
                "{asked}"
            );
        }
    }
}
