//! `executor.yaml`, named with `--config` like any other configuration.
//!
//! What it says about the server, the tools and their times becomes settings of ours; the rules of
//! runs, the model's servers and the log are taken from it as they are. What it can say and we do
//! otherwise is said as a warning, never passed over.

use std::io::IsTerminal;
use std::path::Path;
use std::sync::Arc;

use holdfast_agent::config::{ExecutorConfig, ProcessEnvironment};
use holdfast_agent::log::{ErrorPages, Format, Level, RunLog, Watch};
use holdfast_agent::settings::RunSettings;
use holdfast_reliability::observe::log::{LineSink, WriterSink};
use holdfast_reliability::observe::queued::QueuedSink;
use holdfast_toolbox::tools::CommandRules;

use crate::app::App;
use crate::config::{Config, expand};
use crate::fail::{Failure, Outcome};
use crate::output;

/// The model that clients get when the file says nothing else.
const MODEL: &str = "gpt-oss";

/// Whether standard output is free for log lines.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stdout {
    Free,
    Taken,
}

/// Reads such a file; every problem is in the failure, with its line.
pub(crate) fn read(path: &Path, text: &str) -> Outcome<Config> {
    let dir = path.parent().unwrap_or(Path::new("."));
    let file = ExecutorConfig::read(text, dir, &ProcessEnvironment).map_err(|problems| {
        let list: Vec<String> = problems.iter().map(|it| format!("  {it}")).collect();
        let name = path.display();
        Failure::usage(format!(
            "the configuration {name} is wrong:\n{}",
            list.join("\n")
        ))
        .hint("docs/reference/executor.md lists every key.")
    })?;
    let mut config = Config::default();
    let http = &file.http;
    config.server.listen = if http.bind.contains(':') {
        format!("[{}]:{}", http.bind, http.port)
    } else {
        format!("{}:{}", http.bind, http.port)
    };
    config.server.head_ms_max = http.read_timeout_ms;
    config.server.body_ms_max = http.read_timeout_ms;
    config.server.shutdown_ms_max = http.shutdown_timeout_ms.max(1);
    tools(&mut config, &file);
    config.file = Some(Arc::new(file));
    Ok(config)
}

/// Which tools are offered, and their times.
fn tools(config: &mut Config, file: &ExecutorConfig) {
    let ours: Vec<String> = config
        .tools()
        .iter()
        .map(|tool| tool.name().to_owned())
        .collect();
    if let Some(enabled) = &file.tools.enabled {
        // All others are denied, also when none is left: an empty list of allowed tools allows all.
        let others = ours.iter().filter(|tool| !enabled.contains(tool));
        config.permissions.denied_tools.extend(others.cloned());
    }
    config.permissions.commands = CommandRules {
        allowed: file.tools.allowed_commands.clone(),
        blocked: file.tools.blocked_commands.clone(),
    };
    for tool in &ours {
        let own = file.tools.timeouts_ms.get(tool).copied();
        let settings = config.reliability.tools.entry(tool.clone()).or_default();
        settings.timeout_ms = Some(own.unwrap_or(file.tools.default_timeout_ms));
    }
}

/// What is odd about the file, or is done otherwise here.
pub(crate) fn warnings(config: &Config) -> Vec<String> {
    let Some(file) = &config.file else {
        return Vec::new();
    };
    let mut warnings = file.warnings.clone();
    let mut say = |is_so: bool, text: &str| {
        if is_so {
            warnings.push(text.to_owned());
        }
    };
    let tools = &file.tools;
    let has = |name: &str| config.tools().iter().any(|tool| tool.name() == name);
    for name in tools.enabled.iter().flatten().filter(|name| !has(name)) {
        say(
            true,
            &format!(
                "tools.enabled: there is no tool {name:?} here; `gateway` in holdfast.yaml offers a gateway's"
            ),
        );
    }
    say(
        file.gateway_token.reveal().is_some() || file.gateway_url.is_some(),
        "executor.openclaw_gateway_url: the tools run here; to offer a gateway's as well, use `gateway` in holdfast.yaml",
    );
    say(
        tools.search_results_max != 10
            || tools.fetch_chars_max != 50_000
            || tools.fetch_mode != "markdown",
        "tools.web_search.max_results and tools.web_fetch are set with `web` in holdfast.yaml",
    );
    say(
        file.models
            .iter()
            .any(|(name, model)| name != MODEL && Some(model) != file.models.get(MODEL)),
        "models: the server uses the settings of gpt-oss for all of its names; those of other names are for programs that use the library",
    );
    warnings
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

/// The model's servers, when the file names them.
pub(crate) fn model(app: &App) -> Outcome<Option<holdfast_agent::model::Upstreams>> {
    let Some(model) = app
        .config
        .file
        .as_ref()
        .and_then(|file| file.models.get(MODEL))
    else {
        return Ok(None);
    };
    holdfast_agent::model::Upstreams::connect(model, app.clock.clone())
        .map(Some)
        .map_err(|why| Failure::usage(format!("the model server can not be used: {why}")))
}

/// Where runs are written down, when the file says so.
pub(crate) fn watch(app: &App, stdout: Stdout) -> Outcome<Option<Watch>> {
    let Some(file) = &app.config.file else {
        return Ok(None);
    };
    let log = &file.log;
    let level = Level::from_name(&log.level).unwrap_or(Level::Info);
    // People at a terminal read words.
    let is_terminal = match log.output.as_str() {
        "stdout" => std::io::stdout().is_terminal(),
        "stderr" => std::io::stderr().is_terminal(),
        _ => false,
    };
    let format = if log.format == "text" || is_terminal {
        Format::Text
    } else {
        Format::Json
    };
    let (clock, redactor) = (app.clock.clone(), app.config.redactor());
    let sink = sink(&log.output, stdout)?;
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

fn sink(output: &str, stdout: Stdout) -> Outcome<Arc<dyn LineSink>> {
    let failed = |error: std::io::Error| {
        Failure::usage(format!("the log {output} can not be opened: {error}"))
    };
    let sink: Arc<dyn LineSink> = match (output, stdout) {
        ("stdout", Stdout::Free) => Arc::new(QueuedSink::start(std::io::stdout()).map_err(failed)?),
        // The answer goes there, and nothing else.
        ("stdout", Stdout::Taken) | ("stderr", _) => {
            Arc::new(QueuedSink::start(std::io::stderr()).map_err(failed)?)
        }
        (path, _) => {
            use std::os::unix::fs::OpenOptionsExt;
            let mut options = std::fs::OpenOptions::new();
            let file = options
                .create(true)
                .append(true)
                .mode(0o600)
                .open(expand(path));
            Arc::new(WriterSink::new(file.map_err(failed)?))
        }
    };
    Ok(sink)
}
