//! The configuration file: read as written, then checked.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use holdfast_agent::config::explained;
use holdfast_agent::subagents::SUBAGENT_TOOLS;
use holdfast_confine::ConfinementConfig;
use holdfast_contract::Tool;
use holdfast_contract::redact::{Redactor, RedactorOptions};
use holdfast_memory::MemoryConfig;
use holdfast_reliability::config::{ConfigProblem, ReliabilityConfig};
use holdfast_reliability::guard::GuardConfig;
use holdfast_reliability::hooks::command::HooksConfig;
use holdfast_server::ServerConfig;
use holdfast_server::executor::Gateway;
use holdfast_toolbox::limit_output::OutputConfig;
use holdfast_toolbox::permit::{PermissionConfig, Permissions};
use holdfast_toolbox::session::SessionLimits;
use holdfast_toolbox::tools::{ExecTool, base_tools_with};
use holdfast_trust::TrustConfig;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::environment;
use crate::executor::ExecutorConfig;
use crate::executor_file;
use crate::fail::{Failure, Outcome};
use crate::mistakes;
use crate::telemetry::config::OtlpConfig;
use crate::variables;

/// The channels that sessions can be on: `name` of each [`holdfast_contract::Channel`] that we make.
const CHANNELS: [&str; 3] = ["terminal", "webhook", "gateway"];

/// The configuration file. Every section and every setting is optional.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct Config {
    /// Idempotency, retry, breaker, and the switches over them.
    pub(crate) reliability: ReliabilityConfig,
    /// The loop guard.
    pub(crate) guard: GuardConfig,
    /// What is allowed.
    pub(crate) permissions: PermissionConfig,
    /// Where words come from, what tools may do with them, and what speaks against them.
    pub(crate) trust: TrustConfig,
    /// What the kernel holds commands to.
    pub(crate) confinement: ConfinementConfig,
    /// How large answers may be.
    pub(crate) output: OutputConfig,
    /// Children, times and tokens of sessions.
    pub(crate) sessions: SessionLimits,
    /// Commands that are asked or told about calls.
    pub(crate) hooks: HooksConfig,
    /// What is never said aloud.
    pub(crate) redaction: RedactionConfig,
    /// What agents remember.
    pub(crate) memory: MemoryConfig,
    /// What tools may reach on the web.
    #[cfg(feature = "web")]
    pub(crate) web: holdfast_web::WebConfig,
    /// An `OpenClaw` gateway whose tools are offered here too.
    #[cfg(feature = "web")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) gateway: Option<holdfast_web::GatewayConfig>,
    /// Where messages and approval prompts go; the terminal unless set.
    #[cfg(feature = "web")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) channel: Option<holdfast_web::ChannelConfig>,
    /// What can be undone; with `pointsMax: 0` nothing is kept.
    pub(crate) undo: holdfast_undo::UndoSettings,
    /// Logs and traces.
    pub(crate) observability: ObservabilityConfig,
    /// `holdfast serve`.
    pub(crate) server: ServerConfig,
    /// The model that is given the tools, for `holdfast serve` and `holdfast run`.
    pub(crate) executor: ExecutorConfig,
    /// The `executor.yaml` that stands in for all of this, where one was named.
    #[serde(skip)]
    pub(crate) file: Option<Arc<holdfast_agent::config::ExecutorConfig>>,
    /// Where that one is from.
    #[serde(skip)]
    pub(crate) file_from: FileFrom,
}

/// Where the settings of an `executor.yaml` are from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum FileFrom {
    /// Its variables alone.
    #[default]
    Variables,
    /// A file, and the variables over it.
    File,
}

/// What is never said aloud, besides what looks like a secret.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct RedactionConfig {
    /// Names of fields whose values are secret.
    pub(crate) fields: Vec<String>,
}

/// Where log events go unless somebody says so.
pub(crate) const LOG_AUTO: &str = "auto";

/// Logs and traces.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct ObservabilityConfig {
    /// Where log events go as JSON lines: `stderr`, `off`, or a file. With `auto` a server writes what
    /// happens in its runs to standard error, and nothing else.
    pub(crate) log: String,
    /// Where traces go; without it there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) otlp: Option<OtlpConfig>,
}

impl Default for ObservabilityConfig {
    fn default() -> Self {
        Self {
            log: LOG_AUTO.to_owned(),
            otlp: None,
        }
    }
}

impl Config {
    /// Reads the file that was named, or the user's own when there is one, and lets the
    /// environment win over it.
    pub(crate) fn load(named: Option<&Path>) -> Outcome<Self> {
        let mut config = match named {
            Some(path) => Self::read(path)?,
            None => match user_file().filter(|path| path.exists()) {
                Some(path) => Self::read(&path)?,
                None => Self::default(),
            },
        };
        if config.file.is_none() && executor_file::is_in_environment() {
            let path = named.unwrap_or(Path::new("the environment"));
            config = executor_file::applied(config, path, "")?.checked(path)?;
        }
        #[cfg(feature = "web")]
        config.limit_searches();
        environment::apply_switches(&mut config.reliability)?;
        Ok(config)
    }

    /// Searches cost money and are the first thing that a service blocks: they have a limit also
    /// where nobody has set one.
    #[cfg(feature = "web")]
    fn limit_searches(&mut self) {
        let tools = &mut self.reliability.tools;
        let own = tools.entry("web_search".to_owned()).or_default();
        let most = holdfast_web::limits::SEARCHES_PER_MINUTE_MAX;
        own.rate_limit.calls.get_or_insert(most);
    }

    fn read(path: &Path) -> Outcome<Self> {
        let text = std::fs::read_to_string(path).map_err(|error| {
            Failure::usage(format!(
                "the configuration {} can not be read: {error}",
                path.display()
            ))
        })?;
        if holdfast_agent::config::ExecutorConfig::is_meant_by(&text) {
            let config = executor_file::read(path, &text)?;
            return config.checked(path);
        }
        let config = Self::parse(&text).map_err(|error| {
            let name = path.display().to_string();
            let error = error.replace("<input>", &name);
            Failure::usage(format!("the configuration {name} is wrong:\n{error}"))
                .hint("`holdfast config schema` prints what it may hold.")
        })?;
        config.checked(path)
    }

    /// The same, when nothing is wrong with its values.
    fn checked(self, path: &Path) -> Outcome<Self> {
        let problems = self.problems();
        if problems.is_empty() {
            return Ok(self);
        }
        let list: Vec<String> = problems
            .iter()
            .map(|problem| format!("  {problem}"))
            .collect();
        Err(Failure::usage(format!(
            "the configuration {} is wrong:\n{}",
            path.display(),
            list.join("\n")
        )))
    }

    fn parse(text: &str) -> Result<Self, String> {
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        let expanded = variables::put_in(text, &|name| std::env::var(name).ok())?;
        let text = &*expanded.text;
        serde_saphyr::from_str(text).map_err(|error| {
            let reads = |text: &str| serde_saphyr::from_str::<Self>(text).err();
            let reads = |text: &str| reads(text).as_ref().map(explained);
            expanded.as_written(mistakes::all(text, explained(&error), reads).join("\n"))
        })
    }

    /// Everything that is wrong with the values.
    pub(crate) fn problems(&self) -> Vec<ConfigProblem> {
        let mut problems = self.reliability.problems();
        if let Err(problem) = self.guard.validate() {
            problems.push(ConfigProblem::new(
                format!("guard.{}", problem.field),
                problem.reason,
            ));
        }
        let tools = self.tools();
        // Those for subagents are there in runs only, and are configured like all others.
        let is_tool = |name: &str| {
            tools.iter().any(|tool| tool.name() == name) || SUBAGENT_TOOLS.contains(&name)
        };
        let named = self.reliability.tools.keys();
        problems.extend(unknown("reliability.tools", named, is_tool));
        // The guard compares these names loosely.
        let loosely = |name: &str| {
            let own = tools.iter().map(|tool| tool.name());
            let mut all = own.chain(SUBAGENT_TOOLS.iter().copied());
            all.any(|tool| tool.eq_ignore_ascii_case(name.trim()))
        };
        let polling = self.guard.polling_tools.iter();
        let polling = polling.filter(|name| !name.trim().is_empty());
        problems.extend(unknown("guard.pollingTools", polling, loosely));
        problems.extend(self.permissions.problems(is_tool));
        problems.extend(unknown_channels(&self.permissions));
        problems.extend(self.output.problems(is_tool));
        for (field, reason) in self.trust.problems(is_tool) {
            problems.push(ConfigProblem::new(format!("trust.{field}"), reason));
        }
        problems.extend(self.sessions.problems());
        // Some settings only make sense together with the tool they are for.
        for tool in &tools {
            if let Err(found) = self.reliability.policy_for(&**tool) {
                problems.extend(
                    found
                        .into_iter()
                        .filter(|new| !problems.contains(new))
                        .collect::<Vec<_>>(),
                );
            }
        }
        let hooks = [
            ("admit", &self.hooks.admit),
            ("before", &self.hooks.before),
            ("after", &self.hooks.after),
        ];
        for (name, list) in hooks {
            for (index, hook) in list.iter().enumerate() {
                let path = format!("hooks.{name}[{index}]");
                if let Some(reason) = hook.problem() {
                    problems.push(ConfigProblem::new(path.clone(), reason));
                }
                // A hook for a tool that is misspelt is a gate that stands open.
                problems.extend(unknown(&format!("{path}.tools"), &hook.tools, is_tool));
            }
        }
        for (field, reason) in self.confinement.problems() {
            problems.push(ConfigProblem::new(format!("confinement.{field}"), reason));
        }
        #[cfg(feature = "web")]
        problems.extend(crate::web::problems(self));
        for (field, reason) in self.memory.problems() {
            problems.push(ConfigProblem::new(format!("memory.{field}"), reason));
        }
        problems.extend(crate::remembering::problem(self));
        if let Some(otlp) = &self.observability.otlp {
            problems.extend(otlp.problems());
        }
        problems.extend(self.server.problems());
        problems.extend(self.executor.problems());
        problems
    }

    /// What works otherwise than it may be meant.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let warnings = executor_file::warnings(self);
        #[cfg(feature = "web")]
        let warnings = warnings.into_iter().chain(crate::web::warnings(self));
        warnings.into_iter().collect()
    }

    /// The tools as they are configured.
    pub(crate) fn tools(&self) -> Vec<Arc<dyn Tool>> {
        self.tools_under(Arc::new(self.permissions.clone().into()))
    }

    /// The same, under permissions that may be exchanged.
    pub(crate) fn tools_under(&self, permissions: Arc<Permissions>) -> Vec<Arc<dyn Tool>> {
        let exec = ExecTool::new()
            .with_confinement(self.confinement.clone())
            .with_permissions(permissions);
        #[cfg_attr(
            not(feature = "web"),
            expect(unused_mut, reason = "there are no more of them")
        )]
        let mut tools = base_tools_with(exec);
        #[cfg(feature = "web")]
        tools.extend(crate::web::tools(self));
        tools
    }

    /// Whether a gateway's tools are among them.
    pub(crate) fn gateway_offered(&self) -> Gateway {
        #[cfg(feature = "web")]
        if self.gateway.is_some() {
            return Gateway::Configured;
        }
        Gateway::Absent
    }

    /// The one redactor.
    pub(crate) fn redactor(&self) -> Redactor {
        Redactor::new(&RedactorOptions {
            extra_fields: self.redaction.fields.clone(),
        })
    }
}

/// Rules for channels that there are none of: what they forbid would stay allowed.
fn unknown_channels(permissions: &PermissionConfig) -> Vec<ConfigProblem> {
    let named = permissions.channels.keys();
    let unknown = named.filter(|name| !CHANNELS.contains(&name.as_str()));
    let problem = |name: &String| {
        let known = CHANNELS.join(", ");
        let reason = format!("there is no channel named {name:?}; there are {known}");
        ConfigProblem::new("permissions.channels", reason)
    };
    unknown.map(problem).collect()
}

/// The names that no tool has.
fn unknown<'a>(
    path: &str,
    names: impl IntoIterator<Item = &'a String>,
    is_tool: impl Fn(&str) -> bool,
) -> Vec<ConfigProblem> {
    let unknown = names.into_iter().filter(|name| !is_tool(name));
    let problem =
        |name: &String| ConfigProblem::new(path, format!("there is no tool named {name:?}"));
    unknown.map(problem).collect()
}

/// The user's own configuration file, whether or not it exists.
pub(crate) fn user_file() -> Option<PathBuf> {
    let base = match environment::get("XDG_CONFIG_HOME") {
        Some(dir) => PathBuf::from(dir),
        None => home()?.join(".config"),
    };
    Some(base.join("holdfast").join("holdfast.yaml"))
}

/// The state directory: as typed, else the user's.
pub(crate) fn state_dir(named: Option<&Path>) -> Outcome<PathBuf> {
    if let Some(dir) = named {
        return Ok(dir.to_owned());
    }
    let base = match environment::get("XDG_STATE_HOME") {
        Some(dir) => PathBuf::from(dir),
        None => home()
            .ok_or_else(|| {
                Failure::usage("there is no home directory to keep state in")
                    .hint("Say where with --state DIR.")
            })?
            .join(".local/state"),
    };
    Ok(base.join("holdfast"))
}

/// A path with `~` replaced.
pub(crate) fn expand(path: &str) -> PathBuf {
    match (path.strip_prefix("~/"), home()) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => PathBuf::from(path),
    }
}

pub(crate) fn home() -> Option<PathBuf> {
    environment::get("HOME").map(PathBuf::from)
}
