//! What an answer covers.

use std::path::Path;
use std::sync::Arc;

use holdfast_contract::{Answer, ChannelLevel, Gate, Scope, Tool};
use holdfast_toolbox::permit::{PermissionConfig, ToolPermission};
use holdfast_toolbox::tools::ExecTool;
use serde_json::{Value, json};

use crate::bench::{Bench, Build, Recorded, ask, message, word};

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
        (run("rm -f ../old"), true),
        (run("rm -f ../old"), false),
        // It is let out of its confinement as a whole, so all of it counts.
        (run("echo first; rm -f ../old"), true),
        (run("rm -f ../older"), true),
        // Elsewhere it is another file.
        (run("cd .. && rm -f ../old"), true),
        (run("cd sub/deep && rm -f ../old"), true),
        (
            json!({"command": "rm -f ../../old", "working_dir": "sub"}),
            true,
        ),
        (
            json!({"command": "rm -f ../../old", "working_dir": "sub"}),
            false,
        ),
        (run("rm -f ../../old"), true),
        // The end of a long command counts.
        (run(&format!("rm -f ../{long}a")), true),
        (run(&format!("rm -f ../{long}b")), true),
        (run(&format!("rm -f ../{long}a")), false),
        // So does all it depends on.
        (run("X=../old; rm -rf $X"), true),
        (run("X=../other; rm -rf $X"), true),
        (run("X=../old; rm -rf $X"), false),
        (json!({"command": "xargs rm -f", "stdin": "../old"}), true),
        (json!({"command": "xargs rm -f", "stdin": "../new"}), true),
        (json!({"command": "xargs rm -f", "stdin": "../old"}), false),
        (json!({"command": "sh", "stdin": "rm -f ../end"}), true),
        (
            json!({"command": "sh", "stdin": "cd ..; rm -f ../end"}),
            true,
        ),
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
