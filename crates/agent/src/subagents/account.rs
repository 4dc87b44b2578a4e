//! What runs and their subagents may use up together.
//!
//! A run's own use is in its state, that of its subagents in the tree of sessions; both are kept, so
//! a budget holds across restarts. A parent is at work in the process that its subagents are in, so
//! what bounds them is known here.

use holdfast_toolbox::session::{Session, TreeError, Used};

use super::desk::Subagents;
use super::tools::SPAWN;
use crate::context::spend;
use crate::run::{Ending, RunError, RunErrorCode, RunState};
use crate::settings::RunSettings;

/// What the run of a session has used itself, and what it may use with all below it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Account {
    own: Used,
    tokens_max: Option<u64>,
    cost_nanos_max: Option<u64>,
}

/// What is left of all budgets that hold for a session; nothing where none does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Left {
    pub(super) tokens: Option<u64>,
    cost_nanos: Option<u64>,
}

impl Left {
    fn tokens_at_most(&mut self, most: Option<u64>, used: u64) {
        let left = most.map(|most| most.saturating_sub(used));
        self.tokens = least(self.tokens, left);
    }

    fn cost_at_most(&mut self, most: Option<u64>, used: u64) {
        let left = most.map(|most| most.saturating_sub(used));
        self.cost_nanos = least(self.cost_nanos, left);
    }

    /// Why nobody may be asked any more.
    pub(super) fn used_up(self) -> Option<&'static str> {
        if self.tokens == Some(0) {
            return Some("the run and its subagents have used all tokens that they may use");
        }
        (self.cost_nanos == Some(0))
            .then_some("the run and its subagents have cost all that they may cost")
    }

    /// The settings of a run that gets what is left, and no more.
    pub(super) fn bounds(self, settings: &mut RunSettings) {
        settings.tokens_max = least(settings.tokens_max, self.tokens);
        let own = settings.cost.run_max.map(spend::nanos);
        settings.cost.run_max = least(own, self.cost_nanos).map(spend::from_nanos);
    }
}

fn least(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

/// What a run has used itself.
pub(super) fn used(state: &RunState) -> Used {
    Used {
        tokens: state.tokens_total(),
        cost_nanos: spend::nanos(spend::cost(state)),
    }
}

impl Subagents {
    /// A run that is worked on here has come so far. One that nothing bounds, and that is nobody's
    /// subagent, needs no account.
    pub(crate) fn note(&self, state: &RunState) {
        let (tokens_max, cost_max) = (state.settings.tokens_max, state.settings.cost.run_max);
        if tokens_max.is_none() && cost_max.is_none() && state.parent.is_none() {
            return;
        }
        let account = Account {
            own: used(state),
            tokens_max,
            cost_nanos_max: cost_max.map(spend::nanos),
        };
        self.accounts.lock().insert(state.session.clone(), account);
    }

    /// Nobody here works on the run of this session any more.
    pub(crate) fn forget(&self, session: &str) {
        self.accounts.lock().remove(session);
    }

    /// What is left for a session, by its own budgets and by those of all above it.
    pub(super) async fn left(&self, session: &str) -> Result<Left, TreeError> {
        let mut left = Left::default();
        let mut next = Some(session.to_owned());
        while let Some(id) = next {
            let found = match self.tree.get(&id).await {
                Ok(found) => Some(found),
                Err(TreeError::NotFound(_)) => None,
                Err(error) => return Err(error),
            };
            self.bound_by(&id, found.as_ref(), &mut left).await?;
            next = found.and_then(|found| found.parent);
        }
        Ok(left)
    }

    async fn bound_by(
        &self,
        id: &str,
        session: Option<&Session>,
        left: &mut Left,
    ) -> Result<(), TreeError> {
        let account = self.accounts.lock().get(id).copied();
        let budget = session.and_then(|it| it.tokens.budget);
        let is_bounded = |it: Account| it.tokens_max.is_some() || it.cost_nanos_max.is_some();
        if !account.is_some_and(is_bounded) && budget.is_none() {
            return Ok(());
        }
        let below = self.tree.below(id).await?;
        if let Some(account) = account {
            let tokens = account.own.tokens.saturating_add(below.tokens);
            let cost_nanos = account.own.cost_nanos.saturating_add(below.cost_nanos);
            left.tokens_at_most(account.tokens_max, tokens);
            left.cost_at_most(account.cost_nanos_max, cost_nanos);
        }
        if let Some(session) = session {
            // What its last answer took is booked before it asks again, and may not be yet.
            let own = account.map_or(0, |account| account.own.tokens);
            let own = own.max(session.tokens.spent);
            left.tokens_at_most(budget, own.saturating_add(below.tokens));
        }
        Ok(())
    }

    /// Whether a run that has, or had, subagents may ask once more. One that nothing bounds, or that
    /// is alone, needs no store for that.
    pub(crate) async fn parent_may_ask(&self, state: &RunState) -> Result<(), Ending> {
        let is_bounded = self.accounts.lock().contains_key(&state.session);
        let spawned = state.tools_called.iter().any(|tool| tool == SPAWN)
            || self.tree.context(&state.session).is_some();
        if !is_bounded || !spawned {
            return Ok(());
        }
        self.is_anything_left(&state.session).await
    }

    pub(super) async fn is_anything_left(&self, session: &str) -> Result<(), Ending> {
        let failed = |code, message| Err(Ending::Failed(RunError::new(code, message)));
        match self.left(session).await {
            Ok(left) => match left.used_up() {
                Some(why) => failed(RunErrorCode::BudgetExceeded, why.to_owned()),
                None => Ok(()),
            },
            Err(error) => failed(RunErrorCode::ToolExecutionFailed, error.to_string()),
        }
    }
}
