use std::path::Path;

use proptest::prelude::*;

use super::kind::Kind;
use super::table::{ROWS, Row, Used};
use super::*;
use crate::settings::{PromptPlace, SourceField, StructuredOutput};

/// The keys and values of the specification's example.
const SEED: &str = include_str!("../../tests/it/data/executor.yaml");

fn variables(set: &[(&str, &str)]) -> BTreeMap<String, String> {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    set.iter().map(owned).collect()
}

fn read(text: &str, set: &[(&str, &str)]) -> Result<ExecutorConfig, Vec<String>> {
    let read = ExecutorConfig::read(text, Path::new("/nonexistent"), &variables(set));
    // What is set is compared here, not where.
    let read = read.map(|config| ExecutorConfig {
        given: Vec::new(),
        ..config
    });
    read.map_err(|found| found.iter().map(ToString::to_string).collect())
}

#[test]
fn the_specification_is_accepted_as_it_is() {
    let config = read(SEED, &[]).unwrap();
    let model = &config.models["gpt-oss"];
    assert_eq!(model.upstreams, ["http://spark:8000"]);
    let mut like_built_in = RunSettings::default();
    like_built_in
        .result_limits
        .extend(model.run.result_limits.clone());
    // Without a file every form is read, not only the two that it names.
    assert_eq!(like_built_in.fallback_strategy.as_deref(), Some("auto"));
    like_built_in.fallback_strategy = Some("fuzzy".to_owned());
    assert_eq!(model.run, like_built_in);
    assert_eq!(config.http.port, 8001);
    assert_eq!(config.tools.enabled.as_ref().map(Vec::len), Some(6));
    assert_eq!(
        config.tools.blocked_commands,
        ["rm -rf /", "shutdown", "reboot"]
    );
    assert_eq!(config.tools.timeouts_ms["exec"], 60_000);
    // The prompt that it names is not there.
    assert_eq!(config.warnings.len(), 1);
    assert!(
        config.warnings[0].contains("config/system-prompt.txt"),
        "{:?}",
        config.warnings
    );
    assert!(ExecutorConfig::is_meant_by(SEED));
    for text in [
        "executor:\n  max_iterations: 5\n",
        "executor: {upstreams: [\"http://a:1\"]}\n",
        "executor:\n  context_buffer_tokens: 100\n",
        "holdfast:\n  server: {}\n",
        "executor:\n  gpt_oss_url: [broken\n",
        "executor: {gpt_oss_url: [}\n",
        "executor:\n  max_iteration: 4\n",
        "executor: {gpt_oss_ulr: http://a:1}\n",
    ] {
        assert!(ExecutorConfig::is_meant_by(text), "{text}");
    }
    assert!(!ExecutorConfig::is_meant_by(
        "executor:\n  modelUrl: http://a:1\n"
    ));
    assert!(!ExecutorConfig::is_meant_by(
        "reliability:\n  enabled: true\n"
    ));
}

#[test]
fn nothing_is_a_configuration_too() {
    for text in ["", "# only words\n", "executor:\n"] {
        assert_eq!(read(text, &[]).unwrap().http.port, 8001);
    }
}

#[test]
fn what_is_wrong_is_named_with_its_line_and_what_was_meant() {
    let table: [(&str, &str); 15] = [
        (
            "executor:\n  max_iteration: 5\n",
            "line 2: executor.max_iteration is not known; did you mean \"max_iterations\"?",
        ),
        (
            "executer:\n  x: 1\n",
            "line 1: executer is not known; did you mean \"executor\"?",
        ),
        (
            "parser:\n  port: 1\n",
            "line 2: parser.port is not known; did you mean \"http_server.port\"?",
        ),
        (
            "executor:\n  max_iterations: many\n",
            "line 2: executor.max_iterations has to be a whole number from 1 to 1000, and is \"many\"",
        ),
        (
            "executor:\n\n  max_iterations: 0\n",
            "line 3: executor.max_iterations has to be a whole number from 1 to 1000, and is 0",
        ),
        ("executor:\n  max_iterations: 2.5\n", "and is 2.5"),
        (
            "executor:\n  gpt_oss_url: spark:8000\n",
            "line 2: executor.gpt_oss_url has to be an address (`http://…` or `https://…`), and is \"spark:8000\"; did you mean http://spark:8000?",
        ),
        (
            "executor:\n  upstreams: [\"127.0.0.1:8000\"]\n",
            "line 2: executor.upstreams holds \"127.0.0.1:8000\", which is no address of an HTTP server; did you mean http://127.0.0.1:8000?",
        ),
        (
            "executor:\n  context_trunc_threshold: 0.9\n",
            "line 2: executor.context_trunc_threshold is larger than",
        ),
        (
            "http_server:\n  write_timeout_seconds: 10\n",
            "line 2: http_server.write_timeout_seconds is less than a run may take (300 s)",
        ),
        (
            "parser:\n  strategy: regex\n",
            "line 2: parser.strategy has to be one of guided_json, react",
        ),
        (
            "tools:\n  enabled: {a: b}\n",
            "line 2: tools.enabled has to be a list of texts, and is a section",
        ),
        (
            "tools:\n  web_serch:\n    timeout_seconds: 3\n",
            "line 2: tools.web_serch is not known; did you mean \"web_search\"?",
        ),
        (
            "executor: 5\n",
            "line 1: executor has to be a section, and is a number",
        ),
        (
            "executor:\n  context_window_limit: 2500\n",
            "nothing is left for the question",
        ),
    ];
    for (text, says) in table {
        let found = read(text, &[]).unwrap_err();
        assert!(
            found.len() == 1 && found[0].contains(says),
            "{text:?}: {found:?}"
        );
    }
    assert!(read("executor: [\n", &[]).is_err());
    let both = read("executor:\n  a: 1\n  b: 2\n", &[]).unwrap_err();
    assert_eq!(both.len(), 2);
}

#[test]
fn variables_win_over_the_file() {
    let set = [
        ("GPTOSS_EXECUTOR_GPT_OSS_URL", "http://a:1"),
        ("GPTOSS_EXECUTOR_GATEWAY_TOKEN", "secret-1"),
        ("GPTOSS_EXECUTOR_GATEWAY_URL", "http://g:2"),
        ("GPTOSS_EXECUTOR_PORT", "8123"),
        ("GPTOSS_EXECUTOR_LOG_LEVEL", "debug"),
        ("GPTOSS_EXECUTOR_EXECUTOR_MAX_ITERATIONS", "9"),
        ("GPTOSS_EXECUTOR_TOOLS_RESULT_LIMITS_READ", "77"),
        ("GPTOSS_EXECUTOR_TOOLS_EXEC_BLOCKED_COMMANDS", "rm, dd"),
        ("PATH", "/bin"),
    ];
    let config = read(SEED, &set).unwrap();
    let model = &config.models["gpt-oss"];
    assert_eq!(model.upstreams, ["http://a:1"]);
    assert_eq!(
        (model.run.max_iterations, model.run.result_limits["read"]),
        (9, 77)
    );
    assert_eq!(config.gateway_token.reveal(), Some("secret-1"));
    assert_eq!(config.gateway_url.as_deref(), Some("http://g:2"));
    assert_eq!(
        (config.http.port, config.log.level.as_str()),
        (8123, "debug")
    );
    assert_eq!(config.tools.blocked_commands, ["rm", "dd"]);
    assert!(!format!("{config:?}").contains("secret-1"));
    let wrong = read("", &[("GPTOSS_EXECUTOR_PORTT", "1")]).unwrap_err();
    assert!(
        wrong[0].contains(
            "GPTOSS_EXECUTOR_PORTT sets no setting; did you mean \"GPTOSS_EXECUTOR_PORT\"?"
        ),
        "{wrong:?}"
    );
    let wrong = read("", &[("GPTOSS_EXECUTOR_PORT", "70000")]).unwrap_err();
    assert!(
        wrong[0].contains("GPTOSS_EXECUTOR_PORT has to be a whole number"),
        "{wrong:?}"
    );
}

#[test]
fn texts_hold_variables() {
    let text = "executor:\n  openclaw_gateway_token: ${TOKEN}\n  max_iterations: ${N:-7}\n  upstreams: [\"http://${HOST}:1\"]\n";
    let config = read(text, &[("TOKEN", "t"), ("HOST", "h")]).unwrap();
    assert_eq!(config.gateway_token.reveal(), Some("t"));
    let model = &config.models["executor"];
    assert_eq!(
        (model.run.max_iterations, model.upstreams[1].as_str()),
        (7, "http://h:1")
    );
    let found = read("executor:\n  openclaw_gateway_token: ${TOKEN}\n", &[]).unwrap_err();
    assert!(
        found[0]
            .starts_with("line 2: executor.openclaw_gateway_token the variable TOKEN is not set"),
        "{found:?}"
    );
}

#[test]
fn models_have_settings_of_their_own() {
    let text = "executor:\n  api_key: first\n  gpt_oss_max_tokens: 500\nmodels:\n  qwen2.5-7b:\n    upstreams: [http://q:1, http://q:2]\n    context_window_limit: 8000\n    strategy: native\n    source_field: content\n    prompt_place: user\n    structured_output: guided_json\n    input_per_million: 0.5\n  small:\n    model: gpt-oss-20b\n";
    let config = read(text, &[]).unwrap();
    let qwen = &config.models["qwen2.5-7b"];
    assert_eq!(qwen.upstreams, ["http://q:1", "http://q:2"]);
    assert_eq!(
        (qwen.model.as_str(), qwen.api_key.reveal()),
        ("qwen2.5-7b", None)
    );
    assert_eq!((qwen.run.window.tokens, qwen.run.max_tokens), (8000, 500));
    assert_eq!(qwen.run.strategy, "native");
    assert_eq!(qwen.run.source_field, SourceField::Content);
    assert_eq!(qwen.run.prompt_place, PromptPlace::User);
    assert_eq!(qwen.run.structured_output, StructuredOutput::GuidedJson);
    let small = &config.models["small"];
    assert_eq!(
        (small.model.as_str(), small.api_key.reveal()),
        ("gpt-oss-20b", Some("first"))
    );
    let wrong = read("models:\n  a:\n    upstreams: [q:1]\n", &[]).unwrap_err();
    assert!(
        wrong[0].starts_with("line 3: models.a.upstreams holds \"q:1\""),
        "{wrong:?}"
    );
}

#[test]
fn a_key_goes_to_the_servers_it_was_given_for() {
    let text = "executor:\n  gpt_oss_url: http://a:1\n  upstreams: [http://b:1]\n  api_key: first\n\
                models:\n  same: {upstreams: [http://b:1]}\n  other: {upstreams: [http://b:1, http://c:1]}\n  \
                own: {upstreams: [http://a:1], api_key: second}\n";
    let models = read(text, &[]).unwrap().models;
    let key = |name: &str| models[name].api_key.reveal();
    assert_eq!(
        (key("same"), key("other"), key("own")),
        (Some("first"), None, Some("second"))
    );
}

#[test]
fn misspelt_keys_of_models_are_told_with_what_was_meant() {
    let text = "models:\n  qwen2.5:\n    url: http://q:1\n    temprature: 1\n    strategy:\n      first: native\n  \
                plain: http://q:1\n";
    let found = read(text, &[]).unwrap_err();
    let expected = [
        "line 3: models.qwen2.5.url is not known; did you mean \"upstreams\"?",
        "line 4: models.qwen2.5.temprature is not known; did you mean \"temperature\"?",
        "line 6: models.qwen2.5.strategy",
        "line 7: models.plain has to be a section",
    ];
    assert_eq!(found.len(), expected.len(), "{found:?}");
    for (found, expected) in found.iter().zip(expected) {
        assert!(found.starts_with(expected), "{found}");
    }
}

/// Some servers refuse a request that has both `temperature` and `top_p`.
#[test]
fn nucleus_sampling_can_be_left_out() {
    let top_p = |text: &str| read(text, &[]).unwrap().models["gpt-oss"].run.top_p;
    assert_eq!(top_p(""), Some(0.95));
    assert_eq!(top_p("executor:\n  gpt_oss_top_p: 0.5\n"), Some(0.5));
    assert_eq!(top_p("executor:\n  gpt_oss_top_p: null\n"), None);
    let none = read("", &[("GPTOSS_EXECUTOR_GPT_OSS_TOP_P", "")]).unwrap();
    assert_eq!(none.models["gpt-oss"].run.top_p, None);
    let wrong = read("executor:\n  gpt_oss_top_p: all\n", &[]).unwrap_err();
    assert!(wrong[0].contains("from 0 to 1, or nothing"), "{wrong:?}");
    // A model has its own, or none, or that of the first section.
    let text = "executor:\n  gpt_oss_top_p: 0.8\nmodels:\n  own: {top_p: 0.5}\n  none: {top_p: null}\n  \
                common: {temperature: 1}\n";
    let models = read(text, &[]).unwrap().models;
    let top_p = |name: &str| models[name].run.top_p;
    assert_eq!(
        (top_p("own"), top_p("none"), top_p("common")),
        (Some(0.5), None, Some(0.8))
    );
}

#[test]
fn files_that_are_there_are_used() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("p.txt"), "Tools:\n{tools}").unwrap();
    std::fs::write(dir.path().join("s.json"), "{\"type\": \"object\"}").unwrap();
    std::fs::write(dir.path().join("broken.json"), "{").unwrap();
    let text = "parser:\n  system_prompt_path: p.txt\n  guided_json_schema_path: s.json\n";
    let none = variables(&[]);
    let config = ExecutorConfig::read(text, dir.path(), &none).unwrap();
    let run = &config.models["gpt-oss"].run;
    assert_eq!(run.prompt.as_deref(), Some("Tools:\n{tools}"));
    assert_eq!(run.guided_schema.as_ref().unwrap()["type"], "object");
    let text = "parser:\n  guided_json_schema_path: broken.json\n";
    let found = ExecutorConfig::read(text, dir.path(), &none).unwrap_err();
    assert!(
        found[0]
            .to_string()
            .starts_with("line 2: parser.guided_json_schema_path names a file")
    );
}

#[test]
fn no_two_keys_share_a_variable_and_no_default_is_refused() {
    let mut seen = BTreeMap::new();
    for row in ROWS.iter().filter(|row| !row.path.contains("NAME")) {
        for name in row.variables() {
            if let Some(other) = seen.insert(name.clone(), row.path) {
                assert_eq!(other, row.path, "{name}");
            }
        }
        let is_value = !row.default.contains([' ', '[']) && !["none", "all"].contains(&row.default);
        if is_value {
            assert!(row.kind.hold_text(row.default).is_ok(), "{}", row.path);
        }
    }
    // What the table says of a default is what is used.
    let written = |row: &&Row| {
        let is_value = !row.default.is_empty()
            && !row.default.contains(' ')
            && !["none", "all", "[]"].contains(&row.default);
        is_value && !row.path.contains("NAME")
    };
    let mut text = String::new();
    let mut section = "";
    for row in ROWS
        .iter()
        .filter(written)
        .filter(|row| row.path.split('.').count() == 2)
    {
        let (own, key) = row.path.split_once('.').unwrap();
        if own != section {
            text.extend([own, ":\n"]);
            section = own;
        }
        text.extend(["  ", key, ": ", row.default, "\n"]);
    }
    assert_eq!(read(&text, &[]).unwrap(), read("", &[]).unwrap(), "{text}");
}

proptest! {
    #[test]
    fn no_text_makes_it_fail_otherwise_than_with_problems(text in "[a-z:{}\\[\\]\\- \n$\"0-9.]{0,120}") {
        let _ = read(&text, &[]);
    }

    #[test]
    fn a_misspelt_key_is_found(row in prop::sample::select(ROWS), at in any::<prop::sample::Index>()) {
        let key = row.path.rsplit('.').next().unwrap();
        prop_assume!(row.path.split('.').count() == 2 && key.len() > 4 && !row.path.contains("NAME"));
        let section = row.path.split('.').next().unwrap();
        let mut wrong = key.to_owned();
        wrong.remove(at.index(key.len()));
        let found = read(&format!("{section}:\n  {wrong}: 1\n"), &[]).unwrap_err();
        let says = format!("line 2: {section}.{wrong} is not known");
        prop_assert!(found[0].starts_with(&says), "{}", found[0]);
        prop_assert!(found[0].contains("did you mean"), "{}", found[0]);
    }
}

/// A value for a key that is not its default.
fn another(row: &Row) -> String {
    match row.kind {
        Kind::Address => "http://127.0.0.1:7".to_owned(),
        Kind::Secret | Kind::Text if row.path.ends_with("filename") => "YYYY-MM-DD-x.md".to_owned(),
        Kind::Texts if row.path.ends_with("upstreams") => "http://127.0.0.1:7".to_owned(),
        Kind::Secret | Kind::Text | Kind::Texts => "other".to_owned(),
        Kind::File => "missing-file".to_owned(),
        // Of the two fields the second is by itself the other one.
        Kind::Choice(_) if row.path == "parser.fallback_field" => "reasoning".to_owned(),
        Kind::Choice(words) => {
            let other = words.iter().find(|word| **word != row.default);
            (*other.expect("two words")).to_owned()
        }
        // A run may not take longer than its answer.
        Kind::Number { .. } if row.path == "executor.run_timeout_seconds" => "299".to_owned(),
        Kind::Number { .. } if row.path.ends_with("context_window_limit") => "70100".to_owned(),
        Kind::Number { min, max } => (min.max(700) + 1).min(max).to_string(),
        Kind::Decimal { min, max } | Kind::MaybeDecimal { min, max } => {
            (min + (max - min) * 0.7).min(1.5).to_string()
        }
    }
}

/// A file that sets one key.
fn file_of(row: &Row, path: &str) -> String {
    let value = match row.kind {
        Kind::Texts => format!("[\"{}\"]", another(row)),
        _ => another(row),
    };
    let keys: Vec<&str> = path.split('.').collect();
    let lines = keys.iter().enumerate().map(|(depth, key)| {
        let is_last = depth + 1 == keys.len();
        let end = if is_last { value.as_str() } else { "" };
        format!("{}{key}: {end}\n", "  ".repeat(depth))
    });
    lines.collect()
}

/// No key may be read and then forgotten: whatever is said to be used changes the settings.
#[test]
fn every_key_that_is_used_has_an_effect() {
    let none = BTreeMap::<String, String>::new();
    let made = |text: &str| ExecutorConfig::read(text, Path::new("."), &none);
    let without = made("executor: {}\n").expect("a configuration");
    for row in ROWS {
        let path = row.path.replace("NAME", "other");
        let text = file_of(row, &path);
        if row.path == "http_server.write_timeout_seconds" || row.path.ends_with("extract_mode") {
            let with = made(&text).expect(&text);
            let said = with.warnings.iter().any(|it| it.starts_with(&path));
            assert!(said, "{path} has no effect, and nothing is said");
            continue;
        }
        assert_eq!(row.used, Used::Yes, "{path}: say how it is tested");
        match made(&text) {
            Ok(with) => assert_ne!(with, without, "{path} has no effect:\n{text}"),
            // A value that is held against another one has an effect too.
            Err(problems) => assert!(problems.iter().any(|it| it.key == path), "{problems:?}"),
        }
    }
}

/// Every variable of every key does what the key does in a file.
#[test]
fn every_variable_says_what_its_key_says() {
    let mut count = 0;
    for row in ROWS.iter().filter(|row| !row.path.contains("NAME")) {
        let of_file = read(&file_of(row, row.path), &[]);
        let names = row.variables();
        let long = row.path.replace('.', "_").to_uppercase();
        assert!(
            names.contains(&format!("GPTOSS_EXECUTOR_{long}")),
            "{names:?}"
        );
        for variable in names {
            let value = another(row);
            let set = [(variable.as_str(), value.as_str())];
            match (&of_file, read("executor: {}\n", &set)) {
                (Ok(of_file), Ok(of_variable)) => assert_eq!(*of_file, of_variable, "{variable}"),
                (Err(_), Err(problems)) => {
                    let is_it = |it: &String| it.contains(row.path) || it.contains(&variable);
                    assert!(problems.iter().any(is_it), "{variable}: {problems:?}");
                }
                (of_file, of_variable) => panic!("{variable}: {of_file:?}, {of_variable:?}"),
            }
            count += 1;
        }
    }
    // One of each key, one more for the first section's, and the short ones.
    assert!(count > ROWS.len(), "{count} of {}", ROWS.len());
}
