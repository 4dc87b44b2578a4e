//! `/v1/approvals`: what waits for a person, and the person's answer.
//!
//! Only the approver's token opens these doors. The token is in the state directory, which no tool
//! can reach, so whoever presents it is not a tool. Every answer is in the audit log before it counts,
//! with the fingerprint of the token and where it came from.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::extract::Request;
use axum::response::Response;
use holdfast_contract::{Answer, Audience, Scope};
use holdfast_toolbox::approval::{AnswerError, Approval, ApprovalState, Refused};
use http::StatusCode;
use hyper::body::Body as _;
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::limits::{ADMIN_WORDS_BYTES_MAX, ANSWER_BODY_BYTES_MAX, PAGE_APPROVALS_MAX};
use crate::respond::{Refusal, json_response};
use crate::routes::admin::{fields, redacted, store_refusal};
use crate::server::{Peer, Server};
use crate::shape::tools::ApprovalList;

/// What waits, newest first; with `?all=true` also what is over.
pub const PATH: &str = "/v1/approvals";
/// One request.
pub const ONE: &str = "/v1/approvals/{id}";
/// Yes.
pub const APPROVE: &str = "/v1/approvals/{id}/approve";
/// No.
pub const DENY: &str = "/v1/approvals/{id}/deny";

/// The body of a yes. Every field is optional, and so is the body.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct Yes {
    /// How far it reaches.
    scope: Option<Scope>,
    /// Who answers, in the words of the program that speaks for them.
    #[schemars(length(max = ADMIN_WORDS_BYTES_MAX))]
    by: Option<String>,
}

/// The body of a no. Every field is optional, and so is the body.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct No {
    /// Why.
    #[schemars(length(max = ADMIN_WORDS_BYTES_MAX))]
    reason: Option<String>,
    /// Who answers, in the words of the program that speaks for them.
    #[schemars(length(max = ADMIN_WORDS_BYTES_MAX))]
    by: Option<String>,
}

/// Which way an answer goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Approve,
    Deny,
}

/// What waits for an answer.
pub(super) async fn list(server: Arc<Server>, request: Request) -> Response {
    let all = match request.uri().query() {
        None | Some("" | "all=false") => false,
        Some("all=true") => true,
        Some(_) => {
            return server.refuse(Refusal::invalid(
                "Only all=true and all=false can be asked for",
            ));
        }
    };
    let now_ms = server.stack.runtime().clock.now_ms();
    match server.approvals.list().await {
        Ok(mut found) => {
            found.retain(|approval| all || approval.is_open(now_ms));
            let more = found.len() > PAGE_APPROVALS_MAX;
            found.truncate(PAGE_APPROVALS_MAX);
            let shown: Vec<Value> = found.iter().map(|it| shown(&server, it)).collect();
            let body = ApprovalList {
                approvals: shown,
                more,
            };
            json_response(StatusCode::OK, &body)
        }
        Err(error) => server.refuse(store_refusal(&server, &error)),
    }
}

/// One request.
pub(super) async fn show(server: Arc<Server>, request: Request) -> Response {
    let id = id_in(&request);
    match server.approvals.get(&id).await {
        Ok(Some(found)) => json_response(StatusCode::OK, &shown(&server, &found)),
        Ok(None) => server.refuse(not_found()),
        Err(error) => server.refuse(store_refusal(&server, &error)),
    }
}

/// Yes.
pub(super) async fn approve(server: Arc<Server>, request: Request) -> Response {
    answer(server, request, Way::Approve).await
}

/// No.
pub(super) async fn deny(server: Arc<Server>, request: Request) -> Response {
    answer(server, request, Way::Deny).await
}

async fn answer(server: Arc<Server>, request: Request, way: Way) -> Response {
    let id = id_in(&request);
    let peer = request.extensions().get::<Peer>().copied();
    let (answer, by) = match words(&server, request, way).await {
        Ok(words) => words,
        Err(refusal) => return server.refuse(refusal),
    };
    let fingerprint = server.gate.tokens().approver.fingerprint();
    let from = peer.map_or_else(String::new, |Peer(peer)| peer.to_string());
    let by = by.unwrap_or_else(|| "approver".to_owned());
    let presented = json!({"approval": id, "answer": answer, "by": by, "fingerprint": fingerprint, "peer": from});
    // Whoever answered may be gone by now; an answer that was begun is taken all the same.
    let settled = tokio::spawn(async move {
        if let Err(error) = server
            .audit
            .append("approval.presented", fields(presented))
            .await
        {
            return server.refuse(refused(&server, &error.into()));
        }
        match server.approvals.answer(&id, &answer, &by).await {
            Ok(answered) => {
                if matches!(answered.state, ApprovalState::Approved { .. }) {
                    server.resume(BTreeSet::from([answered.id.clone()]));
                }
                json_response(StatusCode::OK, &shown(&server, &answered))
            }
            Err(error) => server.refuse(refused(&server, &error)),
        }
    });
    settled.await.unwrap_or_else(|_| {
        Refusal::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "unavailable",
            "The answer was cut off",
        )
        .into_response()
    })
}

/// The answer, and who gives it.
async fn words(
    server: &Server,
    request: Request,
    way: Way,
) -> Result<(Answer, Option<String>), Refusal> {
    let has_body = !request.body().is_end_stream();
    let body = if has_body {
        Some(server.read_json(request, ANSWER_BODY_BYTES_MAX).await?)
    } else {
        None
    };
    let body = body.as_deref().filter(|body| !body.is_empty());
    let (answer, long, by) = match way {
        Way::Approve => {
            let Yes { scope, by } = read(server, body)?;
            let scope = scope.unwrap_or(Scope::Once);
            (Answer::Approve { scope }, None, by)
        }
        Way::Deny => {
            let No { reason, by } = read(server, body)?;
            let long = reason.clone();
            (Answer::Deny { reason }, long, by)
        }
    };
    let texts = [&long, &by];
    let too_long = |text: &Option<String>| {
        let text = text.as_ref();
        text.is_some_and(|text| text.len() > ADMIN_WORDS_BYTES_MAX)
    };
    if texts.into_iter().any(too_long) {
        return Err(Refusal::invalid(format!(
            "reason and by are at most {ADMIN_WORDS_BYTES_MAX} bytes long"
        )));
    }
    Ok((answer, by))
}

/// A body of this type; without one, what a body without fields says.
pub(super) fn read<T: DeserializeOwned + Default>(
    server: &Server,
    body: Option<&[u8]>,
) -> Result<T, Refusal> {
    let Some(body) = body else {
        return Ok(T::default());
    };
    let wrong = |error: serde_json::Error| Refusal::invalid(redacted(server, &error.to_string()));
    // As an object first: a list would be taken for the fields in their order.
    let fields: Map<String, Value> = serde_json::from_slice(body).map_err(wrong)?;
    serde_json::from_value(Value::Object(fields)).map_err(wrong)
}

/// The request as the approver sees it: exactly what runs.
fn shown(server: &Server, approval: &Approval) -> Value {
    shown_to(server, approval, Audience::Approver)
}

/// The request as such people see it.
pub(super) fn shown_to(server: &Server, approval: &Approval, audience: Audience) -> Value {
    let runtime = server.stack.runtime();
    approval.view(audience, &runtime.redactor, runtime.clock.now_ms())
}

/// The id in the path. Ids are made of letters and digits, so nothing has to be decoded.
fn id_in(request: &Request) -> String {
    let rest = request.uri().path().strip_prefix(PATH).unwrap_or_default();
    let id = rest.trim_start_matches('/').split('/').next();
    id.unwrap_or_default().to_ascii_lowercase()
}

fn not_found() -> Refusal {
    Refusal::new(
        StatusCode::NOT_FOUND,
        "not_found",
        "There is no such approval request",
    )
}

pub(super) fn refused(server: &Server, error: &AnswerError) -> Refusal {
    let conflict = |kind| Refusal::new(StatusCode::CONFLICT, kind, error.to_string());
    match error {
        AnswerError::NotFound(_) => not_found(),
        AnswerError::Sender(_)
        | AnswerError::NoSenders
        | AnswerError::PolicyByMessage(_)
        | AnswerError::NotShownWhole(_) => {
            Refusal::new(StatusCode::FORBIDDEN, "forbidden", error.to_string())
        }
        AnswerError::Refused { why, .. } => match why {
            Refused::OwnRequest(_) | Refused::OnceOnly => {
                Refusal::new(StatusCode::FORBIDDEN, "forbidden", error.to_string())
            }
            Refused::Expired => conflict("expired"),
            _ => conflict("already_answered"),
        },
        AnswerError::Store(error) => store_refusal(server, error),
        AnswerError::Audit(error) => Refusal::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "unavailable",
            redacted(server, &error.to_string()),
        ),
    }
}
