//! Tools by another name: ruled, keyed and recorded by their own.

use holdfast_contract::ToolResultEnvelope;
use holdfast_toolbox::permit::PermissionConfig;
use holdfast_toolbox::tools::base_tools;
use serde_json::json;

use crate::permission::bench::{Bench, Build, ask, message, word};

async fn bench(permissions: PermissionConfig) -> (Bench, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let build = Build {
        permissions,
        ..Build::default()
    };
    let bench = build.bench(base_tools());
    bench.main(dir.path().to_owned(), None).await;
    (bench, dir)
}

async fn run(bench: &Bench, tool: &str, key: &str) -> ToolResultEnvelope {
    let params = json!({"command": "echo x >> log"});
    let mut envelope = ask(tool, "main", params);
    envelope.payload.idempotency_key = Some(key.to_owned());
    bench.stack.call(envelope).await
}

#[tokio::test]
async fn a_rule_for_a_tool_holds_by_every_name_of_it() {
    let denied = PermissionConfig {
        denied_tools: vec!["exec".to_owned()],
        ..PermissionConfig::default()
    };
    let (bench, dir) = bench(denied).await;
    for name in ["exec", "shell", "bash", " run_command "] {
        let result = run(&bench, name, name.trim()).await;
        assert_eq!(word(&result), "permission_denied", "{name}: {result:?}");
        assert!(message(&result).contains("exec"), "{result:?}");
        assert_eq!(result.tool_name, "exec");
    }
    assert!(!dir.path().join("log").exists());
}

#[tokio::test]
async fn one_key_is_one_effect_by_every_name() {
    let (bench, dir) = bench(PermissionConfig::default()).await;
    for (at, name) in ["shell", "exec", "bash", "shell"].into_iter().enumerate() {
        let result = run(&bench, name, "the key").await;
        assert_eq!(word(&result), "ran", "{name}: {result:?}");
        assert_eq!(result.from_cache, at > 0, "{name}");
        assert_eq!(result.tool_name, "exec", "{name}");
    }
    let log = std::fs::read_to_string(dir.path().join("log")).unwrap();
    assert_eq!(log, "x\n");
    // What is no name of any tool still is none.
    let unknown = run(&bench, "teleport", "k").await;
    assert_eq!(word(&unknown), "tool_not_found");
}
