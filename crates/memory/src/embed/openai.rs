//! A server that speaks `OpenAI`'s `/v1/embeddings`.

use std::time::Duration;

use async_trait::async_trait;
use holdfast_contract::memory::MEMORY_DIMENSIONS_MAX;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use reqwest::{Client, Response, Url};
use serde::{Deserialize, Serialize};

use super::{EMBEDDING_RESPONSE_BYTES_MAX, EmbedError, Embedder, EmbeddingConfig, Purpose};

/// What is shown of a refusal.
const REFUSAL_CHARS_MAX: usize = 200;

/// The client of one server and one model.
#[derive(Debug)]
pub struct OpenAiEmbedder {
    client: Client,
    url: Url,
    key: Option<HeaderValue>,
    label: String,
    config: EmbeddingConfig,
}

#[derive(Serialize)]
struct Request<'a> {
    model: &'a str,
    input: Vec<String>,
    encoding_format: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    dimensions: Option<usize>,
}

#[derive(Deserialize)]
struct Answer {
    data: Vec<Item>,
}

#[derive(Deserialize)]
struct Item {
    index: Option<usize>,
    embedding: Vec<f32>,
}

impl OpenAiEmbedder {
    /// A client with these settings. The key is the value of the variable that they name.
    pub fn new(config: EmbeddingConfig, api_key: Option<&str>) -> Result<Self, String> {
        if let Some((field, reason)) = config.problems().into_iter().next() {
            return Err(format!("{field}: {reason}"));
        }
        let key = api_key
            .map(|key| {
                let mut value = HeaderValue::from_str(&format!("Bearer {}", key.trim()))
                    .map_err(|_| "the key holds what no header can hold".to_owned())?;
                value.set_sensitive(true);
                Ok::<_, String>(value)
            })
            .transpose()?;
        let client = holdfast_client::builder()
            // What the model client may speak was not meant for others.
            .http1_only()
            .timeout(Duration::from_millis(config.timeout_ms))
            .build()
            .map_err(|error| format!("the HTTP client can not be built: {error}"))?;
        let label = match config.dimensions {
            Some(count) => format!("{}@{count}", config.model),
            None => config.model.clone(),
        };
        Ok(Self {
            client,
            url: config.url()?,
            key,
            label,
            config,
        })
    }

    fn failed(&self, error: &reqwest::Error) -> EmbedError {
        if error.is_timeout() {
            return EmbedError::TimedOut(self.config.timeout_ms);
        }
        // The innermost reason says the most: "connection refused" rather than "error sending".
        let mut reason: &dyn std::error::Error = error;
        while let Some(source) = reason.source() {
            reason = source;
        }
        EmbedError::Unreachable(reason.to_string())
    }

    async fn ask(&self, input: Vec<String>) -> Result<Vec<u8>, EmbedError> {
        let request = Request {
            model: &self.config.model,
            input,
            encoding_format: "float",
            dimensions: self.config.dimensions,
        };
        let body = serde_json::to_vec(&request)
            .map_err(|error| EmbedError::Nonsense(error.to_string()))?;
        let mut asked = self
            .client
            .post(self.url.clone())
            .header(CONTENT_TYPE, "application/json")
            .body(body);
        if let Some(key) = &self.key {
            asked = asked.header(AUTHORIZATION, key.clone());
        }
        let answer = asked.send().await.map_err(|error| self.failed(&error))?;
        let status = answer.status();
        let body = self.body(answer).await?;
        if status.is_success() {
            return Ok(body);
        }
        Err(EmbedError::Refused {
            status: status.as_u16(),
            message: refusal(&body),
        })
    }

    async fn body(&self, mut answer: Response) -> Result<Vec<u8>, EmbedError> {
        let mut body = Vec::new();
        while let Some(part) = answer.chunk().await.map_err(|error| self.failed(&error))? {
            if body.len() + part.len() > EMBEDDING_RESPONSE_BYTES_MAX {
                return Err(EmbedError::Nonsense(format!(
                    "it is larger than {EMBEDDING_RESPONSE_BYTES_MAX} bytes"
                )));
            }
            body.extend_from_slice(&part);
        }
        Ok(body)
    }
}

/// The server's own words: the message of an `OpenAI` error, else the beginning of the body.
fn refusal(body: &[u8]) -> String {
    let value: Option<serde_json::Value> = serde_json::from_slice(body).ok();
    let message = value
        .as_ref()
        .and_then(|value| value.pointer("/error/message").or(value.get("message")))
        .and_then(serde_json::Value::as_str)
        .map_or_else(|| String::from_utf8_lossy(body).into_owned(), str::to_owned);
    message
        .chars()
        .take(REFUSAL_CHARS_MAX)
        .map(|sign| if sign.is_control() { ' ' } else { sign })
        .collect::<String>()
        .trim()
        .to_owned()
}

/// The vectors in the order of their texts.
fn read(body: &[u8], count: usize) -> Result<Vec<Vec<f32>>, EmbedError> {
    let nonsense = |reason: String| EmbedError::Nonsense(reason);
    let answer: Answer =
        serde_json::from_slice(body).map_err(|error| nonsense(error.to_string()))?;
    if answer.data.len() != count {
        return Err(nonsense(format!(
            "{} vectors came back for {count} texts",
            answer.data.len()
        )));
    }
    let mut vectors: Vec<Option<Vec<f32>>> = vec![None; count];
    for (place, item) in answer.data.into_iter().enumerate() {
        let index = item.index.unwrap_or(place);
        let slot = vectors
            .get_mut(index)
            .filter(|slot| slot.is_none())
            .ok_or_else(|| nonsense(format!("index {index} is out of place")))?;
        check(&item.embedding).map_err(nonsense)?;
        *slot = Some(item.embedding);
    }
    let vectors: Vec<Vec<f32>> = vectors.into_iter().flatten().collect();
    if vectors
        .windows(2)
        .any(|pair| pair[0].len() != pair[1].len())
    {
        return Err(nonsense("the vectors are not of one size".to_owned()));
    }
    Ok(vectors)
}

fn check(vector: &[f32]) -> Result<(), String> {
    if vector.len() > MEMORY_DIMENSIONS_MAX {
        return Err(format!("a vector has {} numbers", vector.len()));
    }
    match crate::vector::Code::of(vector) {
        Some(_) => Ok(()),
        None => Err("a vector has no direction".to_owned()),
    }
}

#[async_trait]
impl Embedder for OpenAiEmbedder {
    fn model(&self) -> &str {
        &self.label
    }

    fn batch_max(&self) -> usize {
        self.config.batch_size
    }

    async fn embed(&self, texts: &[String], purpose: Purpose) -> Result<Vec<Vec<f32>>, EmbedError> {
        let prefix = match purpose {
            Purpose::Record => &self.config.record_prefix,
            Purpose::Query => &self.config.query_prefix,
        };
        let mut vectors = Vec::with_capacity(texts.len());
        for batch in texts.chunks(self.config.batch_size.max(1)) {
            let input = batch.iter().map(|text| format!("{prefix}{text}")).collect();
            let body = self.ask(input).await?;
            vectors.extend(read(&body, batch.len())?);
        }
        Ok(vectors)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_put_in_order_and_checked() {
        let two = br#"{"data":[{"index":1,"embedding":[0,1]},{"index":0,"embedding":[1,0]}]}"#;
        assert_eq!(read(two, 2).unwrap(), [vec![1.0, 0.0], vec![0.0, 1.0]]);
        let plain = br#"{"object":"list","data":[{"embedding":[1.5]}],"usage":{}}"#;
        assert_eq!(read(plain, 1).unwrap(), [vec![1.5]]);
        for bad in [
            "",
            "[]",
            r#"{"data":[]}"#,
            r#"{"data":[{"embedding":[0,0]}]}"#,
            r#"{"data":[{"embedding":[]}]}"#,
            r#"{"data":[{"embedding":[1e39]}]}"#,
            r#"{"data":[{"index":7,"embedding":[1]}]}"#,
            r#"{"data":[{"embedding":"AAAA"}]}"#,
        ] {
            assert!(
                matches!(read(bad.as_bytes(), 1), Err(EmbedError::Nonsense(_))),
                "{bad}"
            );
        }
        let twice = br#"{"data":[{"index":0,"embedding":[1]},{"index":0,"embedding":[1]}]}"#;
        assert!(read(twice, 2).is_err());
        let uneven = br#"{"data":[{"embedding":[1]},{"embedding":[1,2]}]}"#;
        assert!(read(uneven, 2).is_err());
    }

    #[test]
    fn refusals_are_short_and_harmless() {
        assert_eq!(
            refusal(br#"{"error":{"message":"no such model"}}"#),
            "no such model"
        );
        assert_eq!(refusal(b"Bad\x1b[31m Gateway\n"), "Bad [31m Gateway");
        assert_eq!(
            refusal("x".repeat(1000).as_bytes()).len(),
            REFUSAL_CHARS_MAX
        );
    }
}
