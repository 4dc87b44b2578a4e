//! How far one command may reach.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use holdfast_confine::kernel::Has;
use holdfast_confine::{Confinement, ConfinementConfig, Kernel, Mark, Mode, Plan, UnixSockets};
use holdfast_contract::{OwnPlace, Reason, SessionContext, ToolError, ToolResult};

use super::grants::Grants;
use crate::tools::own;

/// `sudo` and its like, which the kernel gives no rights under any confinement.
pub(super) const OTHER_RIGHTS: &str = "other_rights";
/// A command that a person lets out of the confinement.
pub(super) const UNCONFINED: &str = "unconfined";
/// A command that does outside of this machine what can not be taken back.
pub(super) const IRREVERSIBLE: &str = "irreversible_command";
/// What a command prints to whom the kernel said no.
const FORBIDDEN: &[&str] = &[
    "Permission denied",
    "Read-only file system",
    "EACCES",
    "EROFS",
];
const HINT: &str = "The kernel holds this command to its workspace. If it needs a path outside, call exec again and \
                    name that path in `writes` (or in `reads`): a person is asked, and the command gets that path. A \
                    person can also allow it for all commands with confinement.write or confinement.read in the \
                    configuration. Temporary files go to $TMPDIR.";
const HINT_LET_OUT: &str = "This command was let out of its workspace, and even so it makes, removes and renames \
                            nothing directly in a directory that leads to Holdfast's state, and gets nothing of the \
                            state. Name something deeper, or have the state kept elsewhere (HOLDFAST_STATE).";
/// Words of a command that wanted to talk to a service on this machine, beside those of a refusal.
const OF_SOCKETS: &[&str] = &["unix:", "dial unix", ".sock", "/run/dbus", "/run/user/"];
const REFUSED: &[&str] = &["permission denied", "operation not permitted"];
const HINT_SOCKETS: &str = "Commands here talk to no service behind a Unix socket (Docker, an ssh-agent, the session bus): \
                            such a service does for whoever asks what the kernel keeps from the command itself. A person \
                            can allow it with confinement.unixSockets: allow in the configuration.";
/// Bytes of a path in a hint.
const PATH_SHOWN_BYTES_MAX: usize = 512;
/// The variable that names the directory for temporary files.
const TEMPORARY: &str = "TMPDIR";
/// Where they go in a view of the workspace's own.
const TEMPORARY_IN_VIEW: &str = "/tmp";

/// What one command is held to, not yet made: that touches files.
pub(super) struct Rules {
    config: ConfinementConfig,
    kernel: Kernel,
    mark: Mark,
    workspace: PathBuf,
    /// What no command may enter.
    reserved: Vec<PathBuf>,
    own_places: Vec<OwnPlace>,
    reach: Reach,
    /// What was asked for besides, and approved.
    grants: Grants,
}

/// How far the approval of a command goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// It stays in.
    Workspace,
    /// It gets all files but what is reserved.
    AllFiles,
    /// It gets other rights, which no confinement survives.
    OtherRights,
}

impl Reach {
    fn of(approved: &[Reason]) -> Self {
        let has = |code: &str| approved.iter().any(|reason| reason.code == code);
        if has(OTHER_RIGHTS) {
            Self::OtherRights
        } else if has(UNCONFINED) {
            Self::AllFiles
        } else {
            Self::Workspace
        }
    }
}

impl Rules {
    pub(super) fn new(
        config: &ConfinementConfig,
        kernel: Kernel,
        session: &SessionContext,
        mark: Mark,
        grants: Grants,
    ) -> Self {
        let approved = session.exec.as_ref().map(|exec| exec.approved.as_slice());
        let approved = approved.unwrap_or_default();
        Self {
            config: config.clone(),
            kernel,
            mark,
            workspace: session.workspace_root.clone(),
            reserved: session.reserved.clone(),
            own_places: session.own_places.clone(),
            reach: Reach::of(approved),
            grants: grants.approved(approved),
        }
    }

    /// What the kernel will hold the command to.
    pub(super) fn hold(&self) -> Hold {
        let is_free = self.config.mode == Mode::Off || self.reach == Reach::OtherRights;
        let files = match self.reach {
            _ if is_free || !self.kernel.confines_files() => None,
            Reach::AllFiles => Some(HINT_LET_OUT),
            Reach::Workspace | Reach::OtherRights => Some(HINT),
        };
        let no_sockets = !is_free
            && self.kernel.seccomp == Has::Yes
            && self.config.unix_sockets == UnixSockets::Deny;
        Hold {
            files,
            sockets: no_sockets.then_some(HINT_SOCKETS),
        }
    }

    /// Makes the confinement, and sets the variables that come with it.
    pub(super) fn apply(
        self,
        environment: &mut Vec<(OsString, OsString)>,
    ) -> Result<Confinement, ToolError> {
        if self.reach == Reach::OtherRights || self.config.mode == Mode::Off {
            return Ok(Confinement::mark_only(self.mark));
        }
        let plan = match self.reach {
            Reach::AllFiles => self.plan_outside(),
            _ => self.plan(environment),
        };
        Confinement::new(&plan, self.config.mode, self.kernel, self.mark)
            .map_err(|error| ToolError::coded("not_confined", error.to_string()))
    }

    fn plan(&self, environment: &mut Vec<(OsString, OsString)>) -> Plan {
        let home = value(environment, "HOME").map(PathBuf::from);
        let mut plan = Plan::of_system(home.as_deref(), value(environment, "PATH"));
        let expanded = |list: &[String]| -> Vec<PathBuf> {
            let named = list.iter();
            let named = named.filter_map(|path| own::expanded(path, home.as_deref()));
            named.collect()
        };
        plan.read.extend(expanded(&self.config.read));
        plan.write.extend(expanded(&self.config.write));
        plan.write.push(self.workspace.clone());
        plan.granted_read.clone_from(&self.grants.reads);
        plan.granted_write.clone_from(&self.grants.writes);
        plan.hidden = self.hidden();
        self.cover(&mut plan);
        if let Some(dir) = self.temporary(&mut plan, home.as_deref()) {
            environment.retain(|(name, _)| name != TEMPORARY);
            environment.push((TEMPORARY.into(), dir.into()));
        }
        plan.network = self.config.network;
        plan.unix_sockets = self.config.unix_sockets;
        plan.signals = self.config.signals;
        plan
    }
}

impl Rules {
    /// Puts the workspace's own directories in the place of shared ones.
    fn cover(&self, plan: &mut Plan) {
        for place in &self.own_places {
            if place.shared.starts_with(&self.workspace) {
                continue;
            }
            if let Some(own) = own::made(&place.base, &self.workspace) {
                plan.cover(place.shared.clone(), own);
            }
        }
        plan.covers.iter().for_each(own::make_room);
    }

    /// Where temporary files go: what others keep in the shared directory is no business of a command.
    fn temporary(&self, plan: &mut Plan, home: Option<&Path>) -> Option<PathBuf> {
        let shared = Path::new(TEMPORARY_IN_VIEW);
        if plan.covers.iter().any(|cover| cover.shared == shared) {
            return Some(shared.to_owned());
        }
        if !self.kernel.confines_files() {
            return None;
        }
        let dir = own::made(&own::temporary_base(&self.config, home)?, &self.workspace)?;
        plan.write.push(dir.clone());
        Some(dir)
    }

    /// For a command that was let out. Services behind Unix sockets stay as they are configured:
    /// they run commands for whoever asks, and would read the state for it.
    fn plan_outside(&self) -> Plan {
        Plan {
            hidden: self.hidden(),
            network: self.config.network,
            unix_sockets: self.config.unix_sockets,
            ..Plan::of_everything()
        }
    }

    /// What is kept from the command although something above it is granted. A file in the
    /// workspace is not, unless a directory there is anyway: hiding it means that nothing can be
    /// made or removed beside it. `holdfast doctor` says where a file lies that should not.
    fn hidden(&self) -> Vec<PathBuf> {
        let inside = |path: &Path| path.starts_with(&self.workspace);
        // What is not there yet must not be made either.
        let real = |path: &PathBuf| path.canonicalize().unwrap_or_else(|_| path.clone());
        let mut hidden: Vec<PathBuf> = self.reserved.iter().map(real).collect();
        let carved = hidden.iter().any(|path| path.is_dir() && inside(path));
        hidden.retain(|path| path.is_dir() || carved || !inside(path));
        hidden
    }
}

/// What a command is held to, by what it is told where that may have stopped it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Hold {
    /// Where it is held to files.
    files: Option<&'static str>,
    /// Where it may not talk to services.
    sockets: Option<&'static str>,
}

impl Hold {
    /// Says what may be the cause where a held command failed and its errors say that something was
    /// forbidden: the kernel's words are the same as for the rights of a file.
    pub(super) fn explain(self, mut result: ToolResult) -> ToolResult {
        let errors = result.output["stderr"].as_str().unwrap_or_default();
        let is_forbidden = FORBIDDEN.iter().any(|words| errors.contains(words));
        let hint = self
            .sockets
            .filter(|_| errors.lines().any(speaks_of_sockets))
            .or(self.files.filter(|_| is_forbidden));
        if let Some(hint) = hint.filter(|_| result.exit_code.is_some()) {
            let denied = denied(errors).map(|path| format!("It was denied {path}. "));
            result.output["hint"] = format!("{}{hint}", denied.unwrap_or_default()).into();
        }
        result
    }
}

/// The path in the first line of errors that says something was forbidden: in quotes, or before the colon.
fn denied(errors: &str) -> Option<&str> {
    let is_forbidden = |line: &&str| FORBIDDEN.iter().any(|words| line.contains(words));
    let line = errors.lines().find(is_forbidden)?;
    let quoted = line.split(['\'', '"', '‘', '’', '`']).nth(1);
    let before = line.split(": ").filter(|part| part.contains('/')).last();
    let found = quoted.filter(|it| it.contains('/')).or(before)?;
    let path = found.split_whitespace().last()?;
    (path.starts_with(['/', '~', '.']) && path.len() <= PATH_SHOWN_BYTES_MAX).then_some(path)
}

/// Whether a line says that a service behind a Unix socket could not be talked to.
fn speaks_of_sockets(line: &str) -> bool {
    let line = line.to_ascii_lowercase();
    let has = |words: &[&str]| words.iter().any(|it| line.contains(it));
    has(OF_SOCKETS) && has(REFUSED)
}

/// Whether its approval is good for one call only: it lets a command out, or what it does can not be
/// taken back.
pub(crate) fn is_for_once(reason: &Reason) -> bool {
    [OTHER_RIGHTS, UNCONFINED, IRREVERSIBLE].contains(&&*reason.code)
}

fn value<'e>(environment: &'e [(OsString, OsString)], name: &str) -> Option<&'e OsStr> {
    let found = environment.iter().find(|(known, _)| known == name)?;
    Some(&found.1)
}

#[cfg(test)]
mod tests {
    use holdfast_confine::Views;

    use super::*;

    #[test]
    fn the_path_that_was_denied_is_named() {
        for (errors, expected) in [
            (
                "/bin/bash: line 1: /home/u/zz: Permission denied",
                Some("/home/u/zz"),
            ),
            (
                "cp: cannot create regular file '../b/c': Permission denied",
                Some("../b/c"),
            ),
            (
                "x\ncat: /home/u/.ssh/id: Permission denied\n",
                Some("/home/u/.ssh/id"),
            ),
            (
                "PermissionError: [Errno 13] Permission denied: '/srv/x'",
                Some("/srv/x"),
            ),
            (
                "Error: EACCES: permission denied, open '/srv/y'",
                Some("/srv/y"),
            ),
            ("Permission denied", None),
            ("all is well", None),
        ] {
            assert_eq!(denied(errors), expected, "{errors}");
        }
    }

    /// What nothing filters was not denied.
    #[test]
    fn sockets_are_denied_only_where_the_kernel_filters() {
        let session = SessionContext::main("s", "a", "/w".into());
        let config = ConfinementConfig {
            unix_sockets: UnixSockets::Deny,
            ..ConfinementConfig::default()
        };
        for (seccomp, expected) in [(Has::Yes, true), (Has::No, false)] {
            let kernel = Kernel {
                landlock_abi: 0,
                seccomp,
                views: Views::No,
            };
            let rules = Rules::new(&config, kernel, &session, Mark::new(1), Grants::default());
            assert_eq!(rules.hold().sockets.is_some(), expected, "{seccomp:?}");
        }
    }

    #[test]
    fn only_what_says_so_is_let_out() {
        let reason = |code: &str| Reason::new(code, "x", "x");
        for code in [OTHER_RIGHTS, UNCONFINED] {
            assert!(is_for_once(&reason(code)), "{code}");
            assert_ne!(Reach::of(&[reason(code)]), Reach::Workspace, "{code}");
        }
        assert!(is_for_once(&reason(IRREVERSIBLE)));
        for code in [
            "gate",
            IRREVERSIBLE,
            "destructive_command",
            "writes_outside",
        ] {
            assert_eq!(Reach::of(&[reason(code)]), Reach::Workspace, "{code}");
        }
    }
}
