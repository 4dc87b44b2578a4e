//! Where a tool may work, and what it takes to work elsewhere.

use std::path::{Component, Path, PathBuf};

use holdfast_contract::{
    OwnPlace, PathGrant, PermissionTier, Reason, SessionContext, TierVerdict, ToolContext,
    ToolError,
};
use holdfast_reliability::canonical::Digest;
use serde_json::Value;

use super::own::{self, InOwn};
use super::{args, beneath};

/// A root, the single paths that were approved besides, and what is out of bounds in any case.
pub(super) struct Place {
    pub(super) root: PathBuf,
    pub(super) granted: Vec<PathGrant>,
    pub(super) reserved: Vec<PathBuf>,
    /// Shared directories in whose place the session sees its own, and the workspace they belong to.
    pub(super) own_places: Vec<OwnPlace>,
    pub(super) workspace: PathBuf,
}

impl Place {
    /// Where files may be read.
    pub(super) fn to_read(ctx: &ToolContext) -> Result<Self, ToolError> {
        let handle = ctx.read_handle()?;
        Ok(Self::new(ctx, &handle.root, &handle.granted))
    }

    /// Where files may be changed.
    pub(super) fn to_write(ctx: &ToolContext) -> Result<Self, ToolError> {
        let handle = ctx.write_handle()?;
        Ok(Self::new(ctx, &handle.root, &handle.granted))
    }

    /// Where commands may start.
    pub(super) fn to_run(ctx: &ToolContext) -> Result<Self, ToolError> {
        let handle = ctx.exec_handle()?;
        // By its real name: a command's directory is entered before its view is.
        let mut place = Self::new(ctx, &handle.working_dir, &[]);
        place.own_places.clear();
        Ok(place)
    }

    /// Where this path leads in the session's own directories.
    pub(super) fn in_own(&self, asked: &str) -> Option<InOwn> {
        InOwn::of(&self.own_places, &self.reserved, &self.workspace, asked)
    }

    fn new(ctx: &ToolContext, root: &Path, granted: &[PathGrant]) -> Self {
        Self {
            root: root.to_owned(),
            granted: granted.to_vec(),
            reserved: ctx.session.reserved.clone(),
            own_places: ctx.session.own_places.clone(),
            workspace: ctx.session.workspace_root.clone(),
        }
    }
}

/// Why a path is out of bounds.
pub(super) fn reserved(dir: &Path) -> Reason {
    Reason::new(
        "reserved",
        dir.display().to_string(),
        "the state directory, the tokens and the configuration guard the calls, and no tool may \
         reach them",
    )
}

/// What a call on one path needs: Elevated, with a grant for exactly that path, when it leads out
/// of the workspace.
pub(super) fn tier_of_path(
    declared: PermissionTier,
    params: &Value,
    session: &SessionContext,
) -> TierVerdict {
    let mut verdict = TierVerdict::declared(declared);
    let Ok(asked) = args::text(params, "path") else {
        return verdict;
    };
    if args::path_text("path", asked).is_err() {
        return verdict;
    }
    let out_of_bounds = |path: &Path| session.reserved.iter().find(|dir| path.starts_with(dir));
    if beneath::relative_to(&session.workspace_root, asked).is_ok() {
        // By name only: where it really leads is checked when it is opened.
        let named = out_of_bounds(&session.workspace_root.join(asked));
        verdict.forbidden = named.map(|dir| reserved(dir));
        return verdict;
    }
    if own::in_own(session, asked).is_some() {
        return verdict;
    }
    let grant = grant_for(&session.workspace_root, asked);
    let real = grant.root.join(&grant.relative);
    verdict.forbidden = out_of_bounds(&real).map(|dir| reserved(dir));
    let subject = real.display().to_string();
    let text = format!("{subject} is outside the workspace");
    // Names that are no text look alike when shown.
    let digest = Digest::of(real.as_os_str().as_encoded_bytes()).to_string();
    verdict.raise(Reason::new("outside_workspace", subject, text).bound_to(digest));
    verdict.grants.push(grant);
    verdict
}

/// The nearest directory that exists, by its real name, and the rest. The file itself is followed
/// to where it really is, so that a person sees what would be touched.
fn grant_for(workspace: &Path, asked: &str) -> PathGrant {
    let mut rest = PathBuf::new();
    let mut known = workspace.join(asked);
    loop {
        if let Ok(real) = known.canonicalize() {
            let (root, relative) = match (real.parent(), real.file_name()) {
                (Some(parent), Some(name)) if rest.as_os_str().is_empty() => {
                    (parent.to_owned(), PathBuf::from(name))
                }
                _ => (real, rest),
            };
            return PathGrant {
                asked: asked.to_owned(),
                root,
                relative,
            };
        }
        // What is not there is taken by name; `..` in it is left for the kernel to refuse.
        let name = match known.components().next_back() {
            Some(Component::Normal(name)) => PathBuf::from(name),
            Some(Component::ParentDir) => PathBuf::from(".."),
            _ => PathBuf::new(),
        };
        rest = if rest.as_os_str().is_empty() {
            name
        } else {
            name.join(rest)
        };
        if !known.pop() {
            return PathGrant {
                asked: asked.to_owned(),
                root: PathBuf::from("/"),
                relative: rest,
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_path_outside_needs_a_person_and_gets_exactly_itself() {
        let house = tempfile::tempdir().expect("a directory");
        let base = house.path().canonicalize().expect("a real name");
        let (space, other) = (base.join("space"), base.join("other"));
        std::fs::create_dir(&space).expect("made");
        std::fs::create_dir(&other).expect("made");
        std::fs::write(other.join("file"), "x").expect("written");
        std::os::unix::fs::symlink(other.join("file"), other.join("link")).expect("linked");
        let mut session = SessionContext::main("s", "a", space.clone());
        session.reserved.push(base.join("state"));
        let verdict =
            |path: &str| tier_of_path(PermissionTier::ReadOnly, &json!({"path": path}), &session);
        let inside = space.join("a.txt").display().to_string();
        for path in ["a.txt", "./b/c", "a/../b", inside.as_str()] {
            let declared = TierVerdict::declared(PermissionTier::ReadOnly);
            assert_eq!(verdict(path), declared, "{path}");
        }
        let table = [
            ("../other/file", "file", "other"),
            ("../other/new/deep", "new/deep", "other"),
            ("a/../../other/file", "a/../../other/file", "space"),
            ("../other/link", "file", "other"),
        ];
        for (path, relative, root) in table {
            let found = verdict(path);
            assert_eq!(found.tier, PermissionTier::Elevated, "{path}");
            let grant = &found.grants[0];
            assert_eq!(grant.relative.display().to_string(), relative, "{path}");
            assert!(grant.root.ends_with(root), "{path}: {grant:?}");
        }
        assert!(verdict("../state/token").forbidden.is_some());
        assert!(verdict("../other/file").forbidden.is_none());
        // Not for this layer to judge.
        for params in [
            json!({}),
            json!({"path": 7}),
            json!({"path": ""}),
            json!({"path": "a\u{0}"}),
        ] {
            let found = tier_of_path(PermissionTier::ReadOnly, &params, &session);
            assert_eq!(found.tier, PermissionTier::ReadOnly);
        }
    }
}
