//! Which calls are the same call.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use holdfast_contract::{Status, ToolCallEnvelope};
use holdfast_reliability::hooks::{AdmitAnswer, AdmitHook};
use holdfast_reliability::idempotency::DedupeStores;
use holdfast_reliability::store::DedupeStore;
use holdfast_reliability::store::memory::{MemoryDedupeStore, MemoryLimits};
use holdfast_testkit::{Reaction, ScriptedTool, TokioClock};
use holdfast_toolbox::stack::{BuildError, Parts, ToolStack};
use serde_json::{Value, json};

use crate::stack::{Ask, Build, Harness, ask, error_of, message_of};

fn read_only() -> (Arc<ScriptedTool>, Harness) {
    let tool = Arc::new(ScriptedTool::read_only("look", [Reaction::Succeed]));
    let harness = Build::new(&tool).stack();
    (tool, harness)
}

/// Whether the second call is answered from the record of the first.
async fn same(harness: &Harness, first: Ask, second: Ask) -> bool {
    assert!(!harness.call(&first).await.from_cache);
    harness.call(&second).await.from_cache
}

#[tokio::test(start_paused = true)]
async fn a_computed_key_is_an_intent_and_not_a_content() {
    let (_, harness) = read_only();
    let cases = [
        // Nothing but the request identifies it: the same read again is a new read.
        ("another request", ask("look"), ask("look"), false),
        // A resumed run comes by the same step again.
        (
            "same run and step",
            ask("look").step("r1", 1, 0),
            ask("look").step("r1", 1, 0),
            true,
        ),
        (
            "another index",
            ask("look").step("r2", 1, 0),
            ask("look").step("r2", 1, 1),
            false,
        ),
        (
            "another iteration",
            ask("look").step("r3", 1, 0),
            ask("look").step("r3", 2, 0),
            false,
        ),
        (
            "another run",
            ask("look").step("r4", 1, 0),
            ask("look").step("r5", 1, 0),
            false,
        ),
        (
            "same turn and tool call",
            ask("look").turn("t1").call_id("call_0"),
            ask("look").turn("t1").call_id("call_0"),
            true,
        ),
        (
            "another tool call",
            ask("look").turn("t2").call_id("call_0"),
            ask("look").turn("t2").call_id("call_1"),
            false,
        ),
        (
            "another turn",
            ask("look").turn("t3").call_id("call_0"),
            ask("look").turn("t4").call_id("call_0"),
            false,
        ),
        // Servers count every answer's calls from 0.
        (
            "a bare tool call",
            ask("look").no_turn().call_id("call_0"),
            ask("look").no_turn().call_id("call_0"),
            false,
        ),
        (
            "same turn only",
            ask("look").turn("t5"),
            ask("look").turn("t5"),
            false,
        ),
    ];
    for (what, first, second, expected) in cases {
        assert_eq!(same(&harness, first, second).await, expected, "{what}");
    }
    // A transport that delivers a request twice.
    let request = ask("look");
    assert!(same(&harness, request.clone(), request).await);
}

#[tokio::test(start_paused = true)]
async fn request_id_with_other_arguments_is_a_conflict() {
    for tool in [
        ScriptedTool::read_only("tool", [Reaction::Succeed]),
        ScriptedTool::mutating("tool", [Reaction::Succeed]),
    ] {
        let tool = Arc::new(tool);
        let harness = Build::new(&tool).stack();
        let first = ask("tool").params(json!({"n": 1}));
        assert!(same(&harness, first.clone(), first.clone()).await);
        let other = harness.call(&first.clone().params(json!({"n": 2}))).await;
        let conflict = ("idempotency_key_conflict", Status::Error, true, false);
        assert_eq!(error_of(&other), conflict);
        assert!(message_of(&other).contains("request id"), "{other:?}");
        assert_eq!(tool.executions(), 1);
        // A place in a run says which call it is; then the id of the request is only one of the delivery.
        let placed = first.clone().step("run", 1, 0).params(json!({"n": 3}));
        assert!(harness.call(&placed).await.is_success());
    }
}

#[tokio::test(start_paused = true)]
async fn request_id_with_other_arguments_is_another_call_where_the_policy_says_so() {
    let tool = Arc::new(ScriptedTool::mutating("tool", [Reaction::Succeed]));
    let settings = json!({"onKeyConflict": "independent"});
    let harness = Build::new(&tool).reliability(settings).stack();
    let first = ask("tool").params(json!({"n": 1}));
    let other = first.clone().params(json!({"n": 2}));
    assert!(!same(&harness, first, other.clone()).await);
    assert!(harness.call(&other).await.from_cache);
    assert_eq!(tool.executions(), 2);
}

#[tokio::test(start_paused = true)]
async fn named_call_of_a_read_only_tool_is_kept_where_others_find_it() {
    let tool = Arc::new(ScriptedTool::read_only("look", [Reaction::Succeed]));
    let clock = Arc::new(TokioClock::new());
    let store = || {
        Arc::new(MemoryDedupeStore::new(
            clock.clone(),
            MemoryLimits::default(),
        ))
    };
    let (durable, memory) = (store(), store());
    // Two processes share what is durable.
    let process = |memory: Arc<MemoryDedupeStore>| {
        let durable: Arc<dyn DedupeStore> = durable.clone();
        Build::new(&tool)
            .with(|build| build.dedupe = Some(DedupeStores { durable, memory }))
            .stack()
    };
    let (one, two) = (process(memory.clone()), process(store()));
    assert!(!one.call(&ask("look").key("k")).await.from_cache);
    assert!(two.call(&ask("look").key("k")).await.from_cache);
    assert!(one.call(&ask("look")).await.is_success());
    let held = [durable.size().await.unwrap(), memory.size().await.unwrap()];
    assert_eq!(held.map(|size| size.records), [1, 1]);
}

/// Two lists of arguments, and whether they are the same to a tool that reads and to one that changes.
fn equal_or_not() -> [(&'static str, Value, Value, bool, bool); 11] {
    [
        (
            "order",
            json!({"a": 1, "b": 2}),
            json!({"b": 2, "a": 1}),
            true,
            true,
        ),
        (
            "numbers",
            json!({"a": 1.0, "b": -0.0}),
            json!({"a": 1, "b": 0}),
            true,
            true,
        ),
        (
            "volatile",
            json!({"a": 1, "clientTs": 1, "retryCount": 0}),
            json!({"a": 1, "clientTs": 2, "traceparent": "x"}),
            true,
            true,
        ),
        (
            "volatile, deep",
            json!({"a": {"clientTs": 1}}),
            json!({"a": {"clientTs": 2}}),
            true,
            true,
        ),
        (
            "volatile by setting",
            json!({"nonce": 1}),
            json!({"nonce": 2}),
            true,
            false,
        ),
        (
            "whitespace",
            json!({"q": " a  b\n"}),
            json!({"q": "a b"}),
            true,
            false,
        ),
        (
            "whitespace of a field that is exact",
            json!({"raw": {"q": "a  b"}}),
            json!({"raw": {"q": "a b"}}),
            false,
            false,
        ),
        (
            "whitespace of a field that is not",
            json!({"title": "a  b"}),
            json!({"title": "a b"}),
            true,
            true,
        ),
        (
            "words",
            json!({"q": "ab"}),
            json!({"q": "a b"}),
            false,
            false,
        ),
        (
            "large ids",
            json!({"id": 9_007_199_254_740_993_u64}),
            json!({"id": 9_007_199_254_740_992_u64}),
            false,
            false,
        ),
        (
            "null is not absent",
            json!({"a": [null]}),
            json!({"a": []}),
            false,
            false,
        ),
    ]
}

#[tokio::test(start_paused = true)]
async fn arguments_that_mean_the_same_are_the_same() {
    let tools = [
        Arc::new(ScriptedTool::read_only("look", [Reaction::Succeed])),
        Arc::new(ScriptedTool::mutating("change", [Reaction::Succeed])),
    ];
    let settings = json!({"tools": {
        "look": {"volatileFields": ["nonce"], "exactFields": ["raw"]},
        "change": {"collapseFields": ["title"]},
    }});
    let harness = Build::new(&tools[0])
        .and(&tools[1])
        .reliability(settings)
        .stack();
    for (number, (what, one, other, read, changed)) in equal_or_not().into_iter().enumerate() {
        for (tool, expected) in [("look", read), ("change", changed)] {
            let step = || ask(tool).step("run", number as u64, 0);
            let (first, second) = (step().params(one.clone()), step().params(other.clone()));
            assert_eq!(
                same(&harness, first, second).await,
                expected,
                "{tool}: {what}"
            );
        }
    }
}

type Change = fn(&mut ToolCallEnvelope);

#[tokio::test(start_paused = true)]
async fn one_key_never_reaches_across() {
    let (look, change) = (
        Arc::new(ScriptedTool::read_only("look", [Reaction::Succeed])),
        Arc::new(ScriptedTool::mutating("change", [Reaction::Succeed])),
    );
    let harness = Build::new(&look).and(&change).stack();
    let changes: [(&str, Change); 8] = [
        ("nothing", |_| {}),
        ("tenant", |envelope| {
            envelope.target.tenant_id = Some("t".into());
        }),
        ("empty tenant", |envelope| {
            envelope.target.tenant_id = Some(String::new());
        }),
        ("workspace", |envelope| {
            envelope.target.workspace_id = Some("t".into());
        }),
        ("session", |envelope| {
            envelope.target.session_key = "other".into();
        }),
        ("actor", |envelope| {
            envelope.target.actor_id = "other".into();
        }),
        ("namespace", |envelope| {
            envelope.tool_namespace = "other".into();
        }),
        ("both", |envelope| {
            envelope.target.session_key = "actor".into();
            envelope.target.actor_id = "session".into();
        }),
    ];
    for (what, apply) in changes {
        for tool in ["look", "change"] {
            let call = ask(tool).key("k").with(apply);
            let again = call.again();
            assert!(same(&harness, call, again).await, "{tool}, {what}");
        }
    }
    assert_eq!((look.executions(), change.executions()), (8, 8));
}

#[tokio::test(start_paused = true)]
async fn a_global_key_reaches_across_sessions_of_read_only_tools_only() {
    let tool = Arc::new(ScriptedTool::read_only("look", [Reaction::Succeed]));
    let settings = json!({"tools": {"look": {"scope": "global"}}});
    let harness = Build::new(&tool).reliability(settings.clone()).stack();
    let call = ask("look").key("k");
    let elsewhere = call.again().with(|envelope| {
        envelope.target.session_key = "other".into();
        envelope.target.actor_id = "other".into();
    });
    assert!(same(&harness, call.clone(), elsewhere).await);
    let tenant = call
        .again()
        .with(|envelope| envelope.target.tenant_id = Some("other".into()));
    assert!(!harness.call(&tenant).await.from_cache);

    let mutating = Arc::new(ScriptedTool::mutating("look", [Reaction::Succeed]));
    let build = Build::new(&mutating).reliability(settings);
    let refused = ToolStack::new(Parts {
        runtime: harness.stack.runtime().clone(),
        stores: holdfast_toolbox::stack::Stores::memory(harness.stack.runtime(), build.limits),
        tools: build.tools,
        reliability: build.reliability,
        guard: build.guard,
        permissions: Arc::new(build.permissions.into()),
        hooks: build.hooks,
        attribution: None,
        sessions: Arc::new(|_| unreachable!("it is never built")),
        output: holdfast_toolbox::limit_output::OutputConfig::default(),
        approvals: None,
        trust: None,
        tree: None,
        undo: None,
        git: None,
    });
    let Err(BuildError::Config(problems)) = refused.map(|_| ()) else {
        panic!("a mutating tool can not be global");
    };
    assert_eq!(problems[0].path, "reliability.tools.look.scope");
}

/// Supplies a key.
struct Keyed;

impl AdmitHook for Keyed {
    fn name(&self) -> &str {
        "keyed"
    }

    fn admit<'a>(
        &'a self,
        _envelope: &'a ToolCallEnvelope,
    ) -> BoxFuture<'a, Result<AdmitAnswer, String>> {
        let answer = AdmitAnswer {
            idempotency_key: Some("from the hook".into()),
            ..AdmitAnswer::default()
        };
        ready(Ok(answer)).boxed()
    }
}

#[tokio::test(start_paused = true)]
async fn the_callers_key_comes_before_the_hooks() {
    let tool = Arc::new(ScriptedTool::mutating("change", [Reaction::Succeed]));
    let harness = Build::new(&tool)
        .with(|build| build.hooks.admit.push(Arc::new(Keyed)))
        .stack();
    // A hook's key is a key, and not the caller's of the same name.
    assert!(same(&harness, ask("change"), ask("change")).await);
    let own = ask("change").key("from the hook");
    assert!(same(&harness, own.clone(), own.again()).await);
    assert!(!harness.call(&ask("change").key("another")).await.from_cache);
    assert_eq!(tool.executions(), 3);
}
