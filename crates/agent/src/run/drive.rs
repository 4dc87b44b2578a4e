//! Drives a run: asks, acts, and keeps what was reached.

use std::ops::Range;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::{Either, join_all, select};
use holdfast_reliability::exchange::Exchanged;
use holdfast_reliability::observe::Event;
use holdfast_reliability::observe::runs::RunEvent;
use holdfast_reliability::retry::{Next, RepeatSafety, backoff_window_ms, decide};
use holdfast_toolbox::stack::ToolStack;
use holdfast_toolbox::trust::Speaker;

use super::asking::{classified, failed, patience, request, room_for_results};
use super::doubt::not_repeated;
use super::offer::Offer;
use super::opened::OpenedThoughts;
use super::progress::Happened;
use super::reading::read;
use super::returning::{Mode, end_with_held, heard_for_client};
use super::saying::Saying;
use super::state::{Ending, Phase, PlannedCall, RunState, Telling};
use super::step;
use super::waiting::{envelope, heard_waiting, unanswered};
use super::wishes::filled;
use crate::chat::{Message, Role};
use crate::context;
use crate::log::Watch;
use crate::log::watch::Watched;
use crate::model::upstreams::UPSTREAM_REST_MS;
use crate::model::{Model, ModelError, ModelReply, ModelRequest, Piece, Reports};
use crate::results::CallResult;
use crate::settings::MutatingGuess;

/// Longest wait before the first repetition of a question; doubled each time.
pub(crate) const MODEL_RETRY_BASE_MS: u64 = 1000;

/// When to come again, for a client whose model server is away or busy and does not say it itself: as
/// long as such a server is left alone here, too.
pub(crate) const MODEL_RETRY_AFTER_MS: u64 = UPSTREAM_REST_MS;

/// What a client is told beside the failure that its answer ends with.
const TOLD_IN_PART: &str = "a part of the answer was told by then, so it is not asked for again";

/// Why a checkpoint could not be kept.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the run can not be kept: {0}")]
pub struct CheckpointError(pub String);

/// Keeps a run after each of its steps.
#[async_trait]
pub trait Checkpoint: Send + Sync {
    /// Keeps it. An error ends the run: what is not kept may not go on.
    async fn keep(&self, state: &RunState) -> Result<(), CheckpointError>;

    /// Is told what happens between two of them.
    fn told(&self, _state: &RunState, _what: Happened<'_>) {}

    /// Ready when the model may be asked once more, or with how the run ends instead.
    async fn may_ask(&self, _state: &RunState) -> Result<(), Ending> {
        Ok(())
    }

    /// Ready when the run has to end without waiting for the model.
    async fn recalled(&self, _session: &str, _parent: Option<&str>) {
        std::future::pending::<()>().await;
    }
}

/// Keeps nothing, for a run that nobody wants to resume.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoCheckpoint;

#[async_trait]
impl Checkpoint for NoCheckpoint {
    async fn keep(&self, _: &RunState) -> Result<(), CheckpointError> {
        Ok(())
    }
}

/// A model and its tools.
pub struct Loop {
    model: Exchanged<Arc<dyn Model>>,
    stack: Arc<ToolStack>,
    watch: Option<Watch>,
    opened: OpenedThoughts,
}

impl Loop {
    /// Puts them together.
    pub fn new(model: Arc<dyn Model>, stack: Arc<ToolStack>) -> Self {
        Self {
            model: Exchanged::new(model),
            stack,
            watch: None,
            opened: OpenedThoughts::default(),
        }
    }

    /// The same, written down while it goes on.
    #[must_use]
    pub fn with_watch(self, watch: Watch) -> Self {
        Self {
            watch: Some(watch),
            ..self
        }
    }

    /// Where it is written down.
    pub(crate) fn watch(&self) -> Option<&Watch> {
        self.watch.as_ref()
    }

    /// The model that runs which begin now ask.
    pub fn model(&self) -> Arc<dyn Model> {
        self.model.now().as_ref().clone()
    }

    /// Runs that begin from now on ask this one. Those that have begun keep theirs.
    pub fn exchange_model(&self, model: Arc<dyn Model>) {
        self.model.exchange(model);
    }

    /// The tools.
    pub fn stack(&self) -> &Arc<ToolStack> {
        &self.stack
    }

    /// Goes on with a run until it has ended. A run that was kept by another process goes on where
    /// it was: calls that have ended are not made again, and one that was under way is answered
    /// from its record.
    pub async fn go_on(
        &self,
        mut state: RunState,
        kept: &dyn Checkpoint,
    ) -> Result<RunState, CheckpointError> {
        let kept = &Watched::new(self.watch.as_ref(), kept);
        let registry = match &state.mode {
            // A tool that could only be denied would cost the model a turn.
            Mode::Loop => self
                .stack
                .offered(&self.stack.session(&state.session, None)),
            Mode::Return(tools) => tools
                .registry()
                .map_err(|error| CheckpointError(error.to_string()))?,
        };
        let model = self.model();
        let offer = Offer::new(&*model, &registry, &state);
        kept.keep(&state).await?;
        self.listen(&state).await;
        while !matches!(state.phase, Phase::Ended(_)) {
            let left_ms = state.deadline_at_ms().saturating_sub(self.now_ms());
            let stepped = {
                let step = pin!(self.step(&mut state, &offer, kept));
                let time_up = pin!(tokio::time::sleep(Duration::from_millis(left_ms)));
                match select(step, time_up).await {
                    Either::Left((stepped, _)) => Some(stepped),
                    Either::Right(_) => None,
                }
            };
            if let Some(done) = stepped {
                done?;
            } else {
                let waits_for = unanswered(&self.stack, kept.last_asked()).await;
                step::timed_out(&mut state, waits_for.as_deref());
            }
            end_with_held(&mut state);
            state.take_ups = 0;
            kept.keep(&state).await?;
        }
        Ok(state)
    }

    /// A run begins with a conversation, as its client tells it: what tools have said in it is a
    /// stranger's word. When the last of it is the user's, the user speaks now, and what was held
    /// in the session waits no longer; what users said before that is over.
    async fn listen(&self, state: &RunState) {
        let (Some(book), 0) = (self.stack.trust(), state.iteration) else {
            return;
        };
        // What a parent tells its child is no user's word; the tree has handed on whose it is. And
        // where the calls are the client's, no tool of ours ever asks whom it may trust.
        if state.parent.is_some() || matches!(state.mode, Mode::Return(_)) {
            return;
        }
        let session = self.stack.session(&state.session, None);
        let said = |it: &Message| it.role != Role::User || it.is_users();
        let newest = state.messages.iter().rposition(said);
        for (place, message) in state.messages.iter().enumerate() {
            let speaker = match message.role {
                Role::User if Some(place) == newest => Speaker::User,
                Role::Tool => Speaker::Tool,
                Role::Assistant => Speaker::Model,
                Role::User | Role::System => continue,
            };
            if let Err(error) = book.heard(&session, speaker, &message.content).await {
                let what = "trust";
                let error = &error;
                self.stack
                    .runtime()
                    .tell(&Event::StoreTrouble { what, error });
            }
        }
    }

    fn now_ms(&self) -> u64 {
        self.stack.runtime().clock.now_ms()
    }

    async fn step(
        &self,
        state: &mut RunState,
        offer: &Offer<'_>,
        kept: &dyn Checkpoint,
    ) -> Result<(), CheckpointError> {
        match state.phase.clone() {
            Phase::Ask => {
                if let Err(ending) = kept.may_ask(state).await {
                    state.phase = Phase::Ended(ending);
                    return Ok(());
                }
                let (session, parent) = (state.session.clone(), state.parent.clone());
                let asked = {
                    let asking = pin!(self.ask(state, offer, kept));
                    match select(asking, pin!(kept.recalled(&session, parent.as_deref()))).await {
                        Either::Left((asked, _)) => Some(asked),
                        Either::Right(_) => None,
                    }
                };
                // Asking changes nothing, so nothing is left behind.
                let Some(asked) = asked else {
                    state.cancel();
                    return Ok(());
                };
                let (reply, shown) = match asked {
                    Ok(heard) => heard,
                    Err(error) => {
                        failed(state, error);
                        return Ok(());
                    }
                };
                match (&state.mode, shown) {
                    (_, Some(begins)) => {
                        step::answered_live(state, &reply, &offer.parser, begins);
                    }
                    (Mode::Loop, None) => step::heard(state, &reply, &offer.parser),
                    (Mode::Return(_), None) => {
                        heard_for_client(state, &reply, &offer.parser, offer.registry);
                    }
                }
                if let Some(watch) = &self.watch {
                    // Read once more, and only for those who look that closely.
                    watch.hears(state, &reply, || read(state, &reply, &offer.parser));
                }
                let used = state.tokens.last().copied().unwrap_or_default();
                self.stack.runtime().tell(&Event::Run(RunEvent::Heard {
                    prompt: used.prompt,
                    completion: used.completion,
                }));
                kept.told(state, Happened::Heard);
            }
            Phase::Act(calls) => match room_for_results(state, offer) {
                Ok(()) => self.act(state, &calls, kept).await?,
                Err(error) => failed(state, error),
            },
            Phase::Ended(_) => {}
        }
        Ok(())
    }

    async fn ask(
        &self,
        state: &mut RunState,
        offer: &Offer<'_>,
        kept: &dyn Checkpoint,
    ) -> Result<(ModelReply, Option<Range<usize>>), ModelError> {
        kept.told(state, Happened::Asks);
        let mut asked = self.question(state, offer)?;
        let policy = patience(state);
        let begun = tokio::time::Instant::now();
        let mut attempt = 1;
        loop {
            if let Some(watch) = &self.watch {
                watch.sends(state, &asked);
            }
            let (answered, shown) = self.answer_to(&asked, state, offer, kept).await;
            let error = match answered {
                Ok(mut reply) => {
                    if shown.is_none() {
                        self.opened.tell_apart(state, &mut reply);
                    }
                    self.opened.heard(state, &reply);
                    context::account(state, &mut reply);
                    return Ok((reply, shown));
                }
                // A client that has heard a part of one answer can not be given another.
                Err(error) if shown.is_some() => {
                    return Err(error.in_words(|why| format!("{why}; {TOLD_IN_PART}")));
                }
                Err(ModelError::History(why)) if context::recast(state) => {
                    kept.told(state, waits(attempt, &why, 0));
                    asked = self.question(state, offer)?;
                    continue;
                }
                Err(ModelError::TooLong(why)) if context::squeeze(state, &why) => {
                    asked = self.question(state, offer)?;
                    continue;
                }
                Err(error) => error,
            };
            let elapsed_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
            let next = decide(
                &classified(&error, backoff_window_ms(attempt, &policy)),
                // Asking a model changes nothing.
                RepeatSafety::Safe,
                attempt,
                elapsed_ms,
                &policy,
                &mut || true,
                &mut || self.stack.runtime().entropy.next_u64(),
            );
            let Next::Retry { delay_ms } = next else {
                return Err(error);
            };
            let why = error.to_string();
            kept.told(state, waits(attempt, &why, delay_ms));
            tokio::time::sleep(Duration::from_millis(delay_ms)).await;
            attempt += 1;
        }
    }

    /// What the model is asked next, and who hears how its servers were asked.
    fn question(
        &self,
        state: &mut RunState,
        offer: &Offer<'_>,
    ) -> Result<ModelRequest, ModelError> {
        let mut asked = request(state, offer)?;
        let runtime = self.stack.runtime().clone();
        let watch = self.watch.clone();
        // Of the answer that is asked for.
        let (run, iteration) = (state.id.clone(), state.iteration + 1);
        asked.reports = Reports::to(move |report, why| {
            runtime.tell(&Event::Run(report));
            if let (RunEvent::FailedOver { from, to }, Some(why)) = (report, why)
                && let Some(watch) = &watch
            {
                watch.fails_over(&run, iteration, (from, to), why);
            }
        });
        Ok(asked)
    }

    /// One answer, told as it comes where somebody listens; and what of its content was shown as the
    /// answer.
    async fn answer_to(
        &self,
        asked: &ModelRequest,
        state: &RunState,
        offer: &Offer<'_>,
        kept: &dyn Checkpoint,
    ) -> (Result<ModelReply, ModelError>, Option<Range<usize>>) {
        // Beside calls that are held no words are the answer.
        if state.telling == Telling::Whole || state.holds_calls() {
            return (offer.model.complete(asked).await, None);
        }
        let mut saying = Saying::new(state, offer, self.opened.of(state));
        let mut hear = |piece: Piece<'_>| {
            let told = match (saying.hear(piece), piece) {
                (Some(text), _) => Happened::Says { text },
                (None, Piece::Content(text) | Piece::Reasoning(text)) => Happened::Thinks { text },
                (None, Piece::Call) => return,
            };
            kept.told(state, told);
        };
        let answered = offer.model.stream(asked, &mut hear).await;
        (answered, saying.shown())
    }

    /// Runs what has no result yet: side by side where nothing changes anything, else in order.
    async fn act(
        &self,
        state: &mut RunState,
        calls: &[PlannedCall],
        kept: &dyn Checkpoint,
    ) -> Result<(), CheckpointError> {
        let is_open = |place: &usize| calls[*place].result.is_none();
        let open: Vec<usize> = (0..calls.len()).filter(is_open).collect();
        if open.iter().all(|place| !calls[*place].mutating) {
            let (chained, ready): (Vec<usize>, Vec<usize>) = open
                .into_iter()
                .partition(|place| calls[*place].chained.is_some());
            let running = ready
                .iter()
                .map(|place| self.call(state, *place, &calls[*place], kept));
            let results = join_all(running).await;
            for (place, result) in ready.into_iter().zip(results) {
                step::acted(state, place, result);
            }
            for place in chained {
                self.act_at(state, place, kept).await?;
            }
            return Ok(());
        }
        for place in open {
            self.act_at(state, place, kept).await?;
        }
        Ok(())
    }

    /// Makes one call, after those before it.
    async fn act_at(
        &self,
        state: &mut RunState,
        place: usize,
        kept: &dyn Checkpoint,
    ) -> Result<(), CheckpointError> {
        let Some(call) = filled(state, place) else {
            return Ok(());
        };
        // A call that took an address from a result is the same call for whoever goes on with it.
        if !call.mutating {
            kept.keep(state).await?;
        }
        let result = match not_repeated(&self.stack, state, place, &call) {
            Some(unknown) => unknown,
            None => self.call(state, place, &call, kept).await,
        };
        state.doubt = None;
        state.take_ups = 0;
        step::acted(state, place, result);
        kept.keep(state).await
    }

    async fn call(
        &self,
        state: &RunState,
        place: usize,
        call: &PlannedCall,
        kept: &dyn Checkpoint,
    ) -> CallResult {
        let (tool, arguments) = (call.name.as_str(), &call.arguments);
        let calls = Happened::Calls {
            place,
            tool,
            arguments,
        };
        kept.told(state, calls);
        let envelope = envelope(state, place, call);
        let request = envelope.request_id.clone();
        // The stack is one large future; in a box of its own it is not moved from hand to hand.
        let calling = async {
            if call.guess && state.settings.mutating_guess == MutatingGuess::AskPerson {
                self.stack.call_guessed(envelope).await
            } else {
                self.stack.call(envelope).await
            }
        };
        let calling = Box::pin(calling);
        let waits = |approval: &str| {
            let what = Happened::NeedsApproval {
                place,
                tool,
                approval,
            };
            kept.told(state, what);
        };
        let answer = heard_waiting(&self.stack, &request, calling, waits).await;
        let ended = CallResult::of(&answer, &state.settings);
        let result = &ended;
        let called = Happened::Called {
            place,
            tool,
            result,
        };
        kept.told(state, called);
        ended
    }
}

/// What is told before a request is made again.
const fn waits(attempt: u32, why: &str, wait_ms: u64) -> Happened<'_> {
    Happened::Waits {
        attempt,
        why,
        wait_ms,
    }
}
