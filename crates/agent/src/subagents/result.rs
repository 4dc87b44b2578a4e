//! What becomes of a subagent's run for its parent.

use holdfast_contract::Artifact;
use holdfast_toolbox::session::model::SUMMARY_BYTES_MAX;
use holdfast_toolbox::session::{SessionArtifact, SessionResult, SessionStatus};

use crate::run::{Ending, RunErrorCode};
use crate::runs::Outcome;

/// How memories are referred to.
const MEMORY: &str = "memory:";

/// What a run gives its parent; nothing while it may still go on.
pub(super) fn result_of(outcome: &Outcome) -> Option<SessionResult> {
    let state = match outcome {
        Outcome::Ended(state) => state,
        Outcome::Lost(why) => {
            return Some(SessionResult::new(SessionStatus::Failed, why.to_string()));
        }
        Outcome::Left => return None,
    };
    let (status, summary) = match state.ending()? {
        Ending::Answered { content, .. } => (SessionStatus::Completed, content.clone()),
        Ending::Calls { .. } => (
            SessionStatus::Failed,
            "it has no tools of its own".to_owned(),
        ),
        Ending::Failed(error) if error.code == RunErrorCode::TimeoutExceeded => {
            (SessionStatus::Expired, error.to_string())
        }
        Ending::Failed(error) => (SessionStatus::Failed, error.to_string()),
        Ending::Cancelled => (SessionStatus::Cancelled, "it was told to end".to_owned()),
    };
    let mut end = summary.len().min(SUMMARY_BYTES_MAX);
    while !summary.is_char_boundary(end) {
        end -= 1;
    }
    let mut result = SessionResult::new(status, &summary[..end]);
    for made in &state.made {
        match made {
            Artifact::File { path } => {
                result
                    .artifacts
                    .push(SessionArtifact::File { path: path.clone() });
            }
            Artifact::Reference { uri } => match uri.strip_prefix(MEMORY) {
                Some(id) => result.memory_ids.push(id.to_owned()),
                None => result
                    .artifacts
                    .push(SessionArtifact::Reference { uri: uri.clone() }),
            },
        }
    }
    Some(result)
}
