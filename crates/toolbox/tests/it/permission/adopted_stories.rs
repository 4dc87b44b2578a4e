//! Callers that die, are delivered again, resumed, answered and asked again, in any order.

use std::collections::BTreeSet;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use holdfast_contract::{
    Answer, Effect, PermissionTier, Scope, Tool, ToolCallEnvelope, ToolContext, ToolError,
    ToolResult, ToolResultEnvelope,
};
use holdfast_reliability::store::DedupeStore;
use holdfast_reliability::store::conformance::interposed_documents::{
    DocumentStep, InterposedDocuments,
};
use holdfast_reliability::store::documents::DocumentStore;
use holdfast_reliability::store::memory::MemoryDocumentStore;
use holdfast_reliability::store::redis::{RedisOptions, RedisState, TimeSource};
use holdfast_reliability::store::sqlite::{SqliteOptions, SqliteState};
use holdfast_testkit::redis::{Persistence, RedisServer};
use holdfast_testkit::{Does, MadeTool, SeededEntropy, TokioClock};
use holdfast_toolbox::approval::{ApprovalState, ResumeWhich, resume_open};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::permission::adopted::{Asking, kill, open};
use crate::permission::at_once::{AtOnce, Followed};
use crate::permission::bench::{Bench, Build, Recorded, ask, word};

const STEPS: usize = 500;
/// Half seconds in which a story has to end once nobody dies any more.
const ENDS_WITHIN: usize = 400;

/// Documents that let others go first after every step.
struct Slow(Arc<dyn DocumentStore>);

impl InterposedDocuments for Slow {
    fn behind(&self) -> &dyn DocumentStore {
        &*self.0
    }

    fn after(&self, _: DocumentStep<'_>) -> BoxFuture<'_, ()> {
        tokio::task::yield_now().boxed()
    }
}

/// Counts its runs, and fails if it is told to.
struct Fickle {
    runs: AtomicU64,
    fails: bool,
}

#[async_trait]
impl Does for Fickle {
    async fn run(&self, _: &Value, _: &ToolContext) -> Result<ToolResult, ToolError> {
        self.runs.fetch_add(1, Ordering::SeqCst);
        if self.fails {
            return Err(ToolError::coded("does_not_work", "it does not work"));
        }
        Ok(ToolResult::new(json!("ran"), ""))
    }
}

/// One wish, which somebody has until somebody is answered.
struct Story<'a> {
    seed: u64,
    bench: &'a Bench,
    tool: &'a MadeTool<Fickle>,
    dice: &'a SeededEntropy,
    caller: Option<Asking<'a>>,
    /// What was delivered so far.
    envelopes: Vec<ToolCallEnvelope>,
    /// Whether the tool ran for the one who asks now.
    ran_for_caller: bool,
    resumes: Vec<Pin<Box<dyn Future<Output = ()> + 'a>>>,
    denials: usize,
}

impl<'a> Story<'a> {
    fn runs(&self) -> u64 {
        self.tool.runs.load(Ordering::SeqCst)
    }

    async fn step(&mut self) -> Option<ToolResultEnvelope> {
        match self.dice.below(100) {
            0..50 => return self.poll_caller(),
            50..75 => self.poll_resumes(),
            75..80 => self.end_caller(),
            80..84 if !self.resumes.is_empty() => {
                let at = self.dice.below(self.resumes.len() as u64);
                kill(self.resumes.swap_remove(usize::try_from(at).unwrap()));
            }
            84..89 => self.start_resume(),
            89..92 => {
                let is_no = self.dice.chance(10);
                self.answer(is_no).await;
            }
            _ => tokio::time::advance(Duration::from_millis(self.dice.below(4_000))).await,
        }
        None
    }

    async fn answer(&mut self, is_no: bool) {
        let answer = if is_no {
            Answer::Deny { reason: None }
        } else {
            Answer::Approve { scope: Scope::Once }
        };
        for request in open(self.bench).await {
            // One that was answered already stays so.
            let approvals = &self.bench.approvals;
            let taken = approvals.answer(&request.id, &answer, "person").await;
            self.denials += usize::from(is_no && taken.is_ok());
        }
    }

    /// A new call, or one of those before once more.
    fn ask(&mut self) -> Asking<'a> {
        let at = usize::try_from(self.dice.below(3 + self.envelopes.len() as u64)).unwrap();
        let envelope = self.envelopes.get(at).cloned().unwrap_or_else(|| {
            let new = ask("probe", "main", json!({"n": 1}));
            self.envelopes.push(new.clone());
            new
        });
        self.ran_for_caller = false;
        let bench: &'a Bench = self.bench;
        Box::pin(bench.stack.call(envelope))
    }

    fn poll_caller(&mut self) -> Option<ToolResultEnvelope> {
        let mut caller = match self.caller.take() {
            Some(caller) => caller,
            None => self.ask(),
        };
        let before = self.runs();
        let polled = caller.as_mut().now_or_never_here();
        self.ran_for_caller |= self.runs() > before;
        if polled.is_none() {
            self.caller = Some(caller);
        }
        polled
    }

    fn poll_resumes(&mut self) {
        self.resumes
            .retain_mut(|resume| resume.as_mut().now_or_never_here().is_none());
    }

    /// It dies, or goes away. Not with the answer in its hands: then it asks as anybody would.
    fn end_caller(&mut self) {
        if !self.ran_for_caller
            && let Some(caller) = self.caller.take()
            && self.dice.chance(80)
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

    /// Nobody dies any more, and people answer: then everybody gets to an end.
    async fn drive(&mut self, mut told: Option<ToolResultEnvelope>) -> ToolResultEnvelope {
        for _ in 0..ENDS_WITHIN {
            if told.is_none() {
                told = self.poll_caller();
            }
            self.poll_resumes();
            if self.resumes.is_empty()
                && let Some(told) = told
            {
                return told;
            }
            self.answer(false).await;
            self.check().await;
            tokio::time::advance(Duration::from_millis(500)).await;
            tokio::task::yield_now().await;
        }
        let left = open(self.bench).await;
        panic!(
            "seed {}: it does not end: {told:?}, {} resumed, {left:?}",
            self.seed,
            self.resumes.len()
        );
    }

    /// What holds at every moment.
    async fn check(&self) {
        let (seed, runs) = (self.seed, self.runs());
        let all = self.bench.approvals.list().await.unwrap();
        let used = all
            .iter()
            .filter(|it| matches!(it.state, ApprovalState::Used { .. }));
        let used = used.count() as u64;
        assert!(runs <= used, "seed {seed}: {runs} runs, {used} approvals");
        let waiting = open(self.bench).await.len();
        assert!(waiting <= 1, "seed {seed}: {waiting} requests are open");
    }

    /// Somebody wishes the same once more: it is asked about, and runs.
    async fn wish_again(&mut self) {
        if self.denials > 0 {
            tokio::time::advance(Duration::from_mins(11)).await;
        }
        let seed = self.seed;
        let asked = self.bench.approvals.list().await.unwrap();
        let asked: BTreeSet<String> = asked.into_iter().map(|it| it.id).collect();
        let is_left = !open(self.bench).await.is_empty();
        let before = self.runs();
        self.envelopes.clear();
        let told = self.drive(None).await;
        let expected = if self.tool.fails {
            "does_not_work"
        } else {
            "ran"
        };
        assert_eq!(word(&told), expected, "seed {seed}: {told:?}");
        assert!(!told.from_cache, "seed {seed}: {told:?}");
        assert_eq!(self.runs(), before + 1, "seed {seed}");
        let now = self.bench.approvals.list().await.unwrap();
        let is_new = now.iter().any(|it| !asked.contains(&it.id));
        assert!(is_left || is_new, "seed {seed}: nobody was asked");
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

/// Where a story is kept.
pub(crate) trait Kept {
    fn build(&self) -> Build;
}

/// In this process.
pub(crate) struct Memory;

impl Kept for Memory {
    fn build(&self) -> Build {
        kept_in(Arc::new(MemoryDocumentStore::new(Arc::new(
            TokioClock::new(),
        ))))
    }
}

/// On a disk. Killed calls never give their store back, so their directories are gone before they are.
pub(crate) struct OnDisk(pub(crate) TempDir);

impl Kept for OnDisk {
    fn build(&self) -> Build {
        let dir = tempfile::tempdir_in(self.0.path()).unwrap().keep();
        let clock = Arc::new(Followed::new());
        let store = SqliteState::open(&dir, clock, SqliteOptions::default()).unwrap();
        kept_in_one(Arc::new(AtOnce(store)))
    }
}

/// On a server.
pub(crate) struct InRedis {
    server: RedisServer,
    stories: AtomicU64,
}

impl InRedis {
    pub(crate) fn new() -> Self {
        Self {
            server: RedisServer::start(Persistence::None, &[]).unwrap(),
            stories: AtomicU64::new(0),
        }
    }
}

impl Kept for InRedis {
    fn build(&self) -> Build {
        let number = self.stories.fetch_add(1, Ordering::SeqCst);
        let options = RedisOptions {
            prefix: format!("story-{number}"),
            time: TimeSource::Caller,
            sweep_every_ms: 0,
            ..RedisOptions::single(self.server.url())
        };
        let store = RedisState::open(&options, Arc::new(Followed::new())).unwrap();
        kept_in_one(Arc::new(AtOnce(store)))
    }
}

fn kept_in(documents: Arc<dyn DocumentStore>) -> Build {
    Build {
        documents: Some(Arc::new(Slow(documents))),
        ..Build::default()
    }
}

fn kept_in_one<S: DocumentStore + DedupeStore + 'static>(store: Arc<S>) -> Build {
    Build {
        records: Some(store.clone()),
        ..kept_in(store)
    }
}

async fn told(build: Build, seed: u64, effect: Effect, fails: bool) -> String {
    let does = Fickle {
        runs: AtomicU64::new(0),
        fails,
    };
    let tool = MadeTool::doing("probe", PermissionTier::Elevated, effect, does);
    let tool = Arc::new(tool);
    let bench = build.bench(vec![tool.clone() as Arc<dyn Tool>]);
    bench.main("/w".into(), Some(Recorded::silent())).await;
    let dice = SeededEntropy::new(seed);
    let mut story = Story {
        seed,
        bench: &bench,
        tool: &tool,
        dice: &dice,
        caller: None,
        envelopes: Vec::new(),
        ran_for_caller: false,
        resumes: Vec::new(),
        denials: 0,
    };
    let mut told = None;
    for _ in 0..STEPS {
        told = story.step().await;
        story.check().await;
        if told.is_some() {
            break;
        }
        tokio::task::yield_now().await;
    }
    let told = story.drive(told).await;
    let is_done = told.is_success();
    assert!(!is_done || story.runs() > 0, "seed {seed}: {told:?}");
    story.wish_again().await;
    word(&told).to_owned()
}

/// Tells so many stories; gives how many ended with each of the words that are to come about.
async fn tell(kept: &dyn Kept, stories: u64) -> [usize; 3] {
    let mut words: Vec<String> = Vec::new();
    for seed in 0..stories {
        let effect = if seed % 2 == 0 {
            Effect::Workspace
        } else {
            Effect::External
        };
        words.push(told(kept.build(), seed, effect, seed % 5 == 0).await);
    }
    ["ran", "does_not_work", "permission_denied"]
        .map(|word| words.iter().filter(|it| *it == word).count())
}

#[tokio::test(start_paused = true)]
async fn every_story_ends_and_one_approval_is_for_one_run() {
    let [ran, failed, denied] = tell(&Memory, 200).await;
    assert!(ran > 60 && failed > 10 && denied > 0);
}

#[tokio::test(start_paused = true)]
async fn every_story_ends_so_on_a_disk() {
    let [ran, failed, _] = tell(&OnDisk(tempfile::tempdir().unwrap()), 50).await;
    assert!(ran > 15 && failed > 2);
}

#[tokio::test(start_paused = true)]
async fn every_story_ends_so_in_redis() {
    let [ran, failed, _] = tell(&InRedis::new(), 50).await;
    assert!(ran > 15 && failed > 2);
}
