//! Commands that do not want to end: gone with everything they started, within a second of their
//! limit.

#![expect(
    clippy::expect_used,
    reason = "a helper that fails is a test that fails"
)]
#![expect(
    dead_code,
    reason = "the helpers are shared with the other test binaries"
)]

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use holdfast_contract::ToolError;
use holdfast_toolbox::tools::ExecTool;
use holdfast_toolbox::tools::exec::wait_until_idle;
use serde_json::json;

mod common;
use common::Workspace;

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
    let state = stat.rsplit_once(") ").map(|(_, rest)| &rest[..1]);
    !matches!(state, Some("Z" | "X") | None)
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

/// What they are given.
const LIMIT: Duration = Duration::from_millis(1500);
/// How long after that the last of them may be gone.
const GONE_WITHIN: Duration = Duration::from_secs(1);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_a_command_does_it_is_gone_with_all_it_started() {
    for (how, command) in STUBBORN {
        let workspace = Workspace::new();
        let before_kib = memory_kib();
        let limit_ms = u64::try_from(LIMIT.as_millis()).expect("small");
        let params = json!({"command": command, "timeout_ms": limit_ms});
        let asked = Instant::now();
        let ended = workspace.call(&ExecTool::new(), params).await;
        let answered = asked.elapsed();
        assert!(
            matches!(&ended, Err(ToolError::Timeout { .. })),
            "{how}: {ended:?}"
        );
        // None is left when the answer is there, so they were gone by then. By our own clock, from
        // before the command was started: what that took counts against them too.
        assert_eq!(living_in(&workspace.root), Vec::<String>::new(), "{how}");
        let late = answered.saturating_sub(LIMIT);
        println!("{how}: gone {late:?} after its limit");
        assert!(late <= GONE_WITHIN, "{how}: gone {late:?} after its limit");
        assert!(workspace.path("1.pid").exists(), "{how} never began");
        let grown_kib = memory_kib().saturating_sub(before_kib);
        assert!(grown_kib < 16 * 1024, "{how}: {grown_kib} KiB more");
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
    while !living_in(workspace).is_empty() {
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
