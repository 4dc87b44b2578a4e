//! What the tests share: a house to run the binary in, and ways to wait.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

pub(crate) use holdfast_testkit::wait::eventually;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

/// A command that leaves a line in `effect`, and runs until there is a file `go`.
pub(crate) const HELD: &str = "echo x >> effect; until [ -e go ]; do sleep 0.01; done; echo done";

/// A home, a state directory and a workspace.
pub(crate) struct House {
    dir: tempfile::TempDir,
}

impl House {
    pub(crate) fn new() -> Self {
        // Not in `/tmp`: beside a workspace there commands see their own.
        let dir = tempfile::tempdir_in("/var/tmp");
        let house = Self {
            dir: dir.expect("a directory"),
        };
        // Beside the workspace, for what commands do outside of it.
        let aside = house.dir.path().join("aside");
        for dir in [house.home(), house.workspace(), aside] {
            fs::create_dir(dir).expect("creates");
        }
        house
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.dir.path().join("state")
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.state().join("holdfast.db")
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        self.dir.path().join("workspace")
    }

    /// A file in the workspace.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.workspace().join(name)
    }

    /// Writes a file outside the workspace, and says where.
    pub(crate) fn file(&self, name: &str, content: &str) -> String {
        let path = self.dir.path().join(name);
        fs::write(&path, content).expect("writes");
        path.to_str().expect("a path in UTF-8").to_owned()
    }

    /// Lines in a file of the workspace: how often an effect happened.
    pub(crate) fn lines(&self, name: &str) -> usize {
        fs::read_to_string(self.path(name))
            .unwrap_or_default()
            .lines()
            .count()
    }

    /// The binary with these arguments, seeing nothing of this process's environment.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_holdfast"));
        command
            .args(args)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").expect("a PATH"))
            .env("HOME", self.home())
            .env("HOLDFAST_STATE", self.state())
            .env("USER", "tester")
            .current_dir(self.workspace())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        Ran::of(&self.command(args).output().expect("runs"))
    }

    /// Runs and hands over standard input.
    pub(crate) fn run_with(&self, args: &[&str], stdin: &str) -> Ran {
        let mut process = self.start_with_stdin(args);
        process.feed(stdin);
        process.ended()
    }

    pub(crate) fn start(&self, args: &[&str]) -> Process {
        Process::of(&mut self.command(args))
    }

    /// Starts a process that will wait for [`Process::feed`] if it reads its standard input.
    pub(crate) fn start_with_stdin(&self, args: &[&str]) -> Process {
        let mut command = self.command(args);
        command.stdin(Stdio::piped());
        Process::of(&mut command)
    }

    /// `holdfast call exec --key KEY --json` with a command, and more arguments.
    pub(crate) fn exec(&self, key: &str, command: &str, more: &[&str]) -> Ran {
        let arguments = command_json(command);
        self.run(&[exec_args(key, &arguments).as_slice(), more].concat())
    }

    pub(crate) fn start_exec(&self, key: &str, command: &str, more: &[&str]) -> Process {
        let arguments = command_json(command);
        self.start(&[exec_args(key, &arguments).as_slice(), more].concat())
    }

    /// Starts a call of [`HELD`], which has had its effect and runs until it is let go.
    pub(crate) fn start_held(&self, key: &str, more: &[&str]) -> Process {
        let call = self.start_exec(key, HELD, more);
        eventually_lines(self, "effect", 1);
        call
    }

    /// Lets it end, and gives its answer.
    pub(crate) fn let_go(&self, held: Process) -> Value {
        fs::write(self.path("go"), "").expect("writes");
        held.ended().success()
    }

    /// A configuration under which a command may end the process that runs it, as a crash would.
    /// Otherwise no command can.
    pub(crate) fn deadly(&self) -> String {
        self.file("deadly.yaml", "confinement: {signals: any}")
    }

    /// The records as `dedupe list --json` shows them.
    pub(crate) fn records(&self) -> Vec<Value> {
        let listed = self.run(&["dedupe", "list", "--json"]);
        serde_json::from_value(listed.json()).expect("a list")
    }

    /// The state of the only record.
    pub(crate) fn only_state(&self) -> Option<String> {
        match self.records().as_slice() {
            [record] => record["state"].as_str().map(str::to_owned),
            _ => None,
        }
    }
}

/// Arguments of the tool `exec`.
pub(crate) fn command_json(command: &str) -> String {
    command_params(command).to_string()
}

/// What `exec` is called with. What lies beside the workspace is named, so that a person is asked.
pub(crate) fn command_params(command: &str) -> Value {
    let mut params = json!({ "command": command });
    if command.contains("../aside") {
        params["writes"] = json!(["../aside"]);
    }
    params
}

fn exec_args<'a>(key: &'a str, arguments: &'a str) -> [&'a str; 7] {
    ["call", "exec", "--json", "--key", key, "--args", arguments]
}

/// A process that ended.
#[derive(Debug)]
pub(crate) struct Ran {
    /// `None` when a signal ended it.
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    pub(crate) fn of(output: &Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("UTF-8");
        Self {
            code: output.status.code(),
            stdout: text(&output.stdout),
            stderr: text(&output.stderr),
        }
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:#?}"))
    }

    /// The answer of a call that worked.
    #[track_caller]
    pub(crate) fn success(&self) -> Value {
        let answer = self.json();
        assert_eq!(self.code, Some(0), "{self:#?}");
        assert_eq!(answer["status"], "success");
        answer
    }

    /// The answer of a call that ended with this code.
    #[track_caller]
    pub(crate) fn error(&self, code: &str) -> Value {
        let answer = self.json();
        // What can not be understood is bad usage.
        let exit = if code == "invalid_envelope" { 2 } else { 1 };
        assert_eq!(self.code, Some(exit), "{self:#?}");
        assert_eq!(answer["error"]["code"], code, "{self:#?}");
        answer
    }

    /// Says that the command line or the configuration is wrong, and how.
    #[track_caller]
    pub(crate) fn bad_usage(&self, says: &str) {
        assert_eq!(self.code, Some(2), "{self:#?}");
        assert!(self.stderr.contains(says), "not {says:?}: {self:#?}");
        assert_eq!(self.stdout, "");
    }
}

/// A running process; killed when a test is done with it, however it is done.
pub(crate) struct Process(Option<Child>);

impl Process {
    pub(crate) fn of(command: &mut Command) -> Self {
        Self(Some(command.spawn().expect("starts")))
    }

    fn child(&mut self) -> &mut Child {
        self.0.as_mut().expect("not ended")
    }

    pub(crate) fn id(&mut self) -> u32 {
        self.child().id()
    }

    /// Gives it its whole standard input.
    pub(crate) fn feed(&mut self, text: &str) {
        let mut stdin = self.child().stdin.take().expect("a pipe");
        stdin.write_all(text.as_bytes()).expect("writes");
    }

    pub(crate) fn signal(&mut self, signal: Signal) {
        let pid = Pid::from_child(self.child());
        kill_process(pid, signal).expect("signals");
    }

    pub(crate) fn kill_9(mut self) {
        self.signal(Signal::KILL);
        assert_eq!(self.ended().code, None);
    }

    /// Whether it still runs.
    pub(crate) fn is_running(&mut self) -> bool {
        self.child().try_wait().expect("looks").is_none()
    }

    /// Waits for its end, within bounds.
    pub(crate) fn ended_in_time(mut self, what: &str) -> Ran {
        eventually(what, || (!self.is_running()).then_some(()));
        self.ended()
    }

    pub(crate) fn ended(mut self) -> Ran {
        let child = self.0.take().expect("not ended");
        Ran::of(&child.wait_with_output().expect("ends"))
    }

    /// Waits until it waits for another process's call.
    pub(crate) fn waits_for_another(&mut self) {
        let tasks = format!("/proc/{}/task", self.id());
        eventually("the duplicate waits", || {
            let is_waiter = |task: PathBuf| {
                let name = fs::read_to_string(task.join("comm")).unwrap_or_default();
                // The kernel keeps 15 characters.
                name.trim_end() == "holdfast-waiter"
            };
            fs::read_dir(&tasks)
                .ok()?
                .any(|task| task.is_ok_and(|task| is_waiter(task.path())))
                .then_some(())
        });
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Waits until a file has that many lines.
pub(crate) fn eventually_lines(house: &House, name: &str, count: usize) {
    eventually(name, || (house.lines(name) == count).then_some(()));
}

/// Whether the process runs: one that only waits to be reaped by its new parent does not.
pub(crate) fn is_alive(pid: u32) -> bool {
    let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else {
        return false;
    };
    let state = stat.rsplit_once(") ").map(|(_, rest)| &rest[..1]);
    !matches!(state, Some("Z" | "X") | None)
}

/// Whether the process has a file open that is in the directory of this one and is not this one: a
/// draft, whether it has a name or not.
pub(crate) fn writes_beside(pid: u32, file: &Path) -> bool {
    let Ok(opened) = fs::read_dir(format!("/proc/{pid}/fd")) else {
        return false;
    };
    let mut leads_to = opened.flatten().flat_map(|it| fs::read_link(it.path()));
    leads_to.any(|it| it.parent() == file.parent() && it != file)
}

/// The process id that a command wrote to a file as a line.
pub(crate) fn pid_in(path: &Path) -> u32 {
    eventually("a process writes its id", || {
        let text = fs::read_to_string(path).ok()?;
        text.strip_suffix('\n')?.parse().ok()
    })
}
