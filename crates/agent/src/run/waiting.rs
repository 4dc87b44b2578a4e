//! A call on its way: its envelope, and that it waits for a person.

use std::pin::pin;

use holdfast_contract::{ToolCallEnvelope, ToolStep};
use holdfast_toolbox::approval::ApprovalState;
use holdfast_toolbox::stack::ToolStack;
use tokio::sync::broadcast::error::RecvError;

use super::state::{PlannedCall, RunState};

/// Makes a call, and says which approval it begins to wait for.
pub(super) async fn heard_waiting<T>(
    stack: &ToolStack,
    request: &str,
    call: impl Future<Output = T>,
    waits: impl Fn(&str),
) -> T {
    let Some(approvals) = stack.approvals() else {
        return call.await;
    };
    let mut heard = approvals.waits();
    let mut call = pin!(call);
    loop {
        tokio::select! {
            biased;
            done = &mut call => return done,
            told = heard.recv() => match told {
                Ok(waiting) if waiting.request == request => waits(&waiting.approval),
                Ok(_) | Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return call.await,
            },
        }
    }
}

/// An approval and its tool in words, where nobody has answered.
pub(super) async fn unanswered(
    stack: &ToolStack,
    asked: Option<(String, String)>,
) -> Option<String> {
    let (approval, tool) = asked?;
    let found = stack.approvals()?.get(&approval).await.ok()??;
    match found.state {
        // Its caller's time was up first, which withdraws it.
        ApprovalState::Pending
        | ApprovalState::Expired { .. }
        | ApprovalState::Withdrawn { .. } => Some(format!(
            "approval {approval} of `{tool}`, which is withdrawn"
        )),
        ApprovalState::Approved { .. }
        | ApprovalState::Used { .. }
        | ApprovalState::Denied { .. } => None,
    }
}

/// The same for every process that goes on with the run: the place in the run is the identity.
pub(super) fn envelope(state: &RunState, place: usize, call: &PlannedCall) -> ToolCallEnvelope {
    let step = ToolStep {
        iteration: u64::from(state.iteration),
        index: place as u64,
    };
    let mut envelope = ToolCallEnvelope::new(
        format!("{}-{}-{}", state.id, step.iteration, step.index),
        call.name.clone(),
        call.arguments.clone(),
        state.session.clone(),
        state.actor.clone(),
    );
    envelope.tool_call_id.clone_from(&call.call_id);
    envelope.target.run_id = Some(state.id.clone());
    envelope.target.turn_id = Some(state.id.clone());
    envelope.target.model_id = Some(state.model.clone());
    envelope.payload.tool_step = Some(step);
    envelope.control.deadline_at_ms = Some(state.deadline_at_ms());
    envelope
}
