//! The life of a session as pure functions.

use std::path::PathBuf;

use holdfast_contract::SessionKind;

use super::model::{
    BRANCH_DEPTH_MAX, BlobError, CANCEL_GRACE_MS, SPENDING_WINDOW_MS, SPENDINGS_MAX,
    SUMMARY_BYTES_MAX, Session, SessionLimits, SessionResult, SessionState, SessionStatus,
    Suspension, Tokens, WORKER_DEPTH_MAX,
};

/// Why a step is not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StepRefused {
    /// Only the root of a tree is a Main.
    #[error("a Main session has no parent")]
    MainIsRoot,
    /// A Worker has no children.
    #[error("a Worker has no children")]
    WorkerIsLeaf,
    /// The tree would be too deep.
    #[error("a {kind:?} may be at depth {max} at most, and this one would be at {depth}")]
    TooDeep {
        /// What it would be.
        kind: SessionKind,
        /// How deep.
        depth: u32,
        /// How deep it may be.
        max: u32,
    },
    /// It has enough children.
    #[error("the session has {0} children already")]
    TooManyChildren(usize),
    /// It does not work any more, or not now.
    #[error("the session is not active")]
    NotActive,
    /// It has ended.
    #[error("the session has ended")]
    Ended,
    /// Nobody has cancelled it.
    #[error("only a Main session that was cancelled can be opened again")]
    NotCancelled,
    /// It is not suspended.
    #[error("the session is not suspended")]
    NotSuspended,
    /// What it was told is too long.
    #[error("a context summary has at most {SUMMARY_BYTES_MAX} bytes")]
    SummaryTooLong,
    /// What it gives back can not be handed over.
    #[error(transparent)]
    Result(#[from] BlobError),
}

/// A child to be made.
#[derive(Debug, Clone)]
pub struct NewChild {
    /// Its key.
    pub id: String,
    /// What it is.
    pub kind: SessionKind,
    /// What it is told.
    pub context_summary: String,
    /// All it may spend.
    pub token_budget: Option<u64>,
}

/// A Main session.
pub fn main(
    id: &str,
    agent_id: &str,
    workspace_root: PathBuf,
    token_budget: Option<u64>,
    now_ms: u64,
) -> Session {
    Session {
        id: id.to_owned(),
        kind: SessionKind::Main,
        parent: None,
        depth: 0,
        agent_id: agent_id.to_owned(),
        workspace_root,
        context_summary: None,
        label: None,
        state: SessionState::Active,
        created_at_ms: now_ms,
        expires_at_ms: None,
        end_by_ms: None,
        tokens: Tokens {
            budget: token_budget,
            ..Tokens::default()
        },
        children: Vec::new(),
        result: None,
    }
}

/// Makes a child: the parent as it is then, and the child.
pub fn spawn(
    parent: &Session,
    new: NewChild,
    limits: &SessionLimits,
    now_ms: u64,
) -> Result<(Session, Session), StepRefused> {
    let depth = parent.depth + 1;
    let max = match new.kind {
        SessionKind::Main => return Err(StepRefused::MainIsRoot),
        SessionKind::Branch => BRANCH_DEPTH_MAX,
        SessionKind::Worker => WORKER_DEPTH_MAX,
    };
    if parent.kind == SessionKind::Worker {
        return Err(StepRefused::WorkerIsLeaf);
    }
    // One that has been told to end makes nothing new.
    if parent.state != SessionState::Active || parent.end_by_ms.is_some() {
        return Err(StepRefused::NotActive);
    }
    if depth > max {
        let kind = new.kind;
        return Err(StepRefused::TooDeep { kind, depth, max });
    }
    if parent.children.len() >= limits.children_max {
        return Err(StepRefused::TooManyChildren(parent.children.len()));
    }
    if new.context_summary.len() > SUMMARY_BYTES_MAX {
        return Err(StepRefused::SummaryTooLong);
    }
    let mut parent = parent.clone();
    parent.children.push(new.id.clone());
    let child = Session {
        id: new.id,
        kind: new.kind,
        parent: Some(parent.id.clone()),
        depth,
        context_summary: Some(new.context_summary),
        expires_at_ms: Some(now_ms.saturating_add(limits.ttl_ms(new.kind))),
        tokens: Tokens {
            budget: new.token_budget,
            ..Tokens::default()
        },
        ..main(
            "",
            &parent.agent_id,
            parent.workspace_root.clone(),
            None,
            now_ms,
        )
    };
    Ok((parent, child))
}

/// What spending led to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spent {
    /// Go on.
    Fine,
    /// Too fast: the session is suspended.
    Paused,
    /// Too much: the session has failed.
    OverBudget,
}

/// Notes down spent tokens.
pub fn spend(session: &Session, tokens: u64, now_ms: u64) -> Result<(Session, Spent), StepRefused> {
    spend_beside(session, tokens, 0, now_ms)
}

/// The same for a session whose descendants have spent `below`: a budget covers them too.
pub fn spend_beside(
    session: &Session,
    tokens: u64,
    below: u64,
    now_ms: u64,
) -> Result<(Session, Spent), StepRefused> {
    if session.state.has_ended() {
        return Err(StepRefused::Ended);
    }
    let mut next = session.clone();
    let account = &mut next.tokens;
    account.spent = account.spent.saturating_add(tokens);
    let window_from_ms = now_ms.saturating_sub(SPENDING_WINDOW_MS);
    account.recent.retain(|(at_ms, _)| *at_ms > window_from_ms);
    if account.recent.len() >= SPENDINGS_MAX {
        // Added to the one after it: it counts for a little longer, never for less.
        let (_, oldest) = account.recent.remove(0);
        if let Some((_, first)) = account.recent.first_mut() {
            *first = first.saturating_add(oldest);
        }
    }
    account.recent.push((now_ms, tokens));
    let Some(budget) = account.budget else {
        return Ok((next, Spent::Fine));
    };
    let lately: u64 = account.recent.iter().map(|(_, tokens)| tokens).sum();
    if account.spent.saturating_add(below) > budget {
        next.state = SessionState::Failed;
        let summary = format!("the token budget of {budget} is spent");
        next.result = Some(SessionResult::new(SessionStatus::Failed, summary));
        return Ok((next, Spent::OverBudget));
    }
    if lately > budget / 2 && next.state == SessionState::Active {
        next.state = SessionState::Suspended {
            why: Suspension::Spending,
        };
        return Ok((next, Spent::Paused));
    }
    Ok((next, Spent::Fine))
}

/// Suspends a session on request.
pub fn suspend(session: &Session) -> Result<Session, StepRefused> {
    if session.state != SessionState::Active {
        return Err(StepRefused::NotActive);
    }
    Ok(Session {
        state: SessionState::Suspended {
            why: Suspension::Asked,
        },
        ..session.clone()
    })
}

/// Lets a suspended session go on. What it spent is forgiven, or it would be paused again at once.
pub fn resume(session: &Session) -> Result<Session, StepRefused> {
    if !matches!(session.state, SessionState::Suspended { .. }) {
        return Err(StepRefused::NotSuspended);
    }
    let mut next = session.clone();
    next.state = SessionState::Active;
    next.tokens.recent.clear();
    Ok(next)
}

/// Ends a session with its result.
pub fn finish(session: &Session, result: SessionResult) -> Result<Session, StepRefused> {
    if session.state.has_ended() {
        return Err(StepRefused::Ended);
    }
    result.check()?;
    Ok(Session {
        state: match result.status {
            SessionStatus::Completed => SessionState::Completed,
            SessionStatus::Failed | SessionStatus::Cancelled => SessionState::Failed,
            SessionStatus::Expired => SessionState::Expired,
        },
        result: Some(result),
        ..session.clone()
    })
}

/// Tells a session to end. It has a while to wrap up.
pub fn cancel(session: &Session, now_ms: u64) -> Result<Session, StepRefused> {
    if session.state.has_ended() {
        return Err(StepRefused::Ended);
    }
    let end_by_ms = now_ms.saturating_add(CANCEL_GRACE_MS);
    Ok(Session {
        // Told twice, it does not get more time.
        end_by_ms: Some(
            session
                .end_by_ms
                .map_or(end_by_ms, |first| first.min(end_by_ms)),
        ),
        ..session.clone()
    })
}

/// A Main in which something happens now: its time begins anew. Others have theirs from the start.
#[must_use]
pub fn stirred(mut session: Session, limits: &SessionLimits, now_ms: u64) -> Session {
    if session.kind == SessionKind::Main && !session.state.has_ended() {
        let end_ms = now_ms.saturating_add(limits.ttl_ms(SessionKind::Main));
        session.expires_at_ms = session.expires_at_ms.max(Some(end_ms));
    }
    session
}

/// Ends a session whose time is over; `None` when it is not.
pub fn tick(session: &Session, now_ms: u64) -> Option<Session> {
    let is_over = |end_ms: Option<u64>| end_ms.is_some_and(|end_ms| end_ms <= now_ms);
    let result = if session.state.has_ended() {
        return None;
    } else if is_over(session.end_by_ms) {
        SessionResult::new(
            SessionStatus::Cancelled,
            "it was told to end and did not wrap up in time",
        )
    } else if is_over(session.expires_at_ms) {
        SessionResult::new(SessionStatus::Expired, "its time was over")
    } else {
        return None;
    };
    finish(session, result).ok()
}

/// What becomes of a session after a restart; `None` when it stays as it is. A Main and what is
/// suspended go on; nobody is left who does the work of the others.
pub fn restarted(session: &Session) -> Option<Session> {
    let lost = session.state == SessionState::Active && session.kind != SessionKind::Main;
    if !lost {
        return None;
    }
    let result = SessionResult::new(
        SessionStatus::Failed,
        "it was at work when the process ended",
    );
    finish(session, result).ok()
}

/// The parent without a child that has ended.
pub fn without_child(parent: &Session, child: &str) -> Session {
    let mut next = parent.clone();
    next.children.retain(|id| id != child);
    next
}
