//! `holdfast openclaw`

use std::process::ExitCode;

use holdfast_agent::settings::RunSettings;
use serde_json::{Value, json};

use crate::app::App;
use crate::args::openclaw::OpenClawCommand;
use crate::config::Config;
use crate::executor_file;
use crate::output;

/// The provider's name in `OpenClaw`: models are then `holdfast/gpt-oss` and so on.
const PROVIDER: &str = "holdfast";
/// What stands for a key where none is asked for: `OpenClaw` wants one.
const NO_KEY: &str = "local";

pub(super) fn run(app: &App, command: &OpenClawCommand, json: bool) -> ExitCode {
    match command {
        OpenClawCommand::Config => {
            let block = provider(&app.config);
            if json {
                output::json(&block);
            } else {
                output::pretty_json(&block);
            }
            ExitCode::SUCCESS
        }
    }
}

/// The part of `openclaw.json` that names this server and its models.
fn provider(config: &Config) -> Value {
    let key = match &config.executor.keys_file {
        Some(file) => format!("<one of the keys in {file}>"),
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
        "agents": {"defaults": {"model": {"primary": format!("{PROVIDER}/gpt-oss")}}},
    })
}

fn model(name: &str, run: &RunSettings) -> Value {
    json!({
        "id": name,
        "name": format!("{name} with Holdfast"),
        "reasoning": false,
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
        let block = provider(&config);
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
        let block = provider(&config);
        let holdfast = &block["models"]["providers"]["holdfast"];
        assert_eq!(holdfast["apiKey"], "<one of the keys in keys>");
        assert_eq!(holdfast["baseUrl"], "http://127.0.0.1:9/v1");
    }
}
