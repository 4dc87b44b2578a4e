//! Every environment variable, in one table: it is read here and documented from here.

use holdfast_contract::redact::Redactor;
use holdfast_reliability::config::ReliabilityConfig;
use holdfast_reliability::config::redis::RedisUrl;
use holdfast_reliability::policy::{DeriveKeys, Mode};

use crate::fail::{Failure, Outcome};

/// A variable's row in the reference.
pub(crate) struct Variable {
    pub(crate) name: &'static str,
    pub(crate) values: &'static str,
    pub(crate) meaning: &'static str,
}

pub(crate) const ENABLED: &str = "TOOL_RELIABILITY_ENABLED";
pub(crate) const OPEN_MODE: &str = "TOOL_RELIABILITY_OPEN_MODE";
pub(crate) const DERIVE: &str = "TOOL_RELIABLE_DERIVE_IDEMPOTENCY";

/// The token for tool calls.
pub(crate) const SERVER_TOKEN: &str = "HOLDFAST_SERVER_TOKEN";
/// The token for admin actions.
pub(crate) const ADMIN_TOKEN: &str = "HOLDFAST_ADMIN_TOKEN";
pub(crate) const REDIS_URL: &str = "HOLDFAST_REDIS_URL";
pub(crate) const REDIS_PASSWORD: &str = "HOLDFAST_REDIS_PASSWORD";
/// Where the model's server is.
pub(crate) const MODEL_URL: &str = "HOLDFAST_MODEL_URL";
/// The model's name there.
pub(crate) const MODEL: &str = "HOLDFAST_MODEL";
/// The key of the model's server, unless the configuration names another variable.
pub(crate) const MODEL_KEY: &str = "HOLDFAST_MODEL_KEY";
/// The keys of clients.
pub(crate) const API_KEYS: &str = "HOLDFAST_API_KEYS";

/// The reference table.
pub(crate) const VARIABLES: &[Variable] = &[
    Variable {
        name: "HOLDFAST_CONFIG",
        values: "a file",
        meaning: "The configuration file; `--config` wins over it. Without either, `holdfast.yaml` in the user's configuration directory is read when it is there.",
    },
    Variable {
        name: "HOLDFAST_STATE",
        values: "a directory",
        meaning: "The state directory; `--state` wins over it. Default: `holdfast` in the user's state directory.",
    },
    Variable {
        name: "HOLDFAST_LOG",
        values: "`stderr`, `off` or a file",
        meaning: "Where log events go; `--log` wins over it.",
    },
    Variable {
        name: SERVER_TOKEN,
        values: "32 to 512 signs",
        meaning: "The token that `holdfast serve` asks of callers, instead of the one in a file. No tool sees it.",
    },
    Variable {
        name: "OPENCLAW_GATEWAY_TOKEN",
        values: "a token",
        meaning: "The token of the OpenClaw gateway whose tools are offered; `gateway.tokenEnv` names another variable. No tool sees it.",
    },
    Variable {
        name: "BRAVE_API_KEY",
        values: "a key",
        meaning: "The key for Brave's search; `web.search.apiKeyEnv` names another variable. No tool sees it.",
    },
    Variable {
        name: "HOLDFAST_WEBHOOK_URL",
        values: "an address",
        meaning: "Where messages and approval prompts are posted with `channel.kind: webhook`; `channel.urlEnv` names another variable. No tool sees it.",
    },
    Variable {
        name: ADMIN_TOKEN,
        values: "32 to 512 signs",
        meaning: "The token for admin actions, for `holdfast serve` and for commands with `--server`, instead of the one in a file. No tool sees it.",
    },
    Variable {
        name: MODEL_URL,
        values: "an address",
        meaning: "The model's server, such as `http://127.0.0.1:8000`; `--model-url` wins over it, and it over `executor.modelUrl`.",
    },
    Variable {
        name: MODEL,
        values: "a name",
        meaning: "The model's name, as its server knows it; `--model` wins over it, and it over `executor.model`.",
    },
    Variable {
        name: MODEL_KEY,
        values: "a key",
        meaning: "The key of the model's server; `executor.apiKeyEnv` names another variable. No tool sees it.",
    },
    Variable {
        name: API_KEYS,
        values: "keys of 32 to 512 signs, with commas",
        meaning: "The keys of clients that may ask for completions, besides those in `executor.keysFile`. No tool sees them.",
    },
    Variable {
        name: ENABLED,
        values: "`true` or `false`",
        meaning: "`false` is the kill switch: it takes guard, idempotency, retry, breaker and rate limits out. Permissions, schemas and confinement stay.",
    },
    Variable {
        name: OPEN_MODE,
        values: "`on` (or `enforce`), `shadow` or `off`",
        meaning: "What an open circuit breaker does: refuse calls, only say so, or nothing.",
    },
    Variable {
        name: DERIVE,
        values: "`on` or `off`",
        meaning: "`off`: only calls with a key of their own are deduplicated.",
    },
    Variable {
        name: REDIS_URL,
        values: "`redis://…`, or several with commas",
        meaning: "The Redis server, cluster nodes or sentinels; wins over `reliability.store.redis.url` and `nodes`, and keeps a password out of the file.",
    },
    Variable {
        name: REDIS_PASSWORD,
        values: "a password",
        meaning: "The password for Redis, for addresses that hold none.",
    },
    Variable {
        name: "XDG_CONFIG_HOME",
        values: "a directory",
        meaning: "The user's configuration directory; `~/.config` by default.",
    },
    Variable {
        name: "XDG_STATE_HOME",
        values: "a directory",
        meaning: "The user's state directory; `~/.local/state` by default.",
    },
    Variable {
        name: "USER",
        values: "a name",
        meaning: "Who did it, in the audit log, where `--operator` does not say.",
    },
    Variable {
        name: "HOME",
        values: "a directory",
        meaning: "What `~` stands for.",
    },
    Variable {
        name: "OPENCLAW_STATE_DIR",
        values: "a directory",
        meaning: "Where OpenClaw keeps its sessions and logs; `~/.openclaw` by default.",
    },
    Variable {
        name: "OPENCLAW_HOME",
        values: "a directory",
        meaning: "A home for OpenClaw in place of the user's; `OPENCLAW_STATE_DIR` wins over it.",
    },
    Variable {
        name: "CLAUDE_CONFIG_DIR",
        values: "a directory",
        meaning: "Where Claude Code keeps its sessions; `~/.claude` by default.",
    },
    Variable {
        name: "CODEX_HOME",
        values: "a directory",
        meaning: "Where Codex keeps its sessions; `~/.codex` by default.",
    },
    Variable {
        name: "OTEL_EXPORTER_OTLP_HEADERS",
        values: "`name=value,…`",
        meaning: "Headers for the trace collector besides `observability.otlp.headers`, and winning over them; read only when that section is there. `OTEL_EXPORTER_OTLP_TRACES_HEADERS` is read in its place when set.",
    },
    Variable {
        name: "NO_COLOR",
        values: "anything",
        meaning: "No colours on the terminal.",
    },
];

/// A variable, unless it is empty.
pub(crate) fn get(name: &str) -> Option<String> {
    debug_assert!(
        VARIABLES.iter().any(|row| row.name == name),
        "{name} is not documented"
    );
    named(name)
}

/// The same, also where it is empty: for what must not be taken for unset.
pub(crate) fn as_set(name: &str) -> Option<String> {
    let is_set = std::env::var_os(name).is_some();
    is_set.then(|| get(name).unwrap_or_default())
}

/// A variable that the configuration names, for a secret that has no place in a file.
pub(crate) fn named(name: &str) -> Option<String> {
    std::env::var(name)
        .ok()
        .filter(|value| !value.trim().is_empty())
}

/// The values of all variables whose names say that they are secret; several in one stand with commas.
pub(crate) fn secrets(redactor: &Redactor) -> Vec<String> {
    let is_secret = |name: &str| {
        // `PWD` is where a shell is, and no password.
        !matches!(name, "PWD" | "OLDPWD") && redactor.is_secret_field(name)
    };
    let mut found = Vec::new();
    for (name, value) in std::env::vars_os() {
        if let (Some(name), Some(value)) = (name.to_str(), value.to_str())
            && is_secret(name)
        {
            found.push(value.to_owned());
            found.extend(value.split(',').map(str::to_owned));
        }
    }
    found
}

/// Lets the switches in the environment win over the file.
pub(crate) fn apply_switches(config: &mut ReliabilityConfig) -> Outcome<()> {
    if let Some(text) = get(ENABLED) {
        config.enabled = flag(&text).ok_or_else(|| wrong(ENABLED, "true or false", &text))?;
    }
    if let Some(text) = get(OPEN_MODE) {
        config.open_mode = match (text.trim().to_ascii_lowercase().as_str(), flag(&text)) {
            ("shadow", _) => Mode::Shadow,
            ("enforce", _) | (_, Some(true)) => Mode::Enforce,
            (_, Some(false)) => Mode::Off,
            (_, None) => return Err(wrong(OPEN_MODE, "on (or enforce), shadow or off", &text)),
        };
    }
    if let Some(text) = get(DERIVE) {
        let derive = flag(&text).ok_or_else(|| wrong(DERIVE, "on or off", &text))?;
        config.derive_idempotency = if derive {
            DeriveKeys::On
        } else {
            DeriveKeys::Off
        };
    }
    let redis = &mut config.store.redis;
    if let Some(text) = get(REDIS_URL) {
        let mut urls = text.split(',').map(|url| RedisUrl::new(url.trim()));
        redis.url = urls.next().unwrap_or_default();
        redis.nodes = urls.collect();
    }
    if let Some(password) = get(REDIS_PASSWORD) {
        redis.url = redis.url.with_password(&password);
        for node in &mut redis.nodes {
            *node = node.with_password(&password);
        }
    }
    Ok(())
}

/// On or off; a misspelt kill switch must not be taken for either.
fn flag(text: &str) -> Option<bool> {
    match text.trim().to_ascii_lowercase().as_str() {
        "true" | "on" | "1" | "yes" => Some(true),
        "false" | "off" | "0" | "no" => Some(false),
        _ => None,
    }
}

fn wrong(name: &str, words: &str, text: &str) -> Failure {
    Failure::usage(format!("{name} has to be {words}, not {text:?}"))
}
