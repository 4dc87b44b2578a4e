//! What one command may touch, as a plain list.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::view::{Cover, Shown};

/// Whether a command reaches the network.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Network {
    /// It does.
    #[default]
    Allow,
    /// It makes no sockets.
    Deny,
}

/// Whether a command talks to local services through Unix sockets. Landlock does not keep a command
/// from a socket's path on kernels of today, and behind such sockets are services that run commands
/// for whoever asks: the session bus, Docker, agents with keys.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum UnixSockets {
    /// It makes none; pairs of stream sockets between its own processes work.
    #[default]
    Deny,
    /// It does.
    Allow,
}

/// Whom a command may signal, where the kernel can tell (Landlock version 6).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Signals {
    /// What it started itself.
    #[default]
    Own,
    /// Every process of the user; a later command can end what an earlier one left behind.
    Any,
}

/// What one command may touch.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Plan {
    /// May be read and run.
    pub read: Vec<PathBuf>,
    /// May be read, run and changed.
    pub write: Vec<PathBuf>,
    /// The same as `read`, for paths that a person was shown: a link in them leads nowhere.
    pub granted_read: Vec<PathBuf>,
    /// The same as `write`, for paths that a person was shown.
    pub granted_write: Vec<PathBuf>,
    /// Devices that may be read and written, and nothing else done to.
    pub devices: Vec<PathBuf>,
    /// Directories that stay out of reach although one above them is granted.
    pub hidden: Vec<PathBuf>,
    /// Shared directories in whose place the command sees others.
    pub covers: Vec<Cover>,
    /// Whether it reaches the network.
    pub network: Network,
    /// Whether it talks to local services.
    pub unix_sockets: UnixSockets,
    /// Whom it may signal.
    pub signals: Signals,
}

/// What every program needs of the system. What is not there is left out.
const SYSTEM: &[&str] = &[
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/etc",
    "/opt",
    "/nix",
    "/gnu",
    "/snap",
    "/proc",
    "/sys",
    "/run/current-system",
];
/// Files in `/etc` that are often links to elsewhere.
const LINKED: &[&str] = &["/etc/resolv.conf", "/etc/localtime", "/etc/hosts"];
/// Devices without a memory.
const DEVICES: &[&str] = &[
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
];
/// Where programs share memory; semaphores live there.
const SHARED_MEMORY: &str = "/dev/shm";
/// Programs and their settings that people keep at home. Nothing here is a place where a program
/// puts credentials by itself: those lie beside, and stay out of reach. What a person writes into
/// `.gitconfig` or `.cargo/config.toml` can be read.
const AT_HOME: &[&str] = &[
    ".gitconfig",
    ".config/git/config",
    ".config/git/ignore",
    ".config/git/attributes",
    ".gitignore_global",
    ".cargo/bin",
    ".cargo/env",
    ".cargo/config.toml",
    ".cargo/registry",
    ".cargo/git",
    ".rustup",
    ".nvm",
    ".volta",
    ".fnm",
    ".bun/bin",
    ".deno/bin",
    ".local/bin",
    ".local/lib",
    ".local/share/uv/python",
    ".local/share/uv/tools",
    ".local/share/pipx",
    ".local/share/mise",
    ".local/share/pnpm",
    ".pyenv",
    ".rbenv",
    ".asdf",
    ".sdkman",
    "go",
    "miniconda3",
];

impl Plan {
    /// What programs need of the system and of the home directory's toolchains, and nothing to
    /// change yet.
    pub fn of_system(home: Option<&Path>, path_variable: Option<&std::ffi::OsStr>) -> Self {
        let mut read: Vec<PathBuf> = SYSTEM.iter().map(PathBuf::from).collect();
        let targets = LINKED
            .iter()
            .filter_map(|link| Path::new(link).canonicalize().ok());
        read.extend(targets);
        if let Some(home) = home {
            read.extend(AT_HOME.iter().map(|name| home.join(name)));
        }
        // A directory on the path holds programs, unless it is so high up that it holds all else.
        let programs = path_variable
            .map(std::env::split_paths)
            .into_iter()
            .flatten();
        read.extend(programs.filter(|dir| {
            let above_home = home.is_some_and(|home| home.starts_with(dir));
            dir.is_absolute() && !above_home && dir.components().count() > 2
        }));
        Self {
            read,
            write: vec![PathBuf::from(SHARED_MEMORY)],
            devices: DEVICES.iter().map(PathBuf::from).collect(),
            ..Self::default()
        }
    }

    /// Puts a directory of the command's own in the place of a shared one. What the plan names in the
    /// shared one stays there. Where that leads to something hidden nothing is covered: all below the
    /// command's own directory is its own to Landlock.
    pub fn cover(&mut self, shared: PathBuf, own: PathBuf) {
        let lists = [
            (&self.read, true),
            (&self.granted_read, true),
            (&self.write, false),
            (&self.granted_write, false),
        ];
        let mut shown: Vec<Shown> = Vec::new();
        for (paths, read_only) in lists {
            for path in paths {
                let real = path.canonicalize().ok();
                let Some(path) = real.filter(|it| *it != shared && it.starts_with(&shared)) else {
                    continue;
                };
                if self.leads_to_hidden(&path) {
                    return;
                }
                shown.push(Shown { path, read_only });
            }
        }
        // What may be changed comes first of two, and what is below it says nothing new.
        shown.sort();
        shown.dedup_by(|one, other| one.path == other.path);
        self.write.retain(|path| *path != shared);
        self.write.push(own.clone());
        self.covers.push(Cover { shared, own, shown });
    }

    /// All files, for a command that a person has let out: everything its user may touch but what is
    /// hidden, and whom it likes to signal.
    pub fn of_everything() -> Self {
        Self {
            write: vec![PathBuf::from("/")],
            signals: Signals::Any,
            ..Self::default()
        }
    }

    /// The entries of `path` that lead to something hidden.
    pub(crate) fn towards_hidden(&self, path: &Path) -> Vec<PathBuf> {
        let below = self.hidden.iter().filter_map(|dir| {
            let next = dir.strip_prefix(path).ok()?.components().next()?;
            Some(path.join(next))
        });
        below.collect()
    }

    /// The hidden directory that `path` is in, or is.
    pub(crate) fn hides(&self, path: &Path) -> bool {
        self.hidden.iter().any(|dir| path.starts_with(dir))
    }

    /// Whether something hidden is below `path`.
    pub(crate) fn leads_to_hidden(&self, path: &Path) -> bool {
        self.hidden
            .iter()
            .any(|dir| dir != path && dir.starts_with(path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_granted_in_a_covered_directory_stays_visible() {
        let house = tempfile::tempdir().expect("a directory");
        let shared = house.path().canonicalize().expect("a real name");
        std::fs::create_dir_all(shared.join("a/b")).expect("made");
        let plan = || Plan {
            write: vec![shared.clone(), shared.join("a/b"), shared.join("new")],
            read: vec![PathBuf::from("/usr"), shared.join("a"), shared.join("a/b")],
            ..Plan::default()
        };
        let shown = |path: &str, read_only| Shown {
            path: shared.join(path),
            read_only,
        };
        let mut covered = plan();
        covered.cover(shared.clone(), PathBuf::from("/own"));
        let expected = [shown("a", true), shown("a/b", false)];
        assert_eq!(covered.covers[0].shown, expected);
        assert!(!covered.write.contains(&shared));
        assert!(covered.write.contains(&PathBuf::from("/own")));
        // Where something there is hidden, it stays as it is.
        let hidden = Plan {
            hidden: vec![shared.join("a/b/state")],
            ..plan()
        };
        let mut same = hidden.clone();
        same.cover(shared.clone(), PathBuf::from("/own"));
        assert_eq!(same, hidden);
    }

    #[test]
    fn directories_of_programs_are_read_and_what_is_above_home_is_not() {
        let home = Path::new("/home/u");
        let variable = "/usr/bin:/home/u/tools/bin:/home:/:relative:/home/u";
        let plan = Plan::of_system(Some(home), Some(variable.as_ref()));
        assert!(plan.read.contains(&PathBuf::from("/home/u/tools/bin")));
        for high in ["/home", "/", "relative", "/home/u"] {
            assert!(!plan.read.contains(&PathBuf::from(high)), "{high}");
        }
        assert!(
            !plan
                .read
                .iter()
                .any(|path| path.starts_with("/home/u/.ssh"))
        );
    }

    #[test]
    fn hidden_directories_are_told_from_those_above_them() {
        let plan = Plan {
            hidden: vec![PathBuf::from("/a/b/c")],
            ..Plan::default()
        };
        assert!(plan.hides(Path::new("/a/b/c")) && plan.hides(Path::new("/a/b/c/d")));
        assert!(!plan.hides(Path::new("/a/b")) && !plan.hides(Path::new("/a/b/cd")));
        assert!(plan.leads_to_hidden(Path::new("/a")) && plan.leads_to_hidden(Path::new("/")));
        assert!(!plan.leads_to_hidden(Path::new("/a/b/c")));
        let next = [PathBuf::from("/a/b")];
        assert_eq!(plan.towards_hidden(Path::new("/a")), next);
        assert!(plan.towards_hidden(Path::new("/a/b/c")).is_empty());
        assert!(plan.towards_hidden(Path::new("/x")).is_empty());
    }
}
