//! The model with its tools: the real binary between a real client and a scripted model server.

mod answers;
#[cfg(feature = "redis")]
mod away;
mod bounds;
mod cancelled;
mod checklist;
mod counted;
mod file;
mod kill;
mod left;
mod logged;
mod many;
mod reload;
mod returned;
mod runs;
#[cfg(feature = "redis")]
mod shared;
mod stream;
mod subagents;
mod terminal;

use std::io;

use holdfast_testkit::http::Answer;
use holdfast_testkit::model::ModelServer;
use serde_json::{Value, json};

use crate::common::House;
use crate::harness::Serving;

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
