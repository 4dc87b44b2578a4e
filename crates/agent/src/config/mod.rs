//! `executor.yaml`: read as written, held against the table of its keys, then made into settings.
//!
//! | module | what it does |
//! |---|---|
//! | [`table`], `rows` | every key, its kind, its variables, its meaning and whether it is used |
//! | `yaml` | values that know their line |
//! | `expand` | `${NAME}` |
//! | [`kind`] | what a value may be |
//! | `read` | file and environment, with every problem there is |
//! | `made` | the settings |

mod expand;
pub mod kind;
mod made;
mod read;
mod rows;
pub mod table;
mod yaml;

use std::collections::BTreeMap;
use std::fmt;

pub use expand::expand;
pub use made::PROMPT_FILE_BYTES_MAX;
pub use yaml::explained;

use crate::model::Http2;
use crate::settings::RunSettings;

/// The section of such a file that holds the settings of everything else.
pub const OWN_SECTION: &str = "holdfast";
const EXECUTOR: &str = "executor";
/// Sections that no other file has.
const SECTIONS: [&str; 5] = ["parser", "http_server", "models", "logging", "tools"];

/// Where variables are looked up.
pub trait Environment {
    /// One of them.
    fn get(&self, name: &str) -> Option<String>;
    /// All of them.
    fn all(&self) -> Vec<(String, String)>;
}

impl Environment for BTreeMap<String, String> {
    fn get(&self, name: &str) -> Option<String> {
        BTreeMap::get(self, name).cloned()
    }

    fn all(&self) -> Vec<(String, String)> {
        self.iter()
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    }
}

/// The variables of this process.
#[derive(Debug, Clone, Copy, Default)]
pub struct ProcessEnvironment;

impl Environment for ProcessEnvironment {
    fn get(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }

    fn all(&self) -> Vec<(String, String)> {
        let text = |name: std::ffi::OsString| name.into_string().ok();
        std::env::vars_os()
            .filter_map(|(name, value)| Some((text(name)?, text(value)?)))
            .collect()
    }
}

/// Something that is wrong with a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The line, from 1; none for a variable, or for what the file does not have.
    pub line: Option<u64>,
    /// The key or the variable; empty when it is the file as a whole.
    pub key: String,
    /// What is wrong with it.
    pub reason: String,
    /// What may have been meant.
    pub hint: Option<String>,
}

impl Problem {
    fn at(line: u64, key: impl Into<String>, reason: impl Into<String>) -> Self {
        Self {
            line: Some(line),
            key: key.into(),
            reason: reason.into(),
            hint: None,
        }
    }

    fn plain(reason: String) -> Self {
        Self {
            line: None,
            key: String::new(),
            reason,
            hint: None,
        }
    }

    fn variable(name: &str, reason: impl Into<String>) -> Self {
        Self {
            line: None,
            key: name.to_owned(),
            reason: reason.into(),
            hint: None,
        }
    }

    fn hint(mut self, meant: Option<String>) -> Self {
        self.hint = meant.map(|name| format!("did you mean {name:?}?"));
        self
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(out, "line {line}: ")?;
        }
        if !self.key.is_empty() {
            write!(out, "{} ", self.key)?;
        }
        out.write_str(&self.reason)?;
        match &self.hint {
            Some(hint) => write!(out, "; {hint}"),
            None => Ok(()),
        }
    }
}

/// A text that is not shown.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct SecretText(String);

impl SecretText {
    /// The text, for whom it is meant.
    pub fn reveal(&self) -> Option<&str> {
        Some(self.0.trim()).filter(|text| !text.is_empty())
    }
}

impl From<String> for SecretText {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl fmt::Debug for SecretText {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(if self.0.is_empty() {
            "none"
        } else {
            "[a secret]"
        })
    }
}

/// A model as clients name it.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelSettings {
    /// Its servers, in the order in which they are asked.
    pub upstreams: Vec<String>,
    /// Its name, as they know it.
    pub model: String,
    /// The key that they want.
    pub api_key: SecretText,
    /// When HTTP/2 is spoken with them.
    pub http2: Http2,
    /// The rules of its runs.
    pub run: RunSettings,
}

/// The settings of the HTTP server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpSettings {
    /// The port.
    pub port: u16,
    /// The address.
    pub bind: String,
    /// How long a request may take to arrive.
    pub read_timeout_ms: u64,
    /// How long an answer may take.
    pub write_timeout_ms: u64,
    /// How long a connection may be idle.
    pub idle_timeout_ms: u64,
    /// How long the end waits for requests under way.
    pub shutdown_timeout_ms: u64,
}

/// What is logged, how and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogSettings {
    /// `debug`, `info`, `warn` or `error`.
    pub level: String,
    /// `json` or `text`; none for what suits whoever reads it.
    pub format: Option<String>,
    /// `stdout`, `stderr` or a file.
    pub output: String,
    /// Where the pages of errors go.
    pub error_dir: String,
    /// Their name; `YYYY-MM-DD` in it stands for the day.
    pub error_filename: String,
}

/// What the tools may do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolSettings {
    /// The tools that are offered; none for all.
    pub enabled: Option<Vec<String>>,
    /// How long a call may take.
    pub default_timeout_ms: u64,
    /// The same by tool.
    pub timeouts_ms: BTreeMap<String, u64>,
    /// Hits of a search.
    pub search_results_max: u64,
    /// Characters of a page.
    pub fetch_chars_max: u64,
    /// `markdown` or `text`.
    pub fetch_mode: String,
    /// Commands that may run; all when empty.
    pub allowed_commands: Vec<String>,
    /// Commands that may not run.
    pub blocked_commands: Vec<String>,
}

/// A key that was set, for people who look at it.
#[derive(Debug, Clone, PartialEq)]
pub struct Given {
    /// The key.
    pub key: String,
    /// What it holds; of a secret only that there is one.
    pub value: serde_json::Value,
    /// The line of the file that set it; none for a variable.
    pub line: Option<u64>,
}

/// A configuration that can be used.
#[derive(Debug, Clone, PartialEq)]
pub struct ExecutorConfig {
    /// The models by the names that clients use.
    pub models: BTreeMap<String, ModelSettings>,
    /// The gateway whose tools are offered.
    pub gateway_url: Option<String>,
    /// Its token.
    pub gateway_token: SecretText,
    /// The HTTP server.
    pub http: HttpSettings,
    /// The log.
    pub log: LogSettings,
    /// The tools.
    pub tools: ToolSettings,
    /// What is odd, and goes on all the same.
    pub warnings: Vec<String>,
    /// What the file and the variables set.
    pub given: Vec<Given>,
}

impl ExecutorConfig {
    /// Reads a configuration. Files that it names are looked for beside `dir`; one that is not
    /// there is a warning, and the built-in text is used. Every problem is in the error.
    pub fn read(
        text: &str,
        dir: &std::path::Path,
        environment: &dyn Environment,
    ) -> Result<Self, Vec<Problem>> {
        let (values, mut problems) = read::collect(text, environment);
        let made = made::Maker::new(&values, dir).make(&mut problems);
        if problems.is_empty() {
            Ok(made)
        } else {
            Err(problems)
        }
    }

    /// Whether a file is one of these, and not of another kind: it has a section that only these
    /// have, or a key.
    pub fn is_meant_by(text: &str) -> bool {
        match yaml::read(text) {
            Ok(Some(top)) => is_meant(&top.value),
            Ok(None) => false,
            // Then its kind is told by its words, so that the right reader says what is wrong.
            Err(_) => text.lines().any(|line| {
                line.contains("gpt_oss_")
                    || SECTIONS
                        .iter()
                        .any(|name| line.starts_with(&format!("{name}:")))
            }),
        }
    }
}

fn is_meant(top: &yaml::Yaml) -> bool {
    let yaml::Yaml::Map(sections) = top else {
        return false;
    };
    let is_ours = |name: &str| SECTIONS.contains(&name) || name == OWN_SECTION;
    // Beside a section of the other kind a name with the wrong signs is a slip in that kind.
    let has_others = sections
        .iter()
        .any(|(name, _)| name.value != EXECUTOR && !is_ours(&name.value));
    sections.iter().any(|(name, section)| {
        let keys = match &section.value {
            yaml::Yaml::Map(keys) if name.value == EXECUTOR => keys.as_slice(),
            _ => &[],
        };
        // The other kind of file writes its names without these signs, so one that is misspelt is known too.
        let mut names = keys.iter().map(|(key, _)| key.value.as_str());
        let is_key = |key: &str| {
            let is_spelt_so = key.contains('_') && !has_others;
            is_spelt_so || read::row_of(&format!("{EXECUTOR}.{key}")).is_some()
        };
        is_ours(&name.value) || names.any(is_key)
    })
}

#[cfg(test)]
#[path = "config_tests.rs"]
mod tests;
