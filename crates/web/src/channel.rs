//! Channels that are reached over HTTP: a webhook, and the gateway's own `message`.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use holdfast_contract::visible::escape_in_json;
use holdfast_contract::{
    ApprovalPrompt, Channel, ChannelLevel, Clock, Effect, Prompted, Prompter, Shown, Shows,
    Surface, ToolError,
};
use reqwest::{Client, Url};
use serde_json::{Map, Value, json};

use crate::client::{Time, failed, retry_after_ms};
use crate::gateway::GatewayClient;
use crate::limits::WEB_REQUEST_MS_MAX;

/// Characters of one message; what chat services commonly take.
const CHANNEL_MESSAGE_CHARS_MAX: usize = 2_000;
/// Characters of the reasons in a prompt; the arguments say all that the reasons do.
const REASONS_CHARS_MAX: usize = 300;
/// Characters of a workspace, a session and an actor in a prompt: of a longer one the end is shown.
const WHERE_CHARS_MAX: usize = 80;
/// Characters of a prompt besides its arguments.
const PROMPT_REST_CHARS_MAX: usize = 960;

/// Where messages go.
enum Way {
    Webhook {
        client: Client,
        url: Url,
        time: Time,
    },
    Gateway {
        client: Arc<GatewayClient>,
        to: Map<String, Value>,
    },
}

/// A channel that is reached over HTTP.
pub struct HttpChannel {
    name: &'static str,
    level: ChannelLevel,
    way: Way,
}

impl HttpChannel {
    /// Posts `{"text": …}` to an address, with our key as `Idempotency-Key`.
    pub fn webhook(url: &str, level: ChannelLevel, clock: Arc<dyn Clock>) -> Result<Self, String> {
        let url = Url::parse(url.trim())
            .map_err(|error| format!("the webhook's address is none: {error}"))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(format!(
                "the webhook's address has to begin with http: or https:, and not with {}:",
                url.scheme()
            ));
        }
        let client = holdfast_client::builder()
            // What the model client may speak was not meant for others.
            .http1_only()
            .timeout(Duration::from_millis(WEB_REQUEST_MS_MAX))
            .no_proxy()
            .build()
            .map_err(|error| format!("the HTTP client can not be built: {error}"))?;
        Ok(Self {
            name: "webhook",
            level,
            way: Way::Webhook {
                client,
                url,
                time: Time(clock),
            },
        })
    }

    /// Sends through the gateway's tool `message` (its action `send`, the text in `message`), with
    /// these arguments besides: `channel`, `target`, `accountId`.
    pub fn gateway(
        client: Arc<GatewayClient>,
        to: Map<String, Value>,
        level: ChannelLevel,
    ) -> Self {
        Self {
            name: "gateway",
            level,
            way: Way::Gateway { client, to },
        }
    }

    async fn post(&self, text: &str, key: Option<&str>) -> Result<(), ToolError> {
        match &self.way {
            Way::Gateway { client, to } => {
                let mut args = to.clone();
                args.insert("message".to_owned(), json!(text));
                let args = Value::Object(args);
                client
                    .invoke(("message", Effect::External), Some("send"), &args, key)
                    .await
                    .map(|_| ())
            }
            Way::Webhook { client, url, time } => {
                let mut asked = client
                    .post(url.clone())
                    .header("content-type", "application/json");
                if let Some(key) = key {
                    asked = asked.header("idempotency-key", key);
                }
                let body = json!({"text": text}).to_string();
                let answer = asked
                    .body(body)
                    .send()
                    .await
                    .map_err(|error| failed(&error))?;
                let status = answer.status();
                if status.is_success() {
                    return Ok(());
                }
                let message = format!("the webhook answered {status}");
                Err(ToolError::http(
                    status.as_u16(),
                    retry_after_ms(answer.headers(), time),
                    message,
                ))
            }
        }
    }
}

/// A prompt as text.
struct Described {
    text: String,
    /// Whether all that would run is in it.
    shown: Shown,
}

/// Signs that chats do not show as they are: the end of a block of code, and the beginning of a link
/// or of an entity. In JSON they have another spelling.
fn for_chats(arguments: &str) -> String {
    let mut out = String::with_capacity(arguments.len());
    let mut signs = arguments.chars().peekable();
    while let Some(sign) = signs.next() {
        let next = signs.peek();
        let is_entity = next.is_some_and(|next| *next == '#' || next.is_alphabetic());
        match sign {
            '`' | '<' => escape_in_json(sign, &mut out),
            '&' if is_entity => escape_in_json(sign, &mut out),
            sign => out.push(sign),
        }
    }
    out
}

fn described(prompt: &ApprovalPrompt, what: &str) -> Described {
    let mut arguments = for_chats(&prompt.arguments);
    let mut shown = prompt.shown;
    let mut note = match shown {
        Shown::Whole => "",
        Shown::Partly => "\nhidden: secrets",
    };
    let most = CHANNEL_MESSAGE_CHARS_MAX - PROMPT_REST_CHARS_MAX;
    if let Some((at, _)) = arguments.char_indices().nth(most) {
        arguments.truncate(at);
        arguments.push('…');
        // What a chat would cut off or fold away is not shown, whoever does the cutting.
        shown = Shown::Partly;
        note = "\nhidden: the rest of the arguments";
    }
    let reasons: Vec<&str> = prompt
        .reasons
        .iter()
        .map(|reason| reason.text.as_str())
        .collect();
    let reasons: String = reasons.join("; ").chars().take(REASONS_CHARS_MAX).collect();
    let text = format!(
        "{} ({:?}) {what} {}\narguments:\n```\n{arguments}\n```{note}\nworkspace: {}\n\
         session: {} of {}\nbecause: {reasons}",
        prompt.tool,
        prompt.tier,
        prompt.id,
        end_of(&prompt.workspace),
        end_of(&prompt.origin_session),
        end_of(&prompt.actor),
    );
    Described { text, shown }
}

/// The end of a path or a key tells it from others.
fn end_of(text: &str) -> String {
    let text = for_chats(text);
    match text.chars().count().checked_sub(WHERE_CHARS_MAX) {
        None | Some(0) => text,
        Some(over) => format!("…{}", text.chars().skip(over + 1).collect::<String>()),
    }
}

#[async_trait]
impl Prompter for HttpChannel {
    async fn prompt(&self, prompt: &ApprovalPrompt) -> Result<Prompted, ToolError> {
        let asked = described(prompt, "asks for approval");
        let id = &prompt.id;
        let how = match (&prompt.code, asked.shown) {
            (Some(code), Shown::Whole) => format!("reply: approve {id}-{code} / deny {id}-{code}"),
            (None, Shown::Whole) => {
                format!("answer: holdfast approvals approve {id} / deny {id}")
            }
            (_, Shown::Partly) => format!(
                "this can not be answered here: `holdfast approvals show {id}` shows all of it, \
                 and `holdfast approvals approve {id}` / `deny {id}` answers"
            ),
        };
        let text = format!("{}\n{how}", asked.text);
        self.post(&text, Some(&prompt.id)).await?;
        Ok(Prompted::Shown)
    }

    async fn tell(&self, prompt: &ApprovalPrompt) -> Result<(), ToolError> {
        self.post(&described(prompt, "runs with this note").text, None)
            .await
    }
}

#[async_trait]
impl Channel for HttpChannel {
    fn name(&self) -> &str {
        self.name
    }

    fn level(&self) -> ChannelLevel {
        self.level
    }

    fn surface(&self) -> Surface {
        Surface {
            tables: Shows::No,
            headings: Shows::No,
            message_chars_max: CHANNEL_MESSAGE_CHARS_MAX,
        }
    }

    async fn send(&self, text: &str, key: Option<&str>) -> Result<(), ToolError> {
        self.post(text, key).await
    }
}

#[cfg(test)]
mod tests {
    use holdfast_contract::SystemClock;

    use super::*;

    #[test]
    fn a_webhook_is_reached_over_http_and_nothing_else() {
        for url in [
            "ftp://chat.example/hook",
            "file:///tmp/hook",
            "mailto:ann@example.org",
        ] {
            let made = HttpChannel::webhook(url, ChannelLevel::Standard, Arc::new(SystemClock));
            let why = made.err().unwrap_or_default();
            assert!(why.contains("http: or https:"), "{url}: {why}");
        }
    }
}
