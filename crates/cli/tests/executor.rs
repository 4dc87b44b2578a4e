//! The model with its tools: the real binary between a real client and a scripted model server.

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a helper that fails is a test that fails"
)]
#![expect(
    dead_code,
    reason = "the helpers are shared with the other test binaries"
)]

#[path = "executor/answers.rs"]
mod answers;
#[cfg(feature = "redis")]
#[path = "executor/away.rs"]
mod away;
#[path = "executor/bounds.rs"]
mod bounds;
#[path = "executor/cancelled.rs"]
mod cancelled;
#[path = "executor/checklist.rs"]
mod checklist;
mod common;
#[path = "executor/counted.rs"]
mod counted;
#[path = "executor/file.rs"]
mod file;
#[path = "server/harness.rs"]
mod harness;
#[path = "executor/kill.rs"]
mod kill;
#[path = "executor/left.rs"]
mod left;
#[path = "executor/logged.rs"]
mod logged;
#[path = "executor/many.rs"]
mod many;
#[path = "common/pty.rs"]
mod pty;
#[path = "executor/reload.rs"]
mod reload;
#[path = "executor/returned.rs"]
mod returned;
#[path = "executor/runs.rs"]
mod runs;
#[cfg(feature = "redis")]
#[path = "executor/shared.rs"]
mod shared;
#[path = "executor/stream.rs"]
mod stream;
#[path = "executor/subagents.rs"]
mod subagents;
#[path = "executor/terminal.rs"]
mod terminal;

use std::io;

use holdfast_testkit::http::Answer;
use holdfast_testkit::model::ModelServer;
use serde_json::{Value, json};

use common::House;
use harness::Serving;

const PATH: &str = "/v1/chat/completions";

/// A server on a model, and the model.
struct Executor {
    house: House,
    model: ModelServer,
    serving: Serving,
}

impl Executor {
    fn on(model: io::Result<ModelServer>) -> Self {
        Self::with(model, "")
    }

    /// The same, with a configuration.
    fn with(model: io::Result<ModelServer>, yaml: &str) -> Self {
        let (house, model) = (House::new(), model.expect("starts"));
        let config = house.file("executor.yaml", yaml);
        let serving = house.serve(&["--config", &config, "--model-url", &model.url()]);
        Self {
            house,
            model,
            serving,
        }
    }

    /// Asks without any token, as the seed's clients do.
    fn ask(&self, body: &Value) -> Answer {
        self.ask_with(body, &[])
    }

    fn ask_with(&self, body: &Value, headers: &[(&str, &str)]) -> Answer {
        let all = [&[("content-type", "application/json")], headers].concat();
        let body = body.to_string();
        let asked = self
            .serving
            .connect()
            .request("POST", PATH, &all, body.as_bytes());
        asked.expect("an answer")
    }
}

/// A request with one message.
fn task(text: &str) -> Value {
    json!({"model": "gpt-oss", "messages": [{"role": "user", "content": text}]})
}

/// The code of an error, with its status.
fn code(answer: &Answer) -> (u16, String) {
    let code = answer.json()["error"]["code"].as_str().map(str::to_owned);
    (answer.status, code.unwrap_or_else(|| answer.text()))
}
