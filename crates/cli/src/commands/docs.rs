//! `holdfast docs`: the reference pages, written from the tables in the code.
//!
//! One source: a limit, code, variable or metric that is not in its table does not compile into
//! anything, and a page that differs from its table fails the check.

use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;

use holdfast_agent::config::table::ROWS;
use holdfast_contract::Limit;
use holdfast_contract::code::{CODES, CodeDoc};
use holdfast_reliability::observe::http::HTTP_METRICS;
use holdfast_reliability::observe::metrics::METRICS;
use holdfast_reliability::observe::runs::RUN_METRICS;
use holdfast_server::routes::call::http_status;

use crate::args::DocsArgs;
use crate::config::Config;
use crate::environment::VARIABLES;
use crate::fail::{Failure, Outcome};
use crate::output;

/// A page: its path under `docs`, and its text.
struct Page {
    path: String,
    text: String,
}

pub(super) fn run(args: &DocsArgs) -> Outcome<ExitCode> {
    let mut stale = Vec::new();
    for page in pages()? {
        let path = args.dir.join(&page.path);
        let found = std::fs::read_to_string(&path).unwrap_or_default();
        if found == page.text {
            continue;
        }
        if args.check {
            stale.push(page.path);
        } else {
            write(&path, &page.text)?;
        }
    }
    if stale.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    Err(Failure::failed(format!(
        "these pages are not as the code says: {}",
        stale.join(", ")
    ))
    .hint("Run `just docs` and commit the result."))
}

fn write(path: &Path, text: &str) -> Outcome<()> {
    let failed = |error: std::io::Error| Failure::failed(format!("{}: {error}", path.display()));
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).map_err(failed)?;
    }
    std::fs::write(path, text).map_err(failed)?;
    output::line(&format!("wrote {}", path.display()));
    Ok(())
}

fn pages() -> Outcome<Vec<Page>> {
    let mut pages = vec![
        Page {
            path: "reference/environment.md".to_owned(),
            text: environment(),
        },
        Page {
            path: "reference/metrics.md".to_owned(),
            text: metrics(),
        },
        Page {
            path: "reference/limits.md".to_owned(),
            text: limits(),
        },
        Page {
            path: "reference/configuration.md".to_owned(),
            text: configuration()?,
        },
        Page {
            path: "reference/executor.md".to_owned(),
            text: executor_file(),
        },
        Page {
            path: "errors/README.md".to_owned(),
            text: error_index(),
        },
    ];
    for row in CODES {
        pages.push(Page {
            path: format!("errors/{}.md", row.code.as_str()),
            text: error_page(row),
        });
    }
    Ok(pages)
}

const WRITTEN: &str = "<!-- Written by `holdfast docs` from the tables in the code. -->\n\n";

fn environment() -> String {
    let mut text = format!(
        "{WRITTEN}# Environment variables\n\n| variable | values | meaning |\n|---|---|---|\n"
    );
    for row in VARIABLES {
        // Writing to a string can not fail.
        let _ = writeln!(
            text,
            "| `{}` | {} | {} |",
            row.name, row.values, row.meaning
        );
    }
    text
}

fn metrics() -> String {
    let mut text = format!(
        "{WRITTEN}# Metrics\n\nThe `tool` label only ever holds names of registered tools, `unknown`, `other` or `all`; `model` and `server` only what is configured, or `other`.\n\n| metric | kind | labels | meaning |\n|---|---|---|---|\n"
    );
    for row in METRICS.iter().chain(RUN_METRICS).chain(HTTP_METRICS) {
        let _ = writeln!(
            text,
            "| `{}` | {} | {} | {} |",
            row.name, row.kind, row.labels, row.meaning
        );
    }
    text
}

fn limits() -> String {
    let mut text = format!(
        "{WRITTEN}# Limits\n\nEvery queue, cache, loop, body and output has a bound. `setting` names the configuration key that moves it.\n\n| limit | value | meaning | setting |\n|---|---:|---|---|\n"
    );
    let tables: &[&[Limit]] = &[
        holdfast_contract::limit::LIMITS,
        holdfast_agent::limits::LIMITS,
        holdfast_confine::limits::LIMITS,
        holdfast_intent::limits::LIMITS,
        holdfast_judge::limits::LIMITS,
        holdfast_reliability::limits::LIMITS,
        #[cfg(feature = "redis")]
        holdfast_reliability::limits::REDIS_LIMITS,
        holdfast_toolbox::limits::LIMITS,
        holdfast_undo::limits::LIMITS,
        holdfast_memory::limits::LIMITS,
        holdfast_server::limits::LIMITS,
        holdfast_transcript::limits::LIMITS,
        holdfast_trust::limits::LIMITS,
        #[cfg(feature = "web")]
        holdfast_web::limits::LIMITS,
        crate::telemetry::LIMITS,
    ];
    let mut rows: Vec<&Limit> = tables
        .iter()
        .copied()
        .flatten()
        .chain(holdfast_toolbox::tools::LIMITS)
        .collect();
    rows.sort_by_key(|limit| limit.name);
    for row in rows {
        let setting = row.setting.map_or(String::new(), |key| format!("`{key}`"));
        let _ = writeln!(
            text,
            "| `{}` | {} | {} | {setting} |",
            row.name, row.value, row.meaning
        );
    }
    text
}

fn configuration() -> Outcome<String> {
    let defaults = serde_saphyr::to_string(&Config::default())
        .map_err(|error| Failure::failed(error.to_string()))?;
    let schema = serde_json::to_value(schemars::schema_for!(Config)).unwrap_or_default();
    let mut text = format!(
        "{WRITTEN}# Configuration\n\nOne YAML file, named with `--config` or `HOLDFAST_CONFIG`, else \
         `holdfast/holdfast.yaml` in the user's configuration directory. Everything is optional; \
         unknown keys and bad values are refused with their place. `holdfast config check` checks \
         it, `holdfast config show` prints what is in force, `holdfast config schema` prints the \
         JSON Schema.\n\n## Defaults\n\n```yaml\n{}\n```\n\n## Settings\n\n| setting | meaning |\n|---|---|\n",
        defaults.trim_end()
    );
    let mut rows = Vec::new();
    collect_settings(&schema, &schema, "", &mut rows, 0);
    for (path, meaning) in rows {
        let _ = writeln!(
            text,
            "| `{path}` | {} |",
            meaning.replace('\n', " ").replace('|', "\\|")
        );
    }
    Ok(text)
}

/// The keys of `executor.yaml`.
fn executor_file() -> String {
    let mut text = format!(
        "{WRITTEN}# executor.yaml\n\nThe executor's own configuration file, named with `--config` like any other. \
         Everything is optional; unknown keys and bad values are refused with their line, and `holdfast config \
         check FILE` checks it. A variable wins over the file; lists are written with commas. `${{NAME}}` and \
         `${{NAME:-otherwise}}` in a text stand for a variable, `$${{` for itself.\n\n\
         | key | value | default | variables | meaning | used |\n|---|---|---|---|---|---|\n"
    );
    for row in ROWS {
        let variables: Vec<String> = if row.path == "tools.result_limits.NAME" {
            vec!["`GPTOSS_EXECUTOR_TOOLS_RESULT_LIMITS_NAME`".to_owned()]
        } else if row.path.contains("NAME") {
            Vec::new()
        } else {
            row.variables()
                .iter()
                .map(|name| format!("`{name}`"))
                .collect()
        };
        let _ = writeln!(
            text,
            "| `{}` | {} | {} | {} | {} | {} |",
            row.path,
            row.kind.words(),
            row.default,
            variables.join(", "),
            row.meaning,
            row.used.words(),
        );
    }
    text
}

/// Settings nest this deep at most; a schema that refers to itself must not run away.
const SETTINGS_DEPTH_MAX: usize = 8;

fn collect_settings(
    root: &serde_json::Value,
    schema: &serde_json::Value,
    path: &str,
    rows: &mut Vec<(String, String)>,
    depth: usize,
) {
    if depth > SETTINGS_DEPTH_MAX {
        return;
    }
    let schema = resolve(root, schema);
    if let Some(properties) = schema
        .get("properties")
        .and_then(serde_json::Value::as_object)
    {
        for (name, field) in properties {
            let field_path = if path.is_empty() {
                name.clone()
            } else {
                format!("{path}.{name}")
            };
            let meaning = field
                .get("description")
                .or_else(|| resolve(root, field).get("description"))
                .and_then(serde_json::Value::as_str)
                .unwrap_or_default();
            rows.push((field_path.clone(), meaning.to_owned()));
            collect_settings(root, field, &field_path, rows, depth + 1);
        }
    }
    if let Some(values) = schema
        .get("additionalProperties")
        .filter(|values| values.is_object())
    {
        collect_settings(root, values, &format!("{path}.NAME"), rows, depth + 1);
    }
}

fn resolve<'a>(
    root: &'a serde_json::Value,
    schema: &'a serde_json::Value,
) -> &'a serde_json::Value {
    // An optional section is written as "this or null".
    let schema = schema
        .pointer("/anyOf/0")
        .filter(|first| first.get("$ref").is_some())
        .unwrap_or(schema);
    schema
        .get("$ref")
        .and_then(serde_json::Value::as_str)
        .and_then(|reference| root.pointer(reference.trim_start_matches('#')))
        .unwrap_or(schema)
}

fn error_index() -> String {
    let mut text = format!(
        "{WRITTEN}# Error codes\n\n`error.code` of a result envelope is one of these, an HTTP status of a tool's dependency (`http_503`), a transport code (`ECONNRESET`), or a code of the tool's own.\n\n| code | what happened |\n|---|---|\n"
    );
    for row in CODES {
        let code = row.code.as_str();
        let _ = writeln!(text, "| [`{code}`]({code}.md) | {} |", row.summary);
    }
    text
}

fn error_page(row: &CodeDoc) -> String {
    let code = row.code.as_str();
    format!(
        "{WRITTEN}# `{code}`\n\n{}\n\n| | |\n|---|---|\n| terminal | {} |\n| retriable | {} |\n| status of `POST /v1/tools/call` | {} |\n\n## Effect and record\n\n{}\n\n## What to do\n\n{}\n",
        row.summary,
        if row.code.is_terminal() {
            "yes: repeating the same call is pointless or dangerous"
        } else {
            "no"
        },
        if row.code.is_retriable() {
            "yes: a later call with the same intent may succeed"
        } else {
            "no"
        },
        http_status(row.code).as_u16(),
        row.record,
        row.next
    )
}
