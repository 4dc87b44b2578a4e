//! Paths outside the workspace that a call names, and a person grants.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use holdfast_confine::{ConfinementConfig, Plan};
use holdfast_contract::{Reason, SessionContext, TierVerdict};
use holdfast_reliability::canonical::Digest;
use rustix::fs::{Access, AtFlags, CWD};
use serde_json::Value;

use crate::tools::{own, place};

/// Paths that one call may name.
pub(in crate::tools) const GRANTS_MAX: usize = 32;

/// Paths by their real names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Grants {
    pub(super) reads: Vec<PathBuf>,
    pub(super) writes: Vec<PathBuf>,
    /// Those of `writes` in which something is to be made that is not there.
    makes_in: Vec<PathBuf>,
}

impl Grants {
    /// What a call names in `reads` and `writes`, but for what commands get anyway. A path that is
    /// not there stands for the nearest directory above it: the kernel grants what is there.
    pub(super) fn named(
        params: &Value,
        session: &SessionContext,
        working_dir: Option<&str>,
        config: &ConfinementConfig,
        environment: &[(OsString, OsString)],
    ) -> Self {
        let mut named = Self::default();
        if texts(params, "reads").next().is_none() && texts(params, "writes").next().is_none() {
            return named;
        }
        let value = |name: &str| {
            let found = environment.iter().find(|(known, _)| known == name)?;
            Some(found.1.as_os_str())
        };
        let home = value("HOME").map(Path::new);
        let start = session.workspace_root.join(working_dir.unwrap_or_default());
        let whole = |text: &str| match (text.strip_prefix('~'), home) {
            (Some(rest), Some(home)) if rest.is_empty() || rest.starts_with('/') => {
                home.join(rest.trim_start_matches('/'))
            }
            _ => start.join(text),
        };
        let plan = Plan::of_system(home, value("PATH"));
        let configured = |list: &[String]| -> Vec<PathBuf> {
            list.iter()
                .filter_map(|text| whole(text).canonicalize().ok())
                .collect()
        };
        let mut had = configured(&config.write);
        had.push(nearest(&session.workspace_root));
        had.extend(plan.write);
        for text in texts(params, "writes") {
            let path = whole(text);
            let real = nearest(&path);
            if had.iter().any(|dir| real.starts_with(dir)) || own::is_own(session, &path) {
                continue;
            }
            if path.canonicalize().is_err() {
                named.makes_in.push(real.clone());
            }
            had.push(real.clone());
            named.writes.push(real);
        }
        had.extend(configured(&config.read));
        had.extend(plan.read);
        for text in texts(params, "reads") {
            let path = whole(text);
            let real = nearest(&path);
            if !had.iter().any(|dir| real.starts_with(dir)) && !own::is_own(session, &path) {
                had.push(real.clone());
                named.reads.push(real);
            }
        }
        named
    }

    /// Asks a person about each, but for what no yes could give.
    pub(super) fn raise(&self, session: &SessionContext, verdict: &mut TierVerdict) {
        let both = self.reads.iter().map(|path| (path, Access::READ_OK));
        let both = both.chain(self.writes.iter().map(|path| (path, Access::WRITE_OK)));
        for (path, access) in both {
            if let Some(dir) = session.reserved.iter().find(|dir| path.starts_with(dir)) {
                verdict.forbidden = Some(place::reserved(dir));
                return;
            }
            let shown = path.display();
            let mut refuse = |text: String| {
                verdict.forbidden = Some(Reason::new("not_permitted", shown.to_string(), text));
            };
            if rustix::fs::accessat(CWD, path, access, AtFlags::EACCESS).is_err() {
                let what = if access == Access::READ_OK {
                    "read"
                } else {
                    "change"
                };
                return refuse(format!(
                    "the user that runs Holdfast may not {what} {shown}, so no approval gives a command that right"
                ));
            }
            let leads = |dir: &PathBuf| dir.starts_with(path);
            if self.makes_in.contains(path) && session.reserved.iter().any(leads) {
                return refuse(format!(
                    "commands make nothing directly in {shown}, which leads to Holdfast's own state. Use the write \
                     tool for a single file, name a directory below it that is there, or have the state kept \
                     elsewhere (HOLDFAST_STATE)"
                ));
            }
            verdict.raise(reason(path, access));
        }
    }

    /// Those of them that a person has approved.
    pub(super) fn approved(mut self, approved: &[Reason]) -> Self {
        let covered = |path: &Path, access| {
            let wanted = reason(path, access);
            approved.iter().any(|it| it.covers(&wanted))
        };
        self.reads.retain(|path| covered(path, Access::READ_OK));
        self.writes.retain(|path| covered(path, Access::WRITE_OK));
        self
    }
}

/// What a yes gives, in the words that a person sees.
fn reason(path: &Path, access: Access) -> Reason {
    let shown = path.display().to_string();
    let (code, text) = match (access == Access::READ_OK, path.is_dir()) {
        (true, false) => ("reads_outside", format!("reads {shown}")),
        (true, true) => ("reads_outside", format!("reads everything in {shown}")),
        (false, false) => ("writes_outside", format!("changes {shown}")),
        (false, true) => (
            "writes_outside",
            format!("may make, change, rename and remove everything in {shown}"),
        ),
    };
    // Names that are no text look alike when shown, and a file is not the directory that takes its place.
    let kind: &[u8] = if path.is_dir() { b"/" } else { b"" };
    let name = [path.as_os_str().as_encoded_bytes(), kind].concat();
    let digest = Digest::of(&name).to_string();
    Reason::new(code, shown, text).bound_to(digest)
}

fn texts<'p>(params: &'p Value, name: &str) -> impl Iterator<Item = &'p str> {
    let list = params.get(name).and_then(Value::as_array);
    let list = list.into_iter().flatten().take(GRANTS_MAX);
    list.filter_map(Value::as_str)
        .filter(|text| !text.is_empty() && !text.contains('\0'))
}

/// The real name of a path, or of the nearest directory above it that is there.
fn nearest(path: &Path) -> PathBuf {
    let mut known = path.to_owned();
    loop {
        if let Ok(real) = known.canonicalize() {
            return real;
        }
        if !known.pop() {
            return PathBuf::from("/");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use holdfast_contract::PermissionTier;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_person_grants_what_was_named_and_nothing_else() {
        let house = tempfile::tempdir().expect("a directory");
        let base = house.path().canonicalize().expect("a real name");
        for dir in ["space", "other", "state"] {
            fs::create_dir(base.join(dir)).expect("made");
        }
        fs::write(base.join("other/file"), "x").expect("written");
        let mut session = SessionContext::main("s", "a", base.join("space"));
        session.reserved.push(base.join("state"));
        let environment = [("HOME".into(), base.clone().into())];
        let named = |params: &Value| {
            Grants::named(
                params,
                &session,
                None,
                &ConfinementConfig::default(),
                &environment,
            )
        };
        let verdict = |params: &Value| {
            let mut verdict = TierVerdict::declared(PermissionTier::System);
            named(params).raise(&session, &mut verdict);
            verdict
        };
        assert_eq!(
            named(&json!({"writes": ["a", "./b/c"], "reads": []})),
            Grants::default()
        );
        for (path, expected) in [
            ("../other/file", "other/file"),
            ("~/other/file", "other/file"),
            ("../other/new/deep", "other"),
            ("~/other", "other"),
        ] {
            let params = json!({"writes": [path]});
            assert_eq!(named(&params).writes, [base.join(expected)], "{path}");
            let found = verdict(&params);
            assert_eq!(found.tier, PermissionTier::Elevated, "{path}");
            assert_eq!(found.reasons[0].code, "writes_outside", "{path}");
        }
        let params = json!({"writes": ["../other/file"], "reads": ["~/other"]});
        let reasons = verdict(&params).reasons;
        assert_eq!(reasons.len(), 2);
        let granted = named(&params).approved(&reasons[1..]);
        assert_eq!((granted.reads.len(), granted.writes.len()), (0, 1));
        // What guards the calls nobody grants, nor what the user itself may not do.
        for path in ["../state/approver-token", "../state"] {
            assert!(
                verdict(&json!({"reads": [path]})).forbidden.is_some(),
                "{path}"
            );
        }
        assert_eq!(
            verdict(&json!({"writes": ["../other", 7, ""]})).forbidden,
            None
        );
        // Root may change it.
        if !rustix::process::geteuid().is_root() {
            let refused = verdict(&json!({"writes": ["/proc/version"]})).forbidden;
            assert_eq!(refused.expect("refused").code, "not_permitted");
        }
    }
}
