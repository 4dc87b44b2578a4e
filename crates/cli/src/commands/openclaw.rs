//! `holdfast openclaw`

use std::process::ExitCode;

use holdfast_agent::settings::RunSettings;
use serde_json::{Value, json};

use crate::app::App;
use crate::args::openclaw::OpenClawCommand;
use crate::config::Config;
use crate::environment::{self, API_KEYS};
use crate::executor_file;
use crate::output;

/// The provider's name in `OpenClaw`: models are then `holdfast/gpt-oss` and so on.
const PROVIDER: &str = "holdfast";
/// The agent's name in `OpenClaw`: `sessions_spawn` finds it by this one.
const AGENT: &str = "gpt-oss-executor";
/// The model that it asks.
const AGENT_MODEL: &str = "executor";
/// The agent that `OpenClaw` has where nobody has named one.
const MAIN: &str = "main";
/// What stands for a key where none is asked for: `OpenClaw` wants one.
const NO_KEY: &str = "local";

pub(super) fn run(app: &App, command: &OpenClawCommand, json: bool) -> ExitCode {
    match command {
        OpenClawCommand::Config => {
            let block = block(&app.config);
            if json {
                output::json(&block);
            } else {
                output::pretty_json(&block);
            }
            ExitCode::SUCCESS
        }
    }
}

/// The part of `openclaw.json` that names this server, its models and an agent that asks them.
fn block(config: &Config) -> Value {
    let has_keys = environment::get(API_KEYS).is_some_and(|keys| !keys.trim().is_empty());
    let key = match &config.executor.keys_file {
        Some(file) => format!("<one of the keys in {file}>"),
        None if has_keys => format!("<one of the keys in {API_KEYS}>"),
        None => NO_KEY.to_owned(),
    };
    let models: Vec<Value> = executor_file::served(config)
        .iter()
        .map(|it| model(&it.name, &it.settings))
        .collect();
    json!({
        "models": {"providers": {PROVIDER: {
            "baseUrl": format!("http://{}/v1", config.server.listen),
            "apiKey": key,
            "api": "openai-completions",
            "models": models,
        }}},
        "agents": agents(),
    })
}

/// An agent beside those that there are. `OpenClaw` has an agent without an entry only as long as nobody
/// has one, and with two it has to be told who answers where nobody is named: so the first one gets an
/// entry, stays the one that answers, and may spawn the second.
fn agents() -> Value {
    json!({
        "ownership": "explicit",
        "defaults": {"systemAgent": {"agentId": MAIN}},
        "entries": {
            MAIN: {"subagents": {"allowAgents": [MAIN, AGENT]}},
            AGENT: {
                "name": "GPT-OSS with Holdfast's tools",
                "model": {"primary": format!("{PROVIDER}/{AGENT_MODEL}")},
            },
        },
    })
}

fn model(name: &str, run: &RunSettings) -> Value {
    json!({
        "id": name,
        "name": format!("{name} with Holdfast"),
        "reasoning": true,
        "input": ["text"],
        "contextWindow": run.window.tokens,
        "maxTokens": run.max_tokens,
        "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0},
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_names_the_server_the_models_and_no_key_that_is_not_asked_for() {
        let mut config = Config::default();
        let block = block(&config);
        let holdfast = &block["models"]["providers"]["holdfast"];
        assert_eq!(holdfast["baseUrl"], "http://127.0.0.1:8001/v1");
        assert_eq!(holdfast["apiKey"], "local");
        assert_eq!(holdfast["api"], "openai-completions");
        let ids: Vec<&Value> = holdfast["models"]
            .as_array()
            .unwrap()
            .iter()
            .map(|model| &model["id"])
            .collect();
        assert_eq!(ids, ["gpt-oss", "executor", "gpt-oss-tools"]);
        config.executor.keys_file = Some("keys".to_owned());
        config.server.listen = "127.0.0.1:9".to_owned();
        let block = super::block(&config);
        let holdfast = &block["models"]["providers"]["holdfast"];
        assert_eq!(holdfast["apiKey"], "<one of the keys in keys>");
        assert_eq!(holdfast["baseUrl"], "http://127.0.0.1:9/v1");
    }

    #[test]
    fn it_adds_an_agent_and_leaves_everybody_else_their_model() {
        let block = block(&Config::default());
        let agents = &block["agents"];
        // Who answers where nobody is named, and nothing else of what holds for all of them.
        let defaults = json!({"systemAgent": {"agentId": "main"}});
        assert_eq!(agents["defaults"], defaults);
        let ours = &agents["entries"]["gpt-oss-executor"];
        assert_eq!(ours["model"]["primary"], "holdfast/executor");
        let main = &agents["entries"]["main"];
        assert_eq!(main["model"], Value::Null);
        assert_eq!(
            main["subagents"]["allowAgents"],
            json!(["main", "gpt-oss-executor"])
        );
        let models = block["models"]["providers"]["holdfast"]["models"].as_array();
        assert!(
            models
                .unwrap()
                .iter()
                .all(|model| model["reasoning"] == true)
        );
    }
}
