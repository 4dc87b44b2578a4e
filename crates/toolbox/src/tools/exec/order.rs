//! One call's arguments, and the process that they become.

use std::ffi::OsString;
use std::fs::File;
use std::io::{Seek, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use holdfast_contract::{Lifeline, ToolError};
use rustix::fs::MemfdFlags;
use serde_json::Value;

use super::{child, confined, judge, spawner};
use crate::tools::args;
use crate::tools::beneath::Beneath;
use crate::tools::place::Place;

/// What a command is given, and what it is kept from.
pub(super) struct Outfit {
    pub(super) environment: Vec<(OsString, OsString)>,
    pub(super) variable: (&'static str, String),
    pub(super) rules: confined::Rules,
}

/// The arguments of one call, checked.
pub(super) struct Order {
    pub(super) command: String,
    pub(super) working_dir: Option<String>,
    pub(super) stdin: Option<String>,
}

impl Order {
    pub(super) fn new(params: &Value) -> Result<Self, ToolError> {
        let command = args::text(params, "command")?;
        let stdin = args::optional_text(params, "stdin")?;
        let refuse = |field: &str, reason: String| {
            Err(ToolError::invalid(Some(&format!("/{field}")), reason))
        };
        if command.trim().is_empty() {
            return refuse("command", "`command` must not be empty".into());
        }
        if command.contains('\0') {
            return refuse(
                "command",
                "`command` must not contain a NUL character".into(),
            );
        }
        let working_dir = args::optional_text(params, "working_dir")?;
        if let Some((field, reason)) = judge::too_long(command, stdin, working_dir) {
            return refuse(field, reason);
        }
        Ok(Self {
            command: command.to_owned(),
            working_dir: working_dir.map(str::to_owned),
            stdin: stdin.map(str::to_owned),
        })
    }

    /// Touches files, so it is called on the command's own thread.
    pub(super) fn into_command(
        self,
        place: &Place,
        outfit: Outfit,
        lifeline: Option<Lifeline>,
    ) -> Result<spawner::Order, ToolError> {
        let Outfit {
            mut environment,
            variable,
            rules,
        } = outfit;
        let confinement = rules.apply(&mut environment)?;
        let asked = self.working_dir.as_deref().unwrap_or(".");
        let directory = Beneath::new(place, "working_dir", asked)?.open_dir()?;
        let stdin = match &self.stdin {
            None => Stdio::null(),
            Some(text) => stdin_from(text).map_err(|error| not_startable(&error))?,
        };
        let mut command = shell();
        command
            .arg("-c")
            .arg(&self.command)
            .env_clear()
            .envs(environment)
            .env(variable.0, variable.1)
            .stdin(stdin)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let setup = child::Setup::new(directory.into_std_file(), lifeline, confinement)
            .map_err(|error| not_startable(&error))?;
        Ok(spawner::Order { command, setup })
    }
}

/// The shell that reads and runs commands, without the startup files of a person. What it would
/// take from the environment (`BASH_ENV`, exported functions) is not in there.
fn shell() -> Command {
    let Some(bash) = bash() else {
        return Command::new("sh");
    };
    let mut command = Command::new(bash);
    command.args(["--norc", "--noprofile"]);
    command
}

/// Where bash is, if it is here.
pub(super) fn bash() -> Option<&'static Path> {
    static BASH: LazyLock<Option<PathBuf>> = LazyLock::new(|| {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let dirs = ["/bin", "/usr/bin"].map(PathBuf::from).into_iter();
        let mut dirs = dirs.chain(std::env::split_paths(&path));
        dirs.find_map(|dir| Some(dir.join("bash")).filter(|it| it.is_absolute() && it.is_file()))
    });
    BASH.as_deref()
}

/// The text as a file in memory. A pipe would have to be fed while the command runs, and would
/// raise SIGPIPE in a host that does not ignore it.
fn stdin_from(text: &str) -> std::io::Result<Stdio> {
    let memory = rustix::fs::memfd_create("holdfast-stdin", MemfdFlags::CLOEXEC)?;
    let mut file = File::from(memory);
    file.write_all(text.as_bytes())?;
    file.rewind()?;
    Ok(file.into())
}

pub(super) fn not_startable(error: &std::io::Error) -> ToolError {
    ToolError::coded(
        "not_startable",
        format!("the command could not be started: {error}"),
    )
}
