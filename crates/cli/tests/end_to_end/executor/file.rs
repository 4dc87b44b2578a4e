//! `executor.yaml`: checked, and used by the loop at the terminal.

use holdfast_testkit::model::{ModelServer, Say};
use serde_json::{Value, json};

use crate::common::House;

/// The keys and values of the specification's example.
const SEED: &str = include_str!("../../../../agent/tests/it/data/executor.yaml");

#[test]
fn the_file_of_the_specification_is_checked_as_it_is() {
    let house = House::new();
    let file = house.file("executor.yaml", SEED);
    let checked = house.run(&["config", "check", &file]);
    assert_eq!(checked.code, Some(0), "{checked:#?}");
    // What is done otherwise here is said.
    let said = "config/system-prompt.txt";
    assert!(checked.stderr.contains(said), "{}", checked.stderr);
    // And what has no effect here is said where it is not what holds anyway.
    let other = SEED.replace("write_timeout_seconds: 600", "write_timeout_seconds: 900");
    assert_ne!(other, SEED);
    let other = house.file("other.yaml", &other);
    let said = house.run(&["config", "check", &other]).stderr;
    assert!(
        said.contains("http_server.write_timeout_seconds: "),
        "{said}"
    );
    let json = house.run(&["config", "check", &file, "--json"]);
    let said: Value = serde_json::from_str(&json.stdout).expect("JSON");
    assert_eq!(said["ok"], true);
    let warnings: Vec<String> = serde_json::from_value(said["warnings"].clone()).expect("texts");
    let about = ["config/system-prompt.txt", "OPENCLAW_GATEWAY_TOKEN"];
    assert_eq!(warnings.len(), about.len(), "{warnings:?}");
    for (warning, about) in warnings.iter().zip(about) {
        assert!(warning.contains(about), "{warning}");
    }
}

/// What is enabled and not ours is the gateway's; what is not enabled is nobody's.
#[cfg(feature = "web")]
#[test]
fn tools_of_its_gateway_are_offered() {
    let house = House::new();
    let file = house.file("executor.yaml", SEED);
    let tools = house.run(&["--config", &file, "tools", "--json"]).stdout;
    assert!(tools.contains("browser"), "{tools}");
    let without = SEED.replace("openclaw_gateway_url", "# openclaw_gateway_url");
    let file = house.file("executor.yaml", &without);
    let tools = house.run(&["--config", &file, "tools", "--json"]).stdout;
    assert!(!tools.contains("browser"), "{tools}");
    let checked = house.run(&["config", "check", &file]);
    assert!(checked.stderr.contains("\"browser\""), "{}", checked.stderr);
}

#[test]
fn commands_that_it_blocks_do_not_run() {
    let house = House::new();
    let file = house.file("executor.yaml", SEED);
    let call = |command: &str| {
        let args = json!({"command": command}).to_string();
        house.run(&["--config", &file, "call", "exec", "--json", "--args", &args])
    };
    let refused = call("echo x; reboot").error("permission_denied");
    let said = refused["error"]["message"].as_str().unwrap_or_default();
    assert!(said.contains("`reboot` is blocked by the rule"), "{said}");
    assert_eq!(call("echo rebooted").code, Some(0));
}

#[test]
fn what_is_wrong_with_it_is_named() {
    let house = House::new();
    let wrong = SEED.replace("max_iterations: 5", "max_iteration: 5");
    let file = house.file("executor.yaml", &wrong);
    house
        .run(&["config", "check", &file])
        .bad_usage("executor.max_iteration is not known; did you mean \"max_iterations\"?");
    let ours = house.file("holdfast.yaml", "guard:\n  enabled: true\n");
    assert_eq!(house.run(&["config", "check", &ours]).code, Some(0));
    let ours = house.file("holdfast.yaml", "gard:\n  enabled: true\n");
    house.run(&["config", "check", &ours]).bad_usage("gard");
}

#[test]
fn a_run_takes_its_rules_servers_and_log_from_it() {
    let (house, model) = (
        House::new(),
        ModelServer::says(vec![
            Say::calls("exec", &json!({"command": "exit 0"})),
            Say::calls("read", &json!({"path": "missing"})),
            Say::says("Final Answer: Done."),
        ])
        .expect("starts"),
    );
    let (log, pages) = (house.file("events.log", ""), house.file("pages", ""));
    std::fs::remove_file(&pages).expect("removed");
    // Nobody listens on the first server's port.
    let text = format!(
        "executor:\n  gpt_oss_url: http://127.0.0.1:1\n  upstreams: [\"{}\"]\n  max_iterations: 4\n\
         parser:\n  strategy: react\n\
         logging:\n  output: {log}\n  error_log_dir: {pages}\n\
         tools:\n  enabled: [read, exec]\n  result_limits: {{exec: 900}}\n",
        model.url()
    );
    let file = house.file("executor.yaml", &text);
    let ran = house.run(&["run", "Do it", "--config", &file]);
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (Some(0), "Done.\n"),
        "{ran:#?}"
    );
    let lines = std::fs::read_to_string(&log).expect("a log");
    let events: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!(events[0]["event"], "executor_run_start");
    assert_eq!(events[0]["max_iterations"], 4);
    let failed = events
        .iter()
        .find(|it| it["event"] == "tool_execution_failed");
    assert_eq!(failed.expect("a failure")["tool"], "read");
    let page = std::fs::read_dir(&pages)
        .expect("a directory")
        .next()
        .expect("a page")
        .expect("readable");
    let text = std::fs::read_to_string(page.path()).expect("a text");
    assert!(
        text.starts_with("## 20") && text.contains("] read | Error: "),
        "{text}"
    );
}

/// An empty list is not "all of them": it is none.
#[test]
fn a_file_that_enables_no_tool_denies_every_tool() {
    let house = House::new();
    std::fs::write(house.path("notes.txt"), "hello").expect("written");
    let call = |file: &str, tool: &str, args: &Value| {
        let args = args.to_string();
        house.run(&["--config", file, "call", tool, "--json", "--args", &args])
    };
    let none = house.file("executor.yaml", "tools:\n  enabled: []\n");
    call(&none, "read", &json!({"path": "notes.txt"})).error("permission_denied");
    call(&none, "exec", &json!({"command": "echo x"})).error("permission_denied");
    let one = house.file("one.yaml", "tools:\n  enabled: [read]\n");
    assert_eq!(
        call(&one, "read", &json!({"path": "notes.txt"})).code,
        Some(0)
    );
    call(&one, "exec", &json!({"command": "echo x"})).error("permission_denied");
}

/// Tools that only runs have are no exception: what is not enabled is not offered, and asking for it
/// all the same runs nothing.
#[test]
fn a_file_that_enables_one_tool_offers_no_other() {
    let house = House::new();
    let spawn = "Thought: I ask another.\nAction: sessions_spawn\nAction Input: {\"task\": \"x\"}";
    for (enabled, is_offered) in [("read", false), ("read, sessions_spawn", true)] {
        let mut answers = vec![Say::says("Final Answer: Done.")];
        if !is_offered {
            answers.insert(0, Say::says(spawn));
        }
        let model = ModelServer::says(answers).expect("starts");
        let url = model.url();
        let text = format!(
            "executor:\n  gpt_oss_url: {url}\nlogging:\n  output: stderr\ntools:\n  enabled: [{enabled}]\n"
        );
        let file = house.file("executor.yaml", &text);
        let ran = house.run(&["run", "Do it", "--config", &file]);
        assert_eq!(ran.code, Some(0), "{ran:#?}");
        assert!(!ran.stderr.contains("there is no tool"), "{ran:#?}");
        let asked = model.asked();
        let offered = asked[0].to_string();
        assert!(offered.contains("## read"), "{offered}");
        for denied in ["## exec", "## write", "## sessions_kill"] {
            assert!(!offered.contains(denied), "{denied}: {offered}");
        }
        assert_eq!(
            offered.contains("## sessions_spawn"),
            is_offered,
            "{offered}"
        );
        assert_eq!(
            asked.len(),
            if is_offered { 1 } else { 2 },
            "no subagent asks"
        );
    }
}

#[test]
fn keys_without_effect_are_said_and_others_are_not() {
    let house = House::new();
    let text = "http_server:\n  write_timeout_seconds: 900\n  idle_timeout_seconds: 60\n\
                tools:\n  web_fetch: {max_chars: 500, extract_mode: text}\n  web_search: {max_results: 3}\n";
    let file = house.file("executor.yaml", text);
    let said = house.run(&["config", "check", &file, "--json"]);
    let said: Value = serde_json::from_str(&said.stdout).expect("JSON");
    let warnings: Vec<&str> = said["warnings"]
        .as_array()
        .expect("warnings")
        .iter()
        .filter_map(Value::as_str)
        .collect();
    assert_eq!(warnings.len(), 2, "{warnings:#?}");
    assert!(warnings[0].starts_with("http_server.write_timeout_seconds: "));
    assert!(warnings[1].starts_with("tools.web_fetch.extract_mode: "));
    let tools = house.run(&["--config", &file, "tools", "--json"]).stdout;
    let tools: Value = serde_json::from_str(&tools).expect("JSON");
    let shown = tools.to_string();
    assert!(shown.contains("500 unless given"), "{shown}");
    assert!(shown.contains("3 unless given"), "{shown}");
}

/// Two models on two servers: each has its own name, settings and key.
#[test]
fn each_model_is_asked_on_its_own_server_with_its_own_settings() {
    let model = |says: &str| ModelServer::says(vec![Say::says(says)]).expect("starts");
    let (house, first, second) = (
        House::new(),
        model("from the first"),
        model("from the second"),
    );
    let text = format!(
        "executor:\n  gpt_oss_url: {}\nmodels:\n  qwen:\n    upstreams: [\"{}\"]\n    model: qwen2.5-7b\n    max_tokens: 77\n    api_key: second-key\n",
        first.url(),
        second.url()
    );
    let file = house.file("executor.yaml", &text);
    let serving = house.serve(&["--config", &file]);
    let names = serving.get("/v1/models", None).json();
    let names: Vec<&str> = names["data"]
        .as_array()
        .expect("models")
        .iter()
        .filter_map(|it| it["id"].as_str())
        .collect();
    assert_eq!(names, ["gpt-oss", "executor", "gpt-oss-tools", "qwen"]);
    let ask = |name: &str| {
        let body = json!({"model": name, "messages": [{"role": "user", "content": "Who?"}]});
        let answer = serving.post("/v1/chat/completions", "none", &body);
        let content = answer.json()["choices"][0]["message"]["content"].clone();
        content.as_str().map(str::to_owned)
    };
    assert_eq!(ask("gpt-oss").as_deref(), Some("from the first"));
    assert_eq!(ask("qwen").as_deref(), Some("from the second"));
    assert_eq!(ask("llama"), None);
    let asked = second.asked();
    assert_eq!(
        (&asked[0]["model"], &asked[0]["max_tokens"]),
        (&json!("qwen2.5-7b"), &json!(77))
    );
    assert_eq!(second.keys(), ["Bearer second-key"]);
    assert_eq!(first.asked()[0]["model"], "gpt-oss");
    assert!(first.keys().is_empty());
}

/// One file for a whole deployment.
#[test]
fn its_own_section_holds_the_settings_of_everything_else() {
    let house = House::new();
    let text = "executor:\n  max_iterations: 2\nholdfast:\n  permissions: {deniedTools: [exec]}\n  \
                executor: {runsMax: 7}\n  server: {listen: \"127.0.0.1:18888\"}\n";
    let file = house.file("executor.yaml", text);
    assert_eq!(house.run(&["config", "check", &file]).code, Some(0));
    let shown = house.run(&["--config", &file, "config", "show"]).stdout;
    assert!(
        shown.contains("runsMax: 7") && shown.contains("127.0.0.1:18888"),
        "{shown}"
    );
    let args = json!({"command": "true"}).to_string();
    house
        .run(&["--config", &file, "call", "exec", "--json", "--args", &args])
        .error("permission_denied");
    let wrong = house.file("executor.yaml", &text.replace("runsMax", "runsMaxx"));
    house
        .run(&["config", "check", &wrong])
        .bad_usage("line 5 column 14: unknown field `runsMaxx`");
    let twice = house.file("executor.yaml", "executor:\n  max_iterations: 5\n");
    assert_eq!(house.run(&["config", "check", &twice]).code, Some(0));
}

#[test]
fn what_the_file_sets_is_shown_without_its_secrets() {
    let house = House::new();
    let text = "executor:\n  gpt_oss_url: http://ann:hidden-word@127.0.0.1:9\n  max_iterations: 3\n  \
                openclaw_gateway_token: hidden-token\nmodels:\n  qwen:\n    api_key: hidden-key\n    max_tokens: 77\n";
    let file = house.file("executor.yaml", text);
    let shown = house.run(&["--config", &file, "config", "show"]).stdout;
    for line in [
        "#   executor.max_iterations: 3 (line 3)",
        "#   executor.openclaw_gateway_token: \"[a secret]\" (line 4)",
        "#   models.qwen.api_key: \"[a secret]\" (line 7)",
        "#   models.qwen.max_tokens: 77 (line 8)",
    ] {
        assert!(shown.lines().any(|it| it == line), "{line}: {shown}");
    }
    assert!(!shown.contains("hidden"), "{shown}");
    let shown = house.run(&["--config", &file, "config", "show", "--json"]);
    assert!(!shown.stdout.contains("hidden"), "{}", shown.stdout);
    let shown: Value = serde_json::from_str(&shown.stdout).expect("JSON");
    assert_eq!(
        shown["executorFile"]["executor.max_iterations"],
        json!({"value": 3, "from": {"line": 3}})
    );
}

#[test]
fn what_is_typed_changes_the_servers_and_nothing_else() {
    let (house, model) = (
        House::new(),
        ModelServer::says(vec![Say::says("Final Answer: Done.")]).expect("starts"),
    );
    let text = "executor:\n  gpt_oss_url: http://127.0.0.1:1\n  gpt_oss_model: real-name\n";
    let file = house.file("executor.yaml", text);
    let mut command = house.command(&["run", "x", "--config", &file, "--model-url", &model.url()]);
    command.env("HOLDFAST_MODEL_KEY", "a-key-for-it");
    let ran = crate::common::Ran::of(&command.output().expect("runs"));
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    assert_eq!(model.asked()[0]["model"], "real-name");
    assert_eq!(model.keys(), ["Bearer a-key-for-it"]);
}

/// The model has three names for clients, and one on its server.
#[test]
fn the_name_that_is_typed_holds_for_every_name_that_clients_have() {
    let model = ModelServer::says(vec![Say::says("Final Answer: Done.")]).expect("starts");
    let house = House::new();
    let text = "models:\n  other:\n    temperature: 1\n  executor:\n    model: its-own\n";
    let file = house.file("executor.yaml", text);
    let url = model.url();
    let options = ["--config", &file, "--model-url", &url, "--model", "typed"];
    let serving = house.serve(&options);
    for (name, known_as) in [
        ("gpt-oss", "typed"),
        ("gpt-oss-tools", "typed"),
        ("executor", "its-own"),
        ("other", "other"),
    ] {
        let body = json!({"model": name, "messages": [{"role": "user", "content": "Who?"}]});
        let answer = serving.post("/v1/chat/completions", "none", &body);
        assert_eq!(answer.status, 200, "{}", answer.text());
        let asked = model.asked();
        assert_eq!(asked.last().expect("asked")["model"], known_as, "{name}");
    }
}

#[test]
fn its_variables_count_without_a_file() {
    let (house, model) = (
        House::new(),
        ModelServer::start(|_| Say::calls("read", &json!({"path": "missing"}))).expect("starts"),
    );
    let mut command = house.command(&["run", "x", "--json", "--model-url", &model.url()]);
    command.env("GPTOSS_EXECUTOR_MAX_ITERATIONS", "2");
    let ran = crate::common::Ran::of(&command.output().expect("runs"));
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    assert_eq!(model.asked().len(), 2);
    assert!(
        !house.path("logs").exists(),
        "they say nothing about the log"
    );
    let mut command = house.command(&["run", "x", "--model-url", &model.url()]);
    command.env("GPTOSS_EXECUTOR_MAX_ITERATIONS", "1");
    let ran = crate::common::Ran::of(&command.output().expect("runs"));
    assert!(!ran.stderr.contains("executor_run_start"), "{ran:#?}");
    command.env("GPTOSS_EXECUTOR_LOGGING_LEVEL", "info");
    let ran = crate::common::Ran::of(&command.output().expect("runs"));
    assert!(ran.stderr.contains("executor_run_start"), "{ran:#?}");
    let mut command = house.command(&["tools"]);
    command.env("GPTOSS_EXECUTOR_MAX_ITERATION", "2");
    let ran = crate::common::Ran::of(&command.output().expect("runs"));
    ran.bad_usage("GPTOSS_EXECUTOR_MAX_ITERATION sets no setting");
}
