//! What the kernel holds commands with: asked, and tried.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use holdfast_confine::kernel::{ABI_WITH_SCOPES, Has};
use holdfast_confine::{Kernel, Mode, UnixSockets, Views};
use holdfast_contract::{CallContext, SessionContext, Tool, ToolContext};
use holdfast_toolbox::tools::ExecTool;
use serde_json::json;

use super::Check;
use crate::app::App;

const LANDLOCK_ADVICE: &str = "Linux 5.13 and later have Landlock; `landlock` has to be among the \
    modules that `cat /sys/kernel/security/lsm` prints (boot with lsm=landlock,…). Until then deny \
    exec, set its gate to strict, or run Holdfast in a container as a user of its own.";
const SECCOMP_ADVICE: &str = "The kernel needs CONFIG_SECCOMP_FILTER, and a container must not \
    forbid filters of one's own.";

pub(super) async fn checks(app: &App, workspace: &Path) -> Vec<Check> {
    let (kernel, mode) = (Kernel::probe(), app.config.confinement.mode);
    let mut checks = of_kernel(mode, kernel);
    if mode != Mode::Off && kernel.confines_files() {
        checks.push(views(kernel.views));
        checks.push(tried(app).await);
    }
    checks.extend(sockets(app));
    checks.extend(places(app, workspace));
    checks.extend(root());
    checks
}

/// What is asked for, and what this kernel has of it.
fn of_kernel(mode: Mode, kernel: Kernel) -> Vec<Check> {
    vec![asked(mode), landlock(mode, kernel), seccomp(mode, kernel)]
}

fn asked(mode: Mode) -> Check {
    const NAME: &str = "confinement";
    match mode {
        Mode::BestEffort => Check::ok(NAME, "commands are held to what the kernel has"),
        Mode::Required => Check::ok(NAME, "commands are not started without it"),
        Mode::Off => Check::warn(
            NAME,
            "is off: commands run with all the rights of the user, and can read the state and its \
             tokens",
            "Set confinement.mode to bestEffort or required.",
        ),
    }
}

/// What is missing is bad where it is insisted on, and worth knowing elsewhere.
fn missing(mode: Mode, name: &'static str, found: &str, advice: &str) -> Check {
    match mode {
        Mode::Required => Check::bad(name, format!("{found}; exec refuses to run"), advice),
        Mode::BestEffort | Mode::Off => Check::warn(name, found, advice),
    }
}

fn landlock(mode: Mode, kernel: Kernel) -> Check {
    const NAME: &str = "landlock";
    let abi = kernel.landlock_abi;
    if abi == 0 {
        let found = "this kernel has no Landlock: commands can read and change every file that the \
                     user can, the state and its tokens among them";
        return missing(mode, NAME, found, LANDLOCK_ADVICE);
    }
    if abi < ABI_WITH_SCOPES {
        let found = format!(
            "version {abi}: files are confined; signals to other processes are not (version \
             {ABI_WITH_SCOPES}, Linux 6.12)"
        );
        return Check::ok(NAME, found);
    }
    Check::ok(
        NAME,
        format!("version {abi}: files and signals are confined"),
    )
}

fn seccomp(mode: Mode, kernel: Kernel) -> Check {
    const NAME: &str = "seccomp";
    match kernel.seccomp {
        Has::Yes => Check::ok(NAME, "system calls are filtered"),
        Has::No => missing(
            mode,
            NAME,
            "this kernel filters no system calls: commands can trace other processes and shed \
             their mark",
            SECCOMP_ADVICE,
        ),
    }
}

/// Whether commands see a `/tmp` of their own.
fn views(views: Views) -> Check {
    const NAME: &str = "views";
    match views {
        Views::Plain => Check::ok(NAME, "commands see a /tmp of their workspace's own"),
        Views::User => Check::ok(
            NAME,
            "commands see a /tmp of their workspace's own, in a user namespace",
        ),
        Views::No => Check::warn(
            NAME,
            "commands can not write to /tmp: this system gives them no mount namespace. Their temporary \
             files go to $TMPDIR",
            "Allow user namespaces (kernel.apparmor_restrict_unprivileged_userns=0, \
             user.max_user_namespaces), or give the container CAP_SYS_ADMIN.",
        ),
    }
}

/// Runs a command that tries to read a file it must not read. What the kernel claims is one thing.
async fn tried(app: &App) -> Check {
    const NAME: &str = "a confined command";
    let failed = |why: String| {
        Check::bad(
            NAME,
            format!("could not be tried: {why}"),
            "`holdfast call exec` will fail likewise.",
        )
    };
    let dir = match Scratch::new() {
        Ok(dir) => dir,
        Err(error) => return failed(error.to_string()),
    };
    let exec = ExecTool::new().with_confinement(app.config.confinement.clone());
    let session = SessionContext::main("doctor", "doctor", dir.0.join("workspace"));
    let context = ToolContext {
        session: Arc::new(session),
        call: CallContext::default(),
    };
    let command = "cat ../secret && echo LEAKED; echo inside > file && cat file";
    match exec.execute(&json!({ "command": command }), &context).await {
        Err(error) => failed(error.to_string()),
        Ok(ran) => match ran.output["stdout"].as_str() {
            Some("inside\n") => Check::ok(
                NAME,
                "worked in its workspace, and could not read beside it",
            ),
            Some(said) if said.contains("LEAKED") => Check::bad(
                NAME,
                "read a file outside its workspace",
                "Look at confinement.read and confinement.write: one of them holds the directory \
                 for temporary files.",
            ),
            _ => failed(ran.output.to_string()),
        },
    }
}

/// A directory that is gone when it is dropped.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> std::io::Result<Self> {
        let name = format!("holdfast-doctor-{}", std::process::id());
        let dir = std::env::temp_dir().canonicalize()?.join(name);
        std::fs::create_dir(&dir)?;
        let scratch = Self(dir);
        std::fs::create_dir(scratch.0.join("workspace"))?;
        std::fs::write(scratch.0.join("secret"), "secret")?;
        Ok(scratch)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn sockets(app: &App) -> Option<Check> {
    (app.config.confinement.unix_sockets == UnixSockets::Allow).then(|| {
        Check::warn(
            "unix sockets",
            "commands may talk to local services, which may run commands outside any confinement",
            "The session bus and Docker are such services. Leave confinement.unixSockets at deny \
             unless a command needs one.",
        )
    })
}

/// What guards the calls should not lie where commands work.
fn places(app: &App, workspace: &Path) -> Vec<Check> {
    const NAME: &str = "workspace";
    let workspace = match workspace.canonicalize() {
        Ok(workspace) if workspace.is_dir() => workspace,
        _ => {
            let found = format!("there is no directory {}", workspace.display());
            return vec![Check::bad(
                NAME,
                found,
                "Make it, or name another with --workspace.",
            )];
        }
    };
    let mut inside: Vec<_> = app
        .reserved()
        .iter()
        .map(|path| where_it_lies(path))
        .collect();
    inside.retain(|path| path.starts_with(&workspace));
    inside.sort();
    inside.dedup();
    let found = |path: &Path| {
        if path.is_dir() {
            Check::warn(
                NAME,
                format!("the state {} lies in it", path.display()),
                "It stays out of reach; in return commands can not make or remove files beside the \
                 directories that lead to it. Keep the state elsewhere.",
            )
        } else {
            Check::warn(
                NAME,
                format!("{} lies in it, and commands can change it", path.display()),
                "Keep the configuration and the tokens outside of what tools work on.",
            )
        }
    };
    let there = inside.iter().filter(|path| path.exists());
    there.map(|path| found(path)).collect()
}

/// A path without `..` and without links on the way. Its last part stays: a link can be exchanged.
fn where_it_lies(path: &Path) -> PathBuf {
    let parent = path.parent().and_then(|dir| dir.canonicalize().ok());
    match (parent, path.file_name()) {
        (Some(parent), Some(name)) => parent.join(name),
        _ => path.to_owned(),
    }
}

fn root() -> Option<Check> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let is_root = status
        .lines()
        .find_map(|line| line.strip_prefix("Uid:"))
        .is_some_and(|ids| ids.split_ascii_whitespace().nth(1) == Some("0"));
    is_root.then(|| {
        Check::warn(
            "user",
            "Holdfast runs as root, so commands can read what only root can in /etc",
            "Run it as a user of its own.",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::super::Status;
    use super::*;

    /// A kernel, what is asked for, and how the lines for both of its parts begin.
    #[test]
    fn what_a_kernel_does_not_have_is_said() {
        use Mode::{BestEffort, Off, Required};
        use Status::{Bad, Ok, Warn};
        let none = "this kernel has no Landlock: commands can read and change every file";
        let unfiltered = "this kernel filters no system calls: commands can trace other processes";
        let (filtered, whole) = ("system calls are filtered", "version 6: files and signals");
        let old = "version 5: files are confined; signals to other processes are not (version 6";
        let table = [
            (0, Has::No, BestEffort, (Warn, none), (Warn, unfiltered)),
            (0, Has::No, Required, (Bad, none), (Bad, unfiltered)),
            (0, Has::No, Off, (Warn, none), (Warn, unfiltered)),
            (0, Has::Yes, BestEffort, (Warn, none), (Ok, filtered)),
            (0, Has::Yes, Required, (Bad, none), (Ok, filtered)),
            (5, Has::Yes, Required, (Ok, old), (Ok, filtered)),
            (6, Has::No, BestEffort, (Ok, whole), (Warn, unfiltered)),
            (6, Has::No, Required, (Ok, whole), (Bad, unfiltered)),
            (6, Has::Yes, Required, (Ok, whole), (Ok, filtered)),
        ];
        for (landlock_abi, seccomp, mode, of_landlock, of_seccomp) in table {
            let kernel = Kernel {
                landlock_abi,
                seccomp,
                views: Views::Plain,
            };
            let checks = of_kernel(mode, kernel);
            let expected = [("landlock", of_landlock), ("seccomp", of_seccomp)];
            for (check, (name, (status, found))) in checks[1..].iter().zip(expected) {
                assert_eq!((check.name, check.status), (name, status), "{check:?}");
                assert!(check.found.starts_with(found), "{check:?}");
                // Who is told that something is missing is told what to do, and what it comes to.
                assert_eq!(check.advice.is_some(), status != Ok, "{check:?}");
                let refuses = check.found.ends_with("; exec refuses to run");
                assert_eq!(refuses, status == Bad, "{check:?}");
            }
        }
    }

    #[test]
    fn confinement_that_is_off_is_said() {
        let statuses = [Mode::BestEffort, Mode::Required, Mode::Off].map(|mode| asked(mode).status);
        assert_eq!(statuses, [Status::Ok, Status::Ok, Status::Warn]);
    }
}
