//! Whose request it is, and what has to be on record before it counts.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, pending, ready};
use holdfast_contract::redact::Redactor;
use holdfast_contract::{
    Answer, DedupeMode, Effect, PermissionTier, Scope, SystemClock, SystemEntropy, Tool,
};
use holdfast_reliability::observe::{Event, Observer, Observers};
use holdfast_reliability::runtime::Runtime;
use holdfast_reliability::store::conformance::interposed_documents::{
    DocumentStep, InterposedDocuments,
};
use holdfast_reliability::store::documents::{DocumentFilter, DocumentStore, Replacement};
use holdfast_reliability::store::memory::MemoryDocumentStore;
use holdfast_testkit::TokioClock;
use holdfast_toolbox::approval::{AnswerError, Approvals, ResumeWhich, resume_open};
use holdfast_toolbox::audit::AuditLog;
use serde_json::json;

use crate::permission::bench::{Build, Flaky, Probe, Recorded, ask};

const FOR_SESSION: Answer = Answer::Approve {
    scope: Scope::Session,
};

#[tokio::test]
async fn an_open_request_is_its_askers_alone() {
    let probe = Probe::new("probe", PermissionTier::Elevated, Effect::External);
    let bench = Build::default().bench(vec![probe.clone() as Arc<dyn Tool>]);
    for (id, agent, root) in [
        ("main", "agent", "/w"),
        ("other", "agent", "/w"),
        ("agent", "another", "/w"),
        ("place", "agent", "/elsewhere"),
    ] {
        let channel = Recorded::silent();
        bench
            .tree
            .open_main(id, agent, root.into(), Some(channel))
            .await
            .unwrap();
    }
    let calls = [
        ("main", "actor"),
        ("main", "somebody"),
        ("other", "actor"),
        ("agent", "actor"),
        ("place", "actor"),
    ];
    let mut waiting = Vec::new();
    for (session, actor) in calls {
        let mut envelope = ask("probe", session, json!({"n": 1}));
        // Without a key requests are found by an id that the caller chooses.
        envelope.request_id = "the-same".into();
        envelope.transport.dedupe_mode = DedupeMode::Disabled;
        envelope.target.actor_id = actor.into();
        let stack = bench.stack.clone();
        waiting.push(tokio::spawn(async move { stack.call(envelope).await }));
        let expected = waiting.len();
        let mut open = 0;
        for _ in 0..1000 {
            open = bench.approvals.open_requests().await.unwrap().len();
            if open == expected {
                break;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert_eq!(open, expected, "{session} {actor}");
    }
    for call in waiting {
        call.abort();
    }
    assert_eq!(probe.runs(), 0);
}

#[tokio::test]
async fn what_can_not_be_recorded_is_not_approved() {
    let probe = Probe::new("probe", PermissionTier::Elevated, Effect::External);
    let bench = Build::default().bench(vec![probe.clone() as Arc<dyn Tool>]);
    let channel = Recorded::silent();
    bench.main("/w".into(), Some(channel)).await;
    let stack = bench.stack.clone();
    let call = tokio::spawn(async move { stack.call(ask("probe", "main", json!({}))).await });
    let id = loop {
        if let [only] = bench.approvals.open_requests().await.unwrap().as_slice() {
            break only.id.clone();
        }
        tokio::task::yield_now().await;
    };
    let dir = tempfile::tempdir().unwrap();
    let clock = Arc::new(SystemClock);
    let audit = AuditLog::new(
        &dir.path().join("gone"),
        bench.documents.clone(),
        clock.clone(),
        Redactor::default(),
    );
    let runtime = Runtime::new(clock, Arc::new(SystemEntropy), Observers::new());
    let unrecorded = Approvals::new(
        bench.documents.clone(),
        Some(Arc::new(audit)),
        Arc::new(runtime),
        Arc::default(),
    );
    let refused = unrecorded.answer(&id, &FOR_SESSION, "person").await;
    assert!(matches!(refused, Err(AnswerError::Audit(_))), "{refused:?}");
    let kept = bench.approvals.get(&id).await.unwrap().unwrap();
    assert_eq!(kept.state.as_str(), "pending");
    assert!(bench.approvals.rules().await.unwrap().is_empty());
    call.abort();
    assert_eq!(probe.runs(), 0);
}

/// Documents whose making is seen by all but the one who made them.
struct DeafMaker(MemoryDocumentStore);

impl InterposedDocuments for DeafMaker {
    fn behind(&self) -> &dyn DocumentStore {
        &self.0
    }

    fn after(&self, step: DocumentStep<'_>) -> BoxFuture<'_, ()> {
        // A session opens as usual.
        match step {
            DocumentStep::Create("approval") => pending().boxed(),
            _ => ready(()).boxed(),
        }
    }
}

#[tokio::test]
async fn a_call_that_goes_away_while_it_asks_withdraws() {
    let clock = Arc::new(TokioClock::new());
    let build = Build {
        documents: Some(Arc::new(DeafMaker(MemoryDocumentStore::new(clock)))),
        ..Build::default()
    };
    let probe = Probe::new("probe", PermissionTier::Elevated, Effect::External);
    let bench = build.bench(vec![probe as Arc<dyn Tool>]);
    bench.main("/w".into(), Some(Recorded::silent())).await;
    let mut call = Box::pin(bench.stack.call(ask("probe", "main", json!({}))));
    // Its request is there for all to see, and the call has not heard of it.
    while bench.approvals.open_requests().await.unwrap().is_empty() {
        assert!(futures_util::poll!(&mut call).is_pending());
    }
    drop(call);
    assert!(bench.approvals.open_requests().await.unwrap().is_empty());
}

#[tokio::test]
async fn a_withdrawal_is_on_record_and_leaves_little_behind() {
    let dir = tempfile::tempdir().unwrap();
    let build = Build {
        audit: Some(dir.path().to_owned()),
        ..Build::default()
    };
    let probe = Probe::new("probe", PermissionTier::Elevated, Effect::External);
    let bench = build.bench(vec![probe as Arc<dyn Tool>]);
    bench.main("/w".into(), Some(Recorded::silent())).await;
    let large = json!({"text": "x".repeat(200 * 1024)});
    let mut call = Box::pin(bench.stack.call(ask("probe", "main", large)));
    let request = loop {
        assert!(futures_util::poll!(&mut call).is_pending());
        tokio::task::yield_now().await;
        if let Some(open) = bench.approvals.open_requests().await.unwrap().pop() {
            break open;
        }
    };
    let marks = DocumentFilter::of("approval-open");
    assert_eq!(bench.documents.documents(&marks).await.unwrap().len(), 1);
    drop(call);
    bench.approvals.settled().await;
    let log = std::fs::read_to_string(dir.path().join("audit.log")).unwrap();
    let line = log
        .lines()
        .find(|line| line.contains("approval.withdrawn"))
        .expect("a line of its own");
    assert!(line.contains(&request.request.digest) && line.contains(&request.id));
    let kept = bench.approvals.get(&request.id).await.unwrap().unwrap();
    assert_eq!(kept.state.as_str(), "withdrawn");
    assert!(kept.request.envelope.payload.params.to_string().len() < 1024);
    assert!(bench.documents.documents(&marks).await.unwrap().is_empty());
}

/// Whoever went away does not come to run, whenever and wherever somebody says yes.
#[tokio::test(start_paused = true)]
async fn a_call_that_goes_away_while_the_store_is_away_never_runs() {
    let yes = Answer::Approve { scope: Scope::Once };
    for is_answered_elsewhere in [false, true] {
        let store = Flaky::new();
        let build = || Build {
            documents: Some(store.clone()),
            ..Build::default()
        };
        let probe = Probe::new("probe", PermissionTier::Elevated, Effect::External);
        let bench = build().bench(vec![probe.clone() as Arc<dyn Tool>]);
        bench.main("/w".into(), Some(Recorded::silent())).await;
        let mut call = Box::pin(bench.stack.call(ask("probe", "main", json!({}))));
        let request = loop {
            assert!(futures_util::poll!(&mut call).is_pending());
            tokio::task::yield_now().await;
            if let Some(open) = bench.approvals.open_requests().await.unwrap().pop() {
                break open;
            }
        };
        let asked = store.document("approval", &request.id).await.unwrap();
        let asked = asked.unwrap().body;
        store.away(true);
        drop(call);
        tokio::time::sleep(Duration::from_secs(5)).await;
        store.away(false);
        // Nothing that was said meanwhile has arrived.
        let stands = store.document("approval", &request.id).await.unwrap();
        let lost = Replacement::of(&stands.unwrap(), asked);
        store.replace(lost).await.unwrap();
        let other = build().bench(vec![]).approvals;
        if is_answered_elsewhere {
            other.answer(&request.id, &yes, "person").await.unwrap();
        }
        // Here it is known to be withdrawn before the store knows.
        let refused = bench.approvals.answer(&request.id, &yes, "person").await;
        assert!(
            matches!(refused, Err(AnswerError::Refused { .. })),
            "{refused:?}"
        );
        let resumed = resume_open(&bench.stack, &bench.approvals, &ResumeWhich::All).await;
        assert!(resumed.unwrap().is_empty());
        tokio::time::sleep(Duration::from_secs(5)).await;
        let kept = other.get(&request.id).await.unwrap().unwrap();
        assert_eq!(kept.state.as_str(), "withdrawn", "{is_answered_elsewhere}");
        assert_eq!(probe.runs(), 0);
    }
}

/// A process that is to end does not wait for a store that is away.
#[tokio::test(start_paused = true)]
async fn the_end_of_a_process_does_not_wait_for_a_store_that_is_away() {
    let store = Flaky::new();
    let build = Build {
        documents: Some(store.clone()),
        ..Build::default()
    };
    let probe = Probe::new("probe", PermissionTier::Elevated, Effect::External);
    let bench = build.bench(vec![probe as Arc<dyn Tool>]);
    bench.main("/w".into(), Some(Recorded::silent())).await;
    let mut call = Box::pin(bench.stack.call(ask("probe", "main", json!({}))));
    while bench.approvals.open_requests().await.unwrap().is_empty() {
        assert!(futures_util::poll!(&mut call).is_pending());
        tokio::task::yield_now().await;
    }
    store.away(true);
    drop(call);
    let settled = tokio::time::timeout(Duration::from_mins(1), bench.approvals.settled());
    settled.await.expect("it does not wait");
}

/// Keeps what could not be shown.
#[derive(Default)]
struct NotShown(parking_lot::Mutex<Vec<String>>);

impl Observer for NotShown {
    fn observe(&self, event: &Event<'_>) {
        if let Event::Undelivered {
            approval,
            tool,
            channel,
            error,
        } = *event
        {
            let text = format!("{approval} {tool} {channel} {error}");
            self.0.lock().push(text);
        }
    }
}

/// A channel that is down leaves the request open, and nobody has to guess why it is silent.
#[tokio::test(start_paused = true)]
async fn a_request_that_could_not_be_shown_says_so_and_can_still_be_answered() {
    let probe = Probe::new("probe", PermissionTier::Elevated, Effect::External);
    let seen = Arc::new(NotShown::default());
    let bench = Build {
        observers: Observers::new().with(seen.clone()),
        ..Build::default()
    }
    .bench(vec![probe.clone() as Arc<dyn Tool>]);
    let channel = Recorded::silent();
    *channel.down.lock() = Some("the webhook answered 503, password=hunter2-and-more".to_owned());
    bench.main("/".into(), Some(channel)).await;
    let approvals = bench.approvals.clone();
    let answers = async {
        let request = loop {
            let open = approvals.open_requests().await.unwrap().pop();
            if let Some(request) = open.filter(|it| it.undelivered.is_some()) {
                break request;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        };
        let view = request.view(
            holdfast_contract::Audience::Approver,
            &Redactor::default(),
            0,
        );
        let why = view["undelivered"].as_str().unwrap().to_owned();
        assert!(why.starts_with("the webhook answered 503"), "{why}");
        assert!(!why.contains("hunter2"), "{why}");
        approvals
            .answer(&request.id, &FOR_SESSION, "owner")
            .await
            .unwrap();
        (request.id, why)
    };
    let call = bench.stack.call(ask("probe", "main", json!({})));
    let (result, (id, why)) = tokio::join!(call, answers);
    assert!(result.is_success(), "{result:?}");
    assert_eq!(*seen.0.lock(), [format!("{id} probe recorded {why}")]);
}
