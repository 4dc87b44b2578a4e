//! Commands that do not want to end: gone with everything they started, within a second of their
//! limit.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use holdfast_contract::ToolError;
use holdfast_toolbox::tools::ExecTool;
use holdfast_toolbox::tools::exec::{OUTPUT_BYTES_MAX, wait_until_idle};
use serde_json::json;

use crate::common::Workspace;

/// How each of them tries to live on. Every process writes its number to a file of its own.
const STUBBORN: &[(&str, &str)] = &[
    ("eats its time", "echo $$ > 1.pid; while :; do :; done"),
    (
        "ignores what it is told",
        "trap '' TERM HUP INT; echo $$ > 1.pid; while :; do sleep 1; done",
    ),
    ("prints without end", "echo $$ > 1.pid; yes"),
    (
        "prints without end on both",
        "echo $$ > 1.pid; yes >&2 & echo $! > 2.pid; yes",
    ),
    (
        "forks",
        "for i in 1 2 3 4 5 6 7 8; do sh -c \"echo \\$\\$ > $i.pid; sleep 1000\" & done; wait",
    ),
    (
        "forks deeply",
        "sh -c 'echo $$ > 1.pid; sh -c \"echo \\$\\$ > 2.pid; sleep 1000; :\"; :'; :",
    ),
    (
        "leaves its session",
        "setsid sh -c 'echo $$ > 1.pid; exec sleep 1000' & sleep 1000",
    ),
    (
        "daemonises",
        "(setsid sh -c '(sh -c \"echo \\$\\$ > 1.pid; exec sleep 1000\" &)' &); sleep 1000",
    ),
    (
        "daemonises without a name",
        "(env -i setsid sh -c '(env -i sh -c \"trap \\\"\\\" TERM; echo \\$\\$ > 1.pid; while :; do sleep 1; done\" &)' &); sleep 1000",
    ),
    (
        "daemonises in python",
        "python3 -c 'import os, signal, time\nif os.fork(): time.sleep(1000)\nos.setsid()\nif os.fork(): os._exit(0)\nos.environ.clear(); signal.signal(signal.SIGTERM, signal.SIG_IGN)\nopen(\"1.pid\", \"w\").write(str(os.getpid()) + \"\\n\"); time.sleep(1000)'",
    ),
    // As the book says: away from the directory, from every descriptor and from every name.
    (
        "daemonises by the book",
        "python3 -c 'import os, signal, time\npid = os.open(\"1.pid\", os.O_WRONLY | os.O_CREAT)\nif os.fork(): time.sleep(1000)\nos.setsid()\nif os.fork(): os._exit(0)\nos.environ.clear(); os.umask(0); os.chdir(\"/\")\nfor s in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT): signal.signal(s, signal.SIG_IGN)\nos.write(pid, str(os.getpid()).encode()); os.closerange(0, 1024); time.sleep(1000)'",
    ),
    // Its first thread ends, which is the one whose state the kernel shows, and another goes on.
    (
        "ends its first thread",
        "python3 -c 'import ctypes, os, signal, threading, time\nif os.fork(): time.sleep(1000)\nos.setsid()\nif os.fork(): os._exit(0)\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\ndef go_on():\n  open(\"1.pid\", \"w\").write(str(os.getpid()) + \"\\n\"); time.sleep(1000)\nthreading.Thread(target=go_on).start()\nctypes.CDLL(None).syscall({\"x86_64\": 60}.get(os.uname().machine, 93), 0)'",
    ),
    ("stops itself", "echo $$ > 1.pid; kill -STOP $$"),
    (
        "breeds",
        "echo $$ > 1.pid; i=0; while [ $i -lt 200 ]; do i=$((i+1)); (setsid sh -c 'exec sleep 1000' &); done; sleep 1000",
    ),
];

fn is_alive(pid: &str) -> bool {
    let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else {
        return false;
    };
    let Some((_, fields)) = stat.rsplit_once(") ") else {
        return false;
    };
    let fields: Vec<&str> = fields.split(' ').collect();
    // One whose first thread has ended has others as long as it lives.
    match (fields[0], fields[17]) {
        ("Z", threads) => threads != "1" && threads != "0",
        (state, _) => state != "X",
    }
}

/// Every process that has written its number, and lives: wherever it works by now.
fn known_in(workspace: &Path) -> Vec<String> {
    let files = fs::read_dir(workspace).expect("lists").flatten();
    files
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|it| it == "pid"))
        .map(|path| fs::read_to_string(path).expect("reads").trim().to_owned())
        .filter(|pid| !pid.is_empty() && is_alive(pid))
        .collect()
}

/// Every process whose working directory is the workspace.
fn living_in(workspace: &Path) -> Vec<String> {
    let workspace = workspace.canonicalize().expect("is there");
    let processes = fs::read_dir("/proc").expect("lists").flatten();
    processes
        .filter(|entry| fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd == workspace))
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|pid| is_alive(pid))
        .collect()
}

fn memory_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("reads");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_ascii_whitespace().next()?.parse().ok());
    number.expect("a number")
}

/// Runs one of them into its limit. When the answer comes nothing of it is left, or the answer says so
/// and it is about to end.
async fn overrun(how: &str, command: &str) {
    let workspace = Workspace::new();
    let before_kib = memory_kib();
    let params = json!({"command": command, "timeout_ms": 1500});
    let ended = workspace.call(&ExecTool::new(), params).await;
    assert!(
        matches!(&ended, Err(ToolError::Timeout { .. })),
        "{how}: {ended:?}"
    );
    if let Err(ToolError::Timeout {
        so_far: Some(so_far),
        ..
    }) = &ended
        && so_far["still_running"] == true
    {
        // Killed, and the kernel is not done with it: on a disk that is busy that takes its time.
        eventually_empty(&workspace.root, how);
    }
    assert_eq!(living_in(&workspace.root), Vec::<String>::new(), "{how}");
    assert_eq!(known_in(&workspace.root), Vec::<String>::new(), "{how}");
    assert!(workspace.path("1.pid").exists(), "{how} never began");
    let grown_kib = memory_kib().saturating_sub(before_kib);
    assert!(grown_kib < 16 * 1024, "{how}: {grown_kib} KiB more");
}

/// Set in the process that the test below starts for itself: the memory that it measures has to be its own.
const ALONE: &str = "HOLDFAST_TEST_ALONE";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_a_command_does_it_is_gone_with_all_it_started() {
    if std::env::var_os(ALONE).is_none() {
        let name = "exec_limits::whatever_a_command_does_it_is_gone_with_all_it_started";
        let mut again = Command::new(std::env::current_exe().expect("a path"));
        let status = again.args(["--exact", name]).env(ALONE, "1").status();
        assert!(status.expect("runs").success());
        return;
    }
    for (how, command) in STUBBORN {
        overrun(how, command).await;
    }
}

/// Commands that end by themselves and leave something behind that wants to stay.
const LEAVING: &[(&str, &str)] = &[
    (
        "in the background",
        "sh -c 'echo $$ > 1.pid; exec sleep 1000' >/dev/null 2>&1 & while [ ! -s 1.pid ]; do :; done",
    ),
    (
        "in a session of its own",
        "setsid sh -c 'echo $$ > 1.pid; exec sleep 1000' >/dev/null 2>&1 & while [ ! -s 1.pid ]; do :; done",
    ),
    (
        "without a name, and deaf",
        "(env -i setsid sh -c '(env -i sh -c \"trap \\\"\\\" TERM; echo \\$\\$ > 1.pid; while :; do sleep 1; done\" &)' >/dev/null 2>&1 &); while [ ! -s 1.pid ]; do :; done",
    ),
];

/// Looks again until nothing lives there, for a while that no machine needs.
fn eventually_empty(workspace: &Path, how: &str) {
    let deadline = Instant::now() + Duration::from_mins(1);
    while !living_in(workspace).is_empty() || !known_in(workspace).is_empty() {
        assert!(
            Instant::now() < deadline,
            "{how}: {:?}",
            living_in(workspace)
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_command_leaves_behind_is_told_and_gone_when_its_time_is_up() {
    for (how, command) in LEAVING {
        let workspace = Workspace::new();
        let params = json!({"command": format!("{command}; echo started"), "timeout_ms": 3000});
        let ended = workspace.call(&ExecTool::new(), params).await;
        let output = ended.expect(how).output;
        assert_eq!(output["stdout"], "started\n", "{how}");
        assert_eq!(output["still_running"], true, "{how}");
        eventually_empty(&workspace.root, how);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_that_leaves_nothing_says_nothing() {
    let workspace = Workspace::new();
    // Each of them is waited for: one that is still ending is still there.
    let command = "setsid true; (sleep 0 & wait); sh -c 'exit 0' & wait";
    let ended = workspace
        .call(&ExecTool::new(), json!({"command": command}))
        .await;
    let output = ended.expect("runs").output;
    assert_eq!(output.get("still_running"), None, "{output}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_ends_takes_along_what_its_commands_left() {
    let workspace = Workspace::new();
    let (how, command) = LEAVING[1];
    let ended = workspace
        .call(&ExecTool::new(), json!({"command": command}))
        .await;
    assert_eq!(ended.expect("runs").output["still_running"], true);
    assert!(wait_until_idle(Duration::from_mins(1)));
    eventually_empty(&workspace.root, how);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn more_processes_than_one_search_follows_are_gone_as_well() {
    // Each in a session of its own, and more than any bound on a single search.
    let command = "python3 -c 'import os, signal, time\nfor i in range(1600):\n  if os.fork() == 0:\n    os.setsid(); signal.pause()\nopen(\"1.pid\", \"w\").close(); time.sleep(1000)'";
    for limit_ms in [10_000, 40_000] {
        let workspace = Workspace::new();
        let params = json!({"command": command, "timeout_ms": limit_ms});
        let ended = workspace.call(&ExecTool::new(), params).await;
        assert!(
            matches!(&ended, Err(ToolError::Timeout { .. })),
            "{ended:?}"
        );
        assert_eq!(living_in(&workspace.root).len(), 0);
        // On a slow machine the time may be up before all of them are there.
        if workspace.path("1.pid").exists() {
            return;
        }
    }
    panic!("they never were all there");
}

#[tokio::test]
async fn what_a_command_had_printed_when_its_time_was_up_is_told() {
    let workspace = Workspace::new();
    // How long it needs to print depends on the machine.
    for attempt in 0..7 {
        let command = "echo begun; echo oops >&2; sleep 1000; echo never";
        let params = json!({"command": command, "timeout_ms": 100_u64 << attempt});
        let error = workspace
            .call(&ExecTool::new(), params)
            .await
            .expect_err("its time is up");
        let ToolError::Timeout {
            so_far: Some(so_far),
            ..
        } = error
        else {
            panic!("{error:?}");
        };
        if so_far["stdout"] == "begun\n" && so_far["stderr"] == "oops\n" {
            assert_eq!(so_far["truncated"], false);
            return;
        }
    }
    panic!("it never printed");
}

#[tokio::test]
async fn of_a_command_that_never_stops_printing_both_ends_are_told() {
    let workspace = Workspace::new();
    let params = json!({"command": "echo begun; yes x", "timeout_ms": 2_000});
    let error = workspace
        .call(&ExecTool::new(), params)
        .await
        .expect_err("its time is up");
    let ToolError::Timeout {
        so_far: Some(so_far),
        ..
    } = error
    else {
        panic!("{error:?}");
    };
    let stdout = so_far["stdout"].as_str().expect("text");
    assert!(stdout.starts_with("begun\n") && stdout.trim_end().ends_with("\nx"));
    assert!(stdout.contains(" bytes cut …]") && stdout.len() <= OUTPUT_BYTES_MAX + 64);
}
