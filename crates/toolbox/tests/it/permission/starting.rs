//! What may happen between a person's yes and the start of the call.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use holdfast_contract::{DedupeMode, Effect, PermissionTier, Tool};
use holdfast_reliability::call::{AtOnce, Starts};
use holdfast_reliability::store::RecordFilter;
use holdfast_toolbox::approval::{ResumeWhich, resume_one, resume_open};
use serde_json::json;

use crate::permission::adopted::{Asking, wait_until_asked, yes};
use crate::permission::bench::{Bench, Build, Flaky, Probe, Recorded, Refuses, ask, word};
use crate::permission::spent::{HARMLESS, Linked, approved_of_nobody, scene, state};

#[tokio::test(start_paused = true)]
async fn a_yes_that_could_not_be_taken_is_withdrawn_and_nobody_runs_on_it() {
    let probe = Probe::new("probe", PermissionTier::Elevated, Effect::External);
    let store = Flaky::new();
    let build = Build {
        documents: Some(store.clone()),
        ..Build::default()
    };
    let bench = build.bench(vec![probe.clone() as Arc<dyn Tool>]);
    bench.main("/w".into(), Some(Recorded::silent())).await;
    let envelope = ask("probe", "main", json!({"n": 1}));
    let mut call: Asking<'_> = Box::pin(bench.stack.call(envelope));
    let id = wait_until_asked(&bench, &mut call, 1).await.remove(0).id;
    yes(&bench, &id).await;
    store.refuse(Refuses::Changes);
    assert_eq!(word(&call.await), "store_unavailable");
    store.refuse(Refuses::Nothing);
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(state(&bench, &id).await, "withdrawn");
    let resumed = resume_open(&bench.stack, &bench.approvals, &ResumeWhich::All).await;
    assert!(resumed.unwrap().is_empty());
    assert_eq!(probe.runs(), 0);
}

/// Something happens while a call waits for its place.
#[derive(Debug)]
struct Meanwhile {
    tool: Arc<Linked>,
    points_at: u64,
}

impl Starts for Meanwhile {
    fn starts(&self) -> BoxFuture<'_, ()> {
        self.tool.points_at.store(self.points_at, Ordering::SeqCst);
        ready(()).boxed()
    }
}

#[tokio::test(start_paused = true)]
async fn what_changes_while_a_call_waits_for_its_place_is_seen() {
    let (bench, tool, _) = scene().await;
    let approved = approved_of_nobody(&bench, DedupeMode::Enforced).await;
    let id = approved.id.clone();
    let meanwhile = Meanwhile {
        tool: tool.clone(),
        points_at: 1,
    };
    let starts = Arc::new(meanwhile);
    let resumed = resume_one(&bench.stack, &bench.approvals, approved, starts, pending()).await;
    assert_eq!(word(&resumed.result), "permission_denied");
    assert_eq!(state(&bench, &id).await, "withdrawn");
    assert_eq!(tool.runs.load(Ordering::SeqCst), 0);
}

/// There is no place for it.
#[derive(Debug)]
struct Never;

impl Starts for Never {
    fn starts(&self) -> BoxFuture<'_, ()> {
        pending().boxed()
    }
}

async fn are_held(bench: &Bench) -> Vec<bool> {
    let found = bench.records.list(&RecordFilter::default()).await.unwrap();
    found.iter().map(|record| record.held).collect()
}

#[tokio::test(start_paused = true)]
async fn a_call_that_waits_for_its_place_has_not_begun() {
    let (bench, tool, _) = scene().await;
    let approved = approved_of_nobody(&bench, DedupeMode::Enforced).await;
    for points_at in [0, HARMLESS] {
        tool.points_at.store(points_at, Ordering::SeqCst);
        let starts = Arc::new(Never);
        let one = approved.clone();
        let waits = resume_one(&bench.stack, &bench.approvals, one, starts, pending());
        let waits = tokio::time::timeout(Duration::from_mins(1), waits);
        let (waited, ()) = tokio::join!(waits, async {
            tokio::time::sleep(Duration::from_secs(30)).await;
            assert_eq!(are_held(&bench).await, [true], "{points_at}");
        });
        assert!(waited.is_err(), "{points_at}");
    }
    let starts = Arc::new(AtOnce);
    let resumed = resume_one(&bench.stack, &bench.approvals, approved, starts, pending()).await;
    assert_eq!(word(&resumed.result), "ran");
    assert_eq!(are_held(&bench).await, [false]);
    assert_eq!(tool.runs.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn a_request_whose_call_has_run_on_a_newer_one_is_over() {
    let (bench, tool, _) = scene().await;
    let approved = approved_of_nobody(&bench, DedupeMode::Disabled).await;
    let id = approved.id.clone();
    tool.points_at.store(1, Ordering::SeqCst);
    let starts = Arc::new(AtOnce);
    let resumed = resume_one(&bench.stack, &bench.approvals, approved, starts, pending());
    let (resumed, ()) = tokio::join!(resumed, async {
        let newer = loop {
            let open = bench.approvals.open_requests().await.unwrap();
            match open.iter().find(|request| request.id != id) {
                Some(newer) => break newer.id.clone(),
                None => tokio::task::yield_now().await,
            }
        };
        yes(&bench, &newer).await;
    });
    assert_eq!(word(&resumed.result), "ran");
    assert_eq!(state(&bench, &id).await, "withdrawn");
    assert!(bench.approvals.open_requests().await.unwrap().is_empty());
    assert_eq!(tool.runs.load(Ordering::SeqCst), 1);
}
