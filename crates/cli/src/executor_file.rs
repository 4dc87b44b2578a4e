//! `executor.yaml`, named with `--config` like any other configuration.
//!
//! What it says about the server, the tools, the gateway and their times becomes settings of ours; the
//! rules of runs, the models' servers and the log are taken from it as they are. The table of its keys
//! says which of them have no effect here, and that is said as a warning.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::Path;
use std::sync::Arc;

use holdfast_agent::config::table::PREFIX;
use holdfast_agent::config::{
    Environment, ExecutorConfig, Given, HttpSettings, LogSettings, ModelSettings, OWN_SECTION,
    ProcessEnvironment, explained,
};
use holdfast_agent::log::{ErrorPages, Format, Level, RunLog, Watch};
use holdfast_agent::model::{ByName, Model, Upstreams};
use holdfast_agent::settings::RunSettings;
use holdfast_agent::subagents::SUBAGENT_TOOLS;
use holdfast_contract::names::at_home;
use holdfast_reliability::observe::log::{LineSink, WriterSink};
use holdfast_reliability::observe::queued::QueuedSink;
use holdfast_server::{Served, ServerConfig};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::app::App;
use crate::config::{Config, FileFrom, expand};
use crate::fail::{Failure, Outcome};
use crate::logfile;
use crate::output;

/// The model that clients get when the file says nothing else.
const MODEL: &str = "gpt-oss";

/// Whether standard output is free for log lines.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stdout {
    Free,
    Taken,
}

/// What such a file says beside the settings of its own.
#[derive(Deserialize)]
struct Beside {
    #[serde(default)]
    holdfast: Option<Config>,
}

/// Reads such a file; every problem is in the failure, with its line.
pub(crate) fn read(path: &Path, text: &str) -> Outcome<Config> {
    let beside = serde_saphyr::from_str::<Beside>(text);
    let base = match beside {
        Ok(beside) => beside.holdfast.unwrap_or_default(),
        Err(error) if text.contains(OWN_SECTION) => {
            return Err(wrong(path, &explained(&error)));
        }
        // The one who reads the rest says what is wrong with it.
        Err(_) => Config::default(),
    };
    let applied = applied(base, path, text)?;
    Ok(Config {
        file_from: FileFrom::File,
        ..applied
    })
}

/// Whether the environment has settings of such a file.
pub(crate) fn is_in_environment() -> bool {
    let mut names = std::env::vars_os().map(|(name, _)| name);
    names.any(|name| name.to_string_lossy().starts_with(PREFIX))
}

fn wrong(path: &Path, why: &str) -> Failure {
    let name = path.display().to_string();
    let why = why.replace("<input>", &name);
    Failure::usage(format!("the configuration {name} is wrong:\n{why}"))
        .hint("docs/reference/executor.md lists every key.")
}

/// Other settings with those of such a file over them.
pub(crate) fn applied(mut config: Config, path: &Path, text: &str) -> Outcome<Config> {
    let dir = path.parent().unwrap_or(Path::new("."));
    let read = |text: &str, environment: &dyn Environment| {
        ExecutorConfig::read(text, dir, environment).map_err(|problems| {
            let list: Vec<String> = problems.iter().map(|it| format!("  {it}")).collect();
            wrong(path, &list.join("\n"))
        })
    };
    let file = read(text, &ProcessEnvironment)?;
    let standard = read("", &BTreeMap::new())?;
    if file.http != standard.http || config.server == ServerConfig::default() {
        listens(&mut config.server, &file.http);
    }
    #[cfg(feature = "web")]
    web(&mut config, &file);
    tools(&mut config, &file);
    config.file = Some(Arc::new(file));
    Ok(config)
}

fn listens(server: &mut ServerConfig, http: &HttpSettings) {
    server.listen = if http.bind.contains(':') {
        format!("[{}]:{}", http.bind, http.port)
    } else {
        format!("{}:{}", http.bind, http.port)
    };
    server.head_ms_max = http.read_timeout_ms;
    server.body_ms_max = http.read_timeout_ms;
    server.idle_ms_max = Some(http.idle_timeout_ms);
    server.shutdown_ms_max = http.shutdown_timeout_ms.max(1);
}

/// The gateway, and what tools may bring from the web.
#[cfg(feature = "web")]
fn web(config: &mut Config, file: &ExecutorConfig) {
    use holdfast_web::GatewayConfig;
    use holdfast_web::config::{GatewayToolConfig, SearchConfig};
    config.web.search_results_max = usize::try_from(file.tools.search_results_max).ok();
    config.web.fetch_chars_max = usize::try_from(file.tools.fetch_chars_max).ok();
    let Some(url) = &file.gateway_url else {
        return;
    };
    let ours = ours(config);
    let theirs = file.tools.enabled.iter().flatten();
    let theirs = theirs.filter(|name| !ours.contains(name));
    config.gateway = Some(GatewayConfig {
        url: url.clone(),
        token_env: holdfast_web::config::token_variable(),
        session_key: None,
        agent_id: None,
        // What is enabled and not ours is the gateway's.
        tools: theirs
            .map(|name| (name.clone(), GatewayToolConfig::default()))
            .collect(),
    });
    config.web.search.get_or_insert(SearchConfig::Gateway {});
}

/// The tools that there can be, also those that only runs have.
fn ours(config: &Config) -> Vec<String> {
    let tools = config.tools();
    let base = tools.iter().map(|tool| tool.name().to_owned());
    base.chain(SUBAGENT_TOOLS.map(str::to_owned)).collect()
}

/// Which tools are offered, and their times.
fn tools(config: &mut Config, file: &ExecutorConfig) {
    let ours = ours(config);
    if let Some(enabled) = &file.tools.enabled {
        // All others are denied, also when none is left: an empty list of allowed tools allows all.
        let is_enabled = |tool: &String| enabled.iter().any(|it| it == at_home(tool));
        let others = ours.iter().filter(|tool| !is_enabled(tool));
        config.permissions.denied_tools.extend(others.cloned());
    }
    let (allowed, blocked) = (&file.tools.allowed_commands, &file.tools.blocked_commands);
    if !allowed.is_empty() || !blocked.is_empty() {
        config.permissions.commands.allowed.clone_from(allowed);
        config.permissions.commands.blocked.clone_from(blocked);
    }
    for tool in &ours {
        let own = file.tools.timeouts_ms.get(at_home(tool)).copied();
        // Whoever waits for a subagent waits longer than for any other tool, unless the file says
        // how long.
        if own.is_none() && SUBAGENT_TOOLS.contains(&tool.as_str()) {
            continue;
        }
        let settings = config.reliability.tools.entry(tool.clone()).or_default();
        let own = own.or(settings.timeout_ms);
        settings.timeout_ms = Some(own.unwrap_or(file.tools.default_timeout_ms));
    }
}

/// What is odd about the file, or is done otherwise here.
pub(crate) fn warnings(config: &Config) -> Vec<String> {
    let Some(file) = &config.file else {
        return Vec::new();
    };
    let mut warnings = file.warnings.clone();
    let ours = ours(config);
    let has = |name: &str| ours.iter().any(|tool| at_home(tool) == name);
    let enabled = || file.tools.enabled.iter().flatten();
    for name in enabled().filter(|it| !has(it)) {
        warnings.push(format!(
            "tools.enabled: there is no tool {name:?} here; with executor.openclaw_gateway_url it is the gateway's"
        ));
    }
    let limited = file.given.iter();
    let limited = limited.filter_map(|it| it.key.strip_prefix("tools.result_limits."));
    // The original file has limits for tools of a gateway, which need not be there.
    let known = RunSettings::default().result_limits;
    let is_known = |name: &str| {
        has(name) || known.contains_key(name) || enabled().any(|enabled| enabled == name)
    };
    for name in limited.filter(|name| !is_known(name)) {
        warnings.push(format!(
            "tools.result_limits: there is no tool {name:?}; `holdfast tools` lists those there are"
        ));
    }
    warnings
}

/// What the file and its variables set, by key, for programs.
pub(crate) fn given(config: &Config) -> Value {
    let redactor = config.redactor();
    let given = config.file.iter().flat_map(|file| &file.given);
    let rows = given.map(|given| {
        let mut value = given.value.clone();
        redactor.redact_value_in_place(&mut value);
        let from = match given.line {
            Some(line) => json!({"line": line}),
            None => json!("variable"),
        };
        (given.key.clone(), json!({"value": value, "from": from}))
    });
    Value::Object(rows.collect())
}

/// The same as comments: what it came to is in the settings above them, and the rules of runs, the
/// models and the log have no others.
pub(crate) fn given_lines(config: &Config) -> Vec<String> {
    let Value::Object(rows) = given(config) else {
        return Vec::new();
    };
    if rows.is_empty() {
        return Vec::new();
    }
    let head = "# executor.yaml and its variables set:".to_owned();
    let line = |(key, row): (&String, &Value)| {
        let from = match &row["from"]["line"] {
            Value::Null => "a variable".to_owned(),
            line => format!("line {line}"),
        };
        format!("#   {key}: {} ({from})", row["value"])
    };
    std::iter::once(head).chain(rows.iter().map(line)).collect()
}

/// Says them once, before the work begins.
pub(crate) fn warn(config: &Config) {
    for warning in config.warnings() {
        output::note(&format!("{} {warning}", output::yellow("!")));
    }
}

/// The rules of runs.
pub(crate) fn settings(config: &Config) -> RunSettings {
    let model = config.file.as_ref().and_then(|file| file.models.get(MODEL));
    model.map_or_else(RunSettings::default, |model| model.run.clone())
}

/// The models that clients can ask, with the rules of their runs.
pub(crate) fn served(config: &Config) -> Vec<Served> {
    let models = config.file.iter().flat_map(|file| &file.models);
    let own = models.map(|(name, model)| (name.clone(), model.run.clone()));
    Served::all(&settings(config), &own.collect())
}

/// What was typed, or is in the environment, about the model that has no name of its own.
#[derive(Default)]
pub(crate) struct Typed {
    pub(crate) url: Option<String>,
    pub(crate) model: Option<String>,
    pub(crate) key: Option<String>,
}

/// The models of the file, and what was typed over them. Those on the same servers want the same key.
fn models(file: &ExecutorConfig, typed: &Typed) -> BTreeMap<String, ModelSettings> {
    let mut models = file.models.clone();
    let Some(standard) = models.get(MODEL).cloned() else {
        return models;
    };
    for model in models.values_mut() {
        let is_there = model.upstreams == standard.upstreams;
        if is_there && let Some(url) = &typed.url {
            model.upstreams = vec![url.clone()];
        }
        // Also under the names that clients have for it, unless one of them means another model.
        if is_there
            && model.model == standard.model
            && let Some(known_as) = &typed.model
        {
            model.model.clone_from(known_as);
        }
        let mut servers = model.upstreams.iter();
        let is_known = typed.url.is_none() && servers.all(|it| standard.upstreams.contains(it));
        if (is_there || is_known)
            && model.api_key.reveal().is_none()
            && let Some(key) = &typed.key
        {
            model.api_key = key.clone().into();
        }
    }
    models
}

/// The servers of all models, when the file names them. Names that mean the same share a connection
/// pool, and what is known of a server's health.
pub(crate) fn model(app: &App, typed: &Typed) -> Outcome<Option<Arc<dyn Model>>> {
    let Some(file) = &app.config.file else {
        return Ok(None);
    };
    let models = models(file, typed);
    let mut made: Vec<(&ModelSettings, Arc<dyn Model>)> = Vec::new();
    let mut named: BTreeMap<String, Arc<dyn Model>> = BTreeMap::new();
    for (name, model) in &models {
        let is_same = |other: &ModelSettings| {
            (&other.upstreams, &other.model) == (&model.upstreams, &model.model)
                && (&other.api_key, other.http2) == (&model.api_key, model.http2)
        };
        let known = made.iter().find(|(other, _)| is_same(other));
        let servers = if let Some((_, servers)) = known {
            servers.clone()
        } else {
            let servers = Upstreams::connect(model, app.clock.clone()).map_err(|why| {
                Failure::usage(format!("the model server can not be used: {why}"))
            })?;
            let servers: Arc<dyn Model> = Arc::new(servers);
            made.push((model, servers.clone()));
            servers
        };
        named.insert(name.clone(), servers);
    }
    let standard = named.get(MODEL).cloned();
    Ok(standard.map(|standard| Arc::new(ByName::new(standard, named)) as Arc<dyn Model>))
}

/// The log of a file, or of variables that say something about it: those of other settings alone
/// move no log.
fn log_settings(config: &Config) -> Option<&LogSettings> {
    let file = config.file.as_ref()?;
    let is_about_it = |given: &Given| given.key.starts_with("logging.");
    let is_said = config.file_from == FileFrom::File || file.given.iter().any(is_about_it);
    is_said.then_some(&file.log)
}

/// Whether the log of runs has standard output for itself: every line there is JSON then.
pub(crate) fn logs_json_to_stdout(config: &Config) -> bool {
    log_settings(config).is_some_and(|log| {
        let place = Place::of(&log.output, Stdout::Free);
        place == Place::Stdout && format(log.format.as_deref(), place.is_terminal()) == Format::Json
    })
}

/// Whether the log of `holdfast run` goes to standard error, between what is shown there.
pub(crate) fn logs_between(config: &Config) -> bool {
    log_settings(config).is_some_and(|log| Place::of(&log.output, Stdout::Taken) == Place::Stderr)
}

/// Where runs are written down: as the file says, and without one where all other events go.
pub(crate) fn watch(app: &App, stdout: Stdout) -> Outcome<Option<Watch>> {
    let (clock, redactor) = (app.clock.clone(), app.config.redactor());
    let Some(log) = log_settings(&app.config) else {
        let (sink, format) = match app.log_sink()? {
            Some(sink) => (sink, Format::Json),
            // `holdfast run` tells its person all the same.
            None if app.logs_by_default() && stdout == Stdout::Free => (
                Place::Stderr.open()?,
                format(None, Place::Stderr.is_terminal()),
            ),
            None => return Ok(None),
        };
        let lines = RunLog::new(sink, clock.clone(), redactor, Level::Info, format);
        return Ok(Some(Watch::new(Arc::new(lines), None, clock)));
    };
    let level = Level::from_name(&log.level).unwrap_or(Level::Info);
    let place = Place::of(&log.output, stdout);
    let format = format(log.format.as_deref(), place.is_terminal());
    let sink = place.open()?;
    let lines = RunLog::new(sink, clock.clone(), redactor.clone(), level, format);
    let pages = ErrorPages::new(
        expand(&log.error_dir),
        log.error_filename.clone(),
        clock.clone(),
        redactor,
    );
    Ok(Some(Watch::new(
        Arc::new(lines),
        Some(Arc::new(pages)),
        clock,
    )))
}

/// Where log lines really go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place<'a> {
    Stdout,
    Stderr,
    File(&'a str),
}

impl<'a> Place<'a> {
    fn of(output: &'a str, stdout: Stdout) -> Self {
        match (output, stdout) {
            ("stdout", Stdout::Free) => Self::Stdout,
            // The answer goes there, and nothing else.
            ("stdout", Stdout::Taken) | ("stderr", _) => Self::Stderr,
            (path, _) => Self::File(path),
        }
    }

    fn is_terminal(self) -> bool {
        match self {
            Self::Stdout => std::io::stdout().is_terminal(),
            Self::Stderr => std::io::stderr().is_terminal(),
            Self::File(_) => false,
        }
    }

    fn open(self) -> Outcome<Arc<dyn LineSink>> {
        let failed =
            |error: std::io::Error| Failure::usage(format!("the log can not be started: {error}"));
        Ok(match self {
            Self::Stdout => Arc::new(QueuedSink::start(std::io::stdout()).map_err(failed)?),
            Self::Stderr => Arc::new(QueuedSink::start(std::io::stderr()).map_err(failed)?),
            Self::File(path) => Arc::new(WriterSink::new(logfile::open(path)?)),
        })
    }
}

/// As it is written; where nothing is, people at a terminal read words.
fn format(written: Option<&str>, is_terminal: bool) -> Format {
    if written.map_or(is_terminal, |format| format == "text") {
        Format::Text
    } else {
        Format::Json
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_looks_as_it_is_written_and_else_as_its_reader_wants_it() {
        for (written, is_terminal, looks) in [
            (Some("json"), true, Format::Json),
            (Some("json"), false, Format::Json),
            (Some("text"), true, Format::Text),
            (Some("text"), false, Format::Text),
            (None, true, Format::Text),
            (None, false, Format::Json),
        ] {
            assert_eq!(
                format(written, is_terminal),
                looks,
                "{written:?} {is_terminal}"
            );
        }
        // Whose terminal is asked about is where the lines go.
        assert_eq!(Place::of("stdout", Stdout::Free), Place::Stdout);
        assert_eq!(Place::of("stdout", Stdout::Taken), Place::Stderr);
        assert_eq!(Place::of("stderr", Stdout::Free), Place::Stderr);
        assert_eq!(Place::of("x.log", Stdout::Taken), Place::File("x.log"));
        assert!(!Place::File("/dev/tty").is_terminal());
    }
}
