//! Mains that a person has cancelled, that idled out, and places that were lost.

use std::sync::Arc;
use std::time::Duration;

use holdfast_contract::{Effect, PermissionTier, SessionKind};
use holdfast_reliability::store::documents::{DocumentStore, Replacement};
use holdfast_reliability::store::memory::MemoryDocumentStore;
use holdfast_testkit::TokioClock;
use holdfast_toolbox::session::model::{CANCEL_GRACE_MS, CHILDREN_MAX, MAIN_IDLE_MS};
use holdfast_toolbox::session::{
    SessionResult, SessionState, SessionStatus, Spawn, StepRefused, TreeError,
};
use serde_json::json;

use crate::permission::bench::{Bench, Build, Flaky, Probe, Refuses, ask, message, word};

fn probe() -> Arc<Probe> {
    Probe::new("probe", PermissionTier::ReadOnly, Effect::None)
}

fn wish() -> Spawn {
    Spawn {
        kind: SessionKind::Branch,
        context_summary: String::new(),
        token_budget: None,
    }
}

fn shared() -> Arc<dyn DocumentStore> {
    Arc::new(MemoryDocumentStore::new(Arc::new(TokioClock::new())))
}

/// A process of its own on this store, in which the Main lives.
async fn process(store: &Arc<dyn DocumentStore>, probe: &Arc<Probe>) -> Bench {
    let bench = idle_process(store, probe);
    bench.main("/w".into(), None).await;
    bench
}

/// One in which it does not.
fn idle_process(store: &Arc<dyn DocumentStore>, probe: &Arc<Probe>) -> Bench {
    let build = Build {
        documents: Some(store.clone()),
        ..Build::default()
    };
    build.bench(vec![probe.clone()])
}

async fn called(bench: &Bench) -> holdfast_contract::ToolResultEnvelope {
    bench.stack.call(ask("probe", "main", json!({}))).await
}

#[tokio::test(start_paused = true)]
async fn in_a_main_that_a_person_has_cancelled_no_tool_runs_on_any_server() {
    let (store, probe) = (shared(), probe());
    let servers = [process(&store, &probe).await, process(&store, &probe).await];
    for server in &servers {
        assert_eq!(word(&called(server).await), "ran");
    }
    let child = servers[0].tree.spawn("main", wish()).await.unwrap().id;
    // The command line is a process of its own.
    let person = idle_process(&store, &probe).tree;
    person.cancel("main").await.unwrap();
    // At once, while it may wrap up, after that, and after somebody has written its end down.
    for then in ["at once", "at the end of its time", "ended"] {
        for server in &servers {
            let refused = called(server).await;
            assert_eq!(word(&refused), "permission_denied", "{then}");
            let said = match then {
                // Here nobody but the tree gives it a context.
                "ended" => server.tree.refusal("main").await.unwrap().unwrap(),
                _ => message(&refused).to_owned(),
            };
            assert!(said.contains("cancelled by a person"), "{then}: {said}");
            assert!(said.contains("holdfast sessions reopen"), "{then}: {said}");
        }
        if then == "at once" {
            servers[0].tree.cancelled("main").await;
            tokio::time::advance(Duration::from_millis(CANCEL_GRACE_MS)).await;
        } else {
            servers[1].tree.tick().await.unwrap();
        }
    }
    let ended = servers[1].tree.get("main").await.unwrap();
    assert_eq!(ended.state, SessionState::Failed);
    assert!(
        servers[1]
            .tree
            .get(&child)
            .await
            .unwrap()
            .end_by_ms
            .is_some()
    );
    let opened = servers[0]
        .tree
        .open_main("main", "agent", "/w".into(), None);
    let refused = opened.await.unwrap_err();
    assert!(matches!(refused, TreeError::Cancelled(_)), "{refused}");
    assert_eq!(probe.runs(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_person_lets_a_cancelled_main_be_used_again() {
    for is_over in [false, true] {
        let (store, probe) = (shared(), probe());
        let server = process(&store, &probe).await;
        let person = idle_process(&store, &probe).tree;
        let early = person.reopen("main").await.unwrap_err();
        let expected = TreeError::Refused(StepRefused::NotCancelled);
        assert_eq!(early.to_string(), expected.to_string());
        person.cancel("main").await.unwrap();
        assert_eq!(word(&called(&server).await), "permission_denied");
        if is_over {
            tokio::time::advance(Duration::from_millis(CANCEL_GRACE_MS)).await;
            person.tick().await.unwrap();
        }
        let fresh = person.reopen("main").await.unwrap();
        assert_eq!((fresh.state, fresh.end_by_ms), (SessionState::Active, None));
        assert_eq!(fresh.workspace_root.to_str(), Some("/w"));
        server.main("/w".into(), None).await;
        assert_eq!(word(&called(&server).await), "ran");
        server.tree.spawn("main", wish()).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_main_that_ended_by_itself_is_replaced_when_it_is_used_again() {
    for idles in [true, false] {
        let (store, probe) = (shared(), probe());
        let server = process(&store, &probe).await;
        let other = process(&store, &probe).await;
        let child = server.tree.spawn("main", wish()).await.unwrap().id;
        if idles {
            // The end of its child is the last that happens in it.
            tokio::time::advance(Duration::from_mins(30)).await;
            other.tree.tick().await.unwrap();
            tokio::time::advance(Duration::from_millis(MAIN_IDLE_MS)).await;
            // By whoever looks first: the one that works on it does not know yet.
            other.tree.tick().await.unwrap();
        } else {
            let done = SessionResult::new(SessionStatus::Completed, "done");
            other.tree.finish("main", done).await.unwrap();
        }
        assert!(other.tree.get("main").await.unwrap().state.has_ended());
        assert!(!server.tree.lives("main").await.unwrap());
        server.main("/elsewhere".into(), None).await;
        assert!(server.tree.lives("main").await.unwrap());
        assert_eq!(word(&called(&server).await), "ran");
        let fresh = server.tree.get("main").await.unwrap();
        assert_eq!((fresh.state, fresh.result), (SessionState::Active, None));
        assert!(fresh.children.is_empty(), "{child} was the former one's");
        let spawned = server.tree.spawn("main", wish()).await.unwrap();
        assert_eq!(spawned.workspace_root.to_str(), Some("/elsewhere"));
        // It is not forgotten as the ended one would have been.
        tokio::time::advance(Duration::from_hours(8 * 24)).await;
        store.sweep_documents().await.unwrap();
        assert!(server.tree.get("main").await.is_ok());
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_has_heard_of_the_end_keeps_to_it_while_its_store_is_away() {
    let store = Flaky::new();
    let documents: Arc<dyn DocumentStore> = store.clone();
    let probe = probe();
    let server = process(&documents, &probe).await;
    store.away(true);
    assert_eq!(
        word(&called(&server).await),
        "ran",
        "nobody has cancelled it"
    );
    store.away(false);
    let person = idle_process(&documents, &probe).tree;
    person.cancel("main").await.unwrap();
    assert_eq!(word(&called(&server).await), "permission_denied");
    store.away(true);
    assert_eq!(word(&called(&server).await), "permission_denied");
    assert_eq!(probe.runs(), 1);
}

/// A process that dies while it makes a child takes no place with it.
#[tokio::test(start_paused = true)]
async fn a_child_that_never_came_to_be_takes_no_place() {
    let store = Flaky::new();
    let documents: Arc<dyn DocumentStore> = store.clone();
    let server = process(&documents, &probe()).await;
    // Whichever of its two steps is the last one.
    for refuses in [Refuses::NewOnes, Refuses::Changes] {
        store.refuse(refuses);
        for _ in 0..CHILDREN_MAX {
            let died = server.tree.spawn("main", wish()).await;
            assert!(matches!(died, Err(TreeError::Store(_))), "{died:?}");
        }
    }
    store.refuse(Refuses::Nothing);
    assert!(server.tree.get("main").await.unwrap().children.is_empty());
    for _ in 0..CHILDREN_MAX {
        server.tree.spawn("main", wish()).await.unwrap();
    }
    let full = server.tree.spawn("main", wish()).await;
    assert!(matches!(full, Err(TreeError::Refused(_))), "{full:?}");
    // What was begun and has no place ends with its time.
    tokio::time::advance(Duration::from_mins(30)).await;
    server.tree.tick().await.unwrap();
    let children = server.tree.children("main").await.unwrap();
    assert_eq!(children.len(), 2 * CHILDREN_MAX);
    assert!(children.iter().all(|it| it.state.has_ended()));
}

#[tokio::test(start_paused = true)]
async fn places_of_children_that_are_gone_or_have_ended_are_given_away() {
    let store = shared();
    let server = process(&store, &probe()).await;
    let mut children = Vec::new();
    for _ in 0..CHILDREN_MAX {
        children.push(server.tree.spawn("main", wish()).await.unwrap().id);
    }
    // A process died before it could free the place of one that ended; another one is forgotten.
    let done = SessionResult::new(SessionStatus::Completed, "done");
    server.tree.finish(&children[0], done).await.unwrap();
    store.remove("session", &children[1]).await.unwrap();
    let document = store.document("session", "main").await.unwrap().unwrap();
    let mut body = document.body.clone();
    body["children"] = json!(children);
    store
        .replace(Replacement::of(&document, body))
        .await
        .unwrap();
    for _ in 0..2 {
        server.tree.spawn("main", wish()).await.unwrap();
    }
    let full = server.tree.spawn("main", wish()).await;
    assert!(matches!(full, Err(TreeError::Refused(_))), "{full:?}");
    let kept = server.tree.get("main").await.unwrap().children;
    assert_eq!(kept.len(), CHILDREN_MAX);
    assert_eq!(kept[..CHILDREN_MAX - 2], children[2..]);
}
