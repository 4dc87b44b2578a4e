//! Callers that live, and that others took for dead.

use std::sync::Arc;
use std::time::Duration;

use holdfast_contract::{Effect, PermissionTier, Tool, ToolResultEnvelope};
use holdfast_reliability::idempotency::record::{Execution, RecordState, SharedRecord};
use holdfast_reliability::idempotency::transition::{
    ClaimRequest, Ending, Finalisation, Hold, Lifetimes, OnRetriableFailure,
};
use holdfast_reliability::retry::RepeatSafety;
use holdfast_reliability::store::sqlite::{SqliteOptions, SqliteState};
use holdfast_reliability::store::{Claim, ClearIf, Cleared, RecordFilter};

use crate::permission::adopted::{Asking, asking, house, open, resume, wait_until_asked, yes};
use crate::permission::at_once::{AtOnce, Followed};
use crate::permission::bench::{Bench, Build, Probe, Recorded, message, word};

/// The record of the only call that waits.
async fn record(bench: &Bench) -> SharedRecord {
    let filter = RecordFilter {
        state: Some(RecordState::Inflight),
        ..RecordFilter::default()
    };
    bench.records.list(&filter).await.unwrap().remove(0)
}

/// What whoever took a call for dead leaves behind that gives its claim back.
async fn taken_and_given_back(bench: &Bench) -> SharedRecord {
    let record = record(bench).await;
    let gone = bench.records.clear(&record.key, ClearIf::There).await;
    assert_eq!(gone.unwrap(), Cleared::Forgotten);
    record
}

/// Somebody else has the claim.
async fn taken(bench: &Bench) -> ClaimRequest {
    let record = taken_and_given_back(bench).await;
    let wish = ClaimRequest {
        key: record.key,
        content: None,
        tool: record.tool.clone(),
        idempotency_key: record.idempotency_key.clone(),
        request: record.request.clone(),
        owner: "somebody".into(),
        lifetimes: Lifetimes::default(),
        repeat: RepeatSafety::Unsafe,
        on_retriable_failure: OnRetriableFailure::Replay,
        hold: Hold::None,
    };
    let answer = bench.records.claim(&wish).await.unwrap();
    assert!(matches!(answer, Claim::Granted { .. }));
    wish
}

/// Whoever has the claim is done with it.
async fn ends(bench: &Bench, other: &ClaimRequest) {
    let ended = bench.records.finalise(Finalisation {
        key: other.key,
        owner: other.owner.clone(),
        ending: Ending::DoneWithoutOutput,
        execution: Execution::default(),
        lifetimes: other.lifetimes,
    });
    assert!(ended.await.unwrap().is_ok());
}

async fn goes_on(call: &mut Asking<'_>, seconds: u64) {
    for _ in 0..10 * seconds {
        assert!(futures_util::poll!(&mut *call).is_pending());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

fn says(told: &ToolResultEnvelope, words: &str) {
    assert_eq!(word(told), "cancelled");
    assert!(message(told).contains(words), "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn who_was_silent_for_long_goes_on_if_nobody_took_its_claim() {
    let (bench, probe) = house().await;
    let mut call = asking(&bench);
    let id = wait_until_asked(&bench, &mut call, 1).await.remove(0).id;
    tokio::time::sleep(Duration::from_secs(40)).await;
    goes_on(&mut call, 1).await;
    yes(&bench, &id).await;
    assert_eq!(word(&call.await), "ran");
    assert_eq!((probe.runs(), resume(&bench).await), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_was_given_back_is_had_again_while_a_person_thinks() {
    let (bench, probe) = house().await;
    let mut call = asking(&bench);
    let id = wait_until_asked(&bench, &mut call, 1).await.remove(0).id;
    taken_and_given_back(&bench).await;
    goes_on(&mut call, 10).await;
    assert_eq!(record(&bench).await.state, RecordState::Inflight);
    yes(&bench, &id).await;
    assert_eq!(word(&call.await), "ran");
    assert_eq!((probe.runs(), resume(&bench).await), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_was_given_back_is_had_again_when_the_answer_comes() {
    let (bench, probe) = house().await;
    let mut call = asking(&bench);
    let id = wait_until_asked(&bench, &mut call, 1).await.remove(0).id;
    taken_and_given_back(&bench).await;
    yes(&bench, &id).await;
    assert_eq!(word(&call.await), "ran");
    assert_eq!((probe.runs(), resume(&bench).await), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_claim_is_had_again_on_a_disk_as_well() {
    let dir = tempfile::tempdir().unwrap();
    let clock = Arc::new(Followed::new());
    let store = SqliteState::open(dir.path(), clock, SqliteOptions::default()).unwrap();
    let store = Arc::new(AtOnce(store));
    let probe = Probe::new("probe", PermissionTier::Elevated, Effect::Workspace);
    let build = Build {
        documents: Some(store.clone()),
        records: Some(store),
        ..Build::default()
    };
    let bench = build.bench(vec![probe.clone() as Arc<dyn Tool>]);
    bench.main("/w".into(), Some(Recorded::silent())).await;
    let mut call = asking(&bench);
    let id = wait_until_asked(&bench, &mut call, 1).await.remove(0).id;
    taken_and_given_back(&bench).await;
    goes_on(&mut call, 10).await;
    yes(&bench, &id).await;
    assert_eq!(word(&call.await), "ran");
    assert_eq!((probe.runs(), resume(&bench).await), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn who_has_lost_its_claim_to_nobody_withdraws_its_request() {
    let (bench, probe) = house().await;
    let mut call = asking(&bench);
    let id = wait_until_asked(&bench, &mut call, 1).await.remove(0).id;
    let other = taken(&bench).await;
    ends(&bench, &other).await;
    says(&call.await, "lost its key");
    bench.approvals.settled().await;
    assert!(open(&bench).await.is_empty());
    let stands = bench.approvals.get(&id).await.unwrap().unwrap();
    assert_eq!((stands.state.as_str(), probe.runs()), ("withdrawn", 0));
}

#[tokio::test(start_paused = true)]
async fn who_has_lost_its_claim_to_one_that_ends_withdraws_its_request() {
    let (bench, probe) = house().await;
    let mut call = asking(&bench);
    let id = wait_until_asked(&bench, &mut call, 1).await.remove(0).id;
    let other = taken(&bench).await;
    // Long enough to find that another has it.
    goes_on(&mut call, 8).await;
    ends(&bench, &other).await;
    says(&call.await, "its request is over");
    bench.approvals.settled().await;
    let stands = bench.approvals.get(&id).await.unwrap().unwrap();
    assert_eq!((stands.state.as_str(), probe.runs()), ("withdrawn", 0));
}

#[tokio::test(start_paused = true)]
async fn who_has_lost_its_claim_to_another_withdraws_nothing() {
    let (bench, probe) = house().await;
    let mut call = asking(&bench);
    let id = wait_until_asked(&bench, &mut call, 1).await.remove(0).id;
    taken(&bench).await;
    says(&call.await, "another goes on with its request");
    bench.approvals.settled().await;
    let stands = bench.approvals.get(&id).await.unwrap().unwrap();
    assert_eq!((stands.state.as_str(), probe.runs()), ("pending", 0));
}

#[tokio::test(start_paused = true)]
async fn who_goes_away_before_it_finds_that_another_has_its_claim_withdraws_nothing() {
    let (bench, probe) = house().await;
    let mut call = asking(&bench);
    let id = wait_until_asked(&bench, &mut call, 1).await.remove(0).id;
    tokio::time::sleep(Duration::from_secs(22)).await;
    taken(&bench).await;
    drop(call);
    bench.approvals.settled().await;
    let stands = bench.approvals.get(&id).await.unwrap().unwrap();
    assert_eq!((stands.state.as_str(), probe.runs()), ("pending", 0));
}

#[tokio::test(start_paused = true)]
async fn who_goes_away_while_another_has_its_claim_withdraws_nothing() {
    let (bench, probe) = house().await;
    let mut call = asking(&bench);
    let id = wait_until_asked(&bench, &mut call, 1).await.remove(0).id;
    taken(&bench).await;
    // Long enough for a renewal, and not for the loss to be certain.
    goes_on(&mut call, 8).await;
    drop(call);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(
        open(&bench).await.len(),
        1,
        "{id} belongs to whoever has the claim"
    );
    assert_eq!(probe.runs(), 0);
}
