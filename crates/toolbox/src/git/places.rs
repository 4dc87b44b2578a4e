//! Where git looks for what it runs: a few files of the git directories, found without a walk.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};

use super::config::{Config, parse};
use super::disk;
use super::index::Indexes;
use super::snapshot::{Entry, Role, Snapshot};
use super::text::Bytes;
use super::{
    GIT_CONFIG_BYTES_MAX, GIT_CONFIGS_MAX, GIT_DIRECTORIES_MAX, GIT_HOOK_BYTES_MAX, GIT_HOOKS_MAX,
    GIT_INCLUDE_DEPTH_MAX, GIT_MODULE_DEPTH_MAX,
};

/// Bytes of git's pointer files that are read.
const POINTER_BYTES_MAX: u64 = 8 * 1024;
/// What git runs by its name in a directory of hooks.
const HOOKS: &[&str] = &[
    "applypatch-msg",
    "commit-msg",
    "fsmonitor-watchman",
    "p4-changelist",
    "p4-post-changelist",
    "p4-pre-submit",
    "p4-prepare-changelist",
    "post-applypatch",
    "post-checkout",
    "post-commit",
    "post-index-change",
    "post-merge",
    "post-receive",
    "post-rewrite",
    "post-update",
    "pre-applypatch",
    "pre-auto-gc",
    "pre-commit",
    "pre-merge-commit",
    "pre-push",
    "pre-rebase",
    "pre-receive",
    "prepare-commit-msg",
    "proc-receive",
    "push-to-checkout",
    "reference-transaction",
    "sendemail-validate",
    "update",
];
/// Files beside hooks that are for people, unless they may be run.
const NO_HELPERS: &[&str] = &[".md", ".txt", ".rst"];
/// Names in a git directory that lead elsewhere when they are links.
const LEADS: &[&str] = &["config", "config.worktree", "hooks", "modules", "worktrees"];

/// Whether a file counts for a limit. What git runs by its name does not.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Limited {
    Yes,
    No,
}

/// One look at the git directories of a workspace.
pub(super) struct Look<'w> {
    workspace: &'w Path,
    home: Option<&'w Path>,
    /// The common git directory of a linked worktree, which lies outside of it and knows it.
    shared: Option<PathBuf>,
    hooks_left: usize,
    configs_left: usize,
    directories_left: usize,
    indexes: &'w Indexes,
    repositories: BTreeSet<PathBuf>,
    seen: Snapshot,
}

/// What git would run later, as it is now.
/// What was looked at before is looked at again, also where a limit is reached by then.
pub(super) fn look(
    workspace: &Path,
    home: Option<&Path>,
    indexes: &Indexes,
    before: &Snapshot,
) -> Snapshot {
    let mut look = Look {
        workspace,
        home,
        shared: None,
        hooks_left: GIT_HOOKS_MAX,
        configs_left: GIT_CONFIGS_MAX,
        directories_left: GIT_DIRECTORIES_MAX,
        indexes,
        repositories: BTreeSet::new(),
        seen: Snapshot::default(),
    };
    look.at_workspace();
    if look.seen.is_cut {
        look.again(before);
    }
    look.seen
}

fn is_file(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_file())
}

/// The one line of a pointer file.
fn pointer(path: &Path) -> Option<Vec<u8>> {
    let mut line = disk::read(path, POINTER_BYTES_MAX).ok()??;
    while line.pop_if(|it| matches!(it, b'\n' | b'\r')).is_some() {}
    Some(line).filter(|line| !line.is_empty() && !line.contains(&0))
}

fn path_of(bytes: &[u8]) -> PathBuf {
    Bytes(bytes.to_vec()).path()
}

/// The names of a directory, in order.
fn names(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut names: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    names.sort();
    names
}

/// A path without `.` and `..`, for places that are not there yet.
fn plain(path: &Path) -> PathBuf {
    let mut made = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                made.pop();
            }
            part => made.push(part),
        }
    }
    made
}

fn lossy_name(path: &Path) -> Cow<'_, str> {
    path.file_name().unwrap_or_default().to_string_lossy()
}

fn is_dir_of_helpers(path: &Path) -> bool {
    let name = lossy_name(path);
    (name == "_" || name.ends_with(".d")) && path.is_dir()
}

/// Whether a file beside hooks may be read or run by them. What is executable always may.
fn may_be_read(path: &Path) -> bool {
    let name = lossy_name(path);
    let is_run = || fs::metadata(path).is_ok_and(|it| it.permissions().mode() & 0o111 != 0);
    let is_text = name.starts_with('.') || NO_HELPERS.iter().any(|end| name.ends_with(end));
    !name.ends_with(".sample") && (!is_text || is_run())
}

impl Look<'_> {
    fn again(&mut self, before: &Snapshot) {
        for (path, role, _) in &before.entries {
            let path = path.path();
            let is_ours = path.parent().and_then(|it| it.canonicalize().ok());
            if !self.seen.has(&path)
                && is_ours.is_some_and(|it| self.is_ours(&it))
                && let Some(entry) = self.entry(&path, GIT_CONFIG_BYTES_MAX)
            {
                self.seen.put(&path, role.clone(), entry);
            }
        }
    }

    fn at_workspace(&mut self) {
        let workspace = self.workspace;
        self.worktree(workspace, 0);
        // Git takes a directory with these for a repository, also beside a `.git` that is none.
        if is_file(&workspace.join("HEAD")) && workspace.join("objects").is_dir() {
            self.repository(workspace, workspace, 0);
        }
    }

    /// The repository that a directory is the worktree of, and its submodules.
    fn worktree(&mut self, worktree: &Path, depth: usize) {
        let dot_git = worktree.join(".git");
        let Ok(found) = fs::symlink_metadata(&dot_git) else {
            return;
        };
        let git = if found.is_dir() {
            Some(dot_git.clone())
        } else {
            let named = fs::read_link(&dot_git).ok().or_else(|| {
                let line = pointer(&dot_git)?;
                Some(path_of(line.strip_prefix(b"gitdir: ")?))
            });
            let real = named.and_then(|named| worktree.join(named).canonicalize().ok());
            if depth == 0 {
                self.shared = (real.as_deref()).and_then(|real| self.shared(real, &dot_git));
            }
            let real = real.filter(|real| self.is_ours(real));
            self.lead(&dot_git, real.is_none());
            real
        };
        let Some(git) = git else { return };
        let Some(common) = self.common(&git) else {
            return;
        };
        self.repository(&common, worktree, depth);
        if common != git {
            self.config(&git.join("config.worktree"), &common, 0);
        }
        // What git looks into by itself comes before what only lies there.
        self.submodules(&git, &common, worktree, depth + 1);
        self.modules(&common.join("modules"), depth + 1);
    }

    /// Repositories that the index names: git looks into them, wherever theirs is.
    fn submodules(&mut self, git: &Path, common: &Path, worktree: &Path, depth: usize) {
        let is_long = self
            .seen
            .has_value(common, "extensions", "objectformat", b"sha256");
        let found = self.indexes.submodules(git, if is_long { 32 } else { 20 });
        if found.is_none() || depth > GIT_MODULE_DEPTH_MAX {
            self.seen.is_cut = true;
            return;
        }
        for path in found.iter().flat_map(|it| it.iter()) {
            let real = worktree.join(path_of(path)).canonicalize().ok();
            if let Some(real) = real.filter(|it| self.is_ours(it) && it != worktree) {
                self.worktree(&real, depth);
            }
        }
    }

    /// Whether the command may have written there, and we may: in the workspace, or in its git directory.
    fn is_ours(&self, path: &Path) -> bool {
        let shared = self.shared.as_deref();
        path.starts_with(self.workspace) || shared.is_some_and(|it| path.starts_with(it))
    }

    /// The common directory behind a linked worktree's own one, if that knows this worktree: anybody
    /// can write any path into a `.git` file.
    fn shared(&self, own: &Path, dot_git: &Path) -> Option<PathBuf> {
        let common = own.join(path_of(&pointer(&own.join("commondir"))?));
        let common = common.canonicalize().ok()?;
        let back = own.join(path_of(&pointer(&own.join("gitdir"))?));
        let knows_us = own.parent() == Some(&common.join("worktrees"))
            && back.canonicalize().ok()? == dot_git.canonicalize().ok()?
            && is_file(&common.join("HEAD"))
            && !self.workspace.starts_with(&common);
        knows_us.then_some(common)
    }

    /// Where a git directory has its configuration and its hooks.
    fn common(&mut self, git: &Path) -> Option<PathBuf> {
        let commondir = git.join("commondir");
        let Ok(found) = fs::symlink_metadata(&commondir) else {
            return Some(git.to_owned());
        };
        let named = found.is_file().then(|| pointer(&commondir)).flatten();
        let real = named.and_then(|it| git.join(path_of(&it)).canonicalize().ok());
        let real = real.filter(|real| self.is_ours(real));
        self.lead(&commondir, real.is_none());
        real
    }

    /// All of a repository: its own settings and hooks, its worktrees and its submodules.
    fn repository(&mut self, git: &Path, worktree: &Path, depth: usize) {
        if self.repositories.contains(git) || !self.may_look_into() {
            return;
        }
        self.repositories.insert(git.to_owned());
        let config = self.config(&git.join("config"), git, 0);
        self.config(&git.join("config.worktree"), git, 0);
        for name in LEADS {
            let path = git.join(name);
            if fs::symlink_metadata(&path).is_ok_and(|it| it.is_symlink()) {
                self.lead(&path, true);
            }
        }
        self.hooks(&git.join("hooks"));
        let worktree = match config.and_then(|it| it.last("core", "worktree")) {
            Some(named) => git.join(path_of(&named)),
            None => worktree.to_owned(),
        };
        let of_person = if depth == 0 {
            self.paths_of_person()
        } else {
            Vec::new()
        };
        for named in self.seen.hooks_paths(git).into_iter().chain(of_person) {
            self.hooks_named(&named, &worktree);
        }
        for own in names(&git.join("worktrees")) {
            if !self.may_look_into() {
                return;
            }
            self.config(&own.join("config.worktree"), git, 0);
            let commondir = own.join("commondir");
            let named = pointer(&commondir).map(|it| own.join(path_of(&it)));
            let is_git = named.and_then(|it| it.canonicalize().ok());
            if is_git.is_some() && is_git != git.canonicalize().ok() {
                self.lead(&commondir, true);
            }
        }
        if depth > 0 {
            self.modules(&git.join("modules"), depth + 1);
        }
    }

    /// Submodules, whose names may have several parts.
    fn modules(&mut self, dir: &Path, depth: usize) {
        if depth > GIT_MODULE_DEPTH_MAX {
            self.seen.is_cut = true;
            return;
        }
        for path in names(dir) {
            let Ok(found) = fs::symlink_metadata(&path) else {
                continue;
            };
            if found.is_symlink() {
                self.lead(&path, true);
            } else if is_file(&path.join("HEAD")) || is_file(&path.join("config")) {
                // Without a worktree of its own, a relative path of hooks is taken from there.
                let worktree = path.clone();
                self.repository(&path, &worktree, depth);
            } else if found.is_dir() && self.may_look_into() {
                self.modules(&path, depth + 1);
            }
        }
    }

    /// Hooks in a directory that a setting names, if that is one of ours.
    fn hooks_named(&mut self, named: &[u8], worktree: &Path) {
        let named = path_of(named);
        let dir = match (named.strip_prefix("~"), self.home) {
            (Ok(rest), Some(home)) => home.join(rest),
            _ => worktree.join(named),
        };
        let dir = dir.canonicalize().unwrap_or_else(|_| plain(&dir));
        if self.is_ours(&dir) {
            self.hooks(&dir);
            // What husky puts there runs the file of the same name one directory up.
            if dir.ends_with(".husky/_")
                && let Some(above) = dir.parent()
            {
                self.hooks(above);
            }
        }
    }

    fn hooks(&mut self, dir: &Path) {
        let Ok(dir) = dir.canonicalize() else { return };
        if !self.is_ours(&dir) {
            return;
        }
        let is_hook = |path: &PathBuf| {
            let name = path.file_name().and_then(OsStr::to_str);
            name.is_some_and(|name| HOOKS.contains(&name))
        };
        let (hooks, others) = names(&dir).into_iter().partition::<Vec<_>, _>(is_hook);
        // A limit is never used up by what git does not run by itself.
        for path in hooks {
            self.hook(&path, Limited::No);
        }
        let lossy = lossy_name(&dir);
        let is_for_hooks = ["hook", "husky"].iter().any(|it| lossy.contains(it)) || lossy == "_";
        if !is_for_hooks {
            return;
        }
        for path in others {
            // Helpers that hooks read, such as `pre-commit.d` and `_/husky.sh`.
            if is_dir_of_helpers(&path) {
                for helper in names(&path).iter().filter(|it| may_be_read(it)) {
                    self.hook(helper, Limited::Yes);
                }
            } else if may_be_read(&path) {
                self.hook(&path, Limited::Yes);
            }
        }
    }

    fn hook(&mut self, path: &Path, limited: Limited) {
        if self.seen.has(path) {
            return;
        }
        if self.hooks_left == 0 && limited == Limited::Yes {
            self.seen.is_cut = true;
            return;
        }
        let Some(entry) = self.entry(path, GIT_HOOK_BYTES_MAX) else {
            return;
        };
        if limited == Limited::Yes {
            self.hooks_left -= 1;
        }
        self.seen.put(path, Role::Hook, entry);
    }

    /// Takes one directory from those that may be looked into.
    fn may_look_into(&mut self) -> bool {
        let left = self.directories_left.checked_sub(1);
        self.seen.is_cut |= left.is_none();
        self.directories_left = left.unwrap_or(0);
        left.is_some()
    }

    fn lead(&mut self, path: &Path, is_risky: bool) {
        if let Some(entry) = self.entry(path, POINTER_BYTES_MAX) {
            self.seen.put(path, Role::Lead { is_risky }, entry);
        }
    }

    /// A file of settings, and those that it includes.
    fn config(&mut self, path: &Path, group: &Path, depth: usize) -> Option<Config> {
        if self.configs_left == 0 || depth > GIT_INCLUDE_DEPTH_MAX {
            self.seen.is_cut = true;
            return None;
        }
        let entry = self.entry(path, GIT_CONFIG_BYTES_MAX)?;
        self.configs_left -= 1;
        let config = entry.content.as_ref().and_then(|it| parse(&it.0));
        let role = Role::Config {
            group: Bytes::from(group),
        };
        self.seen.put(path, role, entry);
        let config = config?;
        let includes = config.settings.iter().filter(|it| {
            matches!(it.name.section.as_str(), "include" | "includeif") && it.name.key == "path"
        });
        for included in includes.filter_map(|it| it.value.as_deref()) {
            let named = path.parent().unwrap_or(path).join(path_of(included));
            let real = named.canonicalize().ok();
            if let Some(real) = real.filter(|it| self.is_ours(it) && !self.seen.has(it)) {
                self.config(&real, group, depth + 1);
            }
        }
        Some(config)
    }

    /// Paths of hooks that the person has set for all repositories. They may be relative.
    fn paths_of_person(&self) -> Vec<Vec<u8>> {
        let Some(home) = self.home else {
            return Vec::new();
        };
        let files = [".gitconfig", ".config/git/config"].map(|name| home.join(name));
        let read = |path: PathBuf| {
            fs::metadata(&path)
                .ok()
                .filter(|it| it.len() <= GIT_CONFIG_BYTES_MAX)
                .and_then(|_| parse(&fs::read(&path).ok()?)?.last("core", "hookspath"))
        };
        files.into_iter().filter_map(read).collect()
    }

    fn entry(&self, path: &Path, bytes_max: u64) -> Option<Entry> {
        let found = fs::symlink_metadata(path).ok()?;
        let link = found
            .is_symlink()
            .then(|| fs::read_link(path).ok())
            .flatten();
        // What a link leads to is only read where a command may have written it.
        let real = match &link {
            None => Some(path.to_owned()),
            Some(_) => path.canonicalize().ok().filter(|it| self.is_ours(it)),
        };
        if link.is_none() && !found.is_file() {
            return None;
        }
        let content = real.map(|real| disk::read(&real, bytes_max));
        Some(Entry::new(&found, link.as_deref(), content))
    }
}
