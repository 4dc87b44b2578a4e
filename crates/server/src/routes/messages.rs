//! `POST /v1/messages`: what people and strangers say to a session.
//!
//! Whatever listens on a channel hands its messages on here. A reply to an approval prompt that
//! holds the prompt's code is a person's answer; everything else is noted as what its session has
//! read, and when the user speaks, what was held goes on.
//!
//! Whoever has the token for tool calls hands messages on, and may be the agent's own host, which
//! has read what an attacker wrote. So it is not the message that says who the user is: only what
//! comes from a sender that the configuration names (`permissions.approvals.senders`) counts as the
//! user's, and everything else as a stranger's. An answer needs the prompt's code besides.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::extract::Request;
use axum::response::Response;
use holdfast_contract::Audience;
use holdfast_toolbox::approval::{ApprovalState, Heard};
use holdfast_toolbox::trust::Speaker;
use http::StatusCode;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::approvals::{refused, shown_to};
use crate::limits::{ADMIN_WORDS_BYTES_MAX, MESSAGE_BODY_BYTES_MAX};
use crate::respond::{Refusal, json_response};
use crate::routes::admin::{fields, redacted, store_refusal};
use crate::server::{Peer, Server};
use crate::shape::tools::MessageTaken;

/// The path.
pub const PATH: &str = "/v1/messages";

/// The body.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Message {
    /// What was said.
    text: String,
    /// Who said it, by the channel's name for them.
    #[schemars(length(min = 1, max = ADMIN_WORDS_BYTES_MAX))]
    sender: String,
    /// Whether that is the person the agent works for.
    #[serde(default)]
    from: From,
    /// The session it is said to; a reply to a prompt needs none.
    #[serde(default)]
    session_key: Option<String>,
    /// Its agent.
    #[serde(default)]
    agent_id: Option<String>,
}

/// Whose message it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
enum From {
    User,
    #[default]
    Stranger,
}

/// Takes one message.
pub(super) async fn handle(server: Arc<Server>, request: Request) -> Response {
    let peer = request.extensions().get::<Peer>().copied();
    let from = peer.map_or_else(String::new, |Peer(peer)| peer.to_string());
    let message = match message(&server, request).await {
        Ok(message) => message,
        Err(refusal) => return server.refuse(refusal),
    };
    // Whoever handed it on may be gone by now; an answer that was begun is taken all the same.
    let settled = tokio::spawn(async move { take(&server, message, &from).await });
    settled.await.unwrap_or_else(|_| {
        let kind = "unavailable";
        Refusal::new(
            StatusCode::SERVICE_UNAVAILABLE,
            kind,
            "The message was cut off",
        )
        .into_response()
    })
}

async fn message(server: &Server, request: Request) -> Result<Message, Refusal> {
    let body = server.read_json(request, MESSAGE_BODY_BYTES_MAX).await?;
    let wrong = |error: serde_json::Error| Refusal::invalid(redacted(server, &error.to_string()));
    // As an object first: a list would be taken for the fields in their order.
    let body: Map<String, Value> = serde_json::from_slice(&body).map_err(wrong)?;
    let message: Message = serde_json::from_value(Value::Object(body)).map_err(wrong)?;
    if message.sender.is_empty() || message.sender.len() > ADMIN_WORDS_BYTES_MAX {
        let why = format!("sender has to be 1 to {ADMIN_WORDS_BYTES_MAX} bytes long");
        return Err(Refusal::invalid(why));
    }
    Ok(message)
}

async fn take(server: &Arc<Server>, message: Message, peer: &str) -> Response {
    match server.approvals.heard(&message.text, &message.sender).await {
        Ok(Heard::NoAnswer) => listen(server, &message).await,
        Ok(Heard::Answered(answered)) => {
            let told = json!({"approval": answered.id, "by": message.sender, "peer": peer});
            // The answer itself is on record already; this says which way it came.
            let noted = server
                .audit
                .append("approval.by_message", fields(told))
                .await;
            if let Err(error) = noted {
                return server.refuse(refused(server, &error.into()));
            }
            if matches!(answered.state, ApprovalState::Approved { .. }) {
                server.resume(BTreeSet::from([answered.id.clone()]));
            }
            let body = MessageTaken {
                answered: true,
                // The token for calls may be the agent's own: its holder reads along, no more.
                approval: Some(shown_to(server, &answered, Audience::Readers)),
                ..MessageTaken::default()
            };
            json_response(StatusCode::OK, &body)
        }
        Err(error) => server.refuse(refused(server, &error)),
    }
}

async fn listen(server: &Server, message: &Message) -> Response {
    let quiet = MessageTaken::default();
    let (Some(key), Some(book)) = (&message.session_key, server.stack.trust()) else {
        return json_response(StatusCode::OK, &quiet);
    };
    let session = server.stack.session(key, message.agent_id.as_deref());
    let speaker = match message.from {
        From::User if server.approvals.knows(&message.sender) => Speaker::User,
        From::User | From::Stranger => Speaker::Stranger,
    };
    let heard = book.heard(&session, speaker, &message.text).await;
    let known = match heard {
        Ok(findings) => book.session(&session).await.map(|known| (findings, known)),
        Err(error) => Err(error),
    };
    match known {
        Ok((findings, known)) => {
            let now_ms = server.stack.runtime().clock.now_ms();
            let body = MessageTaken {
                trust: Some(json!(known.trust())),
                signals: Some(json!(findings.found)),
                held: Some(known.held(now_ms).is_some()),
                ..quiet
            };
            json_response(StatusCode::OK, &body)
        }
        Err(error) => server.refuse(store_refusal(server, &error)),
    }
}
