//! `web:` and `gateway:` in the configuration.

use std::collections::BTreeMap;

use holdfast_contract::{ChannelLevel, PermissionTier};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::client::Endpoint;

/// What tools may reach on the web, and whom they ask.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct WebConfig {
    /// Hosts, as `host` (ports 80 and 443) or `host:port`, that may be reached although they are not public.
    pub allowed_hosts: Vec<String>,
    /// Whom `web_search` asks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub search: Option<SearchConfig>,
    /// Hits of a search at most; never more than the limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub search_results_max: Option<usize>,
    /// Characters of a page at most; never more than the limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fetch_chars_max: Option<usize>,
}

/// Whom `web_search` asks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    tag = "provider",
    rename_all = "camelCase",
    rename_all_fields = "camelCase",
    deny_unknown_fields
)]
pub enum SearchConfig {
    /// A `SearXNG` of one's own, with its JSON format switched on.
    Searxng {
        /// Its address, for example `http://127.0.0.1:8080`.
        url: String,
    },
    /// Brave's search API.
    Brave {
        /// The variable that holds the key.
        #[serde(default = "brave_key")]
        api_key_env: String,
        /// Another address than Brave's own.
        #[serde(default = "brave_url")]
        url: String,
    },
    /// The `web_search` of the `OpenClaw` gateway.
    Gateway {},
}

fn brave_key() -> String {
    "BRAVE_API_KEY".to_owned()
}

fn brave_url() -> String {
    "https://api.search.brave.com".to_owned()
}

/// Where messages and approval prompts go.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    tag = "kind",
    rename_all = "camelCase",
    rename_all_fields = "camelCase",
    deny_unknown_fields
)]
pub enum ChannelConfig {
    /// The terminal that a command runs in.
    Terminal {},
    /// An address that takes `{"text": …}`.
    Webhook {
        /// The variable that holds the address, which is often a secret.
        #[serde(default = "webhook_variable")]
        url_env: String,
        /// How far sessions on it may go.
        #[serde(default = "elevated")]
        level: ChannelLevel,
    },
    /// The tool `message` of the `OpenClaw` gateway.
    Gateway {
        /// Its arguments besides the text: whom, and on which surface.
        #[serde(default)]
        to: Map<String, Value>,
        /// How far sessions on it may go.
        #[serde(default = "elevated")]
        level: ChannelLevel,
    },
}

fn webhook_variable() -> String {
    "HOLDFAST_WEBHOOK_URL".to_owned()
}

fn elevated() -> ChannelLevel {
    ChannelLevel::Elevated
}

/// The `OpenClaw` gateway whose tools are offered here too.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GatewayConfig {
    /// Its address, for example `http://127.0.0.1:18789`.
    pub url: String,
    /// The variable that holds its token.
    #[serde(default = "token_variable")]
    pub token_env: String,
    /// The session there that calls belong to; the gateway's main one unless set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_key: Option<String>,
    /// The agent there on whose behalf they are made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// Its tools that are offered: `browser`, `canvas` and `nodes` under these names, any other as
    /// `gateway_NAME`.
    #[serde(default)]
    pub tools: BTreeMap<String, GatewayToolConfig>,
}

/// The variable that holds a gateway's token unless another is named.
pub fn token_variable() -> String {
    "OPENCLAW_GATEWAY_TOKEN".to_owned()
}

/// One tool of the gateway. What is not said is taken from what is known of it; a tool that nobody
/// declared is of the System tier.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct GatewayToolConfig {
    /// For the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The trust a call needs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tier: Option<PermissionTier>,
    /// For `message`: whom it may write to unasked, as `target` or `channel:target`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub recipients: Vec<String>,
}

/// What is wrong with an address.
fn url_problem(text: &str) -> Option<String> {
    match reqwest::Url::parse(text) {
        Ok(url) if matches!(url.scheme(), "http" | "https") && url.has_host() => None,
        Ok(_) => Some(format!("{text:?} has to be an http or https address")),
        Err(error) => Some(format!("{text:?} is no address: {error}")),
    }
}

impl WebConfig {
    /// The hosts that may be reached although they are not public.
    pub fn allowed(&self) -> Result<Vec<Endpoint>, String> {
        let hosts = self.allowed_hosts.iter();
        hosts.map(|host| Endpoint::parse(host)).collect()
    }

    /// What is wrong with the settings: which, and why.
    pub fn problems(&self) -> Vec<(&'static str, String)> {
        let mut problems = Vec::new();
        for host in &self.allowed_hosts {
            if let Err(why) = Endpoint::parse(host) {
                problems.push(("allowedHosts", why));
            }
        }
        if let Some(SearchConfig::Searxng { url } | SearchConfig::Brave { url, .. }) = &self.search
        {
            problems.extend(url_problem(url).map(|why| ("search.url", why)));
        }
        problems
    }
}

impl GatewayConfig {
    /// What is wrong with the settings: which, and why.
    pub fn problems(&self) -> Vec<(&'static str, String)> {
        let mut problems: Vec<(&str, String)> = url_problem(&self.url)
            .map(|why| ("url", why))
            .into_iter()
            .collect();
        let named = [
            ("sessionKey", &self.session_key),
            ("agentId", &self.agent_id),
        ];
        for (field, value) in named {
            if value.as_ref().is_some_and(|value| value.trim().is_empty()) {
                problems.push((field, "has to be a name, or be left out".to_owned()));
            }
        }
        for name in self.tools.keys() {
            let is_name = |sign: char| sign.is_ascii_alphanumeric() || matches!(sign, '_' | '-');
            if name.is_empty() || !name.chars().all(is_name) {
                problems.push(("tools", format!("{name:?} is no tool's name")));
            }
        }
        problems
    }
}
