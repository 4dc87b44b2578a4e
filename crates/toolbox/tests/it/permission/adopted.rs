//! Requests whose askers are gone, and who asks the same again.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use holdfast_contract::{Answer, Effect, PermissionTier, Scope, Tool, ToolResultEnvelope};
use holdfast_toolbox::approval::{Approval, ResumeWhich, ResumedBy, resume_open};
use serde_json::json;

use crate::permission::bench::{Bench, Build, Probe, Recorded, ask, word};

const YES: Answer = Answer::Approve { scope: Scope::Once };

pub(crate) type Asking<'a> = Pin<Box<dyn Future<Output = ToolResultEnvelope> + 'a>>;

pub(crate) async fn house() -> (Bench, Arc<Probe>) {
    let probe = Probe::new("probe", PermissionTier::Elevated, Effect::Workspace);
    let bench = Build::default().bench(vec![probe.clone() as Arc<dyn Tool>]);
    bench.main("/w".into(), Some(Recorded::silent())).await;
    (bench, probe)
}

pub(crate) fn asking(bench: &Bench) -> Asking<'_> {
    Box::pin(bench.stack.call(ask("probe", "main", json!({"n": 1}))))
}

/// Kills it: nothing happens any more, not even what a drop does. Its lease ends by itself.
pub(crate) fn kill<F: ?Sized>(call: Pin<Box<F>>) {
    std::mem::forget(call);
}

pub(crate) async fn open(bench: &Bench) -> Vec<Approval> {
    bench.approvals.open_requests().await.unwrap()
}

pub(crate) async fn wait_until_asked(
    bench: &Bench,
    call: &mut Asking<'_>,
    count: usize,
) -> Vec<Approval> {
    loop {
        assert!(futures_util::poll!(&mut *call).is_pending());
        let found = open(bench).await;
        if found.len() == count {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// The request of a call that was killed while it waited.
pub(crate) async fn orphan(bench: &Bench) -> String {
    let mut call = asking(bench);
    let id = wait_until_asked(bench, &mut call, 1).await.remove(0).id;
    kill(call);
    id
}

pub(crate) async fn yes(bench: &Bench, id: &str) {
    bench.approvals.answer(id, &YES, "person").await.unwrap();
}

pub(crate) async fn resume(bench: &Bench) -> usize {
    let which = ResumeWhich::Approved;
    let resumed = resume_open(&bench.stack, &bench.approvals, &which).await;
    resumed.unwrap().len()
}

#[tokio::test(start_paused = true)]
async fn who_asks_again_goes_on_with_an_approval_that_nobody_has_used() {
    let (bench, probe) = house().await;
    let id = orphan(&bench).await;
    yes(&bench, &id).await;
    let envelope = ask("probe", "main", json!({"n": 1}));
    let result = bench.stack.call(envelope.clone()).await;
    assert_eq!((word(&result), result.from_cache), ("ran", false));
    assert_eq!((probe.runs(), resume(&bench).await), (1, 0));
    // Delivered again it is answered from its own record.
    let again = bench.stack.call(envelope).await;
    assert!(again.is_success() && again.from_cache, "{again:?}");
    assert_eq!(bench.approvals.list().await.unwrap().len(), 1);
    assert_eq!(probe.runs(), 1);
}

#[tokio::test(start_paused = true)]
async fn who_asks_again_waits_for_the_answer_that_is_waited_for() {
    let (bench, probe) = house().await;
    let id = orphan(&bench).await;
    let mut call = asking(&bench);
    // The dead one's lease ends first.
    for _ in 0..300 {
        assert!(futures_util::poll!(&mut call).is_pending());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let waiting = open(&bench).await;
    assert_eq!(waiting.len(), 1, "nobody is asked twice");
    yes(&bench, &id).await;
    assert!(call.await.is_success());
    assert_eq!((probe.runs(), resume(&bench).await), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn two_who_live_are_asked_about_each() {
    let (bench, probe) = house().await;
    let mut first = asking(&bench);
    wait_until_asked(&bench, &mut first, 1).await;
    let mut second = asking(&bench);
    let both = loop {
        assert!(futures_util::poll!(&mut first).is_pending());
        assert!(futures_util::poll!(&mut second).is_pending());
        tokio::time::sleep(Duration::from_millis(10)).await;
        let found = open(&bench).await;
        if found.len() == 2 {
            break found;
        }
    };
    for request in both {
        yes(&bench, &request.id).await;
    }
    let (first, second) = tokio::join!(first, second);
    assert!(first.is_success() && second.is_success());
    assert!(!first.from_cache && !second.from_cache);
    assert_eq!(probe.runs(), 2);
}

#[tokio::test(start_paused = true)]
async fn who_asks_the_same_after_it_was_run_has_another_wish() {
    let (bench, probe) = house().await;
    let id = orphan(&bench).await;
    yes(&bench, &id).await;
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!((resume(&bench).await, probe.runs()), (1, 1));
    let mut call = asking(&bench);
    let other = wait_until_asked(&bench, &mut call, 1).await.remove(0).id;
    assert_ne!(other, id);
    yes(&bench, &other).await;
    let result = call.await;
    assert!(result.is_success() && !result.from_cache, "{result:?}");
    assert_eq!(probe.runs(), 2);
}

/// The dead one's request, seen by a call that waits for its lease to end.
async fn wanted(bench: &Bench) -> (String, Asking<'_>) {
    let id = orphan(bench).await;
    let mut call = asking(bench);
    for _ in 0..10 {
        assert!(futures_util::poll!(&mut call).is_pending());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let marked = bench.approvals.get(&id).await.unwrap().unwrap();
    assert!(marked.wanted_by.is_some());
    (id, call)
}

#[tokio::test(start_paused = true)]
async fn a_no_that_comes_while_one_looks_is_for_it_too() {
    let (bench, probe) = house().await;
    let (id, call) = wanted(&bench).await;
    let no = Answer::Deny { reason: None };
    bench.approvals.answer(&id, &no, "person").await.unwrap();
    assert_eq!(word(&call.await), "permission_denied");
    assert_eq!(bench.approvals.list().await.unwrap().len(), 1);
    assert_eq!(probe.runs(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_rule_that_comes_while_one_looks_covers_it() {
    let (bench, probe) = house().await;
    let (id, call) = wanted(&bench).await;
    let always = Answer::Approve {
        scope: Scope::Session,
    };
    bench
        .approvals
        .answer(&id, &always, "person")
        .await
        .unwrap();
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!((resume(&bench).await, probe.runs()), (1, 1));
    assert_eq!(word(&call.await), "ran");
    assert_eq!(bench.approvals.list().await.unwrap().len(), 1);
    assert_eq!(probe.runs(), 2);
}

#[tokio::test(start_paused = true)]
async fn the_mark_of_a_dead_seeker_is_heeded_for_a_moment_only() {
    let (bench, probe) = house().await;
    let (id, seeker) = wanted(&bench).await;
    kill(seeker);
    tokio::time::sleep(Duration::from_secs(20)).await;
    let (stack, approvals) = (bench.stack.clone(), bench.approvals.clone());
    let stand_in =
        tokio::spawn(async move { resume_open(&stack, &approvals, &ResumeWhich::All).await });
    tokio::time::sleep(Duration::from_secs(1)).await;
    yes(&bench, &id).await;
    let resumed = stand_in.await.unwrap().unwrap();
    assert_eq!(word(&resumed[0].result), "ran");
    assert_eq!((resumed[0].by, probe.runs()), (ResumedBy::Us, 1));
}

#[tokio::test(start_paused = true)]
async fn who_has_lost_its_claim_leaves_the_approval_to_whoever_has_it() {
    let (bench, probe) = house().await;
    let mut first = asking(&bench);
    let id = wait_until_asked(&bench, &mut first, 1).await.remove(0).id;
    // It is silent for longer than its lease, and another goes on with its request.
    tokio::time::sleep(Duration::from_secs(20)).await;
    let mut second = asking(&bench);
    for _ in 0..20 {
        assert!(futures_util::poll!(&mut second).is_pending());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    yes(&bench, &id).await;
    assert_eq!(word(&first.await), "cancelled");
    assert_eq!(probe.runs(), 0);
    assert_eq!(word(&second.await), "ran");
    assert_eq!(probe.runs(), 1);
}

#[tokio::test(start_paused = true)]
async fn who_has_lost_its_claim_to_its_own_redelivery_does_not_burn_the_approval() {
    let (bench, probe) = house().await;
    let envelope = ask("probe", "main", json!({"n": 1}));
    let mut first: Asking<'_> = Box::pin(bench.stack.call(envelope.clone()));
    let id = wait_until_asked(&bench, &mut first, 1).await.remove(0).id;
    tokio::time::sleep(Duration::from_secs(20)).await;
    let mut again: Asking<'_> = Box::pin(bench.stack.call(envelope));
    for _ in 0..20 {
        assert!(futures_util::poll!(&mut again).is_pending());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    yes(&bench, &id).await;
    assert_eq!(word(&first.await), "cancelled");
    assert_eq!(probe.runs(), 0);
    assert_eq!(word(&again.await), "ran");
    assert_eq!(probe.runs(), 1);
}

#[tokio::test(start_paused = true)]
async fn who_goes_on_with_a_request_shows_it_again() {
    let probe = Probe::new("probe", PermissionTier::Elevated, Effect::Workspace);
    let bench = Build::default().bench(vec![probe as Arc<dyn Tool>]);
    let channel = Recorded::silent();
    *channel.down.lock() = Some("away".to_owned());
    bench.main("/w".into(), Some(channel.clone())).await;
    let id = orphan(&bench).await;
    *channel.down.lock() = None;
    tokio::time::sleep(Duration::from_secs(20)).await;
    let mut call = asking(&bench);
    for _ in 0..20 {
        assert!(futures_util::poll!(&mut call).is_pending());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let shown: Vec<_> = channel
        .prompts
        .lock()
        .iter()
        .map(|it| it.id.clone())
        .collect();
    assert_eq!(shown, [id.clone(), id.clone()]);
    let stands = bench.approvals.get(&id).await.unwrap().unwrap();
    assert_eq!(stands.undelivered, None);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_waits_in_a_dead_callers_place_lets_go() {
    let (bench, probe) = house().await;
    let id = orphan(&bench).await;
    tokio::time::sleep(Duration::from_secs(20)).await;
    let (stack, approvals) = (bench.stack.clone(), bench.approvals.clone());
    let stand_in =
        tokio::spawn(async move { resume_open(&stack, &approvals, &ResumeWhich::All).await });
    tokio::time::sleep(Duration::from_secs(1)).await;
    let call = tokio::spawn({
        let stack = bench.stack.clone();
        async move { stack.call(ask("probe", "main", json!({"n": 1}))).await }
    });
    let resumed = stand_in.await.unwrap().unwrap();
    assert_eq!(word(&resumed[0].result), "cancelled");
    assert_eq!(resumed[0].by, ResumedBy::Another);
    assert_eq!(open(&bench).await.len(), 1);
    yes(&bench, &id).await;
    let result = call.await.unwrap();
    assert!(result.is_success() && !result.from_cache, "{result:?}");
    assert_eq!(probe.runs(), 1);
}

#[tokio::test(start_paused = true)]
async fn other_callers_and_named_calls_are_asked_about_for_themselves() {
    let (bench, probe) = house().await;
    let id = orphan(&bench).await;
    yes(&bench, &id).await;
    tokio::time::sleep(Duration::from_secs(20)).await;
    let changed: [fn(&mut holdfast_contract::ToolCallEnvelope); 4] = [
        |it| it.target.actor_id = "somebody".into(),
        |it| it.target.run_id = Some("run".into()),
        |it| it.payload.idempotency_key = Some("key".into()),
        |it| it.payload.params["n"] = json!(2),
    ];
    for (number, change) in changed.into_iter().enumerate() {
        let mut envelope = ask("probe", "main", json!({"n": 1}));
        change(&mut envelope);
        let mut call: Asking<'_> = Box::pin(bench.stack.call(envelope));
        wait_until_asked(&bench, &mut call, number + 2).await;
        kill(call);
    }
    assert_eq!(probe.runs(), 0);
}
