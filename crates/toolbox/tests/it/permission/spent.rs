//! A refusal spends the approval: what was refused once does not run later.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use holdfast_contract::{
    Answer, DedupeMode, Effect, PermissionTier, Reason, Scope, SessionContext, TierVerdict, Tool,
    ToolContext, ToolError, ToolResult,
};
use holdfast_toolbox::approval::{Approval, ResumeWhich, resume_open};
use serde_json::{Value, json};

use crate::permission::bench::{Bench, Build, Probe, Recorded, ask, message, word};

const YES: Answer = Answer::Approve { scope: Scope::Once };
/// The policy of the test allows the call without asking anybody.
pub(crate) const HARMLESS: u64 = 9;

/// A tool whose calls touch what a link points at.
#[derive(Debug, Default)]
pub(crate) struct Linked {
    pub(crate) points_at: AtomicU64,
    pub(crate) runs: AtomicU64,
}

#[async_trait]
impl Tool for Linked {
    fn name(&self) -> &str {
        "linked"
    }

    fn description(&self) -> &str {
        "Made for a test."
    }

    fn parameters_schema(&self) -> Value {
        json!({"type": "object"})
    }

    fn permission_tier(&self) -> PermissionTier {
        PermissionTier::System
    }

    fn tier_for(&self, _params: &Value, _session: &SessionContext) -> TierVerdict {
        let mut verdict = TierVerdict::declared(self.permission_tier());
        let place = self.points_at.load(Ordering::SeqCst);
        if place != HARMLESS {
            let place = place.to_string();
            verdict.raise(Reason::new("outside", &*place, "it is outside"));
        }
        verdict
    }

    fn effect(&self) -> Effect {
        Effect::External
    }

    async fn execute(&self, _params: &Value, _ctx: &ToolContext) -> Result<ToolResult, ToolError> {
        self.runs.fetch_add(1, Ordering::SeqCst);
        Ok(ToolResult::new(json!("ran"), ""))
    }
}

pub(crate) async fn scene() -> (Bench, Arc<Linked>, Arc<Recorded>) {
    let tool = Arc::new(Linked::default());
    let channel = Recorded::silent();
    let bench = Build::default().bench(vec![tool.clone() as Arc<dyn Tool>]);
    bench.main("/nowhere".into(), Some(channel.clone())).await;
    (bench, tool, channel)
}

pub(crate) async fn open(bench: &Bench) -> Approval {
    loop {
        if let [only] = bench.approvals.open_requests().await.unwrap().as_slice() {
            return only.clone();
        }
        tokio::task::yield_now().await;
    }
}

pub(crate) async fn state(bench: &Bench, id: &str) -> String {
    let found = bench.approvals.get(id).await.unwrap().expect("kept");
    found.state.as_str().to_owned()
}

/// A call whose caller gave up while the person thought, and that was approved then.
pub(crate) async fn approved_of_nobody(bench: &Bench, mode: DedupeMode) -> Approval {
    let mut envelope = ask("linked", "main", json!({}));
    envelope.transport.dedupe_mode = mode;
    envelope.control.deadline_at_ms = Some(bench.stack.runtime().clock.now_ms() + 1_000);
    assert_eq!(word(&bench.stack.call(envelope).await), "timeout");
    let request = open(bench).await;
    let answered = bench.approvals.answer(&request.id, &YES, "person").await;
    answered.unwrap()
}

#[tokio::test(start_paused = true)]
async fn what_changed_while_a_person_thought_is_over() {
    for changed in [1, HARMLESS] {
        let (bench, tool, _) = scene().await;
        let (result, request) =
            tokio::join!(bench.stack.call(ask("linked", "main", json!({}))), async {
                let request = open(&bench).await;
                tool.points_at.store(changed, Ordering::SeqCst);
                let answered = bench.approvals.answer(&request.id, &YES, "person").await;
                answered.unwrap();
                request
            });
        assert!(message(&result).contains("has changed"), "{result:?}");
        assert_eq!(state(&bench, &request.id).await, "withdrawn");
        // Put back as it was, it does not run after all.
        tool.points_at.store(0, Ordering::SeqCst);
        let resumed = resume_open(&bench.stack, &bench.approvals, &ResumeWhich::All).await;
        assert!(resumed.unwrap().is_empty());
        assert_eq!(tool.runs.load(Ordering::SeqCst), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn what_changed_before_it_was_resumed_is_over_as_well() {
    let (bench, tool, channel) = scene().await;
    let request = approved_of_nobody(&bench, DedupeMode::Enforced).await;
    tool.points_at.store(1, Ordering::SeqCst);
    let resume = || resume_open(&bench.stack, &bench.approvals, &ResumeWhich::Approved);
    let resumed = resume().await.unwrap();
    assert_eq!(word(&resumed[0].result), "permission_denied");
    assert_eq!(state(&bench, &request.id).await, "withdrawn");
    let prompts = channel.prompts.lock().len();
    for place in [1, 0] {
        tool.points_at.store(place, Ordering::SeqCst);
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(resume().await.unwrap().is_empty());
    }
    assert_eq!(channel.prompts.lock().len(), prompts);
    assert_eq!(tool.runs.load(Ordering::SeqCst), 0);
}

#[tokio::test(start_paused = true)]
async fn a_deadline_that_passes_while_a_person_thinks_counts_against_nobody() {
    let probe = Probe::new("probe", PermissionTier::Elevated, Effect::External);
    let bench = Build::default().bench(vec![probe.clone() as Arc<dyn Tool>]);
    bench.main("/w".into(), Some(Recorded::silent())).await;
    for number in 0..8 {
        let mut envelope = ask("probe", "main", json!({"n": number}));
        envelope.target.turn_id = Some("one turn".to_owned());
        envelope.control.deadline_at_ms = Some(bench.stack.runtime().clock.now_ms() + 1_000);
        let late = bench.stack.call(envelope).await;
        assert_eq!(word(&late), "timeout", "{number}: {late:?}");
    }
    assert_eq!(probe.runs(), 0);
}

/// A yes for the session makes a rule, which covers the very call that it was given for.
#[tokio::test(start_paused = true)]
async fn a_yes_for_more_than_once_is_used_by_its_own_call_once() {
    for mode in [DedupeMode::Enforced, DedupeMode::Disabled] {
        let (bench, tool, _) = scene().await;
        let mut envelope = ask("linked", "main", json!({}));
        envelope.transport.dedupe_mode = mode;
        envelope.control.deadline_at_ms = Some(bench.stack.runtime().clock.now_ms() + 1_000);
        assert_eq!(word(&bench.stack.call(envelope).await), "timeout");
        let request = open(&bench).await;
        let always = Answer::Approve {
            scope: Scope::Session,
        };
        let answered = bench.approvals.answer(&request.id, &always, "person").await;
        answered.unwrap();
        for _ in 0..2 {
            let resumed = resume_open(&bench.stack, &bench.approvals, &ResumeWhich::Approved).await;
            resumed.unwrap();
            tokio::time::advance(Duration::from_secs(30)).await;
        }
        assert_eq!(state(&bench, &request.id).await, "used");
        assert_eq!(tool.runs.load(Ordering::SeqCst), 1, "{mode:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_needs_nobody_any_more_runs_once_and_its_request_is_over() {
    let (bench, tool, _) = scene().await;
    let request = approved_of_nobody(&bench, DedupeMode::Disabled).await;
    tool.points_at.store(HARMLESS, Ordering::SeqCst);
    for _ in 0..2 {
        let resumed = resume_open(&bench.stack, &bench.approvals, &ResumeWhich::Approved).await;
        resumed.unwrap();
        tokio::time::advance(Duration::from_secs(30)).await;
    }
    assert_eq!(state(&bench, &request.id).await, "withdrawn");
    assert_eq!(tool.runs.load(Ordering::SeqCst), 1);
}
