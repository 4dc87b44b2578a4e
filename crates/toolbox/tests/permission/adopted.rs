//! Requests whose askers are gone, and who asks the same again.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use holdfast_contract::{Answer, Effect, PermissionTier, Scope, Tool, ToolResultEnvelope};
use holdfast_reliability::store::conformance::interposed_documents::{
    DocumentStep, InterposedDocuments,
};
use holdfast_reliability::store::documents::DocumentStore;
use holdfast_reliability::store::memory::MemoryDocumentStore;
use holdfast_testkit::{SeededEntropy, TokioClock};
use holdfast_toolbox::approval::{Approval, ResumeWhich, resume_open};
use serde_json::json;

use crate::bench::{Bench, Build, Probe, Recorded, ask, word};

const YES: Answer = Answer::Approve { scope: Scope::Once };

type Asking<'a> = Pin<Box<dyn Future<Output = ToolResultEnvelope> + 'a>>;

async fn house() -> (Bench, Arc<Probe>) {
    let probe = Probe::new("probe", PermissionTier::Elevated, Effect::Workspace);
    let bench = Build::default().bench(vec![probe.clone() as Arc<dyn Tool>]);
    bench.main("/w".into(), Some(Recorded::silent())).await;
    (bench, probe)
}

fn asking(bench: &Bench) -> Asking<'_> {
    Box::pin(bench.stack.call(ask("probe", "main", json!({"n": 1}))))
}

/// Kills it: nothing happens any more, not even what a drop does. Its lease ends by itself.
fn kill<F: ?Sized>(call: Pin<Box<F>>) {
    std::mem::forget(call);
}

async fn open(bench: &Bench) -> Vec<Approval> {
    bench.approvals.open_requests().await.unwrap()
}

async fn wait_until_asked(bench: &Bench, call: &mut Asking<'_>, count: usize) -> Vec<Approval> {
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
async fn orphan(bench: &Bench) -> String {
    let mut call = asking(bench);
    let id = wait_until_asked(bench, &mut call, 1).await.remove(0).id;
    kill(call);
    id
}

async fn yes(bench: &Bench, id: &str) {
    bench.approvals.answer(id, &YES, "person").await.unwrap();
}

async fn resume(bench: &Bench) -> usize {
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
async fn what_was_run_for_nobody_is_told_once_to_who_asks_again() {
    let (bench, probe) = house().await;
    let id = orphan(&bench).await;
    yes(&bench, &id).await;
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!((resume(&bench).await, probe.runs()), (1, 1));
    let told = asking(&bench).await;
    assert!(told.is_success() && told.from_cache, "{told:?}");
    // Once more is another wish.
    let mut call = asking(&bench);
    wait_until_asked(&bench, &mut call, 1).await;
    assert_eq!(probe.runs(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_outcome_that_is_not_asked_for_soon_is_not_told() {
    let (bench, probe) = house().await;
    let id = orphan(&bench).await;
    yes(&bench, &id).await;
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!((resume(&bench).await, probe.runs()), (1, 1));
    tokio::time::sleep(Duration::from_mins(11)).await;
    let mut call = asking(&bench);
    wait_until_asked(&bench, &mut call, 1).await;
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

/// Documents that let others go first after every step.
struct Slow(MemoryDocumentStore);

impl InterposedDocuments for Slow {
    fn behind(&self) -> &dyn DocumentStore {
        &self.0
    }

    fn after(&self, _: DocumentStep<'_>) -> BoxFuture<'_, ()> {
        tokio::task::yield_now().boxed()
    }
}

/// Asks, is killed, asks again, and is resumed at any moment, until somebody is answered.
struct Story<'a> {
    bench: &'a Bench,
    probe: &'a Probe,
    dice: &'a SeededEntropy,
    caller: Option<Asking<'a>>,
    /// Whether the tool ran for the one who asks now.
    ran_for_caller: bool,
    resumes: Vec<Pin<Box<dyn Future<Output = ()> + 'a>>>,
}

impl<'a> Story<'a> {
    async fn step(&mut self) -> Option<ToolResultEnvelope> {
        match self.dice.below(100) {
            0..50 => return self.poll_caller(),
            50..75 => self.poll_resumes(),
            75..80 => self.kill_caller(),
            80..84 if !self.resumes.is_empty() => {
                let at = self.dice.below(self.resumes.len() as u64);
                kill(self.resumes.swap_remove(usize::try_from(at).unwrap()));
            }
            84..89 => self.start_resume(),
            89..92 => {
                if let Some(request) = open(self.bench).await.pop() {
                    // One that was answered already stays so.
                    let _ = self
                        .bench
                        .approvals
                        .answer(&request.id, &YES, "person")
                        .await;
                }
            }
            _ => tokio::time::advance(Duration::from_millis(self.dice.below(4_000))).await,
        }
        None
    }

    fn poll_caller(&mut self) -> Option<ToolResultEnvelope> {
        let bench = self.bench;
        let before = self.probe.runs();
        let caller = self.caller.get_or_insert_with(|| asking(bench));
        let polled = caller.as_mut().now_or_never_here();
        self.ran_for_caller |= self.probe.runs() > before;
        if polled.is_some() {
            self.caller = None;
        }
        polled
    }

    fn poll_resumes(&mut self) {
        let mut left = Vec::new();
        for mut resume in self.resumes.drain(..) {
            if resume.as_mut().now_or_never_here().is_none() {
                left.push(resume);
            }
        }
        self.resumes = left;
    }

    fn kill_caller(&mut self) {
        // What has run is to be told: who dies with the answer in its hands asks as anybody would.
        if !self.ran_for_caller
            && let Some(caller) = self.caller.take()
        {
            kill(caller);
        }
    }

    fn start_resume(&mut self) {
        let which = if self.dice.chance(50) {
            ResumeWhich::Approved
        } else {
            ResumeWhich::All
        };
        let bench: &'a Bench = self.bench;
        self.resumes.push(Box::pin(async move {
            resume_open(&bench.stack, &bench.approvals, &which)
                .await
                .unwrap();
        }));
    }
}

/// Polls once, with a waker that wakes nobody: the story says who goes on when.
trait NowOrNeverHere {
    type Output;
    fn now_or_never_here(self) -> Option<Self::Output>;
}

impl<F: Future + ?Sized> NowOrNeverHere for Pin<&mut F> {
    type Output = F::Output;

    fn now_or_never_here(self) -> Option<F::Output> {
        let waker = std::task::Waker::noop();
        match self.poll(&mut std::task::Context::from_waker(waker)) {
            Poll::Ready(output) => Some(output),
            Poll::Pending => None,
        }
    }
}

#[tokio::test(start_paused = true)]
async fn one_wish_has_one_effect_however_it_is_killed_resumed_and_asked_again() {
    let mut answered = 0;
    for seed in 0..300 {
        let clock = Arc::new(TokioClock::new());
        let build = Build {
            documents: Some(Arc::new(Slow(MemoryDocumentStore::new(clock)))),
            ..Build::default()
        };
        let probe = Probe::new("probe", PermissionTier::Elevated, Effect::Workspace);
        let bench = build.bench(vec![probe.clone() as Arc<dyn Tool>]);
        bench.main("/w".into(), Some(Recorded::silent())).await;
        let dice = SeededEntropy::new(seed);
        let mut story = Story {
            bench: &bench,
            probe: &probe,
            dice: &dice,
            caller: None,
            ran_for_caller: false,
            resumes: Vec::new(),
        };
        for _ in 0..600 {
            let told = story.step().await;
            assert!(probe.runs() <= 1, "seed {seed}: it ran twice");
            let waiting = open(&bench).await.len();
            assert!(waiting <= 1, "seed {seed}: {waiting} requests are open");
            if let Some(told) = told {
                let done = told.is_success();
                assert!(!done || probe.runs() == 1, "seed {seed}: {told:?}");
                answered += u64::from(done);
                break;
            }
            tokio::task::yield_now().await;
        }
        for resume in story.resumes {
            kill(resume);
        }
        if let Some(caller) = story.caller {
            kill(caller);
        }
    }
    assert!(answered > 50, "only {answered} were answered");
}
