//! A scripted model server as a program of its own, for tests in other languages: prints its address
//! and serves until it is ended. What it says depends on the word in the user's first message, or on
//! the word that it was started with, whatever it is asked.

use std::io::{self, Write};

use holdfast_testkit::model::{ModelServer, Say};
use serde_json::{Value, json};

fn main() -> io::Result<()> {
    let always = std::env::args().nth(1);
    let server = ModelServer::start(move |request| match &always {
        Some(word) => said(Some(word), has_results(request)),
        None => say(request),
    })?;
    let mut out = io::stdout();
    writeln!(out, "{}", server.url())?;
    out.flush()?;
    loop {
        std::thread::park();
    }
}

fn say(request: &Value) -> Say {
    let messages = request["messages"]
        .as_array()
        .map_or(&[][..], Vec::as_slice);
    let of_user = messages.iter().find(|message| message["role"] == "user");
    let word = of_user.and_then(|message| message["content"].as_str());
    said(word, has_results(request))
}

fn has_results(request: &Value) -> bool {
    request["messages"].to_string().contains("[TOOL_RESULT: ")
}

fn said(word: Option<&str>, has_results: bool) -> Say {
    match word {
        Some("plain") => Say::says("Hello from the model."),
        Some("work") if has_results => Say::says("Final Answer: It is done."),
        Some("work") => Say::calls("exec", &json!({"command": "echo worked >> log"})),
        Some("weather") if has_results => Say::says("Final Answer: It is sunny."),
        Some("weather") => Say::calls("get_weather", &json!({"city": "Bern"})),
        Some("slow") => Say::Silence,
        _ => Say::Status(400, json!({"message": "not for me"}).to_string()),
    }
}
