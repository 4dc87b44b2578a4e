//! Takes the state of a workspace: of its directory, and of the git directory that a worktree shares.

use std::path::PathBuf;

use crate::disk;
use crate::entry::{Entry, Why};
use crate::error::{At, UndoResult};
use crate::git::{self, Git};
use crate::index::Node;
use crate::limits::LEFT_OUT_NAMED_MAX;
use crate::objects::Objects;
use crate::point::LeftOut;
use crate::record::{Root, State};
use crate::scope::{Scope, Taking};
use crate::walk::{Budget, Walk};
use crate::workspace::Workspace;

/// How states of one workspace are taken.
pub(crate) struct Taker<'a> {
    pub(crate) objects: &'a Objects,
    pub(crate) workspace: &'a Workspace,
    pub(crate) budget: Budget,
    /// Directories that are never kept.
    pub(crate) never: &'a [(u64, u64)],
}

/// A state, and of whole roots everything in it.
pub(crate) struct Taken {
    pub(crate) state: State,
    pub(crate) nodes: Vec<Node>,
}

/// The directories that belong to a workspace.
pub(crate) struct Roots {
    pub(crate) paths: Vec<PathBuf>,
    left_out: Option<LeftOut>,
}

impl Roots {
    pub(crate) fn of(workspace: &Workspace) -> Self {
        let mut roots = Self {
            paths: vec![workspace.path.clone()],
            left_out: None,
        };
        match git::find(&workspace.path) {
            Git::Inside => {}
            Git::Shared(common) => roots.paths.push(common),
            Git::Foreign => {
                roots.left_out = Some(LeftOut {
                    path: ".git".into(),
                    why: Why::ForeignGit,
                    bytes: 0,
                });
            }
        }
        roots
    }

    /// The roots of earlier states, as far as they are still there.
    fn exactly(states: &[&State]) -> Self {
        let mut paths: Vec<PathBuf> = Vec::new();
        for root in states.iter().flat_map(|state| &state.roots) {
            if !paths.contains(&root.path) && disk::is_dir(&root.path) {
                paths.push(root.path.clone());
            }
        }
        Self {
            paths,
            left_out: None,
        }
    }
}

impl Taker<'_> {
    fn walk(&self, kept: Vec<Entry>) -> Walk<'_> {
        Walk {
            objects: self.objects,
            budget: self.budget,
            never: self.never,
            kept,
        }
    }

    /// The state of whole directories. `kept` are earlier states: what they hold is not left out now.
    pub(crate) fn whole(&self, roots: &Roots, kept: &[&State]) -> UndoResult<Taken> {
        let mut taken = Taken {
            state: State::default(),
            nodes: Vec::new(),
        };
        taken.leave_out(roots.left_out.clone());
        for path in &roots.paths {
            let index = self.workspace.index(path);
            let old = Node::load(&index);
            let dir = disk::open_root(path).at("can not open", path)?;
            let kept = kept
                .iter()
                .filter_map(|state| state.root(path))
                .cloned()
                .collect();
            let mut so_far = None;
            let walked = self.walk(kept).run(dir, old.as_ref(), &mut so_far);
            if let Some(so_far) = so_far {
                so_far.save(&index)?;
            }
            let walked = walked?;
            if walked.changed {
                walked.node.save(&index)?;
            }
            let is_workspace = *path == self.workspace.path;
            taken.leave_out(walked.left_out.into_iter().map(|mut left_out| {
                if !is_workspace {
                    left_out.path = path.join(left_out.path);
                }
                left_out
            }));
            taken.state.left_out_count += walked.left_out_count;
            taken.state.leave_out_for(walked.left_out_for);
            taken.state.roots.push(Root {
                path: path.clone(),
                entry: walked.node.entry.clone(),
            });
            taken.nodes.push(walked.node);
        }
        taken.state.left_out_count = taken
            .state
            .left_out_count
            .max(taken.state.left_out.len() as u64);
        Ok(taken)
    }

    /// The state of a scope, or of everything where a path of it leads through a link.
    pub(crate) fn scoped(&self, scope: &Scope, kept: &[&State]) -> UndoResult<Taken> {
        let is_gone = !disk::is_dir(&self.workspace.path);
        if *scope != Scope::whole() && !is_gone {
            let path = &self.workspace.path;
            let dir = disk::open_root(path).at("can not open", path)?;
            let walk = self.walk(Vec::new());
            let mut taking = Taking::new(&walk);
            if let Some(node) = taking.root(&dir, scope)? {
                let state = State {
                    roots: vec![Root {
                        path: path.clone(),
                        entry: node.entry.clone(),
                    }],
                    left_out_count: taking.left_out.len() as u64,
                    left_out: taking.left_out,
                    left_out_for: taking.left_out_for,
                };
                return Ok(Taken {
                    state,
                    nodes: vec![node],
                });
            }
        }
        let mut roots = Roots::of(self.workspace);
        if (*scope == Scope::whole() || is_gone) && !kept.is_empty() {
            roots = Roots::exactly(kept);
        }
        self.whole(&roots, kept)
    }
}

impl Taken {
    fn leave_out(&mut self, left_out: impl IntoIterator<Item = LeftOut>) {
        let room = LEFT_OUT_NAMED_MAX.saturating_sub(self.state.left_out.len());
        self.state.left_out.extend(left_out.into_iter().take(room));
    }
}
