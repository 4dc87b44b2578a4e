//! TR-12: hooks see every attempt once, and every call that ended without one once.

use std::sync::{Arc, Mutex};

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use holdfast_contract::{Effect, ToolCallEnvelope, ToolResult};
use holdfast_reliability::hooks::{AdmitAnswer, AdmitHook, HookEvent, ObserveHook, Phase};
use holdfast_testkit::{Reaction, ScriptedTool};
use serde_json::json;

use crate::stack::{Ask, Build, Custom, Harness, ask, http};

/// Notes what it is told: phase, attempt, and why there was none.
#[derive(Default)]
struct Notes(Mutex<Vec<(Phase, u32, Option<String>)>>);

impl Notes {
    fn take(&self) -> Vec<(Phase, u32, Option<String>)> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

impl ObserveHook for Notes {
    fn observe<'a>(&'a self, event: HookEvent<'a>) -> BoxFuture<'a, ()> {
        let note = (event.phase, event.attempt, event.short_circuit());
        self.0.lock().unwrap().push(note);
        ready(()).boxed()
    }
}

/// Refuses calls of one session.
struct Gate;

impl AdmitHook for Gate {
    fn name(&self) -> &str {
        "gate"
    }

    fn admit<'a>(
        &'a self,
        envelope: &'a ToolCallEnvelope,
    ) -> BoxFuture<'a, Result<AdmitAnswer, String>> {
        let refuse = (envelope.target.session_key == "banned").then(|| "no".to_owned());
        let answer = AdmitAnswer {
            refuse,
            ..AdmitAnswer::default()
        };
        ready(Ok(answer)).boxed()
    }
}

fn attempts(count: u32) -> Vec<(Phase, u32, Option<String>)> {
    (1..=count)
        .flat_map(|attempt| {
            [
                (Phase::Before, attempt, None),
                (Phase::After, attempt, None),
            ]
        })
        .collect()
}

fn short_circuit(why: &str) -> Vec<(Phase, u32, Option<String>)> {
    let why = Some(why.to_owned());
    vec![(Phase::Before, 0, why.clone()), (Phase::After, 0, why)]
}

fn hooked(build: Build) -> (Harness, Arc<Notes>) {
    let notes = Arc::new(Notes::default());
    let harness = build
        .with(|build| {
            build.hooks.admit.push(Arc::new(Gate));
            build.hooks.observe.push(notes.clone());
        })
        .stack();
    (harness, notes)
}

#[tokio::test(start_paused = true)]
async fn tr_12_hooks_fire_once_per_attempt_and_once_for_a_short_circuit() {
    let script = [
        Reaction::Fail(http(503)),
        Reaction::Fail(http(503)),
        Reaction::Succeed,
        Reaction::Fail(http(503)),
    ];
    let tool = Arc::new(ScriptedTool::mutating("post", script.clone()));
    let mut strict = Custom::new("strict", Effect::None, |_, _| {
        Ok(ToolResult::new(json!(1), ""))
    });
    strict.schema = json!({"type": "object", "required": ["path"]});
    let (strict, elevated) = (Arc::new(strict), {
        let mut tool = Custom::new("elevated", Effect::None, |_, _| {
            Ok(ToolResult::new(json!(1), ""))
        });
        tool.tier = holdfast_contract::PermissionTier::Elevated;
        Arc::new(tool)
    });
    let build = Build::new(&tool).and(&strict).and(&elevated);
    let (harness, notes) = hooked(build);
    let seen = async |ask: &Ask| {
        harness.call(ask).await;
        notes.take()
    };

    // Every attempt, before and after.
    let call = ask("post").key("k");
    assert_eq!(seen(&call).await, attempts(3));
    // Answered from the record.
    assert_eq!(seen(&call.again()).await, short_circuit("cached"));
    // Refused by the schema, by permissions, by an admit hook; and no such tool.
    assert_eq!(
        seen(&ask("strict")).await,
        short_circuit("invalid_arguments")
    );
    assert_eq!(
        seen(&ask("elevated")).await,
        short_circuit("permission_denied")
    );
    let banned = ask("post").with(|envelope| envelope.target.session_key = "banned".into());
    assert_eq!(seen(&banned).await, short_circuit("refused_by_hook"));
    assert_eq!(seen(&ask("no_such")).await, short_circuit("tool_not_found"));
    // Refused by the loop guard: two failures in one turn, then the third is not run.
    for _ in 0..2 {
        let told = seen(&ask("strict").turn("loop")).await;
        assert_eq!(told, short_circuit("invalid_arguments"));
    }
    let told = seen(&ask("strict").turn("loop")).await;
    assert_eq!(told, short_circuit("loop_detected"));
    // Four more failures open the breaker on top of the last one; then it refuses.
    assert_eq!(seen(&ask("post")).await, attempts(4));
    assert_eq!(seen(&ask("post").attempts(1)).await, attempts(1));
    assert_eq!(seen(&ask("post")).await, short_circuit("circuit_open"));
    // The caller's deadline had passed.
    assert_eq!(
        seen(&ask("strict").deadline_in(0)).await,
        short_circuit("timeout")
    );

    // An attempt that the deadline cuts off has an end, too.
    let tool = Arc::new(ScriptedTool::mutating("post", [Reaction::Hang]));
    let (harness, notes) = hooked(Build::new(&tool));
    harness.call(&ask("post").deadline_in(50)).await;
    assert_eq!(notes.take(), attempts(1));

    // Watching changes nothing: with and without hooks a call is answered alike.
    let plain = Arc::new(ScriptedTool::mutating("post", script.clone()));
    let watched = Arc::new(ScriptedTool::mutating("post", script));
    let plain = Build::new(&plain).stack();
    let (watched, _) = hooked(Build::new(&watched));
    let call = ask("post").params(json!({"path": "a"}));
    assert_eq!(plain.call(&call).await, watched.call(&call).await);
}
