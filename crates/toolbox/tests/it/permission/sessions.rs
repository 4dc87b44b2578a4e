//! The tree, kept.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use holdfast_contract::{Channel, ChannelLevel, Effect, PermissionTier, SessionKind, SystemClock};
use holdfast_reliability::store::sqlite::{SqliteOptions, SqliteState};
use holdfast_toolbox::session::model::{CANCEL_GRACE_MS, MAIN_IDLE_MS, WORKER_TTL_MS};
use holdfast_toolbox::session::{
    Delivery, SessionResult, SessionState, SessionStatus, Spawn, Spent, TreeError,
};
use serde_json::json;

use crate::permission::bench::{Bench, Build, Probe, Recorded, ask, message, word};

fn wish(kind: SessionKind) -> Spawn {
    Spawn {
        kind,
        context_summary: "look it up".into(),
        token_budget: Some(100),
    }
}

fn done(summary: &str) -> SessionResult {
    SessionResult::new(SessionStatus::Completed, summary)
}

async fn state(bench: &Bench, id: &str) -> SessionState {
    bench.tree.get(id).await.unwrap().state
}

#[tokio::test(start_paused = true)]
async fn summary_down_result_up() {
    let bench = Build::default().bench(vec![]);
    bench.main("/w".into(), None).await;
    let branch = bench
        .tree
        .spawn("main", wish(SessionKind::Branch))
        .await
        .unwrap();
    assert_eq!(branch.context_summary.as_deref(), Some("look it up"));
    assert_eq!(
        bench.tree.get("main").await.unwrap().children,
        std::slice::from_ref(&branch.id)
    );
    let delivery = bench.tree.finish(&branch.id, done("found")).await.unwrap();
    assert_eq!(delivery, Delivery::ToParent("main".into()));
    let result = bench.tree.get(&branch.id).await.unwrap().result.unwrap();
    assert_eq!(result.summary, "found");
    assert!(bench.tree.get("main").await.unwrap().children.is_empty());
    assert!(bench.tree.context(&branch.id).is_none());
    let again = bench.tree.finish(&branch.id, done("once more")).await;
    assert!(matches!(again, Err(TreeError::Refused(_))), "{again:?}");
    assert_eq!(bench.tree.children("main").await.unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_parent_reaches_its_children() {
    let bench = Build::default().bench(vec![]);
    bench.main("/w".into(), None).await;
    let branch = bench
        .tree
        .spawn("main", wish(SessionKind::Branch))
        .await
        .unwrap()
        .id;
    let worker = bench
        .tree
        .spawn(&branch, wish(SessionKind::Worker))
        .await
        .unwrap()
        .id;
    let prompt = bench
        .tree
        .spawn(&branch, wish(SessionKind::Worker))
        .await
        .unwrap()
        .id;
    let tree = bench.tree.clone();
    let told = {
        let worker = worker.clone();
        tokio::spawn(async move { tree.cancelled(&worker).await })
    };
    tokio::task::yield_now().await;
    assert!(!told.is_finished());
    bench.tree.finish(&branch, done("early")).await.unwrap();
    told.await.unwrap();
    // One wraps up; its result comes too late for anybody.
    let delivery = bench.tree.finish(&prompt, done("late")).await.unwrap();
    assert_eq!(delivery, Delivery::Dropped);
    // The other does not, and is ended.
    tokio::time::advance(Duration::from_secs(29)).await;
    assert!(bench.tree.tick().await.unwrap().is_empty());
    tokio::time::advance(Duration::from_secs(1)).await;
    let ended = bench.tree.tick().await.unwrap();
    assert_eq!(
        ended.iter().map(|it| it.id.clone()).collect::<Vec<_>>(),
        std::slice::from_ref(&worker)
    );
    assert_eq!(state(&bench, &worker).await, SessionState::Failed);
    assert_eq!(state(&bench, "main").await, SessionState::Active);
}

#[tokio::test(start_paused = true)]
async fn a_suspended_session_calls_nothing_until_it_is_resumed() {
    let probe = Probe::new("probe", PermissionTier::ReadOnly, Effect::None);
    let bench = Build::default().bench(vec![probe.clone()]);
    bench.main("/w".into(), None).await;
    let branch = bench
        .tree
        .spawn("main", wish(SessionKind::Branch))
        .await
        .unwrap()
        .id;
    assert_eq!(
        word(&bench.stack.call(ask("probe", &branch, json!({}))).await),
        "ran"
    );
    assert_eq!(bench.tree.spend(&branch, 51).await.unwrap(), Spent::Paused);
    let refused = bench.stack.call(ask("probe", &branch, json!({}))).await;
    assert_eq!(word(&refused), "permission_denied");
    assert!(
        message(&refused).contains("over half of its tokens"),
        "{refused:?}"
    );
    bench.tree.resume(&branch).await.unwrap();
    assert_eq!(
        word(&bench.stack.call(ask("probe", &branch, json!({}))).await),
        "ran"
    );
    assert_eq!(
        bench.tree.spend(&branch, 50).await.unwrap(),
        Spent::OverBudget
    );
    let refused = bench.stack.call(ask("probe", &branch, json!({}))).await;
    assert!(message(&refused).contains("has ended"), "{refused:?}");
    assert_eq!(probe.runs(), 2);
}

#[tokio::test(start_paused = true)]
async fn many_children_at_once_stay_within_the_limit() {
    let bench = Build::default().bench(vec![]);
    bench.main("/w".into(), None).await;
    let spawned = futures_util::future::join_all(
        (0..20).map(|_| bench.tree.spawn("main", wish(SessionKind::Worker))),
    )
    .await;
    assert_eq!(spawned.iter().filter(|it| it.is_ok()).count(), 8);
    assert_eq!(bench.tree.get("main").await.unwrap().children.len(), 8);
}

#[tokio::test]
async fn a_restart_keeps_what_can_go_on() {
    let dir = tempfile::tempdir().unwrap();
    let open = || -> Arc<SqliteState> {
        SqliteState::open(dir.path(), Arc::new(SystemClock), SqliteOptions::default()).unwrap()
    };
    let channel: Arc<dyn Channel> = Recorded::new(ChannelLevel::Elevated, None);
    let (branch, suspended, worker);
    {
        let bench = Build {
            documents: Some(open()),
            ..Build::default()
        }
        .bench(vec![]);
        bench
            .tree
            .open_main("main", "agent", "/w".into(), Some(channel.clone()))
            .await
            .unwrap();
        branch = bench
            .tree
            .spawn("main", wish(SessionKind::Branch))
            .await
            .unwrap()
            .id;
        suspended = bench
            .tree
            .spawn("main", wish(SessionKind::Branch))
            .await
            .unwrap()
            .id;
        worker = bench
            .tree
            .spawn(&branch, wish(SessionKind::Worker))
            .await
            .unwrap()
            .id;
        bench.tree.suspend(&suspended).await.unwrap();
    }
    let bench = Build {
        documents: Some(open()),
        ..Build::default()
    }
    .bench(vec![]);
    // Their process is gone. Others may live and share the store, so each is named.
    let mut failed = Vec::new();
    for id in ["main", &worker, &branch, &suspended] {
        if let Some(lost) = bench.tree.lost(id).await.unwrap() {
            assert_eq!(lost.state, SessionState::Failed);
            failed.push(lost.id);
        }
    }
    assert_eq!(failed, [worker.as_str(), &branch]);
    let main = bench
        .tree
        .open_main("main", "other", "/elsewhere".into(), Some(channel))
        .await
        .unwrap();
    assert_eq!(
        (main.agent_id.as_str(), main.children),
        ("agent", vec![suspended.clone()])
    );
    let context = bench.tree.revive(&suspended).await.unwrap();
    assert_eq!(
        context.channel.as_ref().map(|it| it.owner_session.as_str()),
        Some("main")
    );
    bench.tree.resume(&suspended).await.unwrap();
    assert!(bench.tree.revive(&worker).await.is_err());
    assert_eq!(state(&bench, &suspended).await, SessionState::Active);
}

#[tokio::test(start_paused = true)]
async fn children_inherit_the_way_to_people_and_no_rights() {
    let bench = Build::default().bench(vec![]);
    let channel = Recorded::silent();
    bench.main("/w".into(), Some(channel)).await;
    let branch = bench
        .tree
        .spawn("main", wish(SessionKind::Branch))
        .await
        .unwrap()
        .id;
    let deeper = bench
        .tree
        .spawn(&branch, wish(SessionKind::Branch))
        .await
        .unwrap()
        .id;
    let worker = bench
        .tree
        .spawn(&deeper, wish(SessionKind::Worker))
        .await
        .unwrap()
        .id;
    for id in [&branch, &deeper, &worker] {
        let context = bench.tree.context(id).unwrap();
        let route = context.approval.as_ref().expect("somebody can be asked");
        assert_eq!(route.asked_session, "main");
        assert_eq!(context.channel.is_some(), *id != worker);
        assert!(
            context
                .read
                .as_ref()
                .is_some_and(|read| read.granted.is_empty())
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_revived_session_stays_suspended() {
    let probe = Probe::new("probe", PermissionTier::ReadOnly, Effect::None);
    let bench = Build::default().bench(vec![probe.clone()]);
    bench.main("/w".into(), None).await;
    let made = bench.tree.spawn("main", wish(SessionKind::Branch)).await;
    let branch = made.unwrap().id;
    bench.tree.suspend(&branch).await.unwrap();
    bench.tree.revive(&branch).await.unwrap();
    let refused = bench.stack.call(ask("probe", &branch, json!({}))).await;
    assert!(message(&refused).contains("is suspended"), "{refused:?}");
    bench.tree.resume(&branch).await.unwrap();
    let ran = bench.stack.call(ask("probe", &branch, json!({}))).await;
    assert_eq!((word(&ran), probe.runs()), ("ran", 1));
}

#[tokio::test(start_paused = true)]
async fn opening_a_session_again_ends_no_wait_for_its_end() {
    let bench = Build::default().bench(vec![]);
    bench.main("/w".into(), None).await;
    let mut ended = Box::pin(bench.tree.cancelled("main"));
    assert!(ended.as_mut().now_or_never().is_none());
    bench.main("/w".into(), None).await;
    assert!(ended.as_mut().now_or_never().is_none());
    bench.tree.cancel("main").await.unwrap();
    assert!(ended.as_mut().now_or_never().is_some());
}

#[tokio::test(start_paused = true)]
async fn a_session_whose_time_is_over_calls_nothing() {
    let probe = Probe::new("probe", PermissionTier::ReadOnly, Effect::None);
    let bench = Build::default().bench(vec![probe.clone()]);
    bench.main("/w".into(), None).await;
    let worker = bench.tree.spawn("main", wish(SessionKind::Worker)).await;
    let told = bench.tree.spawn("main", wish(SessionKind::Branch)).await;
    let (worker, told) = (worker.unwrap().id, told.unwrap().id);
    bench.tree.cancel(&told).await.unwrap();
    let call = |id: &str| bench.stack.call(ask("probe", id, json!({})));
    // It may still wrap up.
    assert_eq!(word(&call(&told).await), "ran");
    tokio::time::advance(Duration::from_millis(CANCEL_GRACE_MS)).await;
    assert!(message(&call(&told).await).contains("time of the session"));
    assert_eq!(word(&call(&worker).await), "ran");
    tokio::time::advance(Duration::from_millis(WORKER_TTL_MS)).await;
    assert!(message(&call(&worker).await).contains("time of the session"));
    assert_eq!(probe.runs(), 2);
}

/// A Main whose owner never comes back ends by itself; one that still works does not.
#[tokio::test(start_paused = true)]
async fn a_main_in_which_nothing_happens_ends() {
    let probe = Probe::new("probe", PermissionTier::ReadOnly, Effect::None);
    let bench = Build::default().bench(vec![probe]);
    bench.main("/w".into(), None).await;
    let open = |id: &'static str| bench.tree.open_main(id, "agent", "/w".into(), None);
    for id in ["idle", "parent", "opened"] {
        open(id).await.unwrap();
    }
    let half = Duration::from_millis(MAIN_IDLE_MS / 2 - 1);
    for _ in 0..4 {
        tokio::time::sleep(half).await;
        let result = bench.stack.call(ask("probe", "main", json!({}))).await;
        assert_eq!(word(&result), "ran");
        let child = bench.tree.spawn("parent", wish(SessionKind::Worker)).await;
        bench
            .tree
            .finish(&child.unwrap().id, done("x"))
            .await
            .unwrap();
        open("opened").await.unwrap();
        for ended in bench.tree.tick().await.unwrap() {
            assert_eq!(ended.id, "idle");
            assert_eq!(ended.state, SessionState::Expired);
        }
    }
    assert_eq!(state(&bench, "idle").await, SessionState::Expired);
    assert!(bench.tree.context("idle").is_none(), "it may do nothing");
    for id in ["main", "parent", "opened"] {
        assert_eq!(state(&bench, id).await, SessionState::Active, "{id}");
    }
    tokio::time::sleep(Duration::from_millis(MAIN_IDLE_MS)).await;
    assert_eq!(bench.tree.tick().await.unwrap().len(), 3);
}
