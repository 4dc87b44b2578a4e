//! A view of the file system in which a shared directory is the workspace's own.
//!
//! A command gets a mount namespace. There `/tmp` is a directory that only commands of its workspace
//! see. What it was granted below the real `/tmp` stays where it was. Root makes the namespace as it
//! is; other users need a user namespace around it.

use std::ffi::{CStr, CString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use serde::Serialize;

use crate::limits::SHOWN_MAX;

/// How a command can be given a view of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Views {
    /// In a mount namespace.
    Plain,
    /// In a mount namespace within a user namespace.
    User,
    /// Not at all.
    No,
}

impl Views {
    /// Whether commands can be given a view in this way here. It is tried, in a process that ends at once.
    pub fn works(self) -> bool {
        let cover = Cover {
            shared: "/tmp".into(),
            own: "/usr".into(),
            shown: Vec::new(),
        };
        matches!(View::new(self, &[cover]), Ok(Some(view)) if can_enter(&view))
    }
}

/// A shared directory that a command does not get to see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cover {
    /// What is covered.
    pub shared: PathBuf,
    /// What stands in its place.
    pub own: PathBuf,
    /// What stays visible in the shared directory, those above before those below.
    pub shown: Vec<Shown>,
}

/// A path in a covered directory that a command keeps.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Shown {
    /// Its real name.
    pub path: PathBuf,
    /// Nothing in it can be changed. Landlock alone does not say so: it also looks at the directory that
    /// the path is put in, which is the command's own.
    pub read_only: bool,
}

/// The same with names as the kernel takes them.
#[derive(Debug)]
struct ReadyCover {
    shared: CString,
    own: CString,
    shown: Vec<(CString, bool)>,
}

/// A view, made before the fork.
#[derive(Debug)]
pub(crate) struct View {
    covers: Vec<ReadyCover>,
    /// What maps this user and group to themselves, in a user namespace.
    maps: Option<[CString; 2]>,
}

impl View {
    /// The view with these covers, and nothing where there are none or no view can be had.
    pub(crate) fn new(views: Views, covers: &[Cover]) -> io::Result<Option<Self>> {
        if views == Views::No || covers.is_empty() {
            return Ok(None);
        }
        let maps = (views == Views::User).then(|| {
            let user = rustix::process::geteuid().as_raw();
            let group = rustix::process::getegid().as_raw();
            [user, group].map(|id| CString::new(format!("{id} {id} 1")).unwrap_or_default())
        });
        let covers = covers.iter().map(|cover| {
            let shown = cover.shown.iter().take(SHOWN_MAX);
            Ok(ReadyCover {
                shared: name(&cover.shared)?,
                own: name(&cover.own)?,
                shown: shown
                    .map(|it| Ok((name(&it.path)?, it.read_only)))
                    .collect::<io::Result<_>>()?,
            })
        });
        Ok(Some(Self {
            covers: covers.collect::<io::Result<_>>()?,
            maps,
        }))
    }

    /// Puts this process into it. Called between fork and exec: it makes system calls only.
    pub(crate) fn enter(&self) -> io::Result<()> {
        let mut namespaces = libc::CLONE_NEWNS | libc::CLONE_NEWIPC;
        if self.maps.is_some() {
            namespaces |= libc::CLONE_NEWUSER;
        }
        unshare(namespaces)?;
        if let Some([user, group]) = &self.maps {
            // Without this an ordinary user may map no group.
            write(c"/proc/self/setgroups", c"deny")?;
            write(c"/proc/self/uid_map", user)?;
            write(c"/proc/self/gid_map", group)?;
        }
        keep_mounts_to_itself()?;
        self.covers.iter().try_for_each(ReadyCover::lay)
    }
}

impl ReadyCover {
    fn lay(&self) -> io::Result<()> {
        let mut kept = [-1; SHOWN_MAX];
        // Before they are covered.
        for (kept, (path, read_only)) in kept.iter_mut().zip(&self.shown) {
            *kept = take(path)?;
            if *read_only {
                make_read_only(*kept)?;
            }
        }
        put(take(&self.own)?, &self.shared)?;
        for (kept, (path, _)) in kept.iter().zip(&self.shown) {
            put(*kept, path)?;
        }
        Ok(())
    }
}

fn name(path: &Path) -> io::Result<CString> {
    CString::new(path.as_os_str().as_bytes()).map_err(io::Error::other)
}

/// How commands can be given views here; asked once.
pub(crate) fn probe() -> Views {
    static FOUND: LazyLock<Views> = LazyLock::new(|| {
        let forms = [Views::Plain, Views::User];
        forms.into_iter().find(|it| it.works()).unwrap_or(Views::No)
    });
    *FOUND
}

#[expect(
    unsafe_code,
    reason = "no safe wrapper tries calls in a process of their own"
)]
fn can_enter(view: &View) -> bool {
    // SAFETY: the child makes system calls only (see `View::enter`) and ends without running anything
    // else; the parent waits for this very child.
    unsafe {
        let child = libc::fork();
        if child == 0 {
            libc::_exit(i32::from(view.enter().is_err()));
        }
        let mut status = 0;
        while child > 0 && libc::waitpid(child, &raw mut status, 0) < 0 {
            if io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
                return false;
            }
        }
        child > 0 && libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0
    }
}

fn checked(result: libc::c_long) -> io::Result<libc::c_long> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}

#[expect(
    unsafe_code,
    reason = "the safe wrappers are not made for use after a fork"
)]
fn unshare(namespaces: libc::c_int) -> io::Result<()> {
    // SAFETY: takes a number, and changes this process only, which has one thread.
    checked(unsafe { libc::unshare(namespaces) }.into()).map(drop)
}

#[expect(
    unsafe_code,
    reason = "the safe wrappers are not made for use after a fork"
)]
fn write(path: &CStr, text: &CStr) -> io::Result<()> {
    // SAFETY: both are strings that end in NUL; the descriptor is ours and closed here.
    unsafe {
        let file = libc::open(path.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
        checked(file.into())?;
        let done = checked(libc::write(file, text.as_ptr().cast(), text.count_bytes()) as _);
        libc::close(file);
        done.map(drop)
    }
}

/// What is mounted here from now on is not mounted for anybody else.
#[expect(
    unsafe_code,
    reason = "the safe wrappers are not made for use after a fork"
)]
fn keep_mounts_to_itself() -> io::Result<()> {
    let none = std::ptr::null();
    let flags = libc::MS_REC | libc::MS_SLAVE;
    // SAFETY: the path ends in NUL, and with these flags the other pointers are not read.
    let done = unsafe { libc::mount(none, c"/".as_ptr(), none, flags, none.cast()) };
    checked(done.into()).map(drop)
}

/// What is mounted at a path, with all below it, as something that can be put elsewhere.
#[expect(
    unsafe_code,
    reason = "the safe wrappers are not made for use after a fork"
)]
fn take(path: &CStr) -> io::Result<libc::c_int> {
    let flags = libc::OPEN_TREE_CLONE
        | libc::OPEN_TREE_CLOEXEC
        | (libc::AT_RECURSIVE | libc::AT_SYMLINK_NOFOLLOW).unsigned_abs();
    // SAFETY: the path ends in NUL; the rest are numbers.
    let taken = unsafe { libc::syscall(libc::SYS_open_tree, libc::AT_FDCWD, path.as_ptr(), flags) };
    #[expect(clippy::cast_possible_truncation, reason = "a descriptor")]
    checked(taken).map(|taken| taken as libc::c_int)
}

/// Nothing below what was taken can be changed any more.
#[expect(
    unsafe_code,
    reason = "the safe wrappers are not made for use after a fork"
)]
fn make_read_only(taken: libc::c_int) -> io::Result<()> {
    let attributes = libc::mount_attr {
        attr_set: libc::MOUNT_ATTR_RDONLY,
        attr_clr: 0,
        propagation: 0,
        userns_fd: 0,
    };
    let flags = libc::AT_EMPTY_PATH | libc::AT_RECURSIVE;
    // SAFETY: the descriptor is ours, the path ends in NUL, and the size is that of the attributes.
    let done = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            taken,
            c"".as_ptr(),
            flags,
            &raw const attributes,
            size_of::<libc::mount_attr>(),
        )
    };
    checked(done).map(drop)
}

/// Puts what was taken over a path, and closes it.
#[expect(
    unsafe_code,
    reason = "the safe wrappers are not made for use after a fork"
)]
fn put(taken: libc::c_int, path: &CStr) -> io::Result<()> {
    // SAFETY: both paths end in NUL, and the descriptor is ours and closed here.
    unsafe {
        let done = checked(libc::syscall(
            libc::SYS_move_mount,
            taken,
            c"".as_ptr(),
            libc::AT_FDCWD,
            path.as_ptr(),
            libc::MOVE_MOUNT_F_EMPTY_PATH,
        ));
        libc::close(taken);
        done.map(drop)
    }
}
