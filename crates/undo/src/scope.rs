//! The state of some paths only, for calls that say where they write.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::FileType;
use rustix::io::Errno;

use crate::disk;
use crate::entry::{Entry, Kind, Tree, Why};
use crate::error::{At, UndoResult};
use crate::index::Node;
use crate::objects::{Objects, c_name};
use crate::point::LeftOut;
use crate::record::path_of;
use crate::walk::Walk;

/// Which part of a directory is wanted.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Scope {
    /// All of it.
    whole: bool,
    /// These names.
    names: BTreeMap<Box<[u8]>, Scope>,
}

impl Scope {
    /// All of a directory.
    pub(crate) fn whole() -> Self {
        Self {
            whole: true,
            names: BTreeMap::new(),
        }
    }

    /// The scope of some paths, or the one that does not lie in the workspace.
    pub(crate) fn of(workspace: &Path, paths: &[PathBuf]) -> Result<Self, PathBuf> {
        let mut scope = Self::default();
        for path in paths {
            let below = workspace.join(path);
            let below = below.strip_prefix(workspace).map_err(|_| path.clone())?;
            let mut at = &mut scope;
            for part in below.components() {
                let Component::Normal(name) = part else {
                    return Err(path.clone());
                };
                at = at.names.entry(name.as_bytes().into()).or_default();
            }
            at.whole = true;
        }
        Ok(scope)
    }

    /// Whether a state knows everything that is wanted.
    pub(crate) fn is_known(&self, objects: &Objects, root: &Entry) -> UndoResult<bool> {
        if !root.is_dir() {
            return Ok(true);
        }
        let tree = objects.tree(root)?;
        // Below a tree that is not sparse, none is.
        if !tree.sparse || self.whole {
            return Ok(!tree.sparse);
        }
        for (name, below) in &self.names {
            let known = match tree.get(name) {
                Some(entry) => below.is_known(objects, entry)?,
                None => false,
            };
            if !known {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Adds everything of another scope.
    pub(crate) fn join(&mut self, other: Self) {
        self.whole |= other.whole;
        if self.whole {
            self.names.clear();
            return;
        }
        for (name, below) in other.names {
            self.names.entry(name).or_default().join(below);
        }
    }

    /// The same paths that a state knows, so that a later state can be compared with it.
    pub(crate) fn like(objects: &Objects, root: &Entry) -> UndoResult<Self> {
        let tree = objects.tree(root)?;
        if !tree.sparse {
            return Ok(Self::whole());
        }
        let mut scope = Self::default();
        for (name, entry) in &tree.entries {
            scope
                .names
                .insert(name.clone(), Self::like(objects, entry)?);
        }
        Ok(scope)
    }
}

/// Takes the state of a scope.
pub(crate) struct Taking<'a> {
    pub(crate) walk: &'a Walk<'a>,
    pub(crate) left_out: Vec<LeftOut>,
    /// Reasons of what whole directories leave out; not all of it is named.
    pub(crate) left_out_for: Vec<Why>,
    path: Vec<u8>,
    mount: u64,
}

impl<'a> Taking<'a> {
    pub(crate) fn new(walk: &'a Walk<'a>) -> Self {
        Self {
            walk,
            left_out: Vec::new(),
            left_out_for: Vec::new(),
            path: Vec::new(),
            mount: 0,
        }
    }

    /// The state of a scope. `None`: a path leads through a link or to another mount, so that where it
    /// ends is not known.
    pub(crate) fn root(&mut self, root: &OwnedFd, scope: &Scope) -> UndoResult<Option<Node>> {
        let stat = disk::stat_of(root).at("can not read", Path::new("the workspace"))?;
        self.mount = stat.mount;
        self.dir(root, scope)
    }

    fn dir(&mut self, dir: &OwnedFd, scope: &Scope) -> UndoResult<Option<Node>> {
        let place = Path::new("the workspace");
        if scope.whole {
            let dir = dir.try_clone().at("can not open", place)?;
            let walked = self.walk.run(dir, None, &mut None)?;
            self.left_out_for.extend(walked.left_out_for);
            let above = path_of(&self.path);
            self.left_out
                .extend(walked.left_out.into_iter().map(|mut left_out| {
                    left_out.path = above.join(left_out.path);
                    left_out
                }));
            return Ok(Some(walked.node));
        }
        let stat = disk::stat_of(dir).at("can not read", place)?;
        let mut children = Vec::with_capacity(scope.names.len());
        let depth = self.path.len();
        for (name, below) in &scope.names {
            if depth > 0 {
                self.path.push(b'/');
            }
            self.path.extend_from_slice(name);
            let node = self.one(dir, name, below)?;
            self.path.truncate(depth);
            let Some(node) = node else {
                return Ok(None);
            };
            children.push((name.clone(), node));
        }
        let entries = children.iter().map(|(name, node)| (&**name, &node.entry));
        let tree = self.walk.objects.put(&Tree::write_entries(true, entries))?;
        Ok(Some(Node {
            entry: stat.entry(Kind::Dir { tree }),
            seen: stat.seen,
            trusted: false,
            children,
        }))
    }

    fn one(&mut self, dir: &OwnedFd, name: &[u8], below: &Scope) -> UndoResult<Option<Node>> {
        let place = Path::new("the workspace");
        let as_c = c_name(name);
        let stat = match disk::stat_at(dir, &as_c) {
            Ok(stat) => stat,
            Err(Errno::NOENT) => return Ok(Some(Node::absent())),
            Err(error) => return Err(error).at("can not read", place),
        };
        if stat.mount != self.mount || stat.is_mount_root {
            return Ok(None);
        }
        match stat.file_type {
            FileType::Directory => {
                let dir = disk::open_dir_at(dir.as_fd(), &as_c).at("can not open", place)?;
                self.dir(&dir, below)
            }
            // Of a link that the call may replace, the link itself is the state.
            FileType::Symlink if !below.whole => Ok(None),
            _ => {
                let node = self
                    .walk
                    .one(dir, &as_c, stat)?
                    .unwrap_or_else(Node::absent);
                if let Kind::LeftOut { why, size } = node.entry.kind {
                    self.left_out.push(LeftOut {
                        path: path_of(&self.path),
                        why,
                        bytes: size,
                    });
                }
                Ok(Some(node))
            }
        }
    }
}

/// Two states as one: what the first does not know is taken from the second.
pub(crate) fn overlay(objects: &Objects, first: &Entry, second: &Entry) -> UndoResult<Entry> {
    if !first.is_dir() || !second.is_dir() {
        return Ok(first.clone());
    }
    let (one, two) = (objects.tree(first)?, objects.tree(second)?);
    if !one.sparse {
        return Ok(first.clone());
    }
    let mut entries: BTreeMap<Box<[u8]>, Entry> = two.entries.into_iter().collect();
    for (name, entry) in one.entries {
        let merged = match entries.get(&name) {
            Some(other) => overlay(objects, &entry, other)?,
            None => entry,
        };
        entries.insert(name, merged);
    }
    if !two.sparse {
        // A whole tree says that a name is absent by not listing it.
        entries.retain(|_, entry| !entry.is_absent());
    }
    let tree = Tree {
        sparse: two.sparse,
        entries: entries.into_iter().collect(),
    };
    let tree = objects.put(&tree.write())?;
    Ok(Entry {
        kind: Kind::Dir { tree },
        ..first.clone()
    })
}
