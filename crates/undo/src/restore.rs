//! Does what a plan says, in one root.
//!
//! Every path is opened name by name from the root's descriptor, and no name is ever followed as a link:
//! a command that exchanges a directory for a link meanwhile gets an error and nothing else. Files are
//! written in a directory of our own and renamed, so that none is ever half there, and a name that
//! shares its file with names elsewhere parts from them instead of changing them.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{
    AtFlags, Gid, Mode, OFlags, RenameFlags, ResolveFlags, Timespec, Timestamps, Uid, chownat,
    fchmod, fchown, futimens, mkdirat, openat2, renameat, renameat_with, symlinkat, unlinkat,
    utimensat,
};
use rustix::io::Errno;

use crate::disk::{self, Stat, open_dir_at};
use crate::entry::{Entry, Kind, Stamp};
use crate::error::{At, UndoResult};
use crate::index::Node;
use crate::objects::{Objects, c_name};
use crate::plan::{Plan, Step};
use crate::record::path_of;

/// How one step ended.
#[derive(Debug)]
pub(crate) enum Ended {
    Done,
    /// Somebody changed the path since it was read.
    Changed,
    /// The system, or the store, said no.
    Failed(String),
}

/// What a directory has to be set to in the end.
#[derive(Debug, Clone, Copy)]
struct Attributes {
    mode: u32,
    owner: Option<(u32, u32)>,
    mtime: Stamp,
}

/// Restores one root.
pub(crate) struct Restorer<'a> {
    objects: &'a Objects,
    root: OwnedFd,
    now: &'a Node,
    /// The directory of our own, and its name in the root.
    own: OwnedFd,
    own_name: CString,
    /// Directories that are open, from the root inwards.
    open: Vec<(Box<[u8]>, OwnedFd)>,
    /// What every directory that was entered or restored is set to in the end.
    attributes: BTreeMap<Vec<u8>, Attributes>,
    counter: u64,
}

impl<'a> Restorer<'a> {
    /// Begins to restore. `own_name` is a name that nobody else uses in the root.
    pub(crate) fn new(
        objects: &'a Objects,
        root: OwnedFd,
        now: &'a Node,
        own_name: &str,
    ) -> UndoResult<Self> {
        let place = path_of(own_name.as_bytes());
        let stat = disk::stat_of(&root).at("can not read", &place)?;
        let mut attributes = BTreeMap::new();
        attributes.insert(Vec::new(), enter(root.as_fd(), &stat));
        let own_name = c_name(own_name.as_bytes());
        remove_own(&root, &own_name);
        mkdirat(&root, &own_name, Mode::from_raw_mode(0o700)).at("can not create", &place)?;
        let own = open_dir_at(&root, &own_name).at("can not open", &place)?;
        Ok(Self {
            objects,
            root,
            now,
            own,
            own_name,
            open: Vec::new(),
            attributes,
            counter: 0,
        })
    }

    /// Does all steps, and says how each ended.
    pub(crate) fn run(mut self, plan: &Plan) -> Vec<Ended> {
        let mut ended: Vec<Ended> = plan.steps.iter().map(|_| Ended::Done).collect();
        let steps = || plan.steps.iter().enumerate();
        for (place, step) in steps().rev() {
            ended[place] = self.clear_away(step);
        }
        for (place, step) in steps() {
            if matches!(ended[place], Ended::Done) {
                ended[place] = self.bring_back(step);
            }
        }
        self.open.clear();
        remove_own(&self.root, &self.own_name);
        let attributes: Vec<_> = std::mem::take(&mut self.attributes).into_iter().collect();
        for (path, attributes) in attributes.into_iter().rev() {
            self.set(&path, attributes);
        }
        ended
    }

    /// Removes what stands in the way of a step's target.
    fn clear_away(&mut self, step: &Step) -> Ended {
        let was_dir = step.now.is_dir();
        let stays = step.now.is_absent()
            || (was_dir && step.target.is_dir())
            || (!was_dir && !step.target.is_absent() && !step.target.is_dir());
        if stays {
            return Ended::Done;
        }
        let now = self.now;
        let (dir, name) = match self.parent(&step.path) {
            Ok(found) => found,
            Err(error) => return ended(error),
        };
        if !was_dir && !is_as_seen(dir, &name, now, &step.path) {
            return Ended::Changed;
        }
        let flags = if was_dir {
            AtFlags::REMOVEDIR
        } else {
            AtFlags::empty()
        };
        match unlinkat(dir, &name, flags) {
            Ok(()) => {
                self.attributes.remove(&step.path);
                Ended::Done
            }
            Err(error) => ended(error),
        }
    }

    fn bring_back(&mut self, step: &Step) -> Ended {
        let target = &step.target;
        if target.is_absent() {
            return Ended::Done;
        }
        if target.is_dir() {
            return self.directory(step);
        }
        let (new, made) = self.make(target);
        if let Err(error) = made {
            let _ = unlinkat(&self.own, &new, AtFlags::empty());
            return Ended::Failed(error.to_string());
        }
        let placed = self.place(step, &new);
        if !matches!(placed, Ended::Done) {
            let _ = unlinkat(&self.own, &new, AtFlags::empty());
        }
        placed
    }

    fn directory(&mut self, step: &Step) -> Ended {
        let target = &step.target;
        if !step.now.is_dir() {
            let made = self
                .parent(&step.path)
                .and_then(|(dir, name)| mkdirat(dir, &name, Mode::from_raw_mode(0o700)));
            if let Err(error) = made {
                return ended(error);
            }
        }
        let attributes = Attributes {
            mode: target.mode,
            owner: Some((target.uid, target.gid)),
            mtime: target.mtime,
        };
        self.attributes.insert(step.path.clone(), attributes);
        Ended::Done
    }

    /// Makes a file or link in the directory of our own.
    fn make(&mut self, target: &Entry) -> (CString, UndoResult<()>) {
        self.counter += 1;
        let new = c_name(self.counter.to_string().as_bytes());
        let made = self.fill(&new, target);
        (new, made)
    }

    fn fill(&self, new: &CString, target: &Entry) -> UndoResult<()> {
        let place = path_of(new.as_bytes());
        match &target.kind {
            Kind::File { hash, .. } => {
                let mut file = disk::create_at(&self.own, new).at("can not create", &place)?;
                self.objects.restore(hash, &mut file)?;
                own(file.as_fd(), target.uid, target.gid);
                fchmod(&file, Mode::from_raw_mode(target.mode)).at("can not chmod", &place)?;
                futimens(&file, &times(target.mtime)).at("can not stamp", &place)
            }
            Kind::Link { target: text } => {
                symlinkat(&**text, &self.own, new).at("can not link", &place)?;
                let (uid, gid) = (Uid::from_raw(target.uid), Gid::from_raw(target.gid));
                let flags = AtFlags::SYMLINK_NOFOLLOW;
                // Only root may give files away; a user's own files are the user's anyway.
                let _ = chownat(&self.own, new, Some(uid), Some(gid), flags);
                utimensat(&self.own, new, &times(target.mtime), flags).at("can not stamp", &place)
            }
            _ => Ok(()),
        }
    }

    /// Renames a finished file to its place.
    fn place(&mut self, step: &Step, new: &CString) -> Ended {
        let now = self.now;
        let own = match self.own.try_clone() {
            Ok(own) => own,
            Err(error) => return Ended::Failed(error.to_string()),
        };
        let (dir, name) = match self.parent(&step.path) {
            Ok(found) => found,
            Err(error) => return ended(error),
        };
        let replaces = !step.now.is_absent() && !step.now.is_dir();
        if replaces {
            if !is_as_seen(dir, &name, now, &step.path) {
                return Ended::Changed;
            }
            return renameat(&own, new, dir, &name).map_or_else(ended, |()| Ended::Done);
        }
        match renameat_with(&own, new, dir, &name, RenameFlags::NOREPLACE) {
            Ok(()) => Ended::Done,
            // This file system can not rename so: look, then rename.
            Err(Errno::INVAL | Errno::NOSYS) => match disk::stat_at(dir, &name) {
                Err(Errno::NOENT) => {
                    renameat(&own, new, dir, &name).map_or_else(ended, |()| Ended::Done)
                }
                _ => Ended::Changed,
            },
            Err(error) => ended(error),
        }
    }

    /// The open directory above a path, and the path's last name.
    fn parent(&mut self, path: &[u8]) -> Result<(BorrowedFd<'_>, CString), Errno> {
        let (above, name) = match path.iter().rposition(|byte| *byte == b'/') {
            Some(slash) => (&path[..slash], &path[slash + 1..]),
            None => (&path[..0], path),
        };
        Ok((self.directory_at(above)?, c_name(name)))
    }

    /// Opens a directory, from the last one that is open already.
    fn directory_at(&mut self, path: &[u8]) -> Result<BorrowedFd<'_>, Errno> {
        let names: Vec<&[u8]> = path
            .split(|byte| *byte == b'/')
            .filter(|name| !name.is_empty())
            .collect();
        let shared = self
            .open
            .iter()
            .zip(&names)
            .take_while(|((open, _), name)| **open == ***name)
            .count();
        self.open.truncate(shared);
        for place in shared..names.len() {
            let above = self.open.last().map_or(&self.root, |(_, fd)| fd);
            let fd = open_below(above, &c_name(names[place]))?;
            let path = names[..=place].join(&b'/');
            let was = enter(fd.as_fd(), &disk::stat_of(&fd)?);
            self.attributes.entry(path).or_insert(was);
            self.open.push((names[place].into(), fd));
        }
        Ok(self
            .open
            .last()
            .map_or(self.root.as_fd(), |(_, fd)| fd.as_fd()))
    }

    /// Gives a directory its attributes. A directory that has gone needs none.
    fn set(&mut self, path: &[u8], attributes: Attributes) {
        let Ok(dir) = self.directory_at_plainly(path) else {
            return;
        };
        if let Some((uid, gid)) = attributes.owner {
            own(dir.as_fd(), uid, gid);
        }
        let _ = fchmod(&dir, Mode::from_raw_mode(attributes.mode));
        let _ = futimens(&dir, &times(attributes.mtime));
    }

    /// Opens a directory without noting that it was entered.
    fn directory_at_plainly(&self, path: &[u8]) -> Result<OwnedFd, Errno> {
        let mut dir = open_dir_at(&self.root, c".")?;
        for name in path
            .split(|byte| *byte == b'/')
            .filter(|name| !name.is_empty())
        {
            dir = open_below(&dir, &c_name(name))?;
        }
        Ok(dir)
    }
}

/// Removes the directory in which files are made, with what an interrupted undo has left in it.
pub(crate) fn remove_own(root: &OwnedFd, name: &CString) {
    if let Ok(own) = open_dir_at(root, name)
        && let Ok(files) = rustix::fs::Dir::read_from(&own)
    {
        for file in files.flatten() {
            let _ = unlinkat(&own, file.file_name(), AtFlags::empty());
        }
    }
    let _ = unlinkat(root, name, AtFlags::REMOVEDIR);
}

/// Opens a directory that lies in another one, on the same mount, and is no link.
fn open_below(dir: &OwnedFd, name: &CString) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
    match openat2(dir, name, flags, Mode::empty(), resolve) {
        // A sandbox may not know the call. A single name that is no link leads nowhere else either.
        Err(Errno::NOSYS | Errno::PERM) => open_dir_at(dir, name),
        opened => opened,
    }
}

/// Makes a directory writable to us for a while, and says what it was.
fn enter(dir: BorrowedFd<'_>, stat: &Stat) -> Attributes {
    if stat.mode & 0o700 != 0o700 {
        let _ = fchmod(dir, Mode::from_raw_mode(stat.mode | 0o700));
    }
    Attributes {
        mode: stat.mode,
        owner: None,
        mtime: stat.mtime,
    }
}

/// Whether a name still stands for the file that was read. The change time says nothing here: it also
/// moves when another name of the same file goes.
fn is_as_seen(dir: BorrowedFd<'_>, name: &CString, now: &Node, path: &[u8]) -> bool {
    let (Some(node), Ok(stat)) = (now.at(path), disk::stat_at(dir, name)) else {
        return false;
    };
    let size_same = match node.entry.kind {
        Kind::File { size, .. } | Kind::LeftOut { size, .. } => {
            size == stat.size || !stat.file_type.is_file()
        }
        _ => true,
    };
    size_same
        && (node.seen.dev, node.seen.ino) == (stat.seen.dev, stat.seen.ino)
        && node.entry.mtime == stat.mtime
        && node.entry.mode == stat.mode
}

/// Gives a file its owner. Only root may give files away; a user's own files are the user's anyway.
fn own(file: BorrowedFd<'_>, uid: u32, gid: u32) {
    let _ = fchown(file, Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)));
}

fn times(mtime: Stamp) -> Timestamps {
    let stamp = Timespec {
        tv_sec: mtime.0,
        tv_nsec: i64::from(mtime.1),
    };
    Timestamps {
        last_access: stamp,
        last_modification: stamp,
    }
}

fn ended(error: Errno) -> Ended {
    match error {
        // The tree is not what it was when it was read.
        Errno::NOENT
        | Errno::NOTDIR
        | Errno::LOOP
        | Errno::EXIST
        | Errno::NOTEMPTY
        | Errno::XDEV => Ended::Changed,
        error => Ended::Failed(error.to_string()),
    }
}
