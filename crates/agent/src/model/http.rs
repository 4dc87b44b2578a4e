//! A server that speaks chat completions: vLLM, llama.cpp, Ollama, LM Studio and their like.

use std::time::Duration;

use async_trait::async_trait;
use holdfast_contract::redact::REDACTED;
use holdfast_contract::{Clock, SystemClock};
use holdfast_reliability::retry::parse_retry_after;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use reqwest::{Client, Response, Url};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};

use super::events::{BROKE_OFF, Events};
use super::report::Asking;
use super::{
    Hear, Http2, MODEL_REACH_MS_MAX, MODEL_REPLY_BYTES_MAX, Model, ModelError, ModelReply,
    ModelRequest, wire,
};
use crate::config::kind::hint_of_scheme;

/// Where a model is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpModelConfig {
    /// Such as `http://127.0.0.1:8000`. Without a path, `/v1` is added.
    pub base_url: String,
    /// The model's name, as its server knows it.
    pub model: String,
    /// The key, when the server wants one.
    pub api_key: Option<String>,
    /// When HTTP/2 is spoken with it.
    pub http2: Http2,
}

/// The client of one server and one model.
#[derive(Debug)]
pub struct HttpModel {
    client: Client,
    url: Url,
    models: Url,
    /// Its address without anything that could be a secret.
    place: String,
    model: String,
    key: Option<HeaderValue>,
}

impl HttpModel {
    /// A client with these settings; the error says which one can not be.
    pub fn new(config: &HttpModelConfig) -> Result<Self, String> {
        let key = config.api_key.as_deref().map(bearer).transpose()?;
        let mut client = holdfast_client::builder();
        client = match config.http2 {
            Http2::Negotiated => client,
            Http2::Always => client.http2_prior_knowledge(),
            Http2::Never => client.http1_only(),
        };
        let client = client
            .build()
            .map_err(|error| format!("the HTTP client can not be built: {error}"))?;
        let url = endpoint(&config.base_url, "chat/completions")?;
        Ok(Self {
            client,
            place: url.origin().ascii_serialization(),
            url,
            models: endpoint(&config.base_url, "models")?,
            model: config.model.clone(),
            key,
        })
    }

    /// Sends the question, with these members beside or in place of its own.
    async fn send(
        &self,
        request: &ModelRequest,
        more: &[(&str, Value)],
    ) -> Result<Response, ModelError> {
        let body = Amended {
            body: &request.body,
            model: &self.model,
            more,
        };
        let body = serde_json::to_vec(&body)
            .map_err(|error| ModelError::Refused(format!("it can not be written: {error}")))?;
        let mut asked = self
            .client
            .post(self.url.clone())
            .header(CONTENT_TYPE, "application/json")
            .body(body);
        if let Some(key) = &self.key {
            asked = asked.header(AUTHORIZATION, key.clone());
        }
        asked.send().await.map_err(|error| self.failed(&error))
    }

    async fn ask(&self, request: &ModelRequest) -> Result<ModelReply, ModelError> {
        let asked = async {
            let answer = self.send(request, &[]).await?;
            self.read(answer).await
        };
        let limit = Duration::from_millis(request.timeout_ms);
        self.by(Instant::now() + limit, request.timeout_ms, asked)
            .await
    }

    async fn read(&self, answer: Response) -> Result<ModelReply, ModelError> {
        let status = answer.status();
        let wait_ms = retry_after_ms(&answer);
        let body = whole(answer).await?.map_err(|error| self.failed(&error))?;
        let read = if status.is_success() {
            wire::read_reply(&body)
        } else {
            Err(wire::read_error(status.as_u16(), &body))
        };
        read.map_err(|error| match (error, wait_ms) {
            (ModelError::Unavailable(why), Some(retry_after_ms)) => ModelError::Busy {
                why,
                retry_after_ms,
            },
            (error, _) => error,
        })
        .map_err(|error| self.without_key(error))
    }

    /// The same, told as it comes. A server that does not stream answers in one piece.
    async fn ask_live(
        &self,
        request: &ModelRequest,
        hear: Hear<'_>,
    ) -> Result<ModelReply, ModelError> {
        let more = [
            ("stream", Value::Bool(true)),
            ("stream_options", json!({"include_usage": true})),
        ];
        let time_up = Instant::now() + Duration::from_millis(request.timeout_ms);
        let limit_ms = request.timeout_ms;
        let asked = self.send(request, &more);
        let answer = self.by(time_up, limit_ms, asked).await?;
        let kind = answer.headers().get(CONTENT_TYPE);
        let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        if !answer.status().is_success() || !kind.starts_with("text/event-stream") {
            return self.by(time_up, limit_ms, self.read(answer)).await;
        }
        self.hear_out(answer, time_up, limit_ms, hear).await
    }

    /// Hears a stream to its end. Its time begins anew with every event: who still speaks is not away,
    /// and how long all of it may take is the run's to say. Comments that keep a connection alive
    /// are no events.
    async fn hear_out(
        &self,
        mut answer: Response,
        mut time_up: Instant,
        limit_ms: u64,
        hear: Hear<'_>,
    ) -> Result<ModelReply, ModelError> {
        let mut events = Events::default();
        let mut bytes = 0;
        let mut heard = 0;
        loop {
            let Ok(part) = timeout_at(time_up, answer.chunk()).await else {
                if events.is_whole() {
                    return self.finished(events, hear);
                }
                return Err(match heard {
                    0 => self.too_late(limit_ms),
                    _ => self.fell_silent(limit_ms),
                });
            };
            match part {
                Ok(Some(part)) if bytes + part.len() > MODEL_REPLY_BYTES_MAX => {
                    return Err(too_large());
                }
                Ok(Some(part)) => {
                    bytes += part.len();
                    let fed = events.feed(&part, hear);
                    fed.map_err(|error| self.without_key(error))?;
                    // Some servers leave the connection open after their last word.
                    if events.is_done() {
                        return self.finished(events, hear);
                    }
                }
                // Nothing is missing from an answer that breaks off after its end.
                Err(error) if !events.is_whole() => {
                    let why = format!("{BROKE_OFF} ({})", innermost(&error));
                    return Err(self.placed(ModelError::Unavailable(why)));
                }
                Ok(None) | Err(_) => return self.finished(events, hear),
            }
            // What comes after the last word is no more of the answer.
            if events.count() > heard && !events.is_whole() {
                heard = events.count();
                time_up = Instant::now() + Duration::from_millis(limit_ms);
            }
        }
    }

    fn finished(&self, events: Events, hear: Hear<'_>) -> Result<ModelReply, ModelError> {
        let read = events.finish(hear);
        read.map_err(|error| self.without_key(self.placed(error)))
    }

    /// What comes of it until then, or that it took too long.
    async fn by<T>(
        &self,
        time_up: Instant,
        limit_ms: u64,
        answer: impl Future<Output = Result<T, ModelError>>,
    ) -> Result<T, ModelError> {
        let answered = timeout_at(time_up, answer).await;
        answered.unwrap_or_else(|_| Err(self.too_late(limit_ms)))
    }

    fn too_late(&self, limit_ms: u64) -> ModelError {
        let why = format!("it did not answer within {limit_ms} ms");
        self.placed(ModelError::Unavailable(why))
    }

    fn fell_silent(&self, limit_ms: u64) -> ModelError {
        let why = format!("{BROKE_OFF}: nothing more came for {limit_ms} ms");
        self.placed(ModelError::Unavailable(why))
    }

    /// The same, with whose failure it is.
    fn placed(&self, error: ModelError) -> ModelError {
        error.in_words(|why| format!("{}: {why}", self.place))
    }

    /// Some servers repeat the key that they do not know.
    fn without_key(&self, error: ModelError) -> ModelError {
        let key = self.key.as_ref().and_then(|key| key.to_str().ok());
        match key.and_then(|key| key.strip_prefix("Bearer ")) {
            Some(key) if !key.is_empty() => error.in_words(|why| why.replace(key, REDACTED)),
            _ => error,
        }
    }

    fn failed(&self, error: &reqwest::Error) -> ModelError {
        self.placed(ModelError::Unavailable(innermost(error)))
    }
}

/// The innermost reason says the most: "connection refused" rather than "error sending".
fn innermost(error: &reqwest::Error) -> String {
    let mut reason: &dyn std::error::Error = error;
    while let Some(source) = reason.source() {
        reason = source;
    }
    reason.to_string()
}

/// How long the server wants to be left alone.
fn retry_after_ms(answer: &Response) -> Option<u64> {
    let wait = answer.headers().get(RETRY_AFTER)?.to_str().ok()?;
    parse_retry_after(wait, SystemClock.now_ms())
}

/// A question as one server is asked it: nothing of it is copied but into the bytes that are sent.
struct Amended<'a> {
    body: &'a Value,
    /// The model's name, as the server knows it.
    model: &'a str,
    more: &'a [(&'a str, Value)],
}

impl Serialize for Amended<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("model", self.model)?;
        let is_other = |name: &str| name != "model" && self.more.iter().all(|(it, _)| *it != name);
        let own = self.body.as_object().into_iter().flatten();
        for (name, value) in own.filter(|(name, _)| is_other(name)) {
            map.serialize_entry(name, value)?;
        }
        for (name, value) in self.more {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

/// The whole body, or that it is too large.
async fn whole(mut answer: Response) -> Result<Result<Vec<u8>, reqwest::Error>, ModelError> {
    let mut body = Vec::new();
    loop {
        match answer.chunk().await {
            Ok(None) => return Ok(Ok(body)),
            Ok(Some(part)) if body.len() + part.len() > MODEL_REPLY_BYTES_MAX => {
                return Err(too_large());
            }
            Ok(Some(part)) => body.extend_from_slice(&part),
            Err(error) => return Ok(Err(error)),
        }
    }
}

fn too_large() -> ModelError {
    ModelError::Refused(format!(
        "the answer is larger than {MODEL_REPLY_BYTES_MAX} bytes"
    ))
}

fn bearer(key: &str) -> Result<HeaderValue, String> {
    let mut value = HeaderValue::from_str(&format!("Bearer {}", key.trim()))
        .map_err(|_| "the key holds what no header can hold".to_owned())?;
    value.set_sensitive(true);
    Ok(value)
}

fn endpoint(base: &str, name: &str) -> Result<Url, String> {
    let hint = hint_of_scheme(base);
    let no_server = || format!("{base:?} is no address of an HTTP server{hint}");
    let mut url = Url::parse(base).map_err(|error| match hint.as_str() {
        "" => format!("{base:?} is no address: {error}"),
        _ => no_server(),
    })?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err(no_server());
    }
    let path = match url.path().trim_end_matches('/') {
        "" => "/v1".to_owned(),
        path => path.to_owned(),
    };
    url.set_path(&format!("{path}/{name}"));
    Ok(url)
}

#[async_trait]
impl Model for HttpModel {
    async fn complete(&self, request: &ModelRequest) -> Result<ModelReply, ModelError> {
        let asking = Asking::new(&request.reports, &self.model, &self.place);
        asking.ended(self.ask(request).await)
    }

    async fn stream(
        &self,
        request: &ModelRequest,
        hear: Hear<'_>,
    ) -> Result<ModelReply, ModelError> {
        let asking = Asking::new(&request.reports, &self.model, &self.place);
        asking.ended(self.ask_live(request, hear).await)
    }

    fn name(&self) -> &str {
        &self.place
    }

    async fn reach(&self) -> Result<(), ModelError> {
        let mut asked = self.client.get(self.models.clone());
        if let Some(key) = &self.key {
            asked = asked.header(AUTHORIZATION, key.clone());
        }
        let answer = async { asked.send().await.map_err(|error| self.failed(&error)) };
        let time_up = Instant::now() + Duration::from_millis(MODEL_REACH_MS_MAX);
        let answer = self.by(time_up, MODEL_REACH_MS_MAX, answer).await?;
        match answer.status() {
            status if status.is_success() => Ok(()),
            status => Err(ModelError::Unavailable(format!(
                "the model server answered {status}"
            ))),
        }
    }
}

#[cfg(test)]
#[path = "http_tests.rs"]
mod tests;
