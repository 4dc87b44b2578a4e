//! `memory.embeddings` in the configuration.

use holdfast_contract::memory::{MEMORY_DIMENSIONS_MAX, MEMORY_NAME_BYTES_MAX};
use reqwest::Url;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{EMBEDDING_BATCH_DEFAULT, EMBEDDING_BATCH_MAX, EMBEDDING_TIMEOUT_MS};

/// The longest time limit that can be configured.
const TIMEOUT_MS_MAX: u64 = 600_000;

/// The embedding model: any server that speaks `OpenAI`'s `/v1/embeddings`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EmbeddingConfig {
    /// Where it is, such as `http://127.0.0.1:8080/v1`. Without a path, `/v1` is added.
    pub base_url: String,
    /// The model's name, as the server knows it.
    pub model: String,
    /// The environment variable that holds the key, when the server wants one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_key_env: Option<String>,
    /// How many numbers a vector should have, for models that let one choose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dimensions: Option<usize>,
    /// Texts in one request.
    #[serde(default = "batch_size_default")]
    pub batch_size: usize,
    /// How long one request may take, in milliseconds. Then a record is kept without a vector, and
    /// a search goes by words alone.
    #[serde(default = "timeout_ms_default")]
    pub timeout_ms: u64,
    /// What goes in front of a query, for models that were trained so (`query: `).
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub query_prefix: String,
    /// What goes in front of a record's text (`passage: `).
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub record_prefix: String,
}

fn batch_size_default() -> usize {
    EMBEDDING_BATCH_DEFAULT
}

fn timeout_ms_default() -> u64 {
    EMBEDDING_TIMEOUT_MS
}

impl EmbeddingConfig {
    /// A model with the default settings.
    pub fn new(base_url: impl Into<String>, model: impl Into<String>) -> Self {
        Self {
            base_url: base_url.into(),
            model: model.into(),
            api_key_env: None,
            dimensions: None,
            batch_size: EMBEDDING_BATCH_DEFAULT,
            timeout_ms: EMBEDDING_TIMEOUT_MS,
            query_prefix: String::new(),
            record_prefix: String::new(),
        }
    }

    /// What is wrong with the settings: which one, and why.
    pub fn problems(&self) -> Vec<(&'static str, String)> {
        let mut problems = Vec::new();
        match self.url() {
            Err(reason) => problems.push(("baseUrl", reason)),
            Ok(url) => {
                if self.api_key_env.is_some() && url.scheme() == "http" && !is_loopback(&url) {
                    problems.push((
                        "baseUrl",
                        "a key would travel in the clear: use https, or drop apiKeyEnv".to_owned(),
                    ));
                }
            }
        }
        if self.model.is_empty() || self.model.len() > MEMORY_NAME_BYTES_MAX {
            problems.push(("model", "it has to be the name of a model".to_owned()));
        }
        let in_range = |value: usize, max: usize| (1..=max).contains(&value);
        if self
            .dimensions
            .is_some_and(|count| !in_range(count, MEMORY_DIMENSIONS_MAX))
        {
            let reason = format!("it has to be from 1 to {MEMORY_DIMENSIONS_MAX}");
            problems.push(("dimensions", reason));
        }
        if !in_range(self.batch_size, EMBEDDING_BATCH_MAX) {
            let reason = format!("it has to be from 1 to {EMBEDDING_BATCH_MAX}");
            problems.push(("batchSize", reason));
        }
        if !(1..=TIMEOUT_MS_MAX).contains(&self.timeout_ms) {
            let reason = format!("it has to be from 1 to {TIMEOUT_MS_MAX}");
            problems.push(("timeoutMs", reason));
        }
        problems
    }

    /// Where requests go.
    pub(super) fn url(&self) -> Result<Url, String> {
        let mut url =
            Url::parse(self.base_url.trim()).map_err(|error| format!("it is no URL: {error}"))?;
        if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
            return Err("it has to begin with http:// or https://".to_owned());
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err("it must not hold a password: name a variable in apiKeyEnv".to_owned());
        }
        let path = match url.path().trim_end_matches('/') {
            "" => "/v1/embeddings".to_owned(),
            base => format!("{base}/embeddings"),
        };
        url.set_path(&path);
        Ok(url)
    }
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost"
        || bare
            .parse::<std::net::IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_endpoint_is_found_from_the_base() {
        for (base, expected) in [
            (
                "http://127.0.0.1:8080",
                "http://127.0.0.1:8080/v1/embeddings",
            ),
            (
                "http://127.0.0.1:8080/",
                "http://127.0.0.1:8080/v1/embeddings",
            ),
            (
                "https://api.example.org/v1",
                "https://api.example.org/v1/embeddings",
            ),
            (
                "https://example.org/llm/v2/",
                "https://example.org/llm/v2/embeddings",
            ),
        ] {
            let url = EmbeddingConfig::new(base, "m").url().unwrap();
            assert_eq!(url.as_str(), expected);
        }
    }

    #[test]
    fn bad_settings_are_named() {
        let good = EmbeddingConfig::new("http://[::1]:1", "m");
        let keyed = |base: &str| EmbeddingConfig {
            api_key_env: Some("KEY".to_owned()),
            ..EmbeddingConfig::new(base, "m")
        };
        assert_eq!(good.problems(), []);
        assert_eq!(keyed("http://localhost").problems(), []);
        assert_eq!(keyed("http://[::1]:9").problems(), []);
        assert_eq!(keyed("https://example.org").problems(), []);
        let cases = [
            ("baseUrl", keyed("http://example.org")),
            ("baseUrl", EmbeddingConfig::new("nonsense", "m")),
            ("baseUrl", EmbeddingConfig::new("ftp://example.org", "m")),
            (
                "baseUrl",
                EmbeddingConfig::new("https://me:secret@example.org", "m"),
            ),
            ("model", EmbeddingConfig::new("http://[::1]", "")),
            (
                "dimensions",
                EmbeddingConfig {
                    dimensions: Some(0),
                    ..good.clone()
                },
            ),
            (
                "batchSize",
                EmbeddingConfig {
                    batch_size: 0,
                    ..good.clone()
                },
            ),
            (
                "timeoutMs",
                EmbeddingConfig {
                    timeout_ms: 0,
                    ..good
                },
            ),
        ];
        for (field, config) in cases {
            let fields: Vec<_> = config.problems().iter().map(|(field, _)| *field).collect();
            assert_eq!(fields, [field], "{config:?}");
        }
    }
}
