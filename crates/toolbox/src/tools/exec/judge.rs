//! What a command needs before it may run: here, or where a tool hands it on to.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use holdfast_contract::{HandsOn, Reason, SessionContext, TierVerdict};
use holdfast_judge::{Context, CouldBe, Unread, When, judge_reading};

use super::confined::{IRREVERSIBLE, OTHER_RIGHTS};
use super::people::answers_for_people;
use super::reach::{self, normal};
use super::rules::CommandRules;
use super::{COMMAND_BYTES_MAX, STDIN_BYTES_MAX};
use crate::tools::place;
use crate::tools::text::one_line;

/// The built-in rule for commands that no confinement survives.
const OTHER_RIGHTS_RULE: &str = "other-rights";

/// What other shells read otherwise than bash, whose grammar ours is.
const BASH_ONLY: &[&str] = &[
    "&>",
    "|&",
    "<<<",
    "<(",
    ">(",
    "$'",
    "$\"",
    "$[",
    "[[",
    "((",
    "=(",
    "function ",
];

/// A command that is judged.
pub(super) struct Asked<'a> {
    pub(super) command: &'a str,
    pub(super) stdin: Option<&'a str>,
    pub(super) working_dir: Option<&'a str>,
}

/// What `~` and the like mean to this user.
static HOME: LazyLock<Vec<(OsString, OsString)>> = LazyLock::new(|| {
    let names = ["HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME"];
    let known = names.map(|name| Some((name.into(), std::env::var_os(name)?)));
    known.into_iter().flatten().collect()
});

/// Holds a command against the rules, and raises what a person has to see first.
pub(super) fn command(
    asked: &Asked<'_>,
    session: &SessionContext,
    environment: &[(OsString, OsString)],
    rules: &CommandRules,
    verdict: &mut TierVerdict,
) {
    let mut reading = asked.stdin.map_or_else(
        || holdfast_judge::read(asked.command),
        |input| holdfast_judge::read_with_input(asked.command, input),
    );
    if super::order::bash().is_none() && BASH_ONLY.iter().any(|it| asked.command.contains(it)) {
        reading.unreadable.push(Unread {
            place: 0..asked.command.len(),
            text: asked.command.to_owned(),
            could_be: CouldBe::Anything,
        });
    }
    if let Some(reason) = answers_for_people(&reading) {
        verdict.forbidden = Some(reason);
    }
    let start = asked.working_dir.unwrap_or_default();
    let start = session.workspace_root.join(start);
    // Whatever the command does with its input, these have no business in there.
    for text in [Some(asked.command), asked.stdin].into_iter().flatten() {
        if let Some(path) = reach::named(text, &session.reserved, &start, environment) {
            verdict.forbidden = Some(place::reserved(path));
        }
    }
    if let Some(reason) = rules.forbid(&reading) {
        verdict.forbidden = Some(reason);
    }
    // Whether something can be undone is not known here, so the rules for both are asked.
    let context = Context {
        undoable: false,
        user_rules: Some(&rules.ask),
    };
    for it in judge_reading(&reading, &context).reasons {
        let code = match (&*it.rule, it.when) {
            (OTHER_RIGHTS_RULE, _) => OTHER_RIGHTS,
            (_, When::Always) => IRREVERSIBLE,
            (_, When::NotUndoable) => "destructive_command",
        };
        let aside = if code == OTHER_RIGHTS {
            ", and outside of the confinement"
        } else {
            ""
        };
        let text = format!("`{}` {}{aside} (rule {})", it.command, it.text, it.rule);
        let reason = Reason::new(code, it.command.clone(), text).bound_to(it.rule.clone());
        match it.when {
            When::Always => verdict.raise_exact(reason),
            When::NotUndoable => verdict.unless_undone.push(reason),
        }
    }
}

/// Whether a command names, or may name, what lies outside of the workspace.
pub(super) fn reaches_out(command: &str, workspace: &Path) -> bool {
    let outside = |word: &str| {
        let word = word.trim_matches(['"', '\'']);
        word.contains("..")
            || word.starts_with(['~', '$'])
            || Path::new(word).is_absolute() && !Path::new(word).starts_with(workspace)
    };
    command.split_whitespace().any(outside)
}

/// What of a command is longer than is read, and what to do about it.
pub(super) fn too_long(
    command: &str,
    stdin: Option<&str>,
    working_dir: Option<&str>,
) -> Option<(&'static str, String)> {
    let table = [
        (
            "command",
            Some(command),
            COMMAND_BYTES_MAX,
            "write it to a file and run that",
        ),
        ("stdin", stdin, STDIN_BYTES_MAX, "use a file"),
        (
            "working_dir",
            working_dir,
            PATH_BYTES_MAX,
            "go there step by step",
        ),
    ];
    let mut found = table
        .into_iter()
        .filter(|(_, text, limit, _)| text.is_some_and(|it| it.len() > *limit));
    let (name, _, limit, instead) = found.next()?;
    let reason = format!("`{name}` is longer than {limit} bytes; {instead}");
    Some((name, reason))
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
        let (stdin, working_dir) = (it.stdin.as_deref(), it.working_dir.as_deref());
        if let Some((_, why)) = too_long(&it.command, stdin, working_dir) {
            // What is not read may reach for anything, also for what nobody can approve.
            let subject = one_line(&it.command, SUBJECT_CHARS_MAX);
            verdict.forbidden = Some(Reason::new("unreadable_command", subject, why));
            continue;
        }
        let asked = Asked {
            command: &it.command,
            stdin,
            working_dir,
        };
        command(&asked, session, &HOME, rules, verdict);
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

/// Whether a text spells out a path that leads into a directory: as a whole, in one of its words, as
/// an address of a file, written with `~` or with its signs as numbers.
fn leads_to(text: &str, dir: &Path, session: &SessionContext) -> bool {
    spellings(text).iter().any(|text| {
        let in_text = text
            .split(|sign: char| sign.is_whitespace() || SIGNS_BETWEEN.contains(sign))
            .filter(|word| word.starts_with(['/', '~']));
        let whole = (text.len() <= PATH_BYTES_MAX).then_some(text.as_str());
        // A gateway leaves out an `@` before a path.
        let without = whole.and_then(|text| text.trim().strip_prefix('@'));
        let paths = whole.into_iter().chain(without);
        let paths = paths.chain(addressed(text)).chain(in_text);
        let mut paths = paths.map(|path| place_of(path, session)).enumerate();
        paths.any(|(at, path)| {
            // Where it really leads takes a look at the disk.
            let real = (at < REAL_PATHS_MAX).then(|| path.canonicalize());
            path.starts_with(dir) || real.is_some_and(|it| it.is_ok_and(|it| it.starts_with(dir)))
        })
    })
}

/// Characters of a command in a reason.
const SUBJECT_CHARS_MAX: usize = 200;
/// Paths in one text of which the links are followed.
const REAL_PATHS_MAX: usize = 256;
/// Signs that stand around a path in a text.
const SIGNS_BETWEEN: &str = "\"'`<>()[]{}|,;:=@";
/// The longest path that the kernel takes.
const PATH_BYTES_MAX: usize = 4096;
/// How often signs are written as numbers within each other.
const ENCODINGS_MAX: usize = 3;

/// The text as it is, and as whoever takes its `%2F` for signs reads it.
fn spellings(text: &str) -> Vec<String> {
    let mut found = vec![text.to_owned()];
    for _ in 0..ENCODINGS_MAX {
        let Some(last) = found.last().filter(|last| last.contains('%')) else {
            break;
        };
        let next = decoded(last);
        if next == *last {
            break;
        }
        found.push(next);
    }
    found
}

fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        let digits = behind.get(..2).filter(|_| *first == b'%');
        let number = digits
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(number.unwrap_or(*first));
        let taken = if number.is_some() { 2 } else { 0 };
        rest = behind.get(taken..).unwrap_or_default();
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The paths behind every `file:` in a text.
fn addressed(text: &str) -> Vec<&str> {
    const SCHEME: &str = "file:";
    let lower = text.to_ascii_lowercase();
    let found = lower.match_indices(SCHEME).filter_map(|(at, _)| {
        let path = text.get(at + SCHEME.len()..)?;
        let end = |sign: char| sign.is_whitespace() || "\"'`<>?#".contains(sign);
        let path = path.split(end).next()?;
        // Behind two strokes is the name of a machine first, often none.
        match path.strip_prefix("//") {
            Some(named) => named.get(named.find('/')?..),
            None => Some(path),
        }
    });
    found.collect()
}

/// The path as its name tells, from the workspace on.
fn place_of(path: &str, session: &SessionContext) -> PathBuf {
    let home = HOME.iter().find(|(name, _)| name == "HOME");
    let path = match (path.strip_prefix('~'), home) {
        (Some(rest), Some((_, home))) if rest.is_empty() || rest.starts_with('/') => {
            Path::new(home).join(rest.trim_start_matches('/'))
        }
        _ => session.workspace_root.join(path),
    };
    normal(&path)
}

#[cfg(test)]
mod tests {
    use holdfast_contract::{HandedCommand, PermissionTier, Tool};
    use serde_json::json;

    use super::*;
    use crate::tools::exec::ExecTool;

    /// It may be of any length, and is refused before it runs.
    #[test]
    fn what_is_refused_is_not_judged() {
        let exec = ExecTool::new();
        let session = SessionContext::main("s", "a", "/home/u/space".into());
        let rest = "x".repeat(COMMAND_BYTES_MAX);
        for (params, tier) in [
            (json!({"command": "npm publish"}), PermissionTier::Elevated),
            (
                json!({"command": format!("npm publish {rest}")}),
                PermissionTier::System,
            ),
            (
                json!({"command": "npm publish", "stdin": "x".repeat(STDIN_BYTES_MAX + 1)}),
                PermissionTier::System,
            ),
        ] {
            assert_eq!(exec.tier_for(&params, &session).tier, tier);
        }
    }

    #[test]
    fn what_is_too_long_to_be_read_is_not_handed_on() {
        let session = SessionContext::main("s", "a", "/w".into());
        let command = |command: &str, working_dir: &str, stdin: &str| HandedCommand {
            command: command.to_owned(),
            working_dir: Some(working_dir.to_owned()),
            stdin: Some(stdin.to_owned()),
        };
        let longer = |than: usize| "x".repeat(than + 1);
        for (it, expected) in [
            (command("ls", "sub", "x"), false),
            (command(&longer(COMMAND_BYTES_MAX), "sub", "x"), true),
            (command("ls", &longer(PATH_BYTES_MAX), "x"), true),
            (command("ls", "sub", &longer(STDIN_BYTES_MAX)), true),
        ] {
            let handed = HandsOn {
                commands: vec![it],
                ..HandsOn::default()
            };
            let mut verdict = TierVerdict::declared(PermissionTier::System);
            handed_on(&handed, &session, &CommandRules::default(), &mut verdict);
            assert_eq!(verdict.forbidden.is_some(), expected);
            assert_eq!(verdict.reasons, []);
        }
    }

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
            ("file:/state/holdfast/audit.log", true),
            ("FILE://localhost/state/holdfast/audit.log?x#y", true),
            ("view-source:file:///state/holdfast/audit.log", true),
            ("file:///state/%68oldfast/audit.log", true),
            ("file%3A%2F%2F%2Fstate%2Fholdfast%2Faudit.log", true),
            ("/state/%2568oldfast/x", true),
            ("//state//holdfast", true),
            ("look at MEDIA:/state/holdfast/approver-token please", true),
            ("read '/state/x/../holdfast/approver-token'", true),
            ("{\"a\": \"/state/holdfast/x\"}", true),
            ("https://example.org/state/holdfast", false),
            ("50% of /state and holdfast", false),
            ("/state/holdfast-notes/x", false),
            ("/state/holdfast2", false),
            ("notes", false),
        ];
        for (path, expected) in table {
            let handed = HandsOn {
                paths: vec![path.to_owned()],
                ..HandsOn::default()
            };
            let mut verdict = TierVerdict::declared(PermissionTier::System);
            handed_on(&handed, &session, &CommandRules::default(), &mut verdict);
            assert_eq!(verdict.forbidden.is_some(), expected, "{path}");
        }
    }
}
