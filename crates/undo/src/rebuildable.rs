//! Which directories are left out because a tool makes them again.
//!
//! Two things have to speak for it: a `.gitignore` of the workspace ignores the directory, and the
//! directory is one that tools make from other files. Such are directories with a `CACHEDIR.TAG`
//! (cargo's `target`, caches of Python tools), `node_modules` beside a `package.json`, and
//! `__pycache__`. Every other ignored directory is kept: `.env` files and local data are ignored too,
//! and nothing makes them again.

use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::disk;

/// What a `CACHEDIR.TAG` begins with, so that it counts (<https://bford.info/cachedir/>).
const CACHE_TAG: &[u8] = b"Signature: 8a477f597d28d172789f06886806bc55";

/// Bytes of a `.gitignore` that are read.
const GITIGNORE_BYTES_MAX: u64 = 256 * 1024;

/// An open directory of a walk and the directories above it.
pub(crate) struct Dir {
    pub(crate) fd: OwnedFd,
    pub(crate) name: Box<[u8]>,
    pub(crate) parent: Option<Arc<Dir>>,
    pub(crate) depth: usize,
    gitignore: OnceLock<Option<Gitignore>>,
}

impl Dir {
    pub(crate) fn new(fd: OwnedFd, name: Box<[u8]>, parent: Option<Arc<Self>>) -> Self {
        let depth = parent.as_ref().map_or(0, |parent| parent.depth + 1);
        Self {
            fd,
            name,
            parent,
            depth,
            gitignore: OnceLock::new(),
        }
    }

    /// The path from the walk's root.
    pub(crate) fn path(&self) -> Vec<u8> {
        let Some(parent) = &self.parent else {
            return Vec::new();
        };
        let mut path = parent.path();
        if !path.is_empty() {
            path.push(b'/');
        }
        path.extend_from_slice(&self.name);
        path
    }

    fn gitignore(&self) -> Option<&Gitignore> {
        let read = || {
            let file = disk::open_file_at(&self.fd, c".gitignore").ok()?;
            let stat = disk::stat_of(&file).ok()?;
            if !stat.file_type.is_file() {
                return None;
            }
            let mut bytes = Vec::new();
            file.take(GITIGNORE_BYTES_MAX)
                .read_to_end(&mut bytes)
                .ok()?;
            let mut builder = GitignoreBuilder::new("");
            for line in String::from_utf8_lossy(&bytes).lines() {
                // A line that can not be read ignores nothing, so what it names is kept.
                let _ = builder.add_line(None, line);
            }
            builder.build().ok()
        };
        self.gitignore.get_or_init(read).as_ref()
    }

    /// Whether this directory, or one above it, is ignored.
    fn is_ignored(&self) -> bool {
        let Some(parent) = &self.parent else {
            return false;
        };
        if parent.is_ignored() {
            return true;
        }
        let mut path = self.name.to_vec();
        let mut above = Some(parent);
        while let Some(dir) = above {
            if let Some(rules) = dir.gitignore() {
                let text = String::from_utf8_lossy(&path);
                match rules.matched(Path::new(&*text), true) {
                    Match::Ignore(_) => return true,
                    Match::Whitelist(_) => return false,
                    Match::None => {}
                }
            }
            path = [&*dir.name, b"/", &path].concat();
            above = dir.parent.as_ref();
        }
        false
    }

    /// Whether a tool makes this directory again, and the workspace ignores it.
    pub(crate) fn is_rebuildable(&self, names: &[Box<[u8]>], beside_package_json: bool) -> bool {
        let tagged = || names.iter().any(|name| &**name == b"CACHEDIR.TAG") && self.has_cache_tag();
        let made = match &*self.name {
            b"node_modules" => beside_package_json || tagged(),
            b"__pycache__" => true,
            b".git" => false,
            _ => tagged(),
        };
        made && self.is_ignored()
    }

    fn has_cache_tag(&self) -> bool {
        let Ok(file) = disk::open_file_at(&self.fd, c"CACHEDIR.TAG") else {
            return false;
        };
        let mut begins = Vec::new();
        let read = file.take(CACHE_TAG.len() as u64).read_to_end(&mut begins);
        read.is_ok() && begins == CACHE_TAG
    }
}
