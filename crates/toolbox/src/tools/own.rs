//! A workspace's own `/tmp` and `/dev/shm`.
//!
//! Commands see them in the place of those that everybody on the machine shares (see
//! [`holdfast_confine::view`]), and the file tools follow. What was not used for a day is removed.

use std::fs::DirBuilder;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Component, Path, PathBuf};
use std::sync::Once;
use std::time::{Duration, SystemTime};

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use holdfast_confine::{ConfinementConfig, Cover, Kernel, Mode, Shown, Views};
use holdfast_contract::{OwnPlace, SessionContext};
use holdfast_reliability::canonical::Digest;
use rustix::fs::{Mode as RawMode, OFlags, Timespec, Timestamps, UTIME_NOW};

/// What is removed when it was not used for so long.
pub(super) const OWN_UNUSED_HOURS_MAX: u64 = 24;
/// Where everybody keeps temporary files.
const TEMPORARY: &str = "/tmp";
/// Where programs share memory.
const SHARED_MEMORY: &str = "/dev/shm";
/// Of a workspace's digest, its directory's name.
const NAME_DIGITS: usize = 16;
/// In the directory of a workspace, what commands see: open to other users, as `/tmp` is. Nobody else
/// gets as far.
const INSIDE: &str = "tmp";

/// The directories that workspaces have of their own under this configuration, on this kernel.
pub fn own_places(
    config: &ConfinementConfig,
    kernel: Kernel,
    home: Option<&Path>,
) -> Vec<OwnPlace> {
    if config.mode == Mode::Off || !kernel.confines_files() || kernel.views == Views::No {
        return Vec::new();
    }
    let opened: Vec<PathBuf> = (config.read.iter().chain(&config.write))
        .filter_map(|path| expanded(path, home)?.canonicalize().ok())
        .collect();
    let bases = [
        (TEMPORARY, temporary_base(config, home)),
        (SHARED_MEMORY, Some(of_this_user(Path::new(SHARED_MEMORY)))),
    ];
    let places = bases.into_iter().filter_map(|(shared, base)| {
        let shared = Path::new(shared).canonicalize().ok()?;
        // Where all of it is opened to commands, they mean the one that all share.
        let is_opened = opened.iter().any(|path| shared.starts_with(path));
        (!is_opened).then_some(OwnPlace {
            shared,
            base: base?,
        })
    });
    places.collect()
}

/// A path of the configuration.
pub(super) fn expanded(path: &str, home: Option<&Path>) -> Option<PathBuf> {
    match path.strip_prefix("~/") {
        Some(rest) => Some(home?.join(rest)),
        None => Some(PathBuf::from(path)),
    }
}

/// Where each workspace's temporary files get a directory.
pub(super) fn temporary_base(config: &ConfinementConfig, home: Option<&Path>) -> Option<PathBuf> {
    match &config.temporary {
        Some(path) => expanded(path, home),
        None => Some(of_this_user(&std::env::temp_dir().canonicalize().ok()?)),
    }
}

fn of_this_user(dir: &Path) -> PathBuf {
    dir.join(format!("holdfast-{}", rustix::process::geteuid().as_raw()))
}

/// The workspace's own directory in `base`, made if need be. `None` when somebody else sits on its name.
pub(super) fn made(base: &Path, workspace: &Path) -> Option<PathBuf> {
    static SWEPT: Once = Once::new();
    let owner = rustix::process::geteuid().as_raw();
    let base = ours(base.to_owned(), owner)?;
    let swept = base.clone();
    SWEPT.call_once(|| drop(std::thread::spawn(move || sweep(&swept))));
    let outside = private(base.join(name_of(workspace)), owner)?;
    let inside = outside.join(INSIDE);
    let _ = DirBuilder::new().mode(0o700).create(&inside);
    let open = opened(&inside, owner)?;
    rustix::fs::fchmod(&open, RawMode::from_raw_mode(0o1777)).ok()?;
    Some(inside)
}

fn name_of(workspace: &Path) -> String {
    let mut name = Digest::of(workspace.as_os_str().as_encoded_bytes()).to_string();
    name.truncate(NAME_DIGITS);
    name
}

/// Makes what the shown paths of a cover are put on. A command may have put links there: they lead nowhere.
pub(super) fn make_room(cover: &Cover) {
    let Ok(own) = Dir::open_ambient_dir(&cover.own, ambient_authority()) else {
        return;
    };
    for Shown { path, .. } in &cover.shown {
        let Ok(place) = path.strip_prefix(&cover.shared) else {
            continue;
        };
        let is_dir = path.is_dir();
        match own.symlink_metadata(place) {
            Ok(there) if there.is_dir() && is_dir || there.is_file() && !is_dir => continue,
            Ok(there) if there.is_dir() => drop(own.remove_dir_all(place)),
            Ok(_) => drop(own.remove_file(place)),
            Err(_) => {}
        }
        // What can not be made shows when the command starts.
        let _ = own.create_dir_all(place.parent().unwrap_or(place));
        let _ = if is_dir {
            own.create_dir(place)
        } else {
            own.create(place).map(drop)
        };
    }
}

/// A path in a shared directory in whose place the session sees its own.
pub(super) struct InOwn {
    /// The session's own directory, which may not be there yet.
    base: PathBuf,
    workspace: PathBuf,
    /// The path in it.
    pub(super) relative: PathBuf,
    /// What the path is called.
    pub(super) shown: PathBuf,
}

impl InOwn {
    /// Where this path leads in the session's own directories. What lies in the workspace, or is there
    /// for everybody and not in the session's own, is not among them.
    pub(super) fn of(
        own_places: &[OwnPlace],
        reserved: &[PathBuf],
        workspace: &Path,
        asked: &str,
    ) -> Option<Self> {
        if own_places.is_empty() {
            return None;
        }
        let shown = plain(&workspace.join(asked))?;
        let (place, relative) = own_places
            .iter()
            .find_map(|place| Some((place, shown.strip_prefix(&place.shared).ok()?)))?;
        let real = workspace.canonicalize().ok();
        let real = real.as_deref().unwrap_or(workspace);
        // Where something in the workspace is hidden nothing is covered.
        let is_covered =
            !reserved.iter().any(|it| it.starts_with(real)) || !real.starts_with(&place.shared);
        let is_elsewhere = shown.starts_with(real) || place.shared.starts_with(real);
        let own = place.base.join(name_of(workspace)).join(INSIDE);
        let is_there = |path: &Path| std::fs::symlink_metadata(path).is_ok();
        // Nor is a new file in a directory of others made in one of the session's own.
        let parent = relative.parent().unwrap_or(relative);
        let is_in_theirs = parent.components().next().is_some()
            && is_there(&place.shared.join(parent))
            && !is_there(&own.join(parent));
        let is_theirs = !is_there(&own.join(relative)) && (is_there(&shown) || is_in_theirs);
        if !is_covered || is_elsewhere || is_theirs {
            return None;
        }
        Some(Self {
            base: place.base.clone(),
            workspace: workspace.to_owned(),
            relative: relative.to_owned(),
            shown: shown.clone(),
        })
    }

    /// The session's own directory, made if need be.
    pub(super) fn root(&self) -> Option<PathBuf> {
        made(&self.base, &self.workspace)
    }
}

/// Where this path leads in the session's own directories.
pub(super) fn in_own(session: &SessionContext, asked: &str) -> Option<InOwn> {
    let workspace = &session.workspace_root;
    InOwn::of(&session.own_places, &session.reserved, workspace, asked)
}

/// Whether commands of the session make this path in a directory of their own.
pub(super) fn is_own(session: &SessionContext, path: &Path) -> bool {
    let text = path.to_str();
    text.is_some_and(|text| in_own(session, text).is_some())
}

/// The path without `.` and `..`; nothing where those lead above the root.
fn plain(path: &Path) -> Option<PathBuf> {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                if !plain.pop() {
                    return None;
                }
            }
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    Some(plain)
}

/// The directory, made if need be, if it is ours and nobody else can put anything there.
fn ours(path: PathBuf, owner: u32) -> Option<PathBuf> {
    // One that is there is looked at below, whoever made it.
    let _ = DirBuilder::new().mode(0o700).create(&path);
    let seen = std::fs::symlink_metadata(&path).ok()?;
    let others_write = seen.mode() & 0o022 != 0;
    (seen.is_dir() && seen.uid() == owner && !others_write).then_some(path)
}

/// The same, and nobody else can look in. It counts as used now.
fn private(path: PathBuf, owner: u32) -> Option<PathBuf> {
    let _ = DirBuilder::new().mode(0o700).create(&path);
    let open = opened(&path, owner)?;
    rustix::fs::fchmod(&open, RawMode::RWXU).ok()?;
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: UTIME_NOW,
    };
    let times = Timestamps {
        last_access: now,
        last_modification: now,
    };
    rustix::fs::futimens(&open, &times).ok()?;
    Some(path)
}

/// A directory of this user, and no link to one.
fn opened(path: &Path, owner: u32) -> Option<std::os::fd::OwnedFd> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::RDONLY | OFlags::CLOEXEC;
    let open = rustix::fs::open(path, flags, RawMode::empty()).ok()?;
    let seen = rustix::fs::fstat(&open).ok()?;
    (seen.st_uid == owner).then_some(open)
}

/// Removes the directories of workspaces that were not used for long.
fn sweep(base: &Path) {
    let long = Duration::from_secs(OWN_UNUSED_HOURS_MAX * 3600);
    let Some(long_ago) = SystemTime::now().checked_sub(long) else {
        return;
    };
    for entry in std::fs::read_dir(base).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let is_digest =
            name.len() == NAME_DIGITS && name.as_encoded_bytes().iter().all(u8::is_ascii_hexdigit);
        let seen = entry.metadata().and_then(|seen| seen.modified());
        if is_digest && seen.is_ok_and(|used| used < long_ago) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_directory_that_is_not_ours_alone_is_not_used() {
        let dir = tempfile::tempdir().expect("a directory");
        let owner = rustix::process::geteuid().as_raw();
        let made = private(dir.path().join("made"), owner).expect("made");
        assert_eq!(private(made.clone(), owner), Some(made.clone()));
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(&made, &link).expect("linked");
        assert_eq!(private(link, owner), None);
        assert_eq!(private(made.clone(), owner + 1), None);
        // One that a command has opened to others is closed again.
        let open = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(&made, open.clone()).expect("set");
        assert_eq!(private(made.clone(), owner), Some(made.clone()));
        let rights = std::fs::metadata(&made).expect("there").mode();
        assert_eq!(rights & 0o777, 0o700);
        // Above it others may look, and may not write.
        std::fs::set_permissions(&made, open).expect("set");
        assert_eq!(ours(made.clone(), owner), Some(made.clone()));
        let writable = std::fs::Permissions::from_mode(0o777);
        std::fs::set_permissions(&made, writable).expect("set");
        assert_eq!(ours(made, owner), None);
    }

    #[test]
    fn what_was_not_used_for_a_day_goes_and_nothing_else() {
        let base = tempfile::tempdir().expect("a directory");
        let old = SystemTime::now() - Duration::from_secs(OWN_UNUSED_HOURS_MAX * 3600 + 60);
        for (name, is_old) in [
            ("0123456789abcdef", true),
            ("1123456789abcdef", false),
            ("something-else", true),
        ] {
            let dir = base.path().join(name);
            std::fs::create_dir(&dir).expect("made");
            if is_old {
                let file = std::fs::File::open(&dir).expect("opens");
                file.set_modified(old).expect("set");
            }
        }
        sweep(base.path());
        let mut left: Vec<_> = std::fs::read_dir(base.path())
            .expect("lists")
            .map(|entry| entry.expect("an entry").file_name())
            .collect();
        left.sort();
        assert_eq!(left, ["1123456789abcdef", "something-else"]);
    }

    #[test]
    fn what_is_in_the_workspace_or_there_for_all_is_not_own() {
        let shared = tempfile::tempdir().expect("a directory");
        let shared_real = shared.path().canonicalize().expect("a real name");
        std::fs::create_dir_all(shared_real.join("house/space")).expect("made");
        std::fs::write(shared_real.join("theirs"), "x").expect("written");
        let workspace = shared_real.join("house/space");
        let base = shared_real.join("base");
        let places = [OwnPlace {
            shared: shared_real.clone(),
            base: base.clone(),
        }];
        let own = |asked: &str| InOwn::of(&places, &[], &workspace, asked);
        let name = |name: &str| shared_real.join(name).display().to_string();
        for asked in [
            name("theirs"),
            name("house"),
            "../x".into(),
            "a".into(),
            "/etc/x".into(),
        ] {
            assert!(own(&asked).is_none(), "{asked}");
        }
        for asked in [name("new/deep"), name("house/../new"), "../../new".into()] {
            assert!(own(&asked).is_some(), "{asked}");
        }
        let reserved = [workspace.join("state")];
        assert!(InOwn::of(&places, &reserved, &workspace, "../../new").is_none());
        // Once the session has its own of that name, that one is meant.
        let inside = made(&base, &workspace).expect("made");
        std::fs::write(inside.join("theirs"), "y").expect("written");
        assert!(own(&name("theirs")).is_some());
        let found = own(&name("theirs")).expect("own");
        assert_eq!(found.root(), Some(inside));
        assert_eq!(found.relative, Path::new("theirs"));
    }
}
