//! A scripted model server as a program of its own, for tests in other languages: prints its address
//! and serves until it is ended. What it says depends on the word in the user's first message.

use std::io::{self, Write};

use holdfast_testkit::model::{ModelServer, Say};
use serde_json::{Value, json};

fn main() -> io::Result<()> {
    let server = ModelServer::start(say)?;
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
    let has_results = request["messages"].to_string().contains("[TOOL_RESULT: ");
    match of_user.and_then(|message| message["content"].as_str()) {
        Some("plain") => Say::says("Hello from the model."),
        Some("work") if has_results => Say::says("Final Answer: It is done."),
        Some("work") => Say::calls("exec", &json!({"command": "echo worked >> log"})),
        Some("weather") if has_results => Say::says("Final Answer: It is sunny."),
        Some("weather") => Say::calls("get_weather", &json!({"city": "Bern"})),
        Some("slow") => Say::Silence,
        _ => Say::Status(400, json!({"message": "not for me"}).to_string()),
    }
}
