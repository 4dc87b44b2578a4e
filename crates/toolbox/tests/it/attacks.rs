//! The corpus of attacks on paths, and races between a tool and somebody who moves things under it.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use holdfast_contract::{
    CallContext, SessionContext, TierVerdict, Tool, ToolContext, ToolError, ToolResult,
};
use holdfast_toolbox::permit::PermissionConfig;
use holdfast_toolbox::tools::exec::CommandRules;
use holdfast_toolbox::tools::{EditTool, ExecTool, ReadTool, WriteTool};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde_json::{Value, json};

use crate::common::Workspace;

const SECRET: &str = "the secret of this test";
/// Also a way out when it is written to.
const WRITTEN: &str = "written by an attack";

/// A workspace full of ways out.
fn scene() -> (Workspace, ToolContext) {
    let workspace = Workspace::new();
    let outside = workspace.outside().canonicalize().expect("is there");
    let root = outside.join("workspace");
    fs::create_dir(outside.join("state")).expect("made");
    fs::create_dir(root.join("deep")).expect("made");
    fs::write(outside.join("secret"), SECRET).expect("written");
    fs::write(outside.join("state/approver-token"), SECRET).expect("written");
    for (target, link) in [
        ("..", "up"),
        (outside.to_str().expect("text"), "abs"),
        ("/etc", "etc"),
        ("../..", "deep/up"),
        ("../state", "state"),
        ("/proc/self/root", "self"),
        ("/proc/self/cwd", "cwd"),
        ("loop", "loop"),
        ("b", "a"),
        ("a", "b"),
        ("../secret", "file"),
        ("../new", "gone"),
    ] {
        symlink(target, root.join(link)).expect("linked");
    }
    rustix::fs::mknodat(
        CWD,
        root.join("pipe"),
        rustix::fs::FileType::Fifo,
        0o600.into(),
        0,
    )
    .expect("made");
    let _socket = std::os::unix::net::UnixListener::bind(root.join("socket")).expect("made");
    let mut session = SessionContext::main("session", "agent", root);
    session.reserved = vec![outside.join("state")];
    let context = ToolContext {
        session: Arc::new(session),
        call: CallContext::default(),
    };
    (workspace, context)
}

fn is_untouched(outside: &Path) -> bool {
    let mut names: Vec<String> = fs::read_dir(outside)
        .expect("lists")
        .map(|entry| {
            entry
                .expect("an entry")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    names.sort();
    names == ["secret", "state", "workspace"]
        && fs::read_to_string(outside.join("secret")).expect("there") == SECRET
        && fs::read_dir(outside.join("state")).expect("lists").count() == 1
        && fs::read_to_string(outside.join("state/approver-token")).expect("there") == SECRET
}

/// The file tools on a path of a corpus, each with its answer. None has told or touched anything
/// outside.
async fn tried(line: &str) -> Vec<(String, Result<ToolResult, ToolError>)> {
    let (workspace, context) = scene();
    let outside = workspace.outside().canonicalize().expect("is there");
    let text = |path: &Path| path.to_str().expect("text").to_owned();
    let path = line
        .replace("{outside}", &text(&outside))
        .replace("{workspace}", &text(&outside.join("workspace")))
        .replace("{nul}", "\0");
    let tools: [(&dyn Tool, Value); 3] = [
        (&ReadTool, json!({ "path": path })),
        (&WriteTool, json!({"path": path, "content": WRITTEN})),
        (
            &EditTool,
            json!({"path": path, "old_string": SECRET, "new_string": WRITTEN}),
        ),
    ];
    let mut answers = Vec::new();
    for (tool, params) in tools {
        let result = tool.execute(&params, &context).await;
        let told = format!("{} {line}: {result:?}", tool.name());
        assert!(!told.contains(SECRET), "{told}");
        assert!(!told.contains("root:"), "{told}");
        assert!(is_untouched(&outside), "{told}");
        answers.push((told, result));
    }
    for path in [
        "/etc/holdfast-attack",
        "/tmp/holdfast-attack",
        "/dev/shm/new",
    ] {
        assert!(!Path::new(path).exists(), "{path}");
    }
    answers
}

#[tokio::test]
async fn every_path_of_the_corpus_is_refused_by_a_rule() {
    let lines = holdfast_testkit::corpus(include_str!("attacks/paths.txt"));
    assert!(lines.len() >= 95, "{}", lines.len());
    for line in lines {
        for (told, result) in tried(line).await {
            match result {
                Err(ToolError::PermissionDenied { reason, .. }) => assert!(
                    reason.contains("beneath the workspace only")
                        || reason.contains("no tool may reach"),
                    "{told}"
                ),
                Err(ToolError::ValidationError { field, message }) => {
                    assert_eq!(field.as_deref(), Some("/path"), "{told}");
                    assert!(message.contains("NUL"), "{told}");
                }
                _ => panic!("{told}"),
            }
        }
    }
}

#[tokio::test]
async fn odd_paths_are_names_like_others() {
    let lines = holdfast_testkit::corpus(include_str!("attacks/odd_paths.txt"));
    assert!(lines.len() >= 30, "{}", lines.len());
    for line in lines {
        tried(line).await;
    }
}

/// Exchanges a directory and a link to the outside, for as long as `going` says.
fn swap_forever(root: &Path, going: &AtomicBool) {
    while going.load(Ordering::Relaxed) {
        let (one, other) = (root.join("swap"), root.join("swap-link"));
        renameat_with(CWD, &one, CWD, &other, RenameFlags::EXCHANGE).expect("exchanged");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_writes_while_a_directory_is_swapped_for_a_link() {
    let (workspace, context) = scene();
    let outside = workspace.outside().canonicalize().expect("is there");
    let root = outside.join("workspace");
    fs::create_dir(root.join("swap")).expect("made");
    symlink("../state", root.join("swap-link")).expect("linked");
    let going = Arc::new(AtomicBool::new(true));
    let swapper = {
        let (root, going) = (root.clone(), going.clone());
        std::thread::spawn(move || swap_forever(&root, &going))
    };
    let (mut inside, mut refused) = (0_u32, 0_u32);
    for number in 0..10_000 {
        let name = if number % 2 == 0 {
            "swap/file"
        } else {
            "swap/approver-token"
        };
        let params = json!({"path": name, "content": WRITTEN});
        match WriteTool.execute(&params, &context).await {
            Ok(_) => inside += 1,
            // The exchange is one step, so there is always something of that name.
            Err(ToolError::PermissionDenied { .. }) => refused += 1,
            Err(other) => panic!("{other:?}"),
        }
        if number % 100 == 0 {
            let edit = json!({"path": name, "old_string": SECRET, "new_string": WRITTEN});
            assert!(EditTool.execute(&edit, &context).await.is_err());
            let read = ReadTool
                .execute(&json!({"path": "swap/approver-token"}), &context)
                .await;
            assert!(!format!("{read:?}").contains(SECRET), "{read:?}");
        }
    }
    going.store(false, Ordering::Relaxed);
    swapper.join().expect("no panic");
    assert!(is_untouched(&outside), "{inside} inside, {refused} refused");
    // Both happened, or nothing was tried.
    assert!(
        inside > 0 && refused > 0,
        "{inside} inside, {refused} refused"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_that_swaps_directories_gains_nothing() {
    let (workspace, context) = scene();
    let outside = workspace.outside().canonicalize().expect("is there");
    // The attacker is a command, and the victim the file tools of the same session, until they have
    // been tried often enough.
    let swapping = "while [ ! -e enough ]; do rm -rf swap; ln -s ../state swap; \
                    rm -rf swap; mkdir swap; done 2>/dev/null";
    let running = {
        let context = context.clone();
        let params = json!({ "command": swapping });
        tokio::spawn(async move { ExecTool::new().execute(&params, &context).await })
    };
    let (mut inside, mut refused) = (0_u32, 0_u32);
    while !running.is_finished() && (inside + refused < 2_000 || inside == 0 || refused == 0) {
        let params = json!({"path": "swap/approver-token", "content": WRITTEN});
        match WriteTool.execute(&params, &context).await {
            Ok(_) => inside += 1,
            Err(_) => refused += 1,
        }
        let read = ReadTool
            .execute(&json!({"path": "swap/approver-token"}), &context)
            .await;
        assert!(!format!("{read:?}").contains(SECRET), "{read:?}");
    }
    fs::write(outside.join("workspace/enough"), "").expect("written");
    // Both happened, or nothing was tried.
    assert!(
        inside > 0 && refused > 0,
        "{inside} inside, {refused} refused"
    );
    assert!(running.await.expect("no panic").is_ok());
    assert!(is_untouched(&outside));
}

/// Every command of a corpus with what `exec` says of it.
fn judged(exec: &ExecTool, corpus: &str) -> Vec<(String, TierVerdict)> {
    let session = SessionContext::main("session", "agent", "/home/u/space".into());
    let lines = holdfast_testkit::corpus(corpus).into_iter();
    lines
        .map(|line| {
            let command = line.replace("{nl}", "\n");
            let verdict = exec.tier_for(&json!({ "command": command }), &session);
            (command, verdict)
        })
        .collect()
}

fn with_rules() -> ExecTool {
    let list = |names: &str| names.split(' ').map(str::to_owned).collect();
    let commands = CommandRules {
        allowed: list("cat ls find echo env rm awk sed tar timeout stdbuf git xargs"),
        blocked: list("curl id"),
        ..CommandRules::default()
    };
    let config = PermissionConfig {
        commands,
        ..PermissionConfig::default()
    };
    ExecTool::new().with_permissions(Arc::new(config.into()))
}

#[test]
fn no_command_of_the_corpus_gets_around_the_rules_for_commands() {
    let found = judged(&with_rules(), include_str!("attacks/commands.txt"));
    assert!(found.len() >= 60, "{}", found.len());
    let rules = [
        "blocked_command",
        "command_not_allowed",
        "unreadable_command",
    ];
    let around: Vec<_> = found
        .iter()
        .map(|(command, verdict)| (command, verdict.forbidden.as_ref()))
        .filter(|(_, rule)| rule.is_none_or(|it| !rules.contains(&it.code.as_str())))
        .collect();
    assert_eq!(around, []);
}

#[test]
fn commands_of_every_day_go_on() {
    let ordinary = include_str!("attacks/ordinary.txt");
    for (command, verdict) in judged(&with_rules(), ordinary) {
        assert_eq!(verdict.forbidden, None, "{command}");
    }
    for (command, verdict) in judged(&ExecTool::new(), ordinary) {
        assert_eq!(verdict.reasons, [], "{command}");
    }
}
