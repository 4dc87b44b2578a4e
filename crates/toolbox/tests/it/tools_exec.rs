//! `exec` against real processes.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use holdfast_contract::{Lifeline, Tool, ToolError, ToolResult};
use holdfast_testkit::wait::eventually;
use holdfast_toolbox::tools::ExecTool;
use holdfast_toolbox::tools::exec::{OUTPUT_BYTES_MAX, wait_until_idle};
use serde_json::json;

use crate::common::{Workspace, code};

async fn run(workspace: &Workspace, command: &str) -> ToolResult {
    let result = workspace
        .call(&ExecTool::new(), json!({"command": command}))
        .await;
    result.expect("runs")
}

/// The process id that a command wrote to a file.
fn pid_in(path: &Path) -> Option<u32> {
    let text = fs::read_to_string(path).ok()?;
    text.strip_suffix('\n')?.parse().ok()
}

/// Whether the process runs: one that only waits to be reaped by its new parent does not.
fn is_alive(pid: u32) -> bool {
    let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else {
        return false;
    };
    let state = stat.rsplit_once(") ").map(|(_, rest)| &rest[..1]);
    !matches!(state, Some("Z" | "X") | None)
}

fn eventually_gone(what: &str, pid: u32) {
    eventually(what, || (!is_alive(pid)).then_some(()));
}

/// Ends a background process when a test is done with it, however it is done.
struct KillOnDrop(u32);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        let _ = Command::new("kill")
            .args(["-9", &self.0.to_string()])
            .status();
    }
}

#[tokio::test]
async fn a_command_that_works() {
    let workspace = Workspace::new();
    let result = run(&workspace, "pwd; echo oops >&2").await;
    let pwd = fs::canonicalize(&workspace.root).expect("is there");
    assert_eq!(
        result.output,
        json!({
            "exit_code": 0, "stdout": format!("{}\n", pwd.display()), "stderr": "oops\n",
            "truncated": false,
        })
    );
    assert_eq!(result.exit_code, None);
    assert_eq!(result.display, "`pwd; echo oops >&2` exited with 0");
}

#[tokio::test]
async fn a_command_that_says_no_is_a_result() {
    let workspace = Workspace::new();
    let result = run(&workspace, "echo out; exit 3").await;
    assert_eq!(result.exit_code, Some(3));
    assert_eq!(result.output["exit_code"], 3);
    assert_eq!(result.output["stdout"], "out\n");
    let result = run(&workspace, "no-such-command-here").await;
    assert_eq!(result.exit_code, Some(127));
    let result = run(&workspace, "kill -9 $$").await;
    assert_eq!(result.exit_code, Some(137));
    assert_eq!(result.output["signal"], 9);
}

#[tokio::test]
async fn arguments_are_checked() {
    let workspace = Workspace::new();
    workspace.put("file", "");
    let exec = ExecTool::new();
    for (params, expected) in [
        (json!({"command": " "}), "invalid Some(\"/command\")"),
        (json!({"command": "a\0b"}), "invalid Some(\"/command\")"),
        (
            json!({"command": "x".repeat(200_000)}),
            "invalid Some(\"/command\")",
        ),
        (
            json!({"command": "cat", "stdin": "x".repeat(2_000_000)}),
            "invalid Some(\"/stdin\")",
        ),
        (
            json!({"command": "true", "working_dir": "x/".repeat(4000)}),
            "invalid Some(\"/working_dir\")",
        ),
        (
            json!({"command": "true", "timeout_ms": 0}),
            "invalid Some(\"/timeout_ms\")",
        ),
        (
            json!({"command": "true", "working_dir": ".."}),
            "permission_denied",
        ),
        (
            json!({"command": "true", "working_dir": "/"}),
            "permission_denied",
        ),
        (
            json!({"command": "true", "working_dir": "gone"}),
            "not_found",
        ),
        (
            json!({"command": "true", "working_dir": "file"}),
            "not_a_directory",
        ),
    ] {
        assert_eq!(code(workspace.call(&exec, params).await), expected);
    }
}

#[tokio::test]
async fn working_directory_and_standard_input() {
    let workspace = Workspace::new();
    fs::create_dir(workspace.path("sub")).expect("creates");
    let text = "line\n".repeat(100_000);
    let params = json!({"command": "cat > copy", "working_dir": "sub", "stdin": text});
    let result = workspace
        .call(&ExecTool::new(), params)
        .await
        .expect("runs");
    assert_eq!(result.exit_code, None);
    assert_eq!(workspace.get("sub/copy"), text);
    // Without input there is an end at once, not a wait for a terminal.
    assert_eq!(run(&workspace, "cat").await.output["stdout"], "");
}

#[tokio::test]
async fn a_command_sees_no_tokens() {
    let workspace = Workspace::new();
    let exec = ExecTool::with_environment(
        [
            ("PATH", "/usr/bin:/bin"),
            ("HOME", "/home/someone"),
            ("LC_ALL", "C"),
            ("OPENAI_API_KEY", "sk-secret"),
            ("HOLDFAST_TOKEN", "secret"),
            ("LD_PRELOAD", ""),
        ]
        .map(|(name, value)| (name.into(), value.into())),
    );
    let result = workspace
        .call(&exec, json!({"command": "env"}))
        .await
        .expect("runs");
    let output = result.output["stdout"].as_str().expect("is text");
    let mut names: Vec<&str> = output
        .lines()
        .filter_map(|line| line.split_once('=').map(|(name, _)| name))
        .filter(|name| !["PWD", "OLDPWD", "SHLVL", "_"].contains(name))
        .collect();
    names.sort_unstable();
    assert_eq!(names, ["HOLDFAST_CALL", "HOME", "LC_ALL", "PATH", "TMPDIR"]);
}

#[tokio::test]
async fn a_flood_of_output_is_cut_in_the_middle() {
    let workspace = Workspace::new();
    let result = run(
        &workspace,
        "echo first; yes | head -c 50000000; echo last; echo err >&2",
    )
    .await;
    assert_eq!(result.output["truncated"], true);
    assert_eq!(result.output["stderr"], "err\n");
    let stdout = result.output["stdout"].as_str().expect("is text");
    assert!(stdout.starts_with("first\ny\n") && stdout.ends_with("y\nlast\n"));
    let cut = 50_000_000 + "first\nlast\n".len() - OUTPUT_BYTES_MAX;
    assert!(stdout.contains(&format!("[… {cut} bytes cut …]")));
    assert!(stdout.len() < OUTPUT_BYTES_MAX + 100);
}

#[tokio::test]
async fn a_background_process_is_not_waited_for() {
    let workspace = Workspace::new();
    let result = run(&workspace, "sleep 1000 & echo $! > pid; echo started").await;
    let _sleeper = KillOnDrop(pid_in(&workspace.path("pid")).expect("a pid"));
    assert_eq!(result.output["stdout"], "started\n");
    assert_eq!(result.output["still_running"], true);
    assert_eq!(result.exit_code, None);
}

/// A command with a child in its group and one in a session of its own, all deaf to SIGTERM. Each
/// writes its process id to a file.
const DEAF_FAMILY: &str = "
    trap '' TERM
    sh -c 'echo $$ > grouped.pid; exec sleep 1000' &
    setsid sh -c 'echo $$ > escaped.pid; exec sleep 1000' > /dev/null 2>&1 &
    (setsid sh -c 'sh -c \"echo \\$\\$ > orphan.pid; exec sleep 1000\" &' > /dev/null 2>&1)
    echo $$ > main.pid
    while :; do sleep 1000; done";
const FAMILY_FILES: [&str; 4] = ["main.pid", "grouped.pid", "escaped.pid", "orphan.pid"];

fn family(workspace: &Workspace) -> Option<Vec<u32>> {
    let pids = FAMILY_FILES
        .iter()
        .map(|name| pid_in(&workspace.path(name)));
    pids.collect()
}

#[tokio::test]
async fn a_time_out_kills_everything() {
    // How long a family needs to assemble depends on the machine, so a limit that was too short
    // for it is doubled.
    for attempt in 0..7 {
        let workspace = Workspace::new();
        let limit_ms = 250_u64 << attempt;
        let params = json!({"command": DEAF_FAMILY, "timeout_ms": limit_ms});
        let error = workspace.call(&ExecTool::new(), params).await.unwrap_err();
        let ToolError::Timeout { elapsed, .. } = error else {
            panic!("{error:?}");
        };
        assert!(elapsed >= Duration::from_millis(limit_ms));
        if let Some(family) = family(&workspace) {
            for (name, pid) in FAMILY_FILES.iter().zip(family) {
                eventually_gone(name, pid);
            }
            return;
        }
    }
    panic!("the family never assembled");
}

#[tokio::test]
async fn the_shortest_limit_wins() {
    let workspace = Workspace::new();
    let slow = json!({"command": "sleep 1000", "timeout_ms": 600_000});
    let by_tool = ExecTool::new().with_timeout_ms(50);
    assert_eq!(by_tool.default_timeout_ms(), 50);
    let result = workspace.call(&by_tool, slow.clone()).await;
    assert!(matches!(result, Err(ToolError::Timeout { .. })));
    let mut ctx = workspace.context();
    ctx.call.time_limit_ms = Some(50);
    let result = ExecTool::new().execute(&slow, &ctx).await;
    assert!(matches!(result, Err(ToolError::Timeout { .. })));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_that_goes_away_takes_the_command_along() {
    let workspace = Workspace::new();
    let ctx = workspace.context();
    let call = tokio::spawn(async move {
        let params = json!({"command": DEAF_FAMILY});
        ExecTool::new().execute(&params, &ctx).await
    });
    let pids = eventually("the family assembles", || family(&workspace));
    call.abort();
    assert!(call.await.unwrap_err().is_cancelled());
    for (name, pid) in FAMILY_FILES.iter().zip(&pids) {
        eventually_gone(name, *pid);
    }
    // The direct child is ours to reap.
    let main = format!("/proc/{}", pids[0]);
    eventually("main is reaped", || {
        (!fs::exists(&main).expect("looks")).then_some(())
    });
}

#[test]
fn a_runtime_that_goes_away_takes_the_command_along_and_the_next_one_works() {
    let workspace = Workspace::new();
    let runtime = || {
        tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .build()
            .expect("a runtime")
    };
    let first = runtime();
    let ctx = workspace.context();
    first.spawn(async move {
        let params = json!({"command": "echo $$ > pid; exec sleep 1000"});
        ExecTool::new().execute(&params, &ctx).await
    });
    let pid = eventually("the command starts", || pid_in(&workspace.path("pid")));
    drop(first);
    eventually_gone("the command", pid);
    let result = runtime().block_on(run(&workspace, "echo again"));
    assert_eq!(result.output["stdout"], "again\n");
}

#[tokio::test]
async fn a_command_holds_the_lifeline_and_no_other_descriptor() {
    let workspace = Workspace::new();
    let lock_path = workspace.outside().join("lock");
    let lock = fs::File::create(&lock_path).expect("creates");
    lock.lock().expect("locks");
    let mut ctx = workspace.context();
    ctx.call.lifeline = Some(Lifeline::new(move || lock.try_clone()));
    // Opened the careless way: any child would inherit it.
    let leaked = fs::File::create(workspace.path("leaked")).expect("creates");
    let _leaked = rustix::io::dup(&leaked).expect("duplicates");
    let params = json!({"command": "exec > /dev/null 2>&1; sleep 1000 & echo $! > pid"});
    let result = ExecTool::new().execute(&params, &ctx).await.expect("runs");
    let sleeper = KillOnDrop(pid_in(&workspace.path("pid")).expect("a pid"));
    let inherited = fs::read_dir(format!("/proc/{}/fd", sleeper.0))
        .expect("lists")
        .filter_map(|entry| fs::read_link(entry.ok()?.path()).ok())
        .filter(|target| *target != Path::new("/dev/null"))
        .collect::<Vec<_>>();
    assert_eq!(
        inherited,
        [fs::canonicalize(&lock_path).expect("is there")],
        "{result:?}"
    );

    // Nobody here holds the lock any more, and still it is held.
    drop(ctx);
    let other = fs::File::open(&lock_path).expect("opens");
    assert!(other.try_lock().is_err());
    let pid = sleeper.0;
    drop(sleeper);
    eventually_gone("the sleeper", pid);
    eventually("the lock is free", || other.try_lock().ok());
}

/// The variable that makes the tests below helper processes.
const HELPER_WORKSPACE: &str = "HOLDFAST_TEST_HELPER_WORKSPACE";

/// Starts the ignored test `name` of this file as a process of its own.
fn helper(name: &str, workspace: &Workspace) -> std::process::Child {
    Command::new(std::env::current_exe().expect("a path"))
        .args(["--exact", &format!("tools_exec::{name}"), "--ignored"])
        .env(HELPER_WORKSPACE, &workspace.root)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("starts")
}

fn helper_context(root: &Path) -> holdfast_contract::ToolContext {
    let session = holdfast_contract::SessionContext::main("session", "agent", root.to_owned());
    holdfast_contract::ToolContext {
        session: session.into(),
        call: holdfast_contract::CallContext::default(),
    }
}

#[tokio::test]
#[ignore = "the helper process of everything_in_the_group_dies_with_its_parent"]
async fn helper_that_runs_a_command() {
    let Some(root) = std::env::var_os(HELPER_WORKSPACE) else {
        return;
    };
    let mut ctx = helper_context(root.as_ref());
    let lock = fs::File::create(Path::new(&root).join("lock")).expect("creates");
    lock.lock().expect("locks");
    ctx.call.lifeline = Some(Lifeline::new(move || lock.try_clone()));
    let command = "trap '' TERM HUP
        sh -c 'sh -c \"echo \\$\\$ > grandchild.pid; exec sleep 1000\"; true' &
        echo $$ > main.pid
        wait";
    let _ = ExecTool::new()
        .execute(&json!({"command": command}), &ctx)
        .await;
}

#[test]
fn everything_in_the_group_dies_with_its_parent() {
    let workspace = Workspace::new();
    let mut helper = helper("helper_that_runs_a_command", &workspace);
    let pids = ["main.pid", "grandchild.pid"]
        .map(|name| eventually(name, || pid_in(&workspace.path(name))));
    let lock = fs::File::open(workspace.path("lock")).expect("opens");
    assert!(pids.iter().all(|pid| is_alive(*pid)));
    assert!(lock.try_lock().is_err());
    helper.kill().expect("kills");
    assert_eq!(helper.wait().expect("ends").signal(), Some(9));
    for pid in pids {
        eventually_gone("a process of the command", pid);
    }
    eventually("the lock is free", || lock.try_lock().ok());
}

/// The processes that this process has started and not reaped.
fn children() -> Vec<String> {
    let own = std::process::id().to_string();
    let is_child = |stat: &str| {
        let fields = stat.rsplit_once(") ").map(|(_, rest)| rest);
        fields.and_then(|rest| rest.split(' ').nth(1)) == Some(&own)
    };
    fs::read_dir("/proc")
        .expect("lists")
        .filter_map(|entry| fs::read_to_string(entry.ok()?.path().join("stat")).ok())
        .filter(|stat| is_child(stat))
        .collect()
}

#[tokio::test]
#[ignore = "the helper process of no_guardian_is_left_behind"]
async fn helper_that_runs_many_commands() {
    let Some(root) = std::env::var_os(HELPER_WORKSPACE) else {
        return;
    };
    let ctx = helper_context(root.as_ref());
    let exec = ExecTool::new();
    for _ in 0..10 {
        for command in ["true", "exit 3", "kill -9 $$", "kill -9 0"] {
            let params = json!({"command": command});
            exec.execute(&params, &ctx).await.expect("runs");
        }
    }
    let params = json!({"command": "sleep 1000", "timeout_ms": 20});
    exec.execute(&params, &ctx).await.expect_err("times out");
    let params = json!({"command": "echo > started; sleep 1000"});
    let (started, cancelled) = (
        Path::new(&root).join("started"),
        exec.execute(&params, &ctx),
    );
    let poll = async {
        while !started.exists() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::select! {
        _ = cancelled => panic!("it sleeps"),
        () = poll => {}
    }
    assert!(wait_until_idle(Duration::from_mins(1)));
    assert_eq!(children(), Vec::<String>::new());
    let params = json!({"command": "sleep 1000 > /dev/null 2>&1 & echo $! > left.pid"});
    exec.execute(&params, &ctx).await.expect("runs");
    assert!(wait_until_idle(Duration::from_mins(1)));
    assert_eq!(children(), Vec::<String>::new());
    fs::write(Path::new(&root).join("all-well"), "").expect("writes");
}

#[test]
fn no_guardian_is_left_behind_nor_what_a_finished_command_left() {
    let workspace = Workspace::new();
    let mut helper = helper("helper_that_runs_many_commands", &workspace);
    assert!(helper.wait().expect("ends").success());
    assert!(workspace.path("all-well").exists());
    // The helper has waited for its commands, and taken along what they left.
    let left = KillOnDrop(pid_in(&workspace.path("left.pid")).expect("a pid"));
    eventually_gone("what a command left", left.0);
}

#[tokio::test]
async fn many_commands_at_once() {
    let workspace = Workspace::new();
    let calls: Vec<_> = (0..20)
        .map(|number| {
            let ctx = workspace.context();
            tokio::spawn(async move {
                let params = json!({"command": format!("echo {number}")});
                ExecTool::new().execute(&params, &ctx).await
            })
        })
        .collect();
    for (number, call) in calls.into_iter().enumerate() {
        let result = call.await.expect("runs").expect("works");
        assert_eq!(result.output["stdout"], format!("{number}\n"));
    }
}
