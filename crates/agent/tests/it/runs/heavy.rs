//! What the runs of a process hold is bounded for all of them together.

use std::sync::Arc;

use async_trait::async_trait;
use holdfast_agent::chat::{Message, Role};
use holdfast_agent::model::{Model, ModelError, ModelReply, ModelRequest};
use holdfast_agent::run::{Ending, RunErrorCode};
use holdfast_agent::runs::{Keeping, Listener, Outcome, RunsLimits, StartError};
use holdfast_agent::settings::RunSettings;
use holdfast_testkit::wait::until;

use super::{Desk, answered, desk};

const MOST: usize = 150_000;
/// Long texts of it have few tokens for their size.
const WORD: &str = "word ";

fn bounded() -> Desk {
    desk(RunsLimits {
        bytes_max: MOST,
        ..RunsLimits::default()
    })
}

impl Desk {
    async fn start_large(
        &self,
        id: &str,
        bytes: usize,
        keeping: Keeping,
    ) -> Result<Listener, StartError> {
        let mut task = self.task(id);
        task.messages = vec![Message::text(Role::User, WORD.repeat(bytes / WORD.len()))];
        self.runs.start(task, "local", keeping).await
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_that_there_is_no_room_for_is_told_to_come_again() {
    let desk = bounded();
    for keeping in [Keeping::Durable, Keeping::Passing] {
        let name = |part: &str| format!("{part}-{keeping:?}");
        let first = desk.start_large(&name("a"), MOST * 2 / 3, keeping).await;
        let mut first = first.expect("begins");
        let second = desk.start_large(&name("b"), MOST / 2, keeping).await;
        assert!(matches!(second, Err(StartError::Heavy)), "{keeping:?}");
        let small = desk.start_large(&name("c"), 10, keeping).await;
        let mut small = small.expect("small ones begin");
        desk.model.0.add_permits(2);
        assert!(answered(&*first.outcome().await) && answered(&*small.outcome().await));
        drop((first, small));
        until("all have ended", async || desk.runs.in_flight() == 0).await;
        assert_eq!(desk.runs.bytes(), 0, "all of it is given back");
        let second = desk.start_large(&name("b"), MOST / 2, keeping).await;
        desk.model.0.add_permits(1);
        assert!(answered(&*second.expect("begins").outcome().await));
        until("all have ended", async || desk.runs.in_flight() == 0).await;
    }
}

/// Begins a call that nobody can read, with more words than there is room for.
struct Wordy;

#[async_trait]
impl Model for Wordy {
    async fn complete(&self, _: &ModelRequest) -> Result<ModelReply, ModelError> {
        Ok(ModelReply {
            reasoning: format!("{}\n<tool_call>{{\"na", WORD.repeat(MOST)),
            ..ModelReply::default()
        })
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_that_grows_beyond_its_share_ends() {
    let desk = bounded();
    desk.runs.exchange(Arc::new(Wordy), RunSettings::default());
    let mut listener = desk.start("a").await.expect("begins");
    let outcome = listener.outcome().await;
    let Outcome::Ended(state) = &*outcome else {
        panic!("{outcome:?}");
    };
    assert!(
        matches!(state.ending(), Some(Ending::Failed(error))
            if error.code == RunErrorCode::ToolExecutionFailed && error.message.contains("share")),
        "{:?}",
        state.ending()
    );
    assert_eq!(desk.ending("a").await, state.ending().cloned());
    assert_eq!(state.iteration, 1);
}

/// A run's last step is in the store, and only there.
#[tokio::test(start_paused = true)]
async fn a_cancelled_run_keeps_what_was_said_in_it() {
    let desk = bounded();
    let mut listener = desk.start("a").await.expect("begins");
    desk.runs.cancel("a").await.expect("is live");
    listener.outcome().await;
    let kept = desk.runs.store().get("a").await.expect("a run").state;
    assert_eq!(kept.ending(), Some(&Ending::Cancelled));
    assert_eq!(kept.messages, desk.task("a").messages);
}
