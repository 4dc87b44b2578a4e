//! SIGHUP: limits, policies and models are exchanged, and a file that is wrong changes nothing.

use std::os::unix::fs::PermissionsExt;

use holdfast_testkit::model::{ModelServer, Say};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::common::{HELD, House, Ran, eventually_lines};
use crate::executor::{PATH, code, task};
use crate::harness::{Serving, envelope};

#[test]
fn a_new_file_counts_from_the_next_request_and_a_wrong_one_never() {
    let model = ModelServer::says(vec![Say::says("Hello.")]).expect("starts");
    let house = House::new();
    std::fs::write(house.path("notes.txt"), "hello").expect("written");
    let before = "executor: {requestsPerMinuteMax: 1}\npermissions: {deniedTools: [read]}\n";
    let file = house.file("holdfast.yaml", before);
    let mut serving = house.serve(&["--config", &file, "--model-url", &model.url()]);
    let read = |serving: &Serving, id: &str| {
        let call = envelope(id, "read", &json!({"path": "notes.txt"}), None);
        serving.call(&call).status
    };
    let ask = |serving: &Serving| {
        let path = "/v1/chat/completions";
        serving.post(path, "none", &task("Hello")).status
    };
    assert_eq!((ask(&serving), ask(&serving)), (200, 429));
    assert_eq!(read(&serving, "r-1"), 403);

    house.file("holdfast.yaml", "executor: {requestsPerMinuteMax: 0}\n");
    serving.signal(Signal::HUP);
    let said = serving.says();
    assert_eq!(said["event"], "server_reload_failed");
    let reason = said["reason"].as_str().unwrap_or_default();
    assert!(reason.contains("requestsPerMinuteMax"), "{reason}");
    assert_eq!((ask(&serving), read(&serving, "r-2")), (429, 403));

    let after = "executor: {requestsPerMinuteMax: 100, runsMax: 7}\nserver: {bodyBytesMax: 1000}\n";
    house.file("holdfast.yaml", after);
    serving.signal(Signal::HUP);
    let said = serving.says();
    assert_eq!(said["event"], "server_reloaded");
    // What can not be exchanged is named.
    assert_eq!(said["needRestart"], json!(["executor"]));
    assert_eq!((ask(&serving), read(&serving, "r-3")), (200, 200));
    let large: Value = task(&"x".repeat(2000));
    let refused = serving.post("/v1/chat/completions", "none", &large);
    assert_eq!(refused.status, 413);
}

/// Which commands run, how long people are waited for and what the loop guard takes: for calls that
/// begin from then on.
#[test]
fn policies_and_the_guard_s_limits_count_without_a_restart() {
    let house = House::new();
    let before = "permissions: {commands: {blocked: [echo]}, approvals: {waitMs: 600000}}\n\
                  guard: {maxIdenticalFailures: 1}\n";
    let file = house.file("holdfast.yaml", before);
    let mut serving = house.serve(&["--config", &file]);
    let number = std::cell::Cell::new(0);
    let call = |serving: &Serving, tool: &str, args: &Value| {
        number.set(number.get() + 1);
        let mut call = envelope(&format!("c-{}", number.get()), tool, args, None);
        call["target"]["turnId"] = json!("one turn");
        let answer = serving.call(&call).json();
        let code = answer["error"]["code"].as_str();
        code.unwrap_or("ok").to_owned()
    };
    let missing = json!({"path": "nowhere.txt"});
    assert_eq!(
        call(&serving, "exec", &json!({"command": "echo a"})),
        "permission_denied"
    );
    assert_ne!(call(&serving, "read", &missing), "loop_detected");
    assert_eq!(call(&serving, "read", &missing), "loop_detected");

    let after = "permissions: {approvals: {waitMs: 50}, tools: {exec: {gate: required}}}\n\
                 guard: {maxIdenticalFailures: 9, maxFailuresPerTurn: 90}\n";
    house.file("holdfast.yaml", after);
    serving.signal(Signal::HUP);
    let said = serving.says();
    assert_eq!(said["event"], "server_reloaded");
    assert_eq!(said["needRestart"], json!([]));
    assert_ne!(call(&serving, "read", &missing), "loop_detected");
    // It is asked about now, and nobody is waited for.
    let asked = envelope("asked", "exec", &json!({"command": "echo b"}), None);
    let asked = serving.call(&asked).json();
    let why = asked["error"]["message"].as_str().unwrap_or_default();
    assert!(why.contains("nobody approved it in time"), "{asked}");

    house.file("holdfast.yaml", "permissions: {}\n");
    serving.signal(Signal::HUP);
    assert_eq!(serving.says()["event"], "server_reloaded");
    assert_eq!(call(&serving, "exec", &json!({"command": "echo c"})), "ok");
}

/// Sends the signal, and gives what the server says to it. Events of runs go to the same place.
fn reloaded(serving: &mut Serving) -> Value {
    serving.signal(Signal::HUP);
    loop {
        let said = serving.says();
        let event = said["event"].as_str().unwrap_or_default();
        if event.starts_with("server_") {
            return said;
        }
    }
}

fn ask(serving: &Serving, model: &str) -> Value {
    let mut body = task("Who are you?");
    body["model"] = json!(model);
    let answer = serving.post(PATH, "none", &body);
    match answer.json()["choices"][0]["message"]["content"].as_str() {
        Some(content) => json!(content),
        None => json!(code(&answer)),
    }
}

fn names(serving: &Serving) -> Vec<String> {
    let listed = serving.get("/v1/models", None).json();
    let models = listed["data"].as_array().cloned().unwrap_or_default();
    let id = |model: &Value| model["id"].as_str().unwrap_or_default().to_owned();
    models.iter().map(id).collect()
}

/// A model that is new in the file is answered by its own server, one that is changed by its new one
/// under its new settings, and one that is gone by nobody. A file that is wrong changes none of them.
#[test]
fn models_come_change_and_go_without_a_restart() {
    let model = |says: &str| ModelServer::says(vec![Say::says(says)]).expect("starts");
    let (house, first, second, third) = (
        House::new(),
        model("the first"),
        model("the second"),
        model("the third"),
    );
    let gone = json!([404, "model_not_found"]);
    let standard = format!("executor:\n  gpt_oss_url: {}\n", first.url());
    let with = |qwen: &str| format!("{standard}models:\n  qwen:\n{qwen}");
    let file = house.file("executor.yaml", &standard);
    let mut serving = house.serve(&["--config", &file]);
    assert_eq!(ask(&serving, "qwen"), gone);

    let on_second = format!("    upstreams: [\"{}\"]\n", second.url());
    house.file("executor.yaml", &with(&on_second));
    let said = reloaded(&mut serving);
    assert_eq!(
        (&said["event"], &said["needRestart"]),
        (&json!("server_reloaded"), &json!([]))
    );
    assert_eq!(ask(&serving, "qwen"), "the second");
    assert_eq!(ask(&serving, "gpt-oss"), "the first");
    assert!(names(&serving).contains(&"qwen".to_owned()));

    for (wrong, named) in [
        (format!("{on_second}    max_token: 7\n"), "max_token"),
        ("    upstreams: [nowhere]\n".to_owned(), "nowhere"),
    ] {
        house.file("executor.yaml", &with(&wrong));
        let said = reloaded(&mut serving);
        assert_eq!(said["event"], "server_reload_failed");
        let reason = said["reason"].as_str().unwrap_or_default();
        assert!(reason.contains(named), "{reason}");
        assert_eq!(ask(&serving, "qwen"), "the second");
    }

    let on_third = format!(
        "    upstreams: [\"{}\"]\n    model: qwen3\n    max_tokens: 77\n",
        third.url()
    );
    house.file("executor.yaml", &with(&on_third));
    assert_eq!(reloaded(&mut serving)["event"], "server_reloaded");
    assert_eq!(ask(&serving, "qwen"), "the third");
    let asked = third.asked();
    assert_eq!(
        (&asked[0]["model"], &asked[0]["max_tokens"]),
        (&json!("qwen3"), &json!(77))
    );

    house.file("executor.yaml", &standard);
    assert_eq!(reloaded(&mut serving)["event"], "server_reloaded");
    assert_eq!(ask(&serving, "qwen"), gone);
    assert_eq!(ask(&serving, "gpt-oss"), "the first");
    assert!(!names(&serving).contains(&"qwen".to_owned()));
}

/// A run that has begun asks the servers it began with, also when its model has moved or is gone.
#[test]
fn a_run_that_has_begun_keeps_its_model() {
    let script = |says: &str| {
        let done = format!("Final Answer: {says}");
        let steps = vec![
            Say::calls("exec", &json!({"command": HELD})),
            Say::says(done),
        ];
        ModelServer::says(steps).expect("starts")
    };
    for after in ["moved", "gone"] {
        let (house, old, new) = (House::new(), script("the old"), script("the new"));
        let on = |url: String| {
            format!(
                "executor:\n  gpt_oss_url: {url}\nmodels:\n  qwen:\n    upstreams: [\"{url}\"]\n"
            )
        };
        let file = house.file("executor.yaml", &on(old.url()));
        let mut serving = house.serve(&["--config", &file]);
        let mut body = task("Wait");
        body["model"] = json!("qwen");
        let mut connection = serving.connect();
        let headers = [("content-type", "application/json")];
        connection
            .send_request("POST", PATH, &headers, body.to_string().as_bytes())
            .expect("sends");
        eventually_lines(&house, "effect", 1);
        match after {
            "moved" => house.file("executor.yaml", &on(new.url())),
            _ => house.file(
                "executor.yaml",
                &format!("executor:\n  gpt_oss_url: {}\n", new.url()),
            ),
        };
        assert_eq!(reloaded(&mut serving)["event"], "server_reloaded");
        std::fs::write(house.path("go"), "").expect("written");
        let answer = connection.answer().expect("an answer").json();
        let content = &answer["choices"][0]["message"]["content"];
        assert_eq!(content, "the old", "{after}: {answer}");
        assert_eq!((old.asked().len(), new.asked().len()), (2, 0));
    }
}

/// Whose key is taken out of the file is let in no longer, and whose is put in is.
#[test]
fn keys_of_clients_come_and_go_without_a_restart() {
    const ANN: &str = "key-of-ann-key-of-ann-key-of-ann-00";
    const BEN: &str = "key-of-ben-key-of-ben-key-of-ben-00";
    let model = ModelServer::says(vec![Say::says("Hello.")]).expect("starts");
    let house = House::new();
    let keys = house.file("keys", ANN);
    std::fs::set_permissions(&keys, PermissionsExt::from_mode(0o600)).expect("is ours");
    let with = format!(
        "executor: {{modelUrl: \"{}\", keysFile: \"{keys}\"}}\n",
        model.url()
    );
    let file = house.file("holdfast.yaml", &with);
    let mut serving = house.serve(&["--config", &file]);
    let let_in =
        |serving: &Serving| [ANN, BEN].map(|key| serving.post(PATH, key, &task("Hello")).status);
    assert_eq!(let_in(&serving), [200, 401]);
    std::fs::write(&keys, BEN).expect("is written");
    assert_eq!(reloaded(&mut serving)["needRestart"], json!([]));
    assert_eq!(let_in(&serving), [401, 200]);
    // A file that was emptied would let everybody in.
    for emptied in ["", "# nobody\n\n"] {
        std::fs::write(&keys, emptied).expect("is written");
        let said = reloaded(&mut serving);
        assert_eq!(said["event"], "server_reload_failed", "{said}");
        let reason = said["reason"].as_str().expect("a reason");
        assert!(reason.contains("there is no key in"), "{reason}");
        assert_eq!(let_in(&serving), [401, 200]);
        let nobody = serving.post(PATH, "none", &task("Hello"));
        assert_eq!(nobody.status, 401);
    }
    house
        .run(&["config", "check", "--config", &file])
        .bad_usage("executor.keysFile: there is no key in");
    for blank in [" , ", ""] {
        let mut command = house.command(&["serve", "--model-url", &model.url()]);
        command.env("HOLDFAST_API_KEYS", blank);
        Ran::of(&command.output().expect("runs"))
            .bad_usage("HOLDFAST_API_KEYS is set and holds no key");
    }
}

/// Where there was no model at the start there is none until the next one, and that is said.
#[test]
fn a_first_model_needs_a_restart() {
    let model = ModelServer::says(vec![Say::says("Hello.")]).expect("starts");
    let house = House::new();
    let file = house.file("holdfast.yaml", "");
    let mut serving = house.serve(&["--config", &file]);
    let unreachable = json!([503, "gpt_oss_unreachable"]);
    assert_eq!(ask(&serving, "gpt-oss"), unreachable);
    let with = format!("executor: {{modelUrl: \"{}\"}}\n", model.url());
    house.file("holdfast.yaml", &with);
    assert_eq!(reloaded(&mut serving)["needRestart"], json!(["executor"]));
    assert_eq!(ask(&serving, "gpt-oss"), unreachable);
}

/// Whoever calls the gateway has its token since the start: that is said, and never the token.
#[test]
fn another_token_of_the_gateway_needs_a_restart() {
    let house = House::new();
    let model = ModelServer::says(vec![Say::says("Hello.")]).expect("starts");
    let with = |token: &str| {
        format!(
            "executor:\n  gpt_oss_url: {}\n  openclaw_gateway_url: http://127.0.0.1:9\n  openclaw_gateway_token: {token}\n",
            model.url()
        )
    };
    let file = house.file("executor.yaml", &with("first-token"));
    let mut serving = house.serve(&["--config", &file]);
    // Whoever answers also hears signals.
    assert_eq!(ask(&serving, "gpt-oss"), "Hello.");
    assert_eq!(reloaded(&mut serving)["needRestart"], json!([]));
    house.file("executor.yaml", &with("second-token"));
    let said = reloaded(&mut serving);
    assert_eq!(said["needRestart"], json!(["gateway"]), "{said}");
    assert!(!said.to_string().contains("token"), "{said}");
}
