//! Settings made of values that were held against the table.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::kind::{Held, hint_of_scheme, is_address};
use super::read::{Values, row_of};
use super::{
    ExecutorConfig, HttpSettings, LogSettings, ModelSettings, Problem, SecretText, ToolSettings,
};
use crate::context::WindowSettings;
use crate::model::Http2;
use crate::runs::CLIENT_AWAY_MS_MAX;
use crate::settings::{
    MutatingGuess, PromptPlace, RunSettings, SourceField, StructuredOutput, Thought, WhenUsedUp,
};

/// The names under which clients find the model of the first section.
const STANDARD_NAMES: [&str; 3] = ["gpt-oss", "executor", "gpt-oss-tools"];
/// Size of a prompt or a schema in a file.
pub const PROMPT_FILE_BYTES_MAX: u64 = 1024 * 1024;
/// Tools with a time of their own.
const TIMED_TOOLS: [&str; 6] = [
    "web_search",
    "web_fetch",
    "read",
    "write",
    "exec",
    "browser",
];

pub(super) struct Maker<'a> {
    values: &'a Values,
    dir: &'a Path,
    warnings: Vec<String>,
}

impl<'a> Maker<'a> {
    pub(super) fn new(values: &'a Values, dir: &'a Path) -> Self {
        Self {
            values,
            dir,
            warnings: Vec::new(),
        }
    }

    pub(super) fn make(mut self, problems: &mut Vec<Problem>) -> ExecutorConfig {
        let run = self.run(problems);
        let made = ExecutorConfig {
            models: self.models(&run, problems),
            gateway_url: self
                .text("executor.openclaw_gateway_url")
                .map(str::to_owned),
            gateway_token: self.secret("executor.openclaw_gateway_token"),
            http: self.http(),
            log: self.log(),
            tools: self.tools(),
            warnings: Vec::new(),
            given: self.values.given(),
        };
        self.check(&made, &run, problems);
        self.say_what_has_no_effect();
        ExecutorConfig {
            warnings: self.warnings,
            ..made
        }
    }

    fn say_what_has_no_effect(&mut self) {
        for (path, (held, _)) in &self.values.held {
            let value = match held {
                Held::Text(text) => text.clone(),
                Held::Number(number) => number.to_string(),
                Held::Decimal(_) | Held::Texts(_) => String::new(),
            };
            // What holds anyway needs no warning: nobody expects another effect of it.
            let row = row_of(path).filter(|row| row.default != value);
            if let Some(why) = row.and_then(|row| row.used.warning(&value)) {
                self.warnings.push(format!("{path}: {why}"));
            }
        }
    }

    fn held(&self, path: &str) -> Option<&'a Held> {
        self.values.held.get(path).map(|(held, _)| held)
    }

    /// A text that is set and not empty.
    fn text(&self, path: &str) -> Option<&'a str> {
        match self.held(path) {
            Some(Held::Text(text)) if !text.is_empty() => Some(text),
            _ => None,
        }
    }

    fn text_or(&self, path: &str, otherwise: &str) -> String {
        self.text(path).unwrap_or(otherwise).to_owned()
    }

    fn secret(&self, path: &str) -> SecretText {
        SecretText(self.text_or(path, ""))
    }

    fn maybe_number(&self, path: &str) -> Option<u64> {
        match self.held(path) {
            Some(Held::Number(number)) => Some(*number),
            _ => None,
        }
    }

    fn number(&self, path: &str, otherwise: u64) -> u64 {
        self.maybe_number(path).unwrap_or(otherwise)
    }

    fn ms(&self, path: &str, otherwise_seconds: u64) -> u64 {
        self.number(path, otherwise_seconds).saturating_mul(1000)
    }

    fn decimal(&self, path: &str) -> Option<f64> {
        match self.held(path) {
            Some(Held::Decimal(number)) => Some(*number),
            _ => None,
        }
    }

    /// A number that can also be set to nothing.
    fn decimal_or_none(&self, path: &str, otherwise: Option<f64>) -> Option<f64> {
        match self.held(path) {
            None => otherwise,
            Some(_) => self.decimal(path),
        }
    }

    fn texts(&self, path: &str) -> Option<Vec<String>> {
        match self.held(path) {
            Some(Held::Texts(texts)) => Some(texts.clone()),
            _ => None,
        }
    }

    fn run(&mut self, problems: &mut Vec<Problem>) -> RunSettings {
        let standard = RunSettings::default();
        let mut result_limits = standard.result_limits.clone();
        for (path, (held, _)) in &self.values.held {
            if let (Some(tool), Held::Number(chars)) =
                (path.strip_prefix("tools.result_limits."), held)
            {
                result_limits.insert(
                    tool.to_owned(),
                    usize::try_from(*chars).unwrap_or(usize::MAX),
                );
            }
        }
        let window = WindowSettings::default();
        let small = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
        let fallback = match self.held("parser.fallback_strategy") {
            None => standard.fallback_strategy.clone(),
            Some(_) => self.text("parser.fallback_strategy").map(str::to_owned),
        };
        let mut run = RunSettings {
            max_iterations: small(self.number("executor.max_iterations", 5)),
            run_timeout_ms: self.ms("executor.run_timeout_seconds", 300),
            call_timeout_ms: self.ms("executor.gpt_oss_call_timeout_seconds", 60),
            client_away_ms: self.ms("executor.client_away_seconds", CLIENT_AWAY_MS_MAX / 1000),
            model_attempts_max: small(self.number("executor.max_retries", 3)).max(1),
            max_tokens: small(self.number("executor.gpt_oss_max_tokens", 1000)),
            temperature: self
                .decimal("executor.gpt_oss_temperature")
                .unwrap_or(standard.temperature),
            top_p: self.decimal_or_none("executor.gpt_oss_top_p", standard.top_p),
            fallback_strategy: fallback,
            result_limits,
            mutating_guess: match self.text("parser.mutating_guess") {
                Some("ask_person") => MutatingGuess::AskPerson,
                Some("run") => MutatingGuess::Run,
                _ => MutatingGuess::AskModel,
            },
            mutating_guess_min: self
                .decimal("parser.mutating_guess_min")
                .unwrap_or(standard.mutating_guess_min),
            when_used_up: match self.text("executor.on_max_iterations") {
                Some("answer") => WhenUsedUp::Answer,
                _ => WhenUsedUp::Fail,
            },
            tokens_max: self.maybe_number("executor.run_tokens_max"),
            window: WindowSettings {
                tokens: self.number("executor.context_window_limit", window.tokens),
                reserve_tokens: self
                    .number("executor.context_buffer_tokens", window.reserve_tokens),
                truncate_at: self
                    .decimal("executor.context_trunc_threshold")
                    .unwrap_or(window.truncate_at),
                compact_at: self
                    .decimal("executor.context_compact_threshold")
                    .unwrap_or(window.compact_at),
            },
            prompt: self.file("parser.system_prompt_path"),
            ..standard
        };
        run.cost.run_max = self.decimal("executor.run_cost_max");
        self.ways("parser", &mut run);
        let schema = self.file("parser.guided_json_schema_path");
        match schema.as_deref().map(serde_json::from_str).transpose() {
            Ok(schema) => run.guided_schema = schema,
            Err(error) => {
                let path = "parser.guided_json_schema_path";
                problems
                    .push(self.problem(path, format!("names a file that is no JSON ({error})")));
            }
        }
        run
    }

    /// How replies are read and prompts are given, of all models or of one.
    fn ways(&self, section: &str, run: &mut RunSettings) {
        if let Some(strategy) = self.text(&format!("{section}.strategy")) {
            strategy.clone_into(&mut run.strategy);
        }
        let field = |key: &str| match self.text(&format!("{section}.{key}")) {
            Some("content") => Some(SourceField::Content),
            Some(_) => Some(SourceField::Reasoning),
            None => None,
        };
        if let Some(first) = field("source_field") {
            run.source_field = first;
            // Unless said otherwise, it is the other one.
            run.fallback_field = match first {
                SourceField::Content => SourceField::Reasoning,
                SourceField::Reasoning => SourceField::Content,
            };
        }
        if let Some(second) = field("fallback_field") {
            run.fallback_field = second;
        }
        match self.text(&format!("{section}.thought")) {
            Some("opened") => run.thought = Thought::Opened,
            Some(_) => run.thought = Thought::Tagged,
            None => {}
        }
        match self.text(&format!("{section}.structured_output")) {
            Some("guided_json") => run.structured_output = StructuredOutput::GuidedJson,
            Some("off") => run.structured_output = StructuredOutput::Off,
            Some(_) => run.structured_output = StructuredOutput::ResponseFormat,
            None => {}
        }
        match self.text(&format!("{section}.prompt_place")) {
            Some("user") => run.prompt_place = PromptPlace::User,
            Some(_) => run.prompt_place = PromptPlace::System,
            None => {}
        }
    }

    fn models(
        &self,
        run: &RunSettings,
        problems: &mut Vec<Problem>,
    ) -> BTreeMap<String, ModelSettings> {
        let mut upstreams = vec![self.text_or("executor.gpt_oss_url", "http://127.0.0.1:8000")];
        upstreams.extend(
            self.addresses("executor.upstreams", problems)
                .unwrap_or_default(),
        );
        let standard = ModelSettings {
            upstreams,
            model: self.text_or("executor.gpt_oss_model", "gpt-oss"),
            api_key: self.secret("executor.api_key"),
            http2: self.http2("executor.http2").unwrap_or_default(),
            run: run.clone(),
        };
        let named = self.values.held.keys().filter_map(|path| {
            let (name, _) = path.strip_prefix("models.")?.rsplit_once('.')?;
            Some(name)
        });
        let named: BTreeSet<&str> = named.collect();
        let mut models: BTreeMap<String, ModelSettings> = STANDARD_NAMES
            .map(|name| (name.to_owned(), standard.clone()))
            .into();
        for name in named {
            models.insert(name.to_owned(), self.model(name, &standard, problems));
        }
        models
    }

    fn model(
        &self,
        name: &str,
        standard: &ModelSettings,
        problems: &mut Vec<Problem>,
    ) -> ModelSettings {
        let at = |key: &str| format!("models.{name}.{key}");
        let mut run = standard.run.clone();
        self.ways(&format!("models.{name}"), &mut run);
        run.temperature = self.decimal(&at("temperature")).unwrap_or(run.temperature);
        run.top_p = self.decimal_or_none(&at("top_p"), run.top_p);
        if let Some(tokens) = self.maybe_number(&at("max_tokens")) {
            run.max_tokens = u32::try_from(tokens).unwrap_or(u32::MAX);
        }
        run.window.tokens = self.number(&at("context_window_limit"), run.window.tokens);
        run.cost.input_per_million = self.decimal(&at("input_per_million")).unwrap_or(0.0);
        run.cost.output_per_million = self.decimal(&at("output_per_million")).unwrap_or(0.0);
        let own = self
            .addresses(&at("upstreams"), problems)
            .filter(|list| !list.is_empty());
        // A key goes to the servers that it was given for, and to no others.
        let are_known = own
            .iter()
            .flatten()
            .all(|server| standard.upstreams.contains(server));
        ModelSettings {
            api_key: match self.text(&at("api_key")) {
                None if are_known => standard.api_key.clone(),
                _ => self.secret(&at("api_key")),
            },
            // So does what is known of them.
            http2: match self.http2(&at("http2")) {
                Some(said) => said,
                None if are_known => standard.http2,
                None => Http2::default(),
            },
            upstreams: own.unwrap_or_else(|| standard.upstreams.clone()),
            model: self.text_or(&at("model"), name),
            run,
        }
    }

    fn http2(&self, path: &str) -> Option<Http2> {
        Some(match self.text(path)? {
            "always" => Http2::Always,
            "never" => Http2::Never,
            _ => Http2::Negotiated,
        })
    }

    fn addresses(&self, path: &str, problems: &mut Vec<Problem>) -> Option<Vec<String>> {
        let list = self.texts(path)?;
        for address in list.iter().filter(|address| !is_address(address)) {
            problems.push(self.problem(
                path,
                format!(
                    "holds {address:?}, which is no address of an HTTP server{}",
                    hint_of_scheme(address)
                ),
            ));
        }
        Some(list)
    }

    fn http(&self) -> HttpSettings {
        HttpSettings {
            port: u16::try_from(self.number("http_server.port", 8001)).unwrap_or(u16::MAX),
            bind: self.text_or("http_server.bind", "127.0.0.1"),
            read_timeout_ms: self.ms("http_server.read_timeout_seconds", 30),
            write_timeout_ms: self.ms("http_server.write_timeout_seconds", 600),
            idle_timeout_ms: self.ms("http_server.idle_timeout_seconds", 120),
            shutdown_timeout_ms: self.ms("http_server.shutdown_timeout_seconds", 5),
        }
    }

    fn log(&self) -> LogSettings {
        LogSettings {
            level: self.text_or("logging.level", "info"),
            format: self.text("logging.format").map(str::to_owned),
            output: self.text_or("logging.output", "stdout"),
            error_dir: self.text_or("logging.error_log_dir", "logs"),
            error_filename: self.text_or("logging.error_log_filename", "YYYY-MM-DD-errors.md"),
        }
    }

    fn tools(&self) -> ToolSettings {
        let timed = TIMED_TOOLS.iter().filter_map(|tool| {
            let seconds = self.maybe_number(&format!("tools.{tool}.timeout_seconds"))?;
            Some(((*tool).to_owned(), seconds * 1000))
        });
        ToolSettings {
            enabled: self.texts("tools.enabled"),
            default_timeout_ms: self.ms("tools.default_timeout_seconds", 30),
            timeouts_ms: timed.collect(),
            search_results_max: self.number("tools.web_search.max_results", 10),
            fetch_chars_max: self.number("tools.web_fetch.max_chars", 50_000),
            fetch_mode: self.text_or("tools.web_fetch.extract_mode", "markdown"),
            allowed_commands: self
                .texts("tools.exec.allowed_commands")
                .unwrap_or_default(),
            blocked_commands: self
                .texts("tools.exec.blocked_commands")
                .unwrap_or_default(),
        }
    }

    /// What a file that is named holds. Without it the built-in text is used, and that is said.
    fn file(&mut self, path: &str) -> Option<String> {
        let named = self.text(path)?;
        let file = self.dir.join(named);
        let read = std::fs::metadata(&file).and_then(|found| match found.len() {
            0..=PROMPT_FILE_BYTES_MAX => std::fs::read_to_string(&file),
            _ => Err(std::io::Error::other(format!(
                "larger than {PROMPT_FILE_BYTES_MAX} bytes"
            ))),
        });
        match read {
            Ok(text) => Some(text),
            Err(error) => {
                let warning =
                    format!("{path}: {named} can not be read ({error}); the built-in text is used");
                self.warnings.push(warning);
                None
            }
        }
    }

    fn problem(&self, path: &str, reason: impl Into<String>) -> Problem {
        let line = self.values.held.get(path).and_then(|(_, line)| *line);
        Problem {
            line,
            key: path.to_owned(),
            reason: reason.into(),
            hint: None,
        }
    }

    /// Settings that only make sense together.
    fn check(&self, made: &ExecutorConfig, run: &RunSettings, problems: &mut Vec<Problem>) {
        if run.window.truncate_at > run.window.compact_at {
            let reason = "is larger than context_compact_threshold: results are shortened before rounds are left out";
            problems.push(self.problem("executor.context_trunc_threshold", reason));
        }
        if made.http.write_timeout_ms < run.run_timeout_ms {
            let seconds = run.run_timeout_ms / 1000;
            let reason = format!("is less than a run may take ({seconds} s)");
            problems.push(self.problem("http_server.write_timeout_seconds", reason));
        }
        if !made.log.error_filename.contains("YYYY-MM-DD") || made.log.error_filename.contains('/')
        {
            let reason = "has to be a file's name with YYYY-MM-DD in it";
            problems.push(self.problem("logging.error_log_filename", reason));
        }
        for (name, model) in &made.models {
            let window = &model.run.window;
            let needed = window.reserve_tokens + u64::from(model.run.max_tokens);
            if needed >= window.tokens {
                let reason = format!(
                    "is {} for {name:?}, of which {needed} are reserved and for the answer: nothing is left for the question",
                    window.tokens
                );
                problems.push(self.problem("executor.context_window_limit", reason));
                return;
            }
        }
    }
}
