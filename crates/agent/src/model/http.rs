//! A server that speaks chat completions: vLLM, llama.cpp, Ollama, LM Studio and their like.

use std::time::Duration;

use async_trait::async_trait;
use holdfast_contract::redact::REDACTED;
use holdfast_contract::{Clock, SystemClock};
use holdfast_reliability::retry::parse_retry_after;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use reqwest::{Client, Response, Url, redirect};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Value, json};

use super::events::Events;
use super::report::Asking;
use super::{
    Hear, Http2, MODEL_REACH_MS_MAX, MODEL_REPLY_BYTES_MAX, Model, ModelError, ModelReply,
    ModelRequest, wire,
};

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
        let mut client = Client::builder()
            // A key goes where it was meant to go, and nowhere that a server sends us on to.
            .redirect(redirect::Policy::none());
        if config.http2 == Http2::Always {
            client = client.http2_prior_knowledge();
        }
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
            .timeout(Duration::from_millis(request.timeout_ms))
            .header(CONTENT_TYPE, "application/json")
            .body(body);
        if let Some(key) = &self.key {
            asked = asked.header(AUTHORIZATION, key.clone());
        }
        let failed = |error: reqwest::Error| self.failed(&error, request.timeout_ms);
        asked.send().await.map_err(failed)
    }

    async fn ask(&self, request: &ModelRequest) -> Result<ModelReply, ModelError> {
        let answer = self.send(request, &[]).await?;
        self.read(request, answer).await
    }

    async fn read(
        &self,
        request: &ModelRequest,
        answer: Response,
    ) -> Result<ModelReply, ModelError> {
        let failed = |error: reqwest::Error| self.failed(&error, request.timeout_ms);
        let status = answer.status();
        let wait_ms = retry_after_ms(&answer);
        let body = whole(answer).await?.map_err(failed)?;
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
        let mut answer = self.send(request, &more).await?;
        let kind = answer.headers().get(CONTENT_TYPE);
        let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        if !answer.status().is_success() || !kind.starts_with("text/event-stream") {
            return self.read(request, answer).await;
        }
        let mut events = Events::default();
        let mut bytes = 0;
        loop {
            match answer.chunk().await {
                Ok(Some(part)) if bytes + part.len() > MODEL_REPLY_BYTES_MAX => {
                    return Err(too_large());
                }
                Ok(Some(part)) => {
                    bytes += part.len();
                    let fed = events.feed(&part, hear);
                    fed.map_err(|error| self.without_key(error))?;
                    // Some servers leave the connection open after their last word.
                    if events.is_done() {
                        return events.finish(hear);
                    }
                }
                // Nothing is missing from an answer that breaks off after its end.
                Err(error) if !events.is_whole() => {
                    return Err(self.failed(&error, request.timeout_ms));
                }
                Ok(None) | Err(_) => return events.finish(hear),
            }
        }
    }

    /// Some servers repeat the key that they do not know.
    fn without_key(&self, error: ModelError) -> ModelError {
        let key = self.key.as_ref().and_then(|key| key.to_str().ok());
        match key.and_then(|key| key.strip_prefix("Bearer ")) {
            Some(key) if !key.is_empty() => error.in_words(|why| why.replace(key, REDACTED)),
            _ => error,
        }
    }

    fn failed(&self, error: &reqwest::Error, timeout_ms: u64) -> ModelError {
        let place = &self.place;
        if error.is_timeout() {
            return ModelError::Unavailable(format!(
                "{place} did not answer within {timeout_ms} ms"
            ));
        }
        // The innermost reason says the most: "connection refused" rather than "error sending".
        let mut reason: &dyn std::error::Error = error;
        while let Some(source) = reason.source() {
            reason = source;
        }
        ModelError::Unavailable(format!("{place}: {reason}"))
    }
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
    let mut url = Url::parse(base).map_err(|error| format!("{base:?} is no address: {error}"))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err(format!("{base:?} is no address of an HTTP server"));
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
        let mut asked = self
            .client
            .get(self.models.clone())
            .timeout(Duration::from_millis(MODEL_REACH_MS_MAX));
        if let Some(key) = &self.key {
            asked = asked.header(AUTHORIZATION, key.clone());
        }
        let failed = |error: reqwest::Error| self.failed(&error, MODEL_REACH_MS_MAX);
        let answer = asked.send().await.map_err(failed)?;
        match answer.status() {
            status if status.is_success() => Ok(()),
            status => Err(ModelError::Unavailable(format!(
                "the model server answered {status}"
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANSWER: &str = "data: {\"choices\": [{\"index\": 0, \"delta\": {\"content\": \"Yes.\"}, \"finish_reason\": \"stop\"}]}\n\n";

    /// A server that gives this answer to one question, then waits, or resets the connection.
    async fn answered(answer: String, resets: bool, key: &str) -> Result<ModelReply, ModelError> {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base_url = format!("http://{}", listener.local_addr().unwrap());
        let heard = std::sync::Arc::new(tokio::sync::Notify::new());
        let heard_by_client = heard.clone();
        let served = tokio::spawn(async move {
            let (mut client, _) = listener.accept().await.unwrap();
            let mut asked = vec![0; 16 * 1024];
            let _ = client.read(&mut asked).await.unwrap();
            client.write_all(answer.as_bytes()).await.unwrap();
            if resets {
                client.set_zero_linger().unwrap();
                // A reset throws away what the client has not read yet.
                heard_by_client.notified().await;
            } else {
                std::future::pending::<()>().await;
            }
        });
        let model = HttpModel::new(&HttpModelConfig {
            base_url,
            model: "m".to_owned(),
            api_key: Some(key.to_owned()),
            http2: Http2::default(),
        });
        let request = ModelRequest {
            body: json!({"messages": []}),
            timeout_ms: 60_000,
            reports: super::super::Reports::default(),
        };
        let mut hear = |_: super::super::Piece<'_>| heard.notify_one();
        let reply = model.unwrap().stream(&request, &mut hear).await;
        served.abort();
        reply
    }

    /// One that waited for the connection's end would run into the test's own time limit.
    #[tokio::test]
    async fn a_stream_ends_where_its_server_says_so() {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
        for (rest, resets) in [("data: [DONE]\n\n", false), ("", true)] {
            let answer = format!("{head}{ANSWER}{rest}");
            let reply = answered(answer, resets, "k").await.unwrap();
            assert_eq!(reply.content, "Yes.", "{resets}");
        }
        let half = ANSWER.replace("\"stop\"", "null");
        let broken = answered(format!("{head}{half}"), true, "k").await;
        assert!(
            matches!(broken, Err(ModelError::Unavailable(_))),
            "{broken:?}"
        );
    }

    #[tokio::test]
    async fn a_server_that_is_busy_says_when_and_keeps_the_key_to_itself() {
        let body = "{\"error\": {\"message\": \"not for correct-horse-42\"}}";
        let answer = |status: &str| {
            let length = body.len();
            format!("HTTP/1.1 {status}\r\nretry-after: 4\r\ncontent-length: {length}\r\n\r\n{body}")
        };
        let busy = answered(answer("429 Too Many Requests"), false, "correct-horse-42").await;
        let error = busy.unwrap_err();
        assert_eq!(error.retry_after_ms(), Some(4_000));
        assert_eq!(
            error.to_string(),
            "the model server answered 429: not for [redacted]"
        );
        let barred = answered(answer("401 Unauthorized"), false, "correct-horse-42").await;
        let error = barred.unwrap_err();
        assert!(
            matches!(&error, ModelError::Barred(why) if !why.contains("horse")),
            "{error}"
        );
    }

    #[test]
    fn a_server_is_asked_by_its_own_name_and_told_what_else_is_wanted() {
        let body = json!({"model": "gpt-oss", "messages": [], "stream": false, "seed": 7});
        let sent = |more: &[(&str, Value)]| {
            let amended = Amended {
                body: &body,
                model: "openai/gpt-oss-20b",
                more,
            };
            serde_json::to_string(&amended).unwrap()
        };
        let plain = sent(&[]);
        assert_eq!(plain.matches("\"model\"").count(), 1, "{plain}");
        let plain: Value = serde_json::from_str(&plain).unwrap();
        let named =
            json!({"model": "openai/gpt-oss-20b", "messages": [], "stream": false, "seed": 7});
        assert_eq!(plain, named);
        let live = sent(&[("stream", Value::Bool(true)), ("top_k", json!(1))]);
        assert_eq!(live.matches("\"stream\"").count(), 1, "{live}");
        let live: Value = serde_json::from_str(&live).unwrap();
        assert_eq!((&live["stream"], &live["top_k"]), (&json!(true), &json!(1)));
    }

    #[test]
    fn addresses_are_read_as_people_write_them() {
        for (base, url) in [
            ("http://a:8000", "http://a:8000/v1/chat/completions"),
            ("http://a:8000/", "http://a:8000/v1/chat/completions"),
            ("http://a/v1/", "http://a/v1/chat/completions"),
            ("https://a/api/v3", "https://a/api/v3/chat/completions"),
        ] {
            assert_eq!(endpoint(base, "chat/completions").unwrap().as_str(), url);
        }
        for wrong in ["spark:8000", "file:///x", "", "http://"] {
            assert!(endpoint(wrong, "models").is_err(), "{wrong}");
        }
    }
}
