//! What an answer covers.

use std::path::Path;
use std::sync::Arc;

use holdfast_contract::{Answer, ChannelLevel, Gate, Scope, Tool};
use holdfast_toolbox::permit::{PermissionConfig, ToolPermission};
use holdfast_toolbox::tools::ExecTool;
use serde_json::{Value, json};

use crate::permission::bench::{Bench, Build, Recorded, ask, message, word};

const FOR_SESSION: Answer = Answer::Approve {
    scope: Scope::Session,
};

/// `exec` in a workspace of its own, and people who answer `says`.
async fn exec_bench(root: &Path, build: Build, says: Answer) -> (Bench, Arc<Recorded>) {
    let channel = Recorded::new(ChannelLevel::Elevated, Some(says));
    let bench = build.bench(vec![Arc::new(ExecTool::new()) as Arc<dyn Tool>]);
    bench.main(root.to_owned(), Some(channel.clone())).await;
    (bench, channel)
}

/// Runs the calls one after the other; which of them somebody was asked about.
async fn asked_about(bench: &Bench, channel: &Recorded, calls: &[Value]) -> Vec<bool> {
    let mut asked = Vec::new();
    for params in calls {
        let before = channel.prompts.lock().len();
        let result = bench.stack.call(ask("exec", "main", params.clone())).await;
        assert_eq!(word(&result), "ran", "{params}: {result:?}");
        asked.push(channel.prompts.lock().len() > before);
    }
    asked
}

#[tokio::test]
async fn a_yes_covers_the_same_command_in_the_same_place() {
    let house = tempfile::tempdir().unwrap();
    let root = house.path().canonicalize().unwrap().join("a/space");
    std::fs::create_dir_all(root.join("sub/deep")).unwrap();
    let long = "x".repeat(300);
    let run = |command: &str| json!({"command": command});
    let table = [
        (run("$(echo echo) old"), true),
        (run("$(echo echo) old"), false),
        // What runs depends on all of it.
        (run("echo first; $(echo echo) old"), true),
        (run("$(echo echo) older"), true),
        // Elsewhere it is another thing.
        (run("cd .. && $(echo echo) old"), true),
        (run("cd sub/deep && $(echo echo) old"), true),
        (
            json!({"command": "$(echo echo) old", "working_dir": "sub"}),
            true,
        ),
        (
            json!({"command": "$(echo echo) old", "working_dir": "sub"}),
            false,
        ),
        // The end of a long command counts.
        (run(&format!("$(echo echo) {long}a")), true),
        (run(&format!("$(echo echo) {long}b")), true),
        (run(&format!("$(echo echo) {long}a")), false),
        // So does what it is given.
        (json!({"command": "sh", "stdin": "$(echo echo) a"}), true),
        (json!({"command": "sh", "stdin": "$(echo echo) b"}), true),
        (json!({"command": "sh", "stdin": "$(echo echo) a"}), false),
    ];
    let calls: Vec<Value> = table.iter().map(|(params, _)| params.clone()).collect();
    for scope in [Scope::Session, Scope::Policy] {
        let (bench, channel) = exec_bench(&root, Build::default(), Answer::Approve { scope }).await;
        let found = asked_about(&bench, &channel, &calls).await;
        for ((params, expected), found) in table.iter().zip(found) {
            assert_eq!(found, *expected, "{scope:?} {params}");
        }
    }
}

#[tokio::test]
async fn a_command_that_is_let_out_is_asked_about_each_time() {
    let house = tempfile::tempdir().unwrap();
    let root = house.path().canonicalize().unwrap().join("space");
    std::fs::create_dir(&root).unwrap();
    let commands = ["rm -f ../old", "git push --force", "sudo -n true"];
    let once = Answer::Approve { scope: Scope::Once };
    let (bench, channel) = exec_bench(&root, Build::default(), once).await;
    for command in commands {
        let calls = [json!({ "command": command }), json!({ "command": command })];
        let asked = asked_about(&bench, &channel, &calls).await;
        assert_eq!(asked, [true, true], "{command}");
    }
    let prompts = channel.prompts.lock().clone();
    assert!(prompts.iter().all(|prompt| prompt.gate == Gate::Strict));
}

#[tokio::test]
async fn a_yes_at_a_tools_own_gate_covers_its_arguments() {
    let house = tempfile::tempdir().unwrap();
    let root = house.path().canonicalize().unwrap();
    let mut permissions = PermissionConfig::default();
    let gated = ToolPermission {
        gate: Some(Gate::Required),
        ..ToolPermission::default()
    };
    permissions.tools.insert("exec".to_owned(), gated);
    let build = Build {
        permissions,
        ..Build::default()
    };
    let (bench, channel) = exec_bench(&root, build, FOR_SESSION).await;
    let calls = [
        json!({"command": "ls"}),
        json!({"command": "ls"}),
        json!({"command": "touch made"}),
        json!({"command": "ls", "stdin": "x"}),
    ];
    let found = asked_about(&bench, &channel, &calls).await;
    assert_eq!(found, [true, false, true, true]);
}

#[tokio::test]
async fn the_input_of_a_shell_is_asked_about_or_refused() {
    let house = tempfile::tempdir().unwrap();
    let root = house.path().canonicalize().unwrap().join("space");
    std::fs::create_dir(&root).unwrap();
    let victim = house.path().join("victim");
    std::fs::write(&victim, "precious").unwrap();
    let no = Answer::Deny { reason: None };
    let (bench, channel) = exec_bench(&root, Build::default(), no).await;
    let call = |stdin: &str| {
        let params = json!({"command": "sh", "stdin": stdin});
        bench.stack.call(ask("exec", "main", params))
    };
    let denied = call("rm -rf ../victim").await;
    assert_eq!(word(&denied), "permission_denied");
    assert_eq!(channel.prompts.lock().len(), 1);
    assert!(victim.exists());
    let denied = call("holdfast approvals approve abc").await;
    assert!(
        message(&denied).contains("answered by people"),
        "{denied:?}"
    );
    assert_eq!(channel.prompts.lock().len(), 1);
}
