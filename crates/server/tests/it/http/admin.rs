//! `/debug/tool-reliability`.

use std::fs;
use std::sync::Arc;

use holdfast_reliability::store::StoreError;
use holdfast_server::ServerConfig;
use holdfast_testkit::{Reaction, ScriptedTool};
use serde_json::{Value, json};

use crate::http::harness::{ADMIN, Harness, envelope};

fn audit(harness: &Harness) -> Vec<Value> {
    let text = fs::read_to_string(harness.dir.path().join("audit.log")).expect("reads");
    let lines = text
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"));
    lines.collect()
}

#[tokio::test]
async fn every_action_is_written_down_before_and_after() {
    let harness = Harness::new(vec![Arc::new(ScriptedTool::mutating(
        "good",
        [Reaction::Succeed],
    ))]);
    let action = json!({
        "action": "force-open",
        "breaker": "good",
        "reason": "token=hunter2hunter2hunter2",
        "operator": "ann",
    });
    let answer = harness.act(&action).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    let written = audit(&harness);
    assert_eq!(written.len(), 2);
    assert_eq!(written[0]["event"], "admin.asked");
    assert_eq!(written[1]["event"], "admin.done");
    assert_eq!(written[0]["fields"]["id"], written[1]["fields"]["id"]);
    assert_eq!(answer.json()["auditId"], written[0]["fields"]["id"]);
    for entry in &written {
        let fields = &entry["fields"];
        assert_eq!(fields["operator"], "ann");
        assert_eq!(fields["peer"], "127.0.0.1:4711");
        assert_eq!(fields["action"]["action"], "force-open");
        assert!(entry["atMs"].is_u64() && fields["fingerprint"].is_string());
        assert!(!entry.to_string().contains("hunter2"), "{entry}");
        assert!(!entry.to_string().contains(ADMIN));
    }
    assert_eq!(
        written[1]["fields"]["result"]["forcedOpen"],
        json!(["tool:holdfast.tools/good"])
    );
    // Whoever watches the metrics sees it too.
    let page = harness.get("/metrics", "").await.text;
    let changed = r#"openclaw_tool_circuit_breaker_transitions_total{tool="unknown",from_state="CLOSED",to_state="FORCED_OPEN"} 1"#;
    assert!(page.contains(changed), "{page}");
    // And can be read with the admin token.
    let read = harness
        .get("/debug/tool-reliability/audit?limit=1", ADMIN)
        .await;
    assert_eq!(read.json()["entries"], json!([written[1]]));
}

#[tokio::test]
async fn what_can_not_be_written_down_is_not_done() {
    let tool = Arc::new(ScriptedTool::mutating("good", [Reaction::Succeed]));
    // A log that can not be opened.
    let dir = tempfile::tempdir().expect("a directory");
    fs::create_dir(dir.path().join("audit.log")).expect("made");
    let harness = Harness::in_dir(dir, vec![tool.clone()], &ServerConfig::default(), None);
    for action in [
        json!({"action": "force-open", "breaker": "good"}),
        json!({"action": "mode", "mode": "off"}),
    ] {
        let answer = harness.act(&action).await;
        assert_eq!(answer.status, 503, "{}", answer.text);
        assert!(answer.text.contains("audit log"));
    }
    let overview = harness.get("/debug/tool-reliability", ADMIN).await.json();
    assert_eq!(overview["modes"]["mode"], "enforce");
    assert_eq!(overview["breakers"]["FORCED_OPEN"], 0);
    assert_eq!(
        harness
            .call(&envelope("r1", "good", &json!({})))
            .await
            .status,
        200
    );
}

#[tokio::test(start_paused = true)]
async fn actions_that_make_no_sense_are_refused_with_the_reason() {
    let harness = Harness::new(Vec::new());
    for (action, status) in [
        (json!({}), 400),
        (json!([]), 400),
        (json!({"action": "explode"}), 400),
        (json!({"action": "reset"}), 400),
        (json!({"action": "reset", "breaker": "nobody"}), 404),
        (
            json!({"action": "reset", "breaker": "all", "extra": 1}),
            400,
        ),
        (json!({"action": "flush"}), 400),
        (json!({"action": "flush", "state": "odd"}), 400),
        (json!({"action": "mode"}), 400),
        (json!({"action": "mode", "mode": "sometimes"}), 400),
        (
            json!({"action": "mode", "mode": "off", "openMode": "x"}),
            400,
        ),
        (json!({"action": "clear", "key": "nothing"}), 404),
        (
            json!({"action": "reset", "breaker": "all", "operator": 7}),
            400,
        ),
    ] {
        let answer = harness.act(&action).await;
        assert_eq!(answer.status, status, "{action}: {}", answer.text);
        assert!(answer.json()["error"]["message"].is_string());
    }
    // A half-understood switch changed nothing.
    let modes = harness.get("/debug/tool-reliability", ADMIN).await.json()["modes"].clone();
    assert_eq!(
        modes,
        json!({"mode": "enforce", "openMode": "enforce", "deriveIdempotency": "on", "tools": {}})
    );
}

#[tokio::test(start_paused = true)]
async fn a_switch_reaches_the_running_stack() {
    let tool = Arc::new(ScriptedTool::mutating("good", [Reaction::Succeed]));
    let harness = Harness::new(vec![tool.clone()]);
    let mut keyed = envelope("r1", "good", &json!({}));
    keyed["payload"]["idempotencyKey"] = json!("one");
    let cached = async |id: &str| {
        let mut call = keyed.clone();
        call["requestId"] = json!(id);
        harness.call(&call).await.json()["fromCache"].clone()
    };
    assert_eq!(cached("r1").await, false);
    assert_eq!(cached("r2").await, true);
    for (mode, expected) in [
        ("shadow", false),
        ("off", false),
        ("enabled", true),
        ("enforce", true),
    ] {
        let answer = harness.act(&json!({"action": "mode", "mode": mode})).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        assert_eq!(cached(mode).await, expected, "{mode}");
    }
    assert_eq!(tool.executions(), 3);
    // Open breakers alone.
    assert_eq!(
        harness
            .act(&json!({"action": "force-open", "breaker": "good"}))
            .await
            .status,
        200
    );
    assert_eq!(
        harness
            .call(&envelope("r8", "good", &json!({})))
            .await
            .status,
        503
    );
    let answer = harness
        .act(&json!({"action": "mode", "openMode": "off"}))
        .await;
    assert_eq!(answer.json()["modes"]["openMode"], "off");
    assert_eq!(answer.json()["before"]["openMode"], "enforce");
    assert_eq!(
        harness
            .call(&envelope("r9", "good", &json!({})))
            .await
            .status,
        200
    );
}

#[tokio::test(start_paused = true)]
async fn a_running_call_is_cleared_by_force_only() {
    let tool = Arc::new(ScriptedTool::mutating("slow", [Reaction::Hang]));
    let harness = Harness::new(vec![tool]);
    let mut call = envelope("r1", "slow", &json!({}));
    call["payload"]["idempotencyKey"] = json!("one");
    let running = harness.call(&call);
    let clearing = async {
        while harness.records().await == 0 {
            tokio::task::yield_now().await;
        }
        let refused = harness.act(&json!({"action": "clear", "key": "one"})).await;
        assert_eq!(
            (refused.status, &refused.json()["error"]["type"]),
            (409, &json!("in_flight"))
        );
        let flushed = harness.act(&json!({"action": "flush", "all": true})).await;
        assert_eq!(flushed.json()["flushed"], 0);
        let forced = harness
            .act(&json!({"action": "clear", "key": "one", "force": true}))
            .await;
        assert_eq!(forced.json()["cleared"], true);
    };
    tokio::select! {
        _ = running => panic!("the tool hangs"),
        () = clearing => {}
    }
}

#[tokio::test(start_paused = true)]
async fn degraded_is_said_with_its_cause_to_operators() {
    let away = StoreError::Unavailable("the disk is gone".to_owned());
    let tool = Arc::new(ScriptedTool::mutating("good", [Reaction::Succeed]));
    let harness = Harness::with(vec![tool], &ServerConfig::default(), Some(away));
    let listed = harness.get("/debug/tool-reliability/records", ADMIN).await;
    assert_eq!(listed.status, 503);
    assert!(listed.text.contains("the disk is gone"));
    let acted = harness
        .act(&json!({"action": "reset", "breaker": "global"}))
        .await;
    assert_eq!(acted.status, 503);
    assert_eq!(audit(&harness)[1]["event"], "admin.failed");
}
