//! Every key of `executor.yaml`, in one table: it is read, checked and documented from here.

use super::kind::Kind::{self, Address, Choice, Decimal, File, Number, Secret, Text, Texts};

/// A key.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// Where it stands. `NAME` stands for any name.
    pub path: &'static str,
    /// What it may hold.
    pub kind: Kind,
    /// What it is without the file, for people.
    pub default: &'static str,
    /// A variable that sets it, beside the one that every key has.
    pub short: Option<&'static str>,
    /// What it does.
    pub meaning: &'static str,
}

/// How every variable begins.
pub const PREFIX: &str = "GPTOSS_EXECUTOR_";

impl Row {
    /// The variables that set it, where its path has no `NAME`: `GPTOSS_EXECUTOR_<SECTION>_<KEY>`,
    /// for the first section also without its name, and the short one.
    pub fn variables(&self) -> Vec<String> {
        let upper = |path: &str| format!("{PREFIX}{}", path.replace('.', "_").to_uppercase());
        let mut names = vec![upper(self.path)];
        if let Some(key) = self.path.strip_prefix("executor.") {
            names.push(upper(key));
        }
        names.extend(self.short.map(str::to_owned));
        names
    }
}

const STRATEGIES: Kind = Choice(&[
    "guided_json",
    "react",
    "markers",
    "fuzzy",
    "native",
    "harmony",
    "auto",
]);
const FIELDS: Kind = Choice(&["reasoning", "content"]);
const OUTPUTS: Kind = Choice(&["response_format", "guided_json", "off"]);
const PLACES: Kind = Choice(&["system", "user"]);

const fn row(path: &'static str, kind: Kind, default: &'static str, meaning: &'static str) -> Row {
    Row {
        path,
        kind,
        default,
        short: None,
        meaning,
    }
}

const fn short(row: Row, short: &'static str) -> Row {
    Row {
        short: Some(short),
        ..row
    }
}

const fn whole(min: u64, max: u64) -> Kind {
    Number { min, max }
}

/// The table.
pub const ROWS: &[Row] = &[
    row(
        "executor.gpt_oss_url",
        Address,
        "http://127.0.0.1:8000",
        "The model server.",
    ),
    row(
        "executor.upstreams",
        Texts,
        "[]",
        "More servers of the same model, asked when the first is away.",
    ),
    row(
        "executor.api_key",
        Secret,
        "",
        "The key that the servers want.",
    ),
    row(
        "executor.gpt_oss_model",
        Text,
        "gpt-oss",
        "The model's name, as its server knows it.",
    ),
    row(
        "executor.gpt_oss_temperature",
        Decimal { min: 0.0, max: 2.0 },
        "0.25",
        "Sampling.",
    ),
    row(
        "executor.gpt_oss_max_tokens",
        whole(1, 1_000_000),
        "1000",
        "Tokens of one answer; a client that asks for more gets this many.",
    ),
    row(
        "executor.gpt_oss_call_timeout_seconds",
        whole(1, 86_400),
        "60",
        "How long one answer may take.",
    ),
    row(
        "executor.max_iterations",
        whole(1, 1000),
        "5",
        "How often the model is asked in one run.",
    ),
    row(
        "executor.max_retries",
        whole(0, 20),
        "3",
        "How often a model server that is away is asked for one answer; 0 and 1 are once.",
    ),
    row(
        "executor.run_timeout_seconds",
        whole(1, 604_800),
        "300",
        "How long a run may take.",
    ),
    row(
        "executor.context_window_limit",
        whole(512, 100_000_000),
        "32768",
        "Tokens that the model can hold.",
    ),
    row(
        "executor.context_buffer_tokens",
        whole(0, 100_000_000),
        "2000",
        "Tokens of the window that are never used.",
    ),
    row(
        "executor.context_compact_threshold",
        Decimal { min: 0.0, max: 1.0 },
        "0.8",
        "Old rounds are left out from this share of the window on.",
    ),
    row(
        "executor.context_trunc_threshold",
        Decimal { min: 0.0, max: 1.0 },
        "0.6",
        "Old results are shortened from this share of the window on.",
    ),
    row(
        "executor.when_used_up",
        Choice(&["fail", "answer"]),
        "fail",
        "What becomes of a run whose iterations are used up.",
    ),
    row(
        "executor.run_tokens_max",
        whole(1, 1_000_000_000_000),
        "none",
        "Tokens that a run may use in all.",
    ),
    row(
        "executor.run_cost_max",
        Decimal { min: 0.0, max: 1e9 },
        "none",
        "What a run may cost, in the currency of the models' prices.",
    ),
    short(
        row(
            "executor.openclaw_gateway_url",
            Address,
            "none",
            "The OpenClaw gateway whose tools are offered.",
        ),
        "GPTOSS_EXECUTOR_GATEWAY_URL",
    ),
    short(
        row(
            "executor.openclaw_gateway_token",
            Secret,
            "",
            "The gateway's token.",
        ),
        "GPTOSS_EXECUTOR_GATEWAY_TOKEN",
    ),
    row(
        "models.NAME.upstreams",
        Texts,
        "those of `executor`",
        "The servers of the model that clients call NAME, in the order in which they are asked.",
    ),
    row(
        "models.NAME.model",
        Text,
        "NAME",
        "Its name, as its servers know it.",
    ),
    row(
        "models.NAME.api_key",
        Secret,
        "",
        "The key that its servers want.",
    ),
    row(
        "models.NAME.temperature",
        Decimal { min: 0.0, max: 2.0 },
        "that of `executor`",
        "Sampling.",
    ),
    row(
        "models.NAME.max_tokens",
        whole(1, 1_000_000),
        "that of `executor`",
        "Tokens of one answer.",
    ),
    row(
        "models.NAME.context_window_limit",
        whole(512, 100_000_000),
        "that of `executor`",
        "Tokens that it can hold.",
    ),
    row(
        "models.NAME.strategy",
        STRATEGIES,
        "that of `parser`",
        "How its replies are read first.",
    ),
    row(
        "models.NAME.source_field",
        FIELDS,
        "that of `parser`",
        "The field of its replies that is read first.",
    ),
    row(
        "models.NAME.structured_output",
        OUTPUTS,
        "that of `parser`",
        "How its server is told to keep to a format.",
    ),
    row(
        "models.NAME.prompt_place",
        PLACES,
        "that of `parser`",
        "Where the prompt goes.",
    ),
    row(
        "models.NAME.input_per_million",
        Decimal { min: 0.0, max: 1e9 },
        "0",
        "What a million tokens that it reads cost.",
    ),
    row(
        "models.NAME.output_per_million",
        Decimal { min: 0.0, max: 1e9 },
        "0",
        "What a million tokens that it writes cost.",
    ),
    row(
        "parser.strategy",
        STRATEGIES,
        "react",
        "How replies are read first.",
    ),
    row(
        "parser.fallback_strategy",
        STRATEGIES,
        "fuzzy",
        "How replies are read when the first way finds nothing; empty for not at all.",
    ),
    row(
        "parser.source_field",
        FIELDS,
        "reasoning",
        "The field that is read first.",
    ),
    row(
        "parser.fallback_field",
        FIELDS,
        "content",
        "The field that is read when the first is empty.",
    ),
    row(
        "parser.system_prompt_path",
        File,
        "none",
        "A prompt in place of the built-in one; `{tools}` in it stands for the list of tools.",
    ),
    row(
        "parser.guided_json_schema_path",
        File,
        "none",
        "A JSON Schema in place of the built-in one, for `guided_json`.",
    ),
    row(
        "parser.structured_output",
        OUTPUTS,
        "response_format",
        "How a server is told to keep to the format of `guided_json`.",
    ),
    row(
        "parser.prompt_place",
        PLACES,
        "system",
        "Where the prompt goes: some servers drop the system message.",
    ),
    short(
        row("http_server.port", whole(0, 65_535), "8001", "The port."),
        "GPTOSS_EXECUTOR_PORT",
    ),
    row("http_server.bind", Text, "127.0.0.1", "The address."),
    row(
        "http_server.read_timeout_seconds",
        whole(1, 86_400),
        "30",
        "How long a request may take to arrive.",
    ),
    row(
        "http_server.write_timeout_seconds",
        whole(1, 604_800),
        "600",
        "How long an answer may take; not less than a run may take.",
    ),
    row(
        "http_server.idle_timeout_seconds",
        whole(1, 86_400),
        "120",
        "How long a connection may be idle.",
    ),
    row(
        "http_server.shutdown_timeout_seconds",
        whole(0, 86_400),
        "5",
        "How long the end waits for requests under way.",
    ),
    short(
        row(
            "logging.level",
            Choice(&["debug", "info", "warn", "error"]),
            "info",
            "What is logged.",
        ),
        "GPTOSS_EXECUTOR_LOG_LEVEL",
    ),
    row(
        "logging.format",
        Choice(&["json", "text"]),
        "json",
        "How it is logged.",
    ),
    row(
        "logging.output",
        Text,
        "stdout",
        "Where it is logged: `stdout`, `stderr` or a file.",
    ),
    row(
        "logging.error_log_dir",
        File,
        "logs",
        "Where the pages of errors go.",
    ),
    row(
        "logging.error_log_filename",
        Text,
        "YYYY-MM-DD-errors.md",
        "Their name; the day is put in.",
    ),
    row("tools.enabled", Texts, "all", "The tools that are offered."),
    row(
        "tools.default_timeout_seconds",
        whole(1, 86_400),
        "30",
        "How long a call may take.",
    ),
    row(
        "tools.result_limits.NAME",
        whole(0, 10_000_000),
        "3000",
        "Characters of a result of the tool NAME that the model sees.",
    ),
    row(
        "tools.web_search.timeout_seconds",
        whole(1, 86_400),
        "30",
        "How long a search may take.",
    ),
    row(
        "tools.web_search.max_results",
        whole(1, 100),
        "10",
        "Hits of a search.",
    ),
    row(
        "tools.web_fetch.timeout_seconds",
        whole(1, 86_400),
        "30",
        "How long a page may take.",
    ),
    row(
        "tools.web_fetch.max_chars",
        whole(1, 100_000_000),
        "50000",
        "Characters of a page.",
    ),
    row(
        "tools.web_fetch.extract_mode",
        Choice(&["markdown", "text"]),
        "markdown",
        "What is made of a page.",
    ),
    row(
        "tools.read.timeout_seconds",
        whole(1, 86_400),
        "10",
        "How long reading may take.",
    ),
    row(
        "tools.write.timeout_seconds",
        whole(1, 86_400),
        "10",
        "How long writing may take.",
    ),
    row(
        "tools.exec.timeout_seconds",
        whole(1, 86_400),
        "60",
        "How long a command may take.",
    ),
    row(
        "tools.exec.allowed_commands",
        Texts,
        "[]",
        "Commands that may run; all when empty.",
    ),
    row(
        "tools.exec.blocked_commands",
        Texts,
        "[]",
        "Commands that may not run.",
    ),
    row(
        "tools.browser.timeout_seconds",
        whole(1, 86_400),
        "30",
        "How long the browser may take.",
    ),
];
