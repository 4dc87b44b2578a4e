//! Callers that stand still for longer than they are waited for, wherever things are kept.

use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use holdfast_contract::{Effect, PermissionTier, Tool};
use holdfast_reliability::idempotency::record::RecordState;
use holdfast_reliability::store::RecordFilter;
use serde_json::json;

use crate::permission::adopted::{Asking, asking, open, wait_until_asked, yes};
use crate::permission::adopted_stories::{InRedis, Kept, Memory, OnDisk};
use crate::permission::bench::{Bench, Probe, Recorded, ask, message, word};

/// Longer than a claim that waits is held without a sign of life.
const STALL: Duration = Duration::from_secs(22);

fn everywhere() -> [Box<dyn Kept>; 3] {
    [
        Box::new(Memory),
        Box::new(OnDisk(tempfile::tempdir().unwrap())),
        Box::new(InRedis::new()),
    ]
}

async fn house(kept: &dyn Kept, effect: Effect) -> (Bench, Arc<Probe>) {
    let probe = Probe::new("probe", PermissionTier::Elevated, effect);
    let bench = kept.build().bench(vec![probe.clone() as Arc<dyn Tool>]);
    bench.main("/w".into(), Some(Recorded::silent())).await;
    (bench, probe)
}

async fn state(bench: &Bench, id: &str) -> &'static str {
    let stands = bench.approvals.get(id).await.unwrap().unwrap();
    stands.state.as_str()
}

/// Whose calls are on record as running or waiting.
async fn in_flight(bench: &Bench) -> Vec<String> {
    let filter = RecordFilter {
        state: Some(RecordState::Inflight),
        ..RecordFilter::default()
    };
    let found = bench.records.list(&filter).await.unwrap();
    found
        .iter()
        .map(|record| record.request.request_id.clone())
        .collect()
}

async fn goes_on(call: &mut Asking<'_>) {
    for _ in 0..20 {
        assert!(futures_util::poll!(&mut *call).is_pending());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn who_wakes_up_to_go_away_leaves_the_request_to_its_redelivery() {
    for kept in everywhere() {
        for is_approved in [false, true] {
            let (bench, probe) = house(&*kept, Effect::Workspace).await;
            let envelope = ask("probe", "main", json!({"n": 1}));
            let mut first: Asking<'_> = Box::pin(bench.stack.call(envelope.clone()));
            let id = wait_until_asked(&bench, &mut first, 1).await.remove(0).id;
            tokio::time::sleep(STALL).await;
            let mut again: Asking<'_> = Box::pin(bench.stack.call(envelope));
            goes_on(&mut again).await;
            if is_approved {
                yes(&bench, &id).await;
            }
            drop(first);
            bench.approvals.settled().await;
            let expected = if is_approved { "approved" } else { "pending" };
            assert_eq!(state(&bench, &id).await, expected);
            if !is_approved {
                yes(&bench, &id).await;
            }
            assert_eq!(word(&again.await), "ran");
            assert_eq!(probe.runs(), 1);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn who_wakes_up_to_go_away_withdraws_what_nobody_goes_on_with() {
    for kept in everywhere() {
        let (bench, probe) = house(&*kept, Effect::Workspace).await;
        let envelope = ask("probe", "main", json!({"n": 1}));
        let mut first: Asking<'_> = Box::pin(bench.stack.call(envelope.clone()));
        let id = wait_until_asked(&bench, &mut first, 1).await.remove(0).id;
        tokio::time::sleep(STALL).await;
        drop(first);
        bench.approvals.settled().await;
        assert_eq!(state(&bench, &id).await, "withdrawn");
        assert!(in_flight(&bench).await.is_empty(), "nobody has the claim");
        // Whoever comes then is asked about anew, and nothing stands in its way.
        let mut again: Asking<'_> = Box::pin(bench.stack.call(envelope));
        let other = wait_until_asked(&bench, &mut again, 1).await.remove(0).id;
        assert_ne!(other, id);
        yes(&bench, &other).await;
        assert_eq!(word(&again.await), "ran");
        assert_eq!(probe.runs(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_yes_is_kept_for_an_identical_call_that_is_about_to_go_on_with_it() {
    for kept in everywhere() {
        let (bench, probe) = house(&*kept, Effect::External).await;
        let mut first = asking(&bench);
        let id = wait_until_asked(&bench, &mut first, 1).await.remove(0).id;
        yes(&bench, &id).await;
        tokio::time::sleep(STALL).await;
        let envelope = ask("probe", "main", json!({"n": 1}));
        let own = envelope.request_id.clone();
        let mut second: Asking<'_> = Box::pin(bench.stack.call(envelope));
        // As far as its claim: it has not looked for what is left.
        while in_flight(&bench).await != [own.clone()] {
            assert!(futures_util::poll!(&mut second).is_pending());
        }
        let mut told = None;
        for _ in 0..20 {
            if told.is_none()
                && let Poll::Ready(result) = futures_util::poll!(&mut first)
            {
                told = Some(result);
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert_eq!(state(&bench, &id).await, "approved");
        assert_eq!(word(&second.await), "ran");
        let told = match told {
            Some(told) => told,
            None => first.await,
        };
        assert_eq!(word(&told), "cancelled");
        assert!(message(&told).contains("another goes on with its request"));
        assert_eq!(probe.runs(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn whose_content_another_sends_withdraws_its_request_in_the_end() {
    for kept in everywhere() {
        let (bench, probe) = house(&*kept, Effect::External).await;
        let mut first = asking(&bench);
        let id = wait_until_asked(&bench, &mut first, 1).await.remove(0).id;
        tokio::time::sleep(STALL).await;
        // A run makes its own calls again, and goes on with nothing of others.
        let mut envelope = ask("probe", "main", json!({"n": 1}));
        envelope.target.run_id = Some("run".into());
        let mut second: Asking<'_> = Box::pin(bench.stack.call(envelope));
        wait_until_asked(&bench, &mut second, 2).await;
        let told = loop {
            assert!(futures_util::poll!(&mut second).is_pending());
            if let Poll::Ready(told) = futures_util::poll!(&mut first) {
                break told;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        };
        assert!(message(&told).contains("its request is over"), "{told:?}");
        bench.approvals.settled().await;
        assert_eq!(state(&bench, &id).await, "withdrawn");
        assert_eq!((open(&bench).await.len(), probe.runs()), (1, 0));
    }
}
