//! The start of a call that was approved.

use holdfast_reliability::call::Call;
use serde_json::json;

use super::model::digest_of;
use super::service::{Approvals, Lost, Seen};
use super::step::{Action, Refused};
use super::stop::Stop;

/// Makes the approval this call's own. Of several calls that want it one gets it.
pub(super) async fn take(
    approvals: &Approvals,
    approved: &Seen,
    call: &mut Call,
) -> Result<(), Stop> {
    let (id, digest) = (&approved.approval.id, digest_of(&call.envelope));
    use_up(approvals, approved, &digest).await?;
    approvals
        .record(
            "approval.used",
            json!({"approval": id, "tool": call.envelope.tool_name, "digest": digest,
                   "request": call.envelope.request_id}),
        )
        .await?;
    call.explain(format!("approved ({id})"));
    Ok(())
}

/// Uses an approval for the one run it is for.
async fn use_up(approvals: &Approvals, approved: &Seen, digest: &str) -> Result<(), Stop> {
    let id = &approved.approval.id;
    let mut seen = approved.clone();
    loop {
        match approvals.advance(&seen, Action::Use { digest }).await? {
            Ok(_) => return Ok(()),
            Err(Lost::Changed(newer)) if newer.document.group != approved.document.group => {
                return Err(Stop::TakenOver);
            }
            Err(Lost::Changed(newer)) => seen = *newer,
            Err(Lost::Gone) => return Err(Stop::Denied(format!("the approval {id} is gone"))),
            Err(Lost::Refused(why)) => {
                let why = match why {
                    Refused::Over("used") => "another run has used it".to_owned(),
                    other => other.to_string(),
                };
                let why = format!("the approval {id} can not be used: {why}");
                return Err(Stop::Denied(why));
            }
        }
    }
}

/// Puts on record that the call starts: from here on its effect may happen.
pub(super) async fn begin(call: &mut Call) -> Result<(), Stop> {
    let Some(claim) = &call.held_claim else {
        return Ok(());
    };
    let begun = claim.begin().await?.map_err(|_| Stop::ClaimLost)?;
    if let Some(lifeline) = begun {
        // Of a claim that was had anew: the children are to hold that one.
        call.lifeline = Some(lifeline);
    }
    Ok(())
}
