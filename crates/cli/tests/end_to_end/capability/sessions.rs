//! `scan`, `watch` and `session`, as people run them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use serde_json::Value;

use crate::common::{House, Process, eventually};

const HEADER: &str = r#"{"type":"session","version":4,"id":"s1","cwd":"/"}"#;
const QUESTION: &str = r#"{"type":"message","id":"a","parentId":null,"message":{"role":"user","content":"mail ann@example.com"}}"#;
const CALL: &str = r#"{"type":"message","id":"b","parentId":"a","message":{"role":"assistant","content":[{"type":"toolCall","id":"toolu_1","name":"exec","arguments":{}}]}}"#;
const ORPHAN: &str = r#"{"type":"message","id":"c","parentId":"b","message":{"role":"toolResult","toolCallId":"toolu_9","toolName":"exec","content":[{"type":"text","text":"password=hunter2"}]}}"#;
const ANSWER: &str = r#"{"type":"message","id":"d","parentId":"c","message":{"role":"assistant","content":[{"type":"text","text":"done"}]}}"#;

fn broken() -> String {
    [HEADER, QUESTION, CALL, ORPHAN, ANSWER].join("\n") + "\n"
}

/// A session of `OpenClaw`'s main agent that nobody has written for a while.
pub(super) fn session(house: &House, name: &str, content: &str) -> PathBuf {
    let dir = house.home().join(".openclaw/agents/main/sessions");
    fs::create_dir_all(&dir).expect("creates");
    let path = dir.join(name);
    fs::write(&path, content).expect("writes");
    make_quiet(&path);
    path
}

pub(super) fn make_quiet(path: &Path) {
    let file = fs::File::options().write(true).open(path).expect("opens");
    let long_ago = SystemTime::now() - Duration::from_mins(1);
    file.set_modified(long_ago).expect("sets the time");
}

#[test]
fn scan_without_a_path_looks_at_every_agents_sessions() {
    let house = House::new();
    assert_eq!(
        house.run(&["scan"]).stdout,
        "0 sessions, 0 issues found, 0 repaired\n"
    );
    let path = session(&house, "s1.jsonl", &broken());
    let claude = house.home().join(".claude/projects/p");
    fs::create_dir_all(&claude).expect("creates");
    let entry = r#"{"type":"user","uuid":"u","parentUuid":null,"sessionId":"s","message":{"role":"user","content":"hi"}}"#;
    fs::write(claude.join("s.jsonl"), entry).expect("writes");
    fs::write(claude.join("settings.json"), r#"{"theme": "dark"}"#).expect("writes");
    let ran = house.run(&["scan"]);
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    assert!(
        ran.stdout
            .ends_with("2 sessions, 2 issues found, 0 repaired\n"),
        "{ran:#?}"
    );
    assert!(
        ran.stdout
            .contains(&format!("{}:4 orphaned_tool_result (byte ", path.display())),
        "{ran:#?}"
    );
    assert!(
        ran.stdout.contains("unexpected `tool_use_id` found"),
        "{ran:#?}"
    );
    assert_eq!(fs::read_to_string(&path).expect("reads"), broken());
}

#[test]
fn scan_json_has_its_documented_shape() {
    let house = House::new();
    let path = session(&house, "s1.jsonl", &broken());
    let ran = house.run(&["scan", path.to_str().expect("UTF-8"), "--json"]);
    let said = ran.json();
    assert_eq!(said["sessions"], 1);
    assert_eq!(said["repaired"], 0);
    let orphan = &said["issues"][1];
    let keys: Vec<&String> = orphan.as_object().expect("an object").keys().collect();
    assert_eq!(
        keys,
        ["description", "entry", "file", "id", "offset", "type"]
    );
    assert_eq!(orphan["type"], "orphaned_tool_result");
    assert_eq!(orphan["id"], "toolu_9");
    assert_eq!(orphan["entry"], 3);
    let offset = usize::try_from(orphan["offset"].as_u64().expect("a number")).expect("fits");
    assert!(broken()[offset..].starts_with(ORPHAN));
}

#[test]
fn scan_repairs_and_logs_the_incident_redacted() {
    let house = House::new();
    let path = session(&house, "s1.jsonl", &broken());
    let dry = house.run(&["scan", "--repair", "--dry-run", "--strategy", "reconstruct"]);
    assert!(dry.stdout.contains("-     3  "), "{dry:#?}");
    assert!(!dry.stdout.contains("hunter2"), "{dry:#?}");
    assert_eq!(fs::read_to_string(&path).expect("reads"), broken());
    let ran = house.run(&["scan", "--repair", "--strategy", "reconstruct"]);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    assert!(
        ran.stdout
            .ends_with("1 sessions, 2 issues found, 2 repaired\n"),
        "{ran:#?}"
    );
    assert_eq!(
        house.run(&["scan"]).stdout,
        "1 sessions, 0 issues found, 0 repaired\n"
    );
    let logs = house.home().join(".openclaw/logs");
    let log = fs::read_dir(logs)
        .expect("lists")
        .next()
        .expect("one")
        .expect("an entry");
    let name = log.file_name().into_string().expect("UTF-8");
    assert!(name.starts_with("l0-runtime-incident-"), "{name}");
    let incident: Value =
        serde_json::from_slice(&fs::read(log.path()).expect("reads")).expect("JSON");
    assert_eq!(incident["sessionKey"], "agent:main:s1");
    assert_eq!(incident["action"], "repaired");
    assert_eq!(incident["issues"][1]["toolUseId"], "toolu_9");
    assert_eq!(incident["issues"][1]["messageIndex"], 3);
}

#[test]
fn remove_orphans_says_what_it_left() {
    let house = House::new();
    session(&house, "s1.jsonl", &broken());
    let ran = house.run(&["scan", "--repair"]);
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    assert!(
        ran.stdout
            .ends_with("1 sessions, 2 issues found, 1 repaired\n"),
        "{ran:#?}"
    );
}

#[test]
fn scan_reads_standard_input() {
    let house = House::new();
    let messages = r#"[{"role":"tool","tool_call_id":"x","content":""}]"#;
    let ran = house.run_with(&["scan", "-", "--json"], messages);
    assert_eq!(ran.code, Some(1));
    assert_eq!(ran.json()["issues"][0]["file"], "-");
    assert_eq!(house.run_with(&["scan", "-"], "[]").code, Some(0));
    // What is about to be sent has nothing that still runs.
    let pending = r#"[{"role":"user","content":"w?"},{"role":"assistant","content":"","tool_calls":[{"id":"x","type":"function","function":{"name":"f","arguments":"{}"}}]}]"#;
    assert_eq!(house.run_with(&["scan", "-"], pending).code, Some(0));
    let ran = house.run_with(&["scan", "-", "--complete", "--json"], pending);
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    assert_eq!(ran.json()["issues"][0]["type"], "missing_tool_result");
    let items = r#"[{"type":"function_call","call_id":"x","name":"f","arguments":"{}"}]"#;
    let ran = house.run_with(&["scan", "-", "--complete"], items);
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    let healthy = r#"[{"role":"user","content":"hi"}]"#;
    let ran = house.run_with(&["scan", "-", "--complete"], healthy);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    house
        .run_with(&["scan", "-"], "not a transcript")
        .bad_usage("not a transcript");
    house
        .run_with(&["scan", "-", "--repair"], "[]")
        .bad_usage("only be checked");
}

#[test]
fn what_can_not_be_read_is_said_and_the_rest_is_scanned() {
    let house = House::new();
    session(&house, "s1.jsonl", &broken());
    let dir = house.home().join(".openclaw/agents/main/sessions");
    std::os::unix::fs::symlink("loop.jsonl", dir.join("loop.jsonl")).expect("links");
    let ran = house.run(&["scan", dir.to_str().expect("UTF-8"), "nowhere.jsonl"]);
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    assert!(
        ran.stderr
            .contains("loop.jsonl: Too many levels of symbolic links"),
        "{ran:#?}"
    );
    assert!(
        ran.stderr.contains("nowhere.jsonl: No such file"),
        "{ran:#?}"
    );
    assert!(
        ran.stdout
            .ends_with("1 sessions, 2 issues found, 0 repaired\n"),
        "{ran:#?}"
    );
}

/// Nobody in particular, who may read what everybody may.
const NOBODY: u32 = 65534;

/// The binary as somebody for whom modes count: root may read and write everything.
fn as_an_ordinary_user(house: &House, args: &[&str]) -> Command {
    let command = house.command(args);
    if !rustix::process::getuid().is_root() {
        return command;
    }
    // The build may be out of reach for others, so they get it open: this is a name that leads to it
    // without leading through its directories.
    let mut other = Command::new("/proc/self/fd/0");
    let binary = fs::File::open(command.get_program()).expect("the binary");
    other.args(command.get_args()).env_clear();
    for (name, value) in command.get_envs() {
        other.env(name, value.expect("a value"));
    }
    other.stdin(binary).uid(NOBODY).gid(NOBODY).current_dir("/");
    other
}

/// Opens the way to a file of this house for everybody.
fn let_everybody_in(house: &House, path: &Path) {
    let workspace = house.workspace();
    let root = workspace.parent().expect("a house");
    let dirs = path.ancestors().skip(1);
    for dir in dirs.take_while(|dir| dir.starts_with(root)) {
        fs::set_permissions(dir, fs::Permissions::from_mode(0o755)).expect("sets the mode");
    }
}

#[test]
fn unreadable_files_are_said() {
    let house = House::new();
    let path = session(&house, "s1.jsonl", &broken());
    let_everybody_in(&house, &path);
    let scan = || {
        let args = ["scan", path.to_str().expect("UTF-8")];
        let output = as_an_ordinary_user(&house, &args).output().expect("runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code(), said)
    };
    // It is the mode of the file that makes the difference.
    assert_eq!(scan().0, Some(1), "{}", scan().1);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).expect("sets the mode");
    let (code, said) = scan();
    assert_eq!(code, Some(2), "{said}");
    assert!(
        said.contains("s1.jsonl: can not be read: Permission denied"),
        "{said}"
    );
}

/// A repair in a directory of its own, after `prepare` and whatever else the shell is to do first. Says
/// what stands there afterwards, and what was said.
fn repaired(house: &House, shell: &mut Command, prepare: &str) -> (String, String) {
    let dir = house.path("disk");
    fs::create_dir_all(&dir).expect("creates");
    let script = format!(
        "{prepare} \"$HOLDFAST\" scan s.jsonl --repair; echo \"exit $?\"; \
         cmp s.jsonl \"$BROKEN\" && echo same; ls"
    );
    let output = shell
        .args(["-c", &script, "sh"])
        .arg(&dir)
        .env("HOME", house.home())
        .env("HOLDFAST", env!("CARGO_BIN_EXE_holdfast"))
        .env("BROKEN", house.file("broken.jsonl", &broken()))
        .output()
        .expect("a shell");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

const A_QUIET_SESSION: &str =
    "cd \"$1\" && cp \"$BROKEN\" s.jsonl && touch -d '1 minute ago' s.jsonl &&";

/// A shell that may mount what only it sees, where the kernel lets us have one. Who is allowed to
/// mount gets one or fails: only others may go without.
fn mounting_shell() -> Option<Command> {
    let mut tried = Command::new("unshare");
    tried.args(["--map-root-user", "--mount", "sh", "-c"]);
    tried.arg("mount -t tmpfs none /mnt");
    if tried.output().is_ok_and(|output| output.status.success()) {
        let mut shell = Command::new("unshare");
        shell.args(["--map-root-user", "--mount", "sh"]);
        return Some(shell);
    }
    assert!(!may_mount(), "the one who may mount can not");
    None
}

/// Whether this process has the right to mount (`CAP_SYS_ADMIN`, the 21st).
fn may_mount() -> bool {
    let status = fs::read_to_string("/proc/self/status").expect("reads");
    let held = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let held = u64::from_str_radix(held.expect("capabilities").trim(), 16);
    held.expect("a number") & (1 << 21) != 0
}

#[test]
fn a_full_disk_changes_nothing() {
    if let Some(mut shell) = mounting_shell() {
        let prepare = format!(
            "mount -t tmpfs -o size=64k none \"$1\" && {A_QUIET_SESSION} \
             dd if=/dev/zero of=fill bs=1k 2>/dev/null;"
        );
        let (stdout, stderr) = repaired(&House::new(), &mut shell, &prepare);
        assert!(
            stdout.contains("exit 2\nsame\nfill\ns.jsonl\n"),
            "{stdout}\n{stderr}"
        );
        assert!(
            stderr.contains("not repaired") && stderr.contains("No space left"),
            "{stderr}"
        );
    }
    // Everywhere: no file may grow at all.
    let prepare = format!("{A_QUIET_SESSION} trap '' XFSZ; ulimit -f 0;");
    let (stdout, stderr) = repaired(&House::new(), &mut Command::new("sh"), &prepare);
    assert!(
        stdout.contains("exit 2\nsame\ns.jsonl\n"),
        "{stdout}\n{stderr}"
    );
    assert!(
        stderr.contains("not repaired") && stderr.contains("File too large"),
        "{stderr}"
    );
}

#[test]
fn a_read_only_directory_is_said_and_nothing_changes() {
    if let Some(mut shell) = mounting_shell() {
        let prepare = format!(
            "mount -t tmpfs -o size=1m none \"$1\" && {A_QUIET_SESSION} mount -o remount,ro \"$1\";"
        );
        let (stdout, stderr) = repaired(&House::new(), &mut shell, &prepare);
        assert!(
            stdout.contains("exit 2\nsame\ns.jsonl\n"),
            "{stdout}\n{stderr}"
        );
        assert!(stderr.contains("Read-only file system"), "{stderr}");
    }
    // Everywhere: a directory of somebody else's.
    let house = House::new();
    let path = session(&house, "s1.jsonl", &broken());
    let_everybody_in(&house, &path);
    let dir = path.parent().expect("a directory");
    fs::set_permissions(dir, fs::Permissions::from_mode(0o555)).expect("sets the mode");
    let args = ["scan", path.to_str().expect("UTF-8"), "--repair"];
    let output = as_an_ordinary_user(&house, &args).output().expect("runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(
        said.contains("not repaired") && said.contains("Permission denied"),
        "{said}"
    );
    assert_eq!(fs::read_to_string(&path).expect("reads"), broken());
    assert_eq!(fs::read_dir(dir).expect("reads").count(), 1);
}

#[test]
fn watch_says_what_breaks_and_writes_nothing_unless_asked() {
    let house = House::new();
    let path = session(&house, "s1.jsonl", &[HEADER, QUESTION, ""].join("\n"));
    let mut advisory = house.start(&["watch", "--json", "--interval-ms", "10"]);
    fs::write(&path, broken()).expect("writes");
    make_quiet(&path);
    let logs = house.home().join(".openclaw/logs");
    let logged = || fs::read_dir(&logs).map_or(0, Iterator::count);
    eventually("the incident is logged", || (logged() > 0).then_some(()));
    assert!(advisory.is_running());
    assert_eq!(fs::read_to_string(&path).expect("reads"), broken());
    advisory.kill_9();
    let mending = house.start(&[
        "watch",
        "--repair",
        "--strategy",
        "reconstruct",
        "--interval-ms",
        "10",
    ]);
    eventually("the session is mended", || {
        (fs::read_to_string(&path).expect("reads") != broken()).then_some(())
    });
    mending.kill_9();
    assert_eq!(house.run(&["scan"]).code, Some(0));
}

#[test]
fn watch_says_that_it_waits_for_what_is_not_there_yet() {
    let house = House::new();
    let (said, found) = (house.path("said"), house.path("found"));
    let mut command = house.command(&["watch", "--json", "--interval-ms", "10", "later.jsonl"]);
    command
        .stderr(fs::File::create(&said).expect("creates"))
        .stdout(fs::File::create(&found).expect("creates"));
    let watch = Process::of(&mut command);
    let waits = "later.jsonl: is not there yet; waiting for it";
    let text = |path: &Path| fs::read_to_string(path).expect("reads");
    eventually("it says so", || text(&said).contains(waits).then_some(()));
    fs::write(house.path("draft"), broken()).expect("writes");
    make_quiet(&house.path("draft"));
    fs::rename(house.path("draft"), house.path("later.jsonl")).expect("moves");
    eventually("it is looked at", || {
        text(&found).contains("toolu_9").then_some(())
    });
    watch.kill_9();
    assert_eq!(text(&said).matches(waits).count(), 1, "said once");
}

#[test]
fn the_ladder_repair_roll_back_reset() {
    let house = House::new();
    let healthy = [HEADER, QUESTION, ""].join("\n");
    let path = session(&house, "s1.jsonl", &healthy);
    let file = path.to_str().expect("UTF-8");
    let made = house
        .run(&[
            "session",
            "checkpoint",
            file,
            "--operation",
            "tool_cycle",
            "--json",
        ])
        .json();
    assert_eq!(made["operation"], "tool_cycle");
    assert_eq!(made["messageIndex"], 2);
    assert_eq!(made["sessionId"], "s1");
    fs::write(&path, broken()).expect("writes");
    make_quiet(&path);
    let back = house.run(&["session", "rollback", file]);
    assert_eq!(back.code, Some(0), "{back:#?}");
    assert_eq!(fs::read_to_string(&path).expect("reads"), healthy);
    // What we wrote ourselves a moment ago is nobody's work: the next rung is not barred.
    let reset = house.run(&["session", "reset", file, "--json"]).json();
    assert_eq!(
        fs::read_to_string(&path).expect("reads"),
        format!("{HEADER}\n")
    );
    let archive = reset["archive"].as_str().expect("a path");
    assert_eq!(fs::read_to_string(archive).expect("reads"), healthy);
    assert!(
        house
            .run(&["session", "list", file])
            .stdout
            .contains("tool_cycle")
    );
}
