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
async fn a_yes_covers_the_same_grant_again_and_no_other() {
    let house = tempfile::tempdir().unwrap();
    let base = house.path().canonicalize().unwrap();
    let root = base.join("space");
    for dir in ["space/sub", "beside", "other"] {
        std::fs::create_dir_all(base.join(dir)).unwrap();
    }
    let writes = |command: &str, paths: &[&str]| json!({"command": command, "writes": paths});
    let table = [
        (writes("touch ../beside/a", &["../beside"]), true),
        (writes("touch ../beside/a", &["../beside"]), false),
        // The yes was to the directory, not to a text.
        (writes("touch ../beside/b", &["../beside"]), false),
        (
            json!({"command": "true", "working_dir": "sub", "writes": ["../../beside"]}),
            false,
        ),
        (writes("true", &["../beside", "../other"]), true),
        (writes("true", &["../other"]), false),
        (json!({"command": "true", "reads": ["../other"]}), true),
        (writes("true", &["../beside/a"]), true),
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
    let commands = ["git push --force", "sudo -n true"];
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
