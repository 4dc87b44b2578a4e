//! What a command needs before it may run: here, or where a tool hands it on to.

use std::ffi::OsString;
use std::path::Path;
use std::sync::LazyLock;

use holdfast_contract::{HandsOn, Reason, SessionContext, TierVerdict};

use super::danger::{self, Judged, normal};
use super::reach;
use super::rules::CommandRules;
use crate::tools::place;

/// What `~` and the like mean to this user.
static HOME: LazyLock<Vec<(OsString, OsString)>> = LazyLock::new(|| {
    let names = ["HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME"];
    let known = names.map(|name| Some((name.into(), std::env::var_os(name)?)));
    known.into_iter().flatten().collect()
});

/// Holds a command against the rules and the tables of what a person has to see.
pub(super) fn command(
    judged: &Judged<'_>,
    session: &SessionContext,
    environment: &[(OsString, OsString)],
    rules: &CommandRules,
    verdict: &mut TierVerdict,
) {
    // Whatever the command does with its input, these have no business in there.
    for text in [Some(judged.command), judged.stdin].into_iter().flatten() {
        if danger::answers_for_people(text) {
            verdict.forbidden = Some(Reason::new(
                "answers_for_people",
                "holdfast approvals",
                "approvals are answered by people, never by a tool",
            ));
        }
        let start = session
            .workspace_root
            .join(judged.working_dir.unwrap_or_default());
        if let Some(path) = reach::named(text, &session.reserved, &start, environment) {
            verdict.forbidden = Some(place::reserved(path));
        }
    }
    if let Some(reason) = rules.forbid(judged) {
        verdict.forbidden = Some(reason);
    }
    for reason in danger::reasons(judged) {
        verdict.raise(reason);
    }
}

/// Holds what a call hands on to the same. Where it ends up nobody here sees: it may be this very
/// machine.
pub(crate) fn handed_on(
    handed: &HandsOn,
    session: &SessionContext,
    rules: &CommandRules,
    verdict: &mut TierVerdict,
) {
    for it in &handed.commands {
        let judged = Judged {
            command: &it.command,
            stdin: it.stdin.as_deref(),
            workspace: &session.workspace_root,
            working_dir: it.working_dir.as_deref(),
        };
        command(&judged, session, &HOME, rules, verdict);
    }
    for path in &handed.paths {
        if let Some(dir) = session
            .reserved
            .iter()
            .find(|dir| leads_to(path, dir, session))
        {
            verdict.forbidden = Some(place::reserved(dir));
        }
    }
}

/// Whether a path leads into a directory, as far as its name says.
fn leads_to(path: &str, dir: &Path, session: &SessionContext) -> bool {
    let path = path.strip_prefix("file://").unwrap_or(path);
    let home = HOME.iter().find(|(name, _)| name == "HOME");
    let path = match (path.strip_prefix("~/"), home) {
        (Some(rest), Some((_, home))) => Path::new(home).join(rest),
        _ => session.workspace_root.join(path),
    };
    let named = normal(&path);
    let real = named.canonicalize();
    named.starts_with(dir) || real.is_ok_and(|real| real.starts_with(dir))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_guards_the_calls_is_out_of_bounds_elsewhere_too() {
        let session = SessionContext {
            reserved: vec!["/state/holdfast".into()],
            ..SessionContext::main("s", "a", "/w".into())
        };
        let table = [
            ("/state/holdfast/approver-token", true),
            ("/state/holdfast", true),
            ("../state/./holdfast/x", true),
            ("file:///state/holdfast/audit.log", true),
            ("/state/holdfast2", false),
            ("notes", false),
        ];
        for (path, expected) in table {
            let handed = HandsOn {
                paths: vec![path.to_owned()],
                ..HandsOn::default()
            };
            let mut verdict = TierVerdict::declared(holdfast_contract::PermissionTier::System);
            handed_on(&handed, &session, &CommandRules::default(), &mut verdict);
            assert_eq!(verdict.forbidden.is_some(), expected, "{path}");
        }
    }
}
