//! The life of a request and of a session, by the rules alone.

use holdfast_contract::{Answer, Gate, PermissionTier, Scope, SessionKind, ToolCallEnvelope};
use holdfast_toolbox::approval::model::digest_of;
use holdfast_toolbox::approval::step::step;
use holdfast_toolbox::approval::{Action, Approval, ApprovalRequest, ApprovalState, Refused};
use holdfast_toolbox::session::model::{
    BLOB_BYTES_MAX, BRANCH_TTL_MS, CANCEL_GRACE_MS, SPENDING_WINDOW_MS, WORKER_TTL_MS,
};
use holdfast_toolbox::session::step::{self as session_step, NewChild};
use holdfast_toolbox::session::{
    Session, SessionArtifact, SessionLimits, SessionResult, SessionState, SessionStatus, Spent,
    StepRefused, Suspension,
};
use serde_json::Map;

const NOW_MS: u64 = 1_000_000;

fn approval(state: ApprovalState, gate: Gate) -> Approval {
    let envelope = ToolCallEnvelope::new("r", "exec", Map::new(), "s", "asker");
    Approval {
        id: "abc".into(),
        request: ApprovalRequest {
            tool: "exec".into(),
            tier: PermissionTier::Elevated,
            gate,
            reasons: vec![],
            grants: vec![],
            digest: digest_of(&envelope),
            envelope,
            hook_key: None,
            agent: "agent".into(),
            origin_session: "s".into(),
            asked_session: "s".into(),
            channel: "terminal".into(),
            workspace_root: "/w".into(),
            requested_at_ms: NOW_MS,
            expires_at_ms: NOW_MS + 100,
        },
        state,
        undelivered: None,
        wanted_by: None,
    }
}

fn every_state() -> Vec<ApprovalState> {
    let by = || "person".to_owned();
    let at_ms = NOW_MS;
    vec![
        ApprovalState::Pending,
        ApprovalState::Approved {
            scope: Scope::Once,
            by: by(),
            at_ms,
            use_by_ms: NOW_MS + 50,
        },
        ApprovalState::Used { by: by(), at_ms },
        ApprovalState::Denied {
            by: by(),
            at_ms,
            reason: None,
        },
        ApprovalState::Expired { at_ms },
        ApprovalState::Withdrawn { at_ms },
    ]
}

#[test]
fn every_action_in_every_state() {
    let digest = approval(ApprovalState::Pending, Gate::Required)
        .request
        .digest;
    let yes = Answer::Approve { scope: Scope::Once };
    let no = Answer::Deny { reason: None };
    let answer = |answer| Action::Answer {
        answer,
        by: "other",
        use_within_ms: 10,
    };
    let actions = [
        answer(&yes),
        answer(&no),
        Action::Use { digest: &digest },
        Action::Expire,
        Action::Withdraw,
    ];
    // Rows as `every_state`, columns as `actions`.
    let table = [
        ["approved", "denied", "!NotApproved", "!NotYet", "withdrawn"],
        ["!Over", "!Over", "used", "!NotYet", "withdrawn"],
        ["!Over", "!Over", "!Over", "!Over", "!Over"],
        ["!Over", "!Over", "!Over", "!Over", "!Over"],
        ["!Expired", "!Expired", "!Expired", "!Over", "!Expired"],
        ["!Over", "!Over", "!Over", "!Over", "!Over"],
    ];
    for (state, row) in every_state().into_iter().zip(table) {
        for (action, expected) in actions.into_iter().zip(row) {
            let before = approval(state.clone(), Gate::Required);
            let found = match step(&before, action, NOW_MS + 1) {
                Ok(next) => next.as_str().to_owned(),
                Err(why) => format!("!{why:?}").split('(').next().unwrap().to_owned(),
            };
            assert_eq!(found, expected, "{} {action:?}", state.as_str());
        }
    }
}

#[test]
fn time_ends_what_nobody_answers_or_uses() {
    let yes = Answer::Approve { scope: Scope::Once };
    let pending = approval(ApprovalState::Pending, Gate::Required);
    let answer = Action::Answer {
        answer: &yes,
        by: "other",
        use_within_ms: 10,
    };
    assert!(step(&pending, answer, NOW_MS + 99).is_ok());
    assert_eq!(step(&pending, answer, NOW_MS + 100), Err(Refused::Expired));
    assert!(step(&pending, Action::Expire, NOW_MS + 100).is_ok());
    let approved = Approval {
        state: step(&pending, answer, NOW_MS + 99).unwrap(),
        ..pending
    };
    let digest = approved.request.digest.clone();
    let using = Action::Use { digest: &digest };
    // Approved in time, it may be used a little later, and no more than that.
    assert!(step(&approved, using, NOW_MS + 108).is_ok());
    assert_eq!(step(&approved, using, NOW_MS + 109), Err(Refused::Expired));
}

#[test]
fn other_arguments_own_requests_and_strict_gates_are_refused() {
    let pending = |gate| approval(ApprovalState::Pending, gate);
    let approve = |scope| Answer::Approve { scope };
    let by = |who, answer| Action::Answer {
        answer,
        by: who,
        use_within_ms: 10,
    };
    let (once, session, policy) = (
        approve(Scope::Once),
        approve(Scope::Session),
        approve(Scope::Policy),
    );
    assert_eq!(
        step(&pending(Gate::Required), by("asker", &once), NOW_MS),
        Err(Refused::OwnRequest("asker".into()))
    );
    let no = Answer::Deny { reason: None };
    assert!(step(&pending(Gate::Required), by("asker", &no), NOW_MS).is_ok());
    for wide in [&session, &policy] {
        assert_eq!(
            step(&pending(Gate::Strict), by("other", wide), NOW_MS),
            Err(Refused::OnceOnly)
        );
        assert!(step(&pending(Gate::Required), by("other", wide), NOW_MS).is_ok());
    }
    let state = step(&pending(Gate::Strict), by("other", &once), NOW_MS).unwrap();
    let approved = approval(state, Gate::Strict);
    let mut other = approved.request.envelope.clone();
    other.payload.params = serde_json::json!({"command": "rm -rf /"});
    let digest = digest_of(&other);
    assert_eq!(
        step(&approved, Action::Use { digest: &digest }, NOW_MS),
        Err(Refused::Changed)
    );
}

fn main_session() -> Session {
    session_step::main("main", "agent", "/w".into(), None, NOW_MS)
}

fn child_of(parent: &Session, kind: SessionKind) -> Result<(Session, Session), StepRefused> {
    let new = NewChild {
        id: format!("{}-{}", parent.id, parent.children.len()),
        kind,
        context_summary: "do this".into(),
        token_budget: Some(1000),
    };
    session_step::spawn(parent, new, &SessionLimits::default(), NOW_MS)
}

#[test]
fn kinds_have_their_depths_and_times() {
    use SessionKind::{Branch, Main, Worker};
    let mut at = main_session();
    for depth in 1..=3 {
        for kind in [Branch, Worker] {
            let (_, child) = child_of(&at, kind).expect("allowed");
            let ttl_ms = if kind == Branch {
                BRANCH_TTL_MS
            } else {
                WORKER_TTL_MS
            };
            assert_eq!(
                (child.depth, child.expires_at_ms),
                (depth, Some(NOW_MS + ttl_ms))
            );
            assert_eq!(child.context_summary.as_deref(), Some("do this"));
        }
        assert_eq!(child_of(&at, Main), Err(StepRefused::MainIsRoot));
        at = child_of(&at, Branch).unwrap().1;
    }
    assert_eq!(at.depth, 3);
    assert!(matches!(
        child_of(&at, Branch),
        Err(StepRefused::TooDeep {
            depth: 4,
            max: 3,
            ..
        })
    ));
    let (_, worker) = child_of(&at, Worker).expect("a worker may be at 4");
    assert_eq!(worker.depth, 4);
    for kind in [Branch, Worker] {
        assert_eq!(child_of(&worker, kind), Err(StepRefused::WorkerIsLeaf));
    }
    assert_eq!(main_session().expires_at_ms, None);
}

#[test]
fn eight_children_and_no_more() {
    let mut parent = main_session();
    for _ in 0..8 {
        parent = child_of(&parent, SessionKind::Worker).unwrap().0;
    }
    assert_eq!(
        child_of(&parent, SessionKind::Worker),
        Err(StepRefused::TooManyChildren(8))
    );
    let first = parent.children[0].clone();
    let parent = session_step::without_child(&parent, &first);
    assert!(child_of(&parent, SessionKind::Worker).is_ok());
    // One that has been told to end, or has ended, or waits, makes nothing new.
    let cancelled = session_step::cancel(&parent, NOW_MS).unwrap();
    let suspended = session_step::suspend(&parent).unwrap();
    let ended =
        session_step::finish(&parent, SessionResult::new(SessionStatus::Completed, "")).unwrap();
    for session in [cancelled, suspended, ended] {
        assert_eq!(
            child_of(&session, SessionKind::Branch),
            Err(StepRefused::NotActive)
        );
    }
}

#[test]
fn spending_too_fast_pauses_and_too_much_ends() {
    let child = child_of(&main_session(), SessionKind::Branch).unwrap().1;
    let (child, spent) = session_step::spend(&child, 500, NOW_MS).unwrap();
    assert_eq!(spent, Spent::Fine, "half is not over half");
    // The window moves on: the first half is forgotten by then.
    let (slow, spent) = session_step::spend(&child, 400, NOW_MS + SPENDING_WINDOW_MS).unwrap();
    assert_eq!((spent, slow.tokens.spent), (Spent::Fine, 900));
    let (fast, spent) = session_step::spend(&child, 1, NOW_MS + SPENDING_WINDOW_MS - 1).unwrap();
    assert_eq!(spent, Spent::Paused);
    assert_eq!(
        fast.state,
        SessionState::Suspended {
            why: Suspension::Spending
        }
    );
    let resumed = session_step::resume(&fast).unwrap();
    let (resumed, spent) = session_step::spend(&resumed, 499, NOW_MS + SPENDING_WINDOW_MS).unwrap();
    assert_eq!((spent, resumed.tokens.spent), (Spent::Fine, 1000));
    let (over, spent) = session_step::spend(&resumed, 1, NOW_MS + 9 * SPENDING_WINDOW_MS).unwrap();
    assert_eq!(
        (spent, over.state),
        (Spent::OverBudget, SessionState::Failed)
    );
    assert_eq!(
        session_step::spend(&over, 1, NOW_MS),
        Err(StepRefused::Ended)
    );
    assert_eq!(
        session_step::resume(&resumed),
        Err(StepRefused::NotSuspended)
    );
    // Without a budget nothing is counted against it.
    let (_, spent) = session_step::spend(&main_session(), u64::MAX, NOW_MS).unwrap();
    assert_eq!(spent, Spent::Fine);
}

#[test]
fn time_and_cancellation_end_sessions() {
    let child = child_of(&main_session(), SessionKind::Worker).unwrap().1;
    assert_eq!(session_step::tick(&child, NOW_MS + WORKER_TTL_MS - 1), None);
    let expired = session_step::tick(&child, NOW_MS + WORKER_TTL_MS).unwrap();
    assert_eq!(expired.state, SessionState::Expired);
    assert_eq!(session_step::tick(&expired, u64::MAX), None);
    let told = session_step::cancel(&child, NOW_MS).unwrap();
    assert_eq!(told.state, SessionState::Active, "it may wrap up");
    let told_again = session_step::cancel(&told, NOW_MS + 5_000).unwrap();
    assert_eq!(told_again.end_by_ms, Some(NOW_MS + CANCEL_GRACE_MS));
    assert_eq!(
        session_step::tick(&told, NOW_MS + CANCEL_GRACE_MS - 1),
        None
    );
    let ended = session_step::tick(&told, NOW_MS + CANCEL_GRACE_MS).unwrap();
    assert_eq!(ended.state, SessionState::Failed);
    assert_eq!(ended.result.unwrap().status, SessionStatus::Cancelled);
    assert_eq!(
        session_step::tick(&main_session(), u64::MAX),
        None,
        "a Main has no end of its own"
    );
}

#[test]
fn a_restart_keeps_main_and_what_is_suspended() {
    let main = main_session();
    let branch = child_of(&main, SessionKind::Branch).unwrap().1;
    let worker = child_of(&main, SessionKind::Worker).unwrap().1;
    let suspended = session_step::suspend(&branch).unwrap();
    assert_eq!(session_step::restarted(&main), None);
    assert_eq!(session_step::restarted(&suspended), None);
    for lost in [&branch, &worker] {
        assert_eq!(
            session_step::restarted(lost).unwrap().state,
            SessionState::Failed
        );
    }
    let done =
        session_step::finish(&branch, SessionResult::new(SessionStatus::Completed, "")).unwrap();
    assert_eq!(session_step::restarted(&done), None);
}

#[test]
fn a_blob_is_smaller_than_its_limit() {
    let child = child_of(&main_session(), SessionKind::Branch).unwrap().1;
    let with = |bytes: usize| SessionResult {
        artifacts: vec![
            SessionArtifact::File {
                path: "a.txt".into(),
            },
            SessionArtifact::Reference {
                uri: "https://example.com".into(),
            },
            SessionArtifact::Blob {
                name: "b".into(),
                media_type: "text/plain".into(),
                content: "x".repeat(bytes),
            },
        ],
        ..SessionResult::new(SessionStatus::Completed, "done")
    };
    assert!(session_step::finish(&child, with(BLOB_BYTES_MAX - 1)).is_ok());
    let refused = session_step::finish(&child, with(BLOB_BYTES_MAX));
    assert!(
        matches!(refused, Err(StepRefused::Result(_))),
        "{refused:?}"
    );
}
