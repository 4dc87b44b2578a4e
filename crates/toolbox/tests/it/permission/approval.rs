//! One call and a person, under time that obeys.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use holdfast_contract::{
    Answer, DedupeMode, Effect, PermissionTier, Scope, SessionKind, Tool, ToolCallEnvelope,
};
use holdfast_reliability::hooks::{AdmitAnswer, AdmitHook, Hooks};
use holdfast_reliability::store::StoreError;
use holdfast_reliability::store::documents::{DocumentFilter, Replacement};
use holdfast_reliability::store::unavailable::UnavailableStore;
use holdfast_toolbox::approval::{AnswerError, Approval, ResumeWhich, resume_open};
use holdfast_toolbox::session::Spawn;
use serde_json::{Value, json};

use crate::permission::bench::{Bench, Build, Probe, Recorded, ask, message, word};

const YES: Answer = Answer::Approve { scope: Scope::Once };

fn elevated() -> Arc<Probe> {
    Probe::new("probe", PermissionTier::Elevated, Effect::External)
}

/// A stack whose people do not answer by themselves.
async fn bench_with(probe: &Arc<Probe>, build: Build) -> (Bench, Arc<Recorded>) {
    let channel = Recorded::silent();
    let quick = Probe::new("quick", PermissionTier::System, Effect::External);
    let bench = build.bench(vec![probe.clone() as Arc<dyn Tool>, quick]);
    bench.main("/nowhere".into(), Some(channel.clone())).await;
    (bench, channel)
}

/// The only open request, once it is there.
async fn open(bench: &Bench) -> Approval {
    for _ in 0..1000 {
        if let [only] = bench.approvals.open_requests().await.unwrap().as_slice() {
            return only.clone();
        }
        tokio::task::yield_now().await;
    }
    panic!("no request is open");
}

#[tokio::test(start_paused = true)]
async fn one_call_waits_and_others_go_on() {
    let probe = elevated();
    let (bench, channel) = bench_with(&probe, Build::default()).await;
    let envelope = ask(
        "probe",
        "main",
        json!({"n": 1, "api_key": "sk-abcdefghijklmnopqrstuvwxyz012345"}),
    );
    let (result, ()) = tokio::join!(bench.stack.call(envelope), async {
        let request = open(&bench).await;
        let other = bench.stack.call(ask("quick", "main", json!({}))).await;
        assert_eq!(word(&other), "ran");
        assert_eq!(probe.runs(), 0);
        let shown = channel.prompts.lock()[0].clone();
        // Whoever answers sees what runs, whatever it looks like.
        assert!(shown.arguments.contains("sk-abc"), "{shown:?}");
        bench
            .approvals
            .answer(&request.id, &YES, "person")
            .await
            .unwrap();
    });
    assert_eq!(word(&result), "ran");
    assert_eq!(probe.seen.lock()[0]["n"], 1);
    assert!(bench.approvals.open_requests().await.unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn duplicates_join_the_one_that_waits() {
    let probe = elevated();
    let (bench, channel) = bench_with(&probe, Build::default()).await;
    let keyed = || {
        let mut envelope = ask("probe", "main", json!({}));
        envelope.payload.idempotency_key = Some("k".into());
        envelope
    };
    let (first, second, best_effort, ()) = tokio::join!(
        bench.stack.call(keyed()),
        bench.stack.call(keyed()),
        async {
            open(&bench).await;
            let mut envelope = keyed();
            envelope.transport.dedupe_mode = DedupeMode::BestEffort;
            bench.stack.call(envelope).await
        },
        async {
            let request = open(&bench).await;
            tokio::time::sleep(Duration::from_secs(5)).await;
            bench
                .approvals
                .answer(&request.id, &YES, "person")
                .await
                .unwrap();
        }
    );
    assert_eq!((word(&first), word(&second)), ("ran", "ran"));
    assert_eq!(word(&best_effort), "duplicate_in_flight");
    assert_eq!((probe.runs(), channel.prompts.lock().len()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn silence_means_no_after_the_tools_own_wait() {
    for (name, wait_ms) in [
        ("exec", 120_000),
        ("write", 60_000),
        ("edit", 60_000),
        ("other", 120_000),
    ] {
        let probe = Probe::new(name, PermissionTier::Elevated, Effect::External);
        let (bench, _) = bench_with(&probe, Build::default()).await;
        let begun = tokio::time::Instant::now();
        let result = bench.stack.call(ask(name, "main", json!({}))).await;
        assert_eq!(word(&result), "permission_denied");
        assert!(
            message(&result).contains("nobody approved it in time"),
            "{result:?}"
        );
        let waited = begun.elapsed();
        let expected = Duration::from_millis(wait_ms);
        assert!(
            waited >= expected && waited < expected + Duration::from_secs(1),
            "{name}: {waited:?}"
        );
        assert_eq!(
            bench.approvals.list().await.unwrap()[0].state.as_str(),
            "expired"
        );
        assert_eq!(probe.runs(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn requests_climb_to_a_session_with_a_channel() {
    let probe = elevated();
    let (bench, channel) = bench_with(&probe, Build::default()).await;
    let spawn = |parent: String, kind| {
        let wish = Spawn {
            kind,
            context_summary: String::new(),
            token_budget: None,
        };
        let bench = &bench;
        async move { bench.tree.spawn(&parent, wish).await.unwrap().id }
    };
    let branch = spawn("main".into(), SessionKind::Branch).await;
    let deeper = spawn(branch, SessionKind::Branch).await;
    let worker = spawn(deeper, SessionKind::Worker).await;
    let (result, ()) = tokio::join!(bench.stack.call(ask("probe", &worker, json!({}))), async {
        let request = open(&bench).await;
        assert_eq!(request.request.asked_session, "main");
        assert_eq!(request.request.origin_session, worker);
        let wide = Answer::Approve {
            scope: Scope::Session,
        };
        bench
            .approvals
            .answer(&request.id, &wide, "person")
            .await
            .unwrap();
    });
    assert_eq!(word(&result), "ran");
    // What was granted to the child is not the parent's, nor the other way round.
    let (result, ()) = tokio::join!(bench.stack.call(ask("probe", "main", json!({}))), async {
        let request = open(&bench).await;
        bench
            .approvals
            .answer(&request.id, &Answer::Deny { reason: None }, "person")
            .await
            .unwrap();
    });
    assert_eq!(word(&result), "permission_denied");
    assert_eq!(channel.prompts.lock().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn after_no_nobody_is_asked_again_for_a_while() {
    let probe = elevated();
    let (bench, channel) = bench_with(&probe, Build::default()).await;
    let (first, ()) = tokio::join!(
        bench.stack.call(ask("probe", "main", json!({"n": 1}))),
        async {
            let request = open(&bench).await;
            let no = Answer::Deny {
                reason: Some("too risky".into()),
            };
            bench
                .approvals
                .answer(&request.id, &no, "person")
                .await
                .unwrap();
        }
    );
    assert!(
        message(&first).contains("person denied it") && message(&first).contains("too risky"),
        "{first:?}"
    );
    let repeat = bench
        .stack
        .call(ask("probe", "main", json!({"n": 1})))
        .await;
    assert!(
        message(&repeat).contains("nobody was asked again"),
        "{repeat:?}"
    );
    // No policy stands in the way.
    for refused in [&first, &repeat] {
        let hint = refused.error.as_ref().unwrap().hint.as_deref().unwrap();
        assert!(hint.contains("A person said no"), "{hint}");
        assert!(!hint.contains("policy"), "{hint}");
    }
    assert_eq!(channel.prompts.lock().len(), 1);
    // Other arguments are another question, and so is the same one much later.
    for (params, later_s) in [(json!({"n": 2}), 0), (json!({"n": 1}), 601)] {
        tokio::time::advance(Duration::from_secs(later_s)).await;
        let (result, ()) = tokio::join!(bench.stack.call(ask("probe", "main", params)), async {
            let request = open(&bench).await;
            bench
                .approvals
                .answer(&request.id, &YES, "person")
                .await
                .unwrap();
        });
        assert_eq!(word(&result), "ran");
    }
}

#[tokio::test(start_paused = true)]
async fn one_approval_runs_one_call() {
    let probe = elevated();
    let (bench, _) = bench_with(&probe, Build::default()).await;
    // Without deduplication two deliveries of one request wait for the same answer.
    let mut envelope = ask("probe", "main", json!({}));
    envelope.transport.dedupe_mode = DedupeMode::Disabled;
    let (first, second, ()) = tokio::join!(
        bench.stack.call(envelope.clone()),
        async {
            open(&bench).await;
            bench.stack.call(envelope.clone()).await
        },
        async {
            let request = open(&bench).await;
            tokio::time::sleep(Duration::from_secs(1)).await;
            bench
                .approvals
                .answer(&request.id, &YES, "person")
                .await
                .unwrap();
        }
    );
    let mut words = [word(&first), word(&second)];
    words.sort_unstable();
    assert_eq!(words, ["permission_denied", "ran"]);
    assert_eq!(probe.runs(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_captured_call_that_was_tampered_with_is_asked_about_anew() {
    let probe = elevated();
    let (bench, channel) = bench_with(&probe, Build::default()).await;
    let envelope = ask("probe", "main", json!({"n": 1}));
    let stack = bench.stack.clone();
    let waiting = tokio::spawn(async move { stack.call(envelope).await });
    let request = open(&bench).await;
    waiting.abort();
    let _ = waiting.await;
    assert_eq!(
        bench
            .approvals
            .get(&request.id)
            .await
            .unwrap()
            .unwrap()
            .state
            .as_str(),
        "withdrawn"
    );

    // As if the process had been killed: the request stays, and somebody changes it in the store.
    let filter = DocumentFilter::of("approval");
    let document = bench.documents.documents(&filter).await.unwrap().remove(0);
    let mut body = document.body.clone();
    body["state"] = json!("approved");
    body["scope"] = json!("once");
    body["by"] = json!("person");
    body["atMs"] = json!(0);
    body["useByMs"] = json!(u64::MAX);
    let honest = body.clone();
    body["request"]["envelope"]["payload"]["params"]["n"] = json!(2);
    bench
        .documents
        .replace(Replacement::of(&document, body))
        .await
        .unwrap();
    let (resumed, ()) = tokio::join!(
        resume_open(&bench.stack, &bench.approvals, &ResumeWhich::Approved),
        async {
            while channel.prompts.lock().len() < 2 {
                tokio::task::yield_now().await;
            }
            assert_eq!(probe.runs(), 0);
        }
    );
    let resumed = resumed.unwrap();
    assert_eq!(word(&resumed[0].result), "permission_denied");
    assert_eq!(probe.runs(), 0);
    // As it was captured, it runs.
    let document = bench
        .documents
        .document("approval", &request.id)
        .await
        .unwrap()
        .unwrap();
    bench
        .documents
        .replace(Replacement::of(&document, honest))
        .await
        .unwrap();
    let resumed = resume_open(&bench.stack, &bench.approvals, &ResumeWhich::Approved)
        .await
        .unwrap();
    assert_eq!(word(&resumed[0].result), "ran", "{:?}", resumed[0].result);
    assert_eq!(
        (probe.runs(), probe.seen.lock()[0]["n"].clone()),
        (1, json!(1))
    );
}

/// Changes the arguments and gives a key, once more each time it is asked.
struct Meddler;

impl AdmitHook for Meddler {
    fn name(&self) -> &str {
        "meddler"
    }

    fn admit<'a>(
        &'a self,
        envelope: &'a ToolCallEnvelope,
    ) -> BoxFuture<'a, Result<AdmitAnswer, String>> {
        let n = envelope.payload.params["n"].as_u64().unwrap_or(0);
        let answer = AdmitAnswer {
            params: Some(json!({"n": n + 1})),
            idempotency_key: Some(format!("key-{}", n + 1)),
            refuse: None,
        };
        ready(Ok(answer)).boxed()
    }
}

#[tokio::test(start_paused = true)]
async fn what_the_hooks_made_of_a_call_is_what_is_approved_and_resumed() {
    let probe = elevated();
    let hooks = Hooks {
        admit: vec![Arc::new(Meddler)],
        ..Hooks::default()
    };
    let (bench, _) = bench_with(
        &probe,
        Build {
            hooks,
            ..Build::default()
        },
    )
    .await;
    let mut envelope = ask("probe", "main", json!({"n": 1}));
    // The caller's time is over while the person thinks; the request stays open.
    envelope.control.deadline_at_ms = Some(bench.stack.runtime().clock.now_ms() + 1_000);
    let late = bench.stack.call(envelope).await;
    assert_eq!(word(&late), "timeout");
    let request = open(&bench).await;
    assert_eq!(request.request.envelope.payload.params, json!({"n": 2}));
    bench
        .approvals
        .answer(&request.id, &YES, "person")
        .await
        .unwrap();
    let resumed = resume_open(&bench.stack, &bench.approvals, &ResumeWhich::All)
        .await
        .unwrap();
    assert_eq!(word(&resumed[0].result), "ran", "{:?}", resumed[0].result);
    assert_eq!(*probe.seen.lock(), [json!({"n": 2})]);
}

#[tokio::test(start_paused = true)]
async fn without_a_store_nothing_is_approved() {
    let probe = elevated();
    let gone = UnavailableStore::new(StoreError::Unavailable("away".into()));
    let channel = Recorded::new(holdfast_contract::ChannelLevel::Elevated, Some(YES));
    // The sessions have a store, the approvals have none.
    let working = Build::default().bench(vec![]);
    working.main("/nowhere".into(), Some(channel.clone())).await;
    let runtime = working.stack.runtime().clone();
    let approvals = holdfast_toolbox::approval::Approvals::new(
        Arc::new(gone),
        None,
        runtime.clone(),
        Arc::default(),
    );
    let stores = holdfast_toolbox::stack::Stores::memory(
        &runtime,
        holdfast_reliability::store::memory::MemoryLimits::default(),
    );
    let mut parts = holdfast_toolbox::stack::Parts::new(runtime, stores, working.tree.sessions())
        .with_tools([probe.clone() as Arc<dyn Tool>]);
    parts.approvals = Some(Arc::new(approvals));
    let stack = holdfast_toolbox::stack::ToolStack::new(parts).unwrap();
    let result = stack.call(ask("probe", "main", json!({}))).await;
    assert_eq!(word(&result), "store_unavailable");
    assert_eq!((probe.runs(), channel.prompts.lock().len()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn answers_that_are_not_taken_leave_the_request_open() {
    let probe = elevated();
    let (bench, _) = bench_with(&probe, Build::default()).await;
    let (result, ()) = tokio::join!(bench.stack.call(ask("probe", "main", json!({}))), async {
        let id = open(&bench).await.id;
        let own = bench.approvals.answer(&id, &YES, "actor").await;
        assert!(matches!(own, Err(AnswerError::Refused { .. })), "{own:?}");
        let nowhere = bench.approvals.answer("zzz", &YES, "person").await;
        assert!(
            matches!(nowhere, Err(AnswerError::NotFound(_))),
            "{nowhere:?}"
        );
        assert_eq!(open(&bench).await.id, id);
        // Two at once: one counts.
        let (yes, no) = tokio::join!(
            bench.approvals.answer(&id, &YES, "one"),
            bench
                .approvals
                .answer(&id, &Answer::Deny { reason: None }, "two"),
        );
        assert!(yes.is_ok() != no.is_ok());
    });
    assert_eq!(probe.runs() == 1, word(&result) == "ran");
}

#[tokio::test(start_paused = true)]
async fn an_approved_retry_keeps_its_one_answer() {
    use holdfast_testkit::{Reaction, ScriptedTool};
    struct Raised(ScriptedTool);
    #[async_trait]
    impl Tool for Raised {
        fn name(&self) -> &str {
            self.0.name()
        }
        fn description(&self) -> &str {
            self.0.description()
        }
        fn parameters_schema(&self) -> Value {
            self.0.parameters_schema()
        }
        fn permission_tier(&self) -> PermissionTier {
            PermissionTier::Elevated
        }
        fn effect(&self) -> Effect {
            self.0.effect()
        }
        async fn execute(
            &self,
            params: &Value,
            ctx: &holdfast_contract::ToolContext,
        ) -> Result<holdfast_contract::ToolResult, holdfast_contract::ToolError> {
            self.0.execute(params, ctx).await
        }
    }
    let busy = holdfast_contract::ToolError::http(503, None, "busy");
    let script = [Reaction::Fail(busy), Reaction::Succeed];
    let tool = Arc::new(Raised(ScriptedTool::mutating("flaky", script)));
    let channel = Recorded::new(holdfast_contract::ChannelLevel::Elevated, Some(YES));
    let bench = Build::default().bench(vec![tool]);
    bench.main("/nowhere".into(), Some(channel.clone())).await;
    let result = bench.stack.call(ask("flaky", "main", json!({}))).await;
    assert_eq!((word(&result), result.attempts), ("ran", 2));
    assert_eq!(
        channel.prompts.lock().len(),
        1,
        "one answer for all attempts"
    );
}
