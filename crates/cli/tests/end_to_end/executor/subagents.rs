//! Subagents: runs that a run begins, within the bounds of the tree of sessions.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use holdfast_testkit::http::Connection;
use holdfast_testkit::model::{ModelServer, Say, turns};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::common::{House, eventually};
use crate::executor::runs::runs;
use crate::executor::{Executor, PATH, task};
use crate::harness::Serving;

type Script = fn(&Value) -> Say;

/// The task of whoever asks: the first thing that its user said.
pub(crate) fn task_of(request: &Value) -> &str {
    let messages = request["messages"]
        .as_array()
        .map_or(&[][..], Vec::as_slice);
    let first = messages.iter().find(|message| message["role"] == "user");
    first
        .and_then(|message| message["content"].as_str())
        .unwrap_or_default()
}

fn spawn(task: &str, more: &Value) -> Say {
    let mut arguments = more.clone();
    arguments["task"] = json!(task);
    Say::calls("sessions_spawn", &arguments)
}

/// The subagent that a history names last.
fn session_in(request: &Value) -> String {
    let text = request["messages"].to_string();
    let at = text.rfind("subagent:").expect("a subagent");
    let name = |sign: &char| sign.is_ascii_alphanumeric() || *sign == ':';
    text[at..].chars().take_while(name).collect()
}

fn last_question(executor: &Executor, task: &str) -> String {
    let asked = executor.model.asked();
    let of_task = asked.iter().rev().find(|request| task_of(request) == task);
    of_task.expect("a question")["messages"].to_string()
}

fn on(script: Script, yaml: &str) -> Executor {
    Executor::with(ModelServer::start(script), yaml)
}

fn answer(executor: &Executor) -> String {
    let answer = executor.ask(&task("main"));
    let text = answer.json()["choices"][0]["message"]["content"].clone();
    text.as_str()
        .unwrap_or_else(|| panic!("{}", answer.text()))
        .to_owned()
}

fn status(serving: &Serving, at: usize) -> Option<String> {
    let run = runs(serving).get(at)?.clone();
    run["status"].as_str().map(str::to_owned)
}

/// Asks, and does not wait for the answer.
fn asking(serving: &Serving) -> Connection {
    let mut connection = serving.connect();
    let (headers, body) = (
        [("content-type", "application/json")],
        task("main").to_string(),
    );
    let sent = connection.send_request("POST", PATH, &headers, body.as_bytes());
    sent.expect("sends");
    connection
}

#[test]
fn a_tree_of_subagents_has_its_depth() {
    let executor = on(
        |request| match (task_of(request), turns(request)) {
            ("main", 0) => spawn("one", &json!({})),
            ("one", 0) => spawn("two", &json!({})),
            ("two", 0) => spawn("three", &json!({})),
            ("three", 0) => spawn("four", &json!({})),
            (who, _) => Say::says(format!("Final Answer: {who} is done.")),
        },
        "",
    );
    assert_eq!(answer(&executor), "main is done.");
    let deepest = last_question(&executor, "three");
    assert!(deepest.contains("may be at depth 3 at most"), "{deepest}");
    let above = last_question(&executor, "two");
    assert!(above.contains("three is done."), "{above}");
    assert_eq!(
        runs(&executor.serving).len(),
        4,
        "nothing was made at depth four"
    );
}

#[test]
fn children_are_counted_and_end_with_their_parent() {
    let executor = on(
        |request| match (task_of(request), turns(request)) {
            ("main", 0) => spawn("forever", &json!({"background": true})),
            ("main", 1) => spawn("one more", &json!({"background": true})),
            ("main", _) => Say::says("Final Answer: That is all."),
            _ => Say::Silence,
        },
        "sessions: {childrenMax: 1}",
    );
    assert_eq!(answer(&executor), "That is all.");
    let told = last_question(&executor, "main");
    assert!(
        told.contains("the session has 1 children already"),
        "{told}"
    );
    eventually("the child is cancelled", || {
        (status(&executor.serving, 1)? == "cancelled").then_some(())
    });
    assert_eq!(runs(&executor.serving).len(), 2);
}

/// The tool's schema refuses it, three times at most.
#[test]
fn a_subagent_that_does_not_get_a_call_right_ends_and_its_parent_hears_why() {
    let executor = on(
        |request| match (task_of(request), turns(request)) {
            ("main", 0) => spawn("read it", &json!({})),
            ("main", _) => Say::says("Final Answer: I do it myself."),
            (_, turn) => Say::calls("read", &json!({"offset": turn + 1})),
        },
        "",
    );
    assert_eq!(answer(&executor), "I do it myself.");
    let told = last_question(&executor, "main");
    for word in [
        "failed",
        "`read` was called wrongly 3 times",
        "/path",
        "Missing required parameter: path",
    ] {
        assert!(told.contains(word), "{word}: {told}");
    }
    let asked = executor.model.asked();
    let of_child = asked.iter().filter(|it| task_of(it) == "read it").count();
    assert_eq!(of_child, 3, "it was not asked a fourth time");
    assert_eq!(status(&executor.serving, 1).as_deref(), Some("failed"));
}

/// One answer is all that such a subagent takes.
#[test]
fn the_last_answer_of_a_subagent_is_counted() {
    let executor = on(
        |request| match (task_of(request), turns(request)) {
            ("main", 0) => spawn("say it", &json!({})),
            (who, _) => Say::says(format!("Final Answer: {who} is over.")),
        },
        "",
    );
    assert_eq!(answer(&executor), "main is over.");
    let told = last_question(&executor, "main");
    assert!(told.contains("say it is over."), "{told}");
    assert!(told.contains("tokensSpent"), "{told}");
    let spent = told.split("tokensSpent").nth(1).unwrap_or_default();
    let digits = spent.trim_start_matches(|sign: char| !sign.is_ascii_digit());
    assert!(!digits.starts_with('0'), "{told}");
}

#[test]
fn a_cancelled_parent_takes_its_children_with_it() {
    let executor = on(
        |request| match task_of(request) {
            "main" => spawn("forever", &json!({})),
            _ => Say::Silence,
        },
        "",
    );
    let _asking = asking(&executor.serving);
    eventually("the child is asked", || {
        (executor.model.asked().len() == 2).then_some(())
    });
    let parent = runs(&executor.serving)[0]["id"]
        .as_str()
        .expect("a name")
        .to_owned();
    let cancelled =
        executor
            .serving
            .connect()
            .request("POST", &format!("/v1/runs/{parent}/cancel"), &[], b"");
    assert_eq!(cancelled.expect("an answer").status, 202);
    for place in [0, 1] {
        eventually("it is cancelled", || {
            (status(&executor.serving, place)? == "cancelled").then_some(())
        });
    }
}

#[test]
fn a_subagent_can_be_listed_and_killed() {
    let executor = on(
        |request| match (task_of(request), turns(request)) {
            ("main", 0) => spawn(
                "forever",
                &json!({"background": true, "label": "a long one"}),
            ),
            ("main", 1) => Say::calls("sessions_list", &json!({})),
            ("main", 2) => Say::calls("sessions_kill", &json!({"session": session_in(request)})),
            ("main", 3) => Say::calls("sessions_list", &json!({"waitSeconds": 20})),
            ("main", _) => Say::says("Final Answer: It is gone."),
            _ => Say::Silence,
        },
        "",
    );
    assert_eq!(answer(&executor), "It is gone.");
    let told = last_question(&executor, "main");
    for part in [
        "a long one",
        "\\\\\\\"active\\\\\\\"",
        "\\\\\\\"ending\\\\\\\"",
        "\\\\\\\"cancelled\\\\\\\"",
        "it was told to end",
    ] {
        let plain = part.replace("\\\\\\\"", "\\\"");
        assert!(
            told.contains(part) || told.contains(&plain),
            "{part}: {told}"
        );
    }
    assert_eq!(status(&executor.serving, 1).as_deref(), Some("cancelled"));
}

#[test]
fn a_subagent_that_spends_too_fast_is_paused_and_one_over_its_budget_fails() {
    let executor = on(
        |request| match (task_of(request), turns(request)) {
            ("main", 0) => spawn("spender", &json!({"tokenBudget": 200})),
            ("main", 1) => Say::calls("sessions_resume", &json!({"session": session_in(request)})),
            ("main", 2) => Say::calls("sessions_list", &json!({"waitSeconds": 20})),
            ("main", _) => Say::says("Final Answer: It spent all."),
            _ => Say::calls("read", &json!({"path": "missing"})),
        },
        "",
    );
    assert_eq!(answer(&executor), "It spent all.");
    let told = last_question(&executor, "main");
    assert!(
        told.contains("suspended") && told.contains("spending"),
        "{told}"
    );
    assert!(told.contains("the token budget of 200 is spent"), "{told}");
    let spender = runs(&executor.serving)[1].clone();
    assert_eq!(
        (&spender["status"], &spender["iterations"]),
        (&json!("failed"), &json!(2))
    );
}

#[test]
fn a_worker_only_looks() {
    let executor = on(
        |request| match (task_of(request), turns(request)) {
            ("main", 0) => spawn("write it", &json!({"kind": "worker"})),
            ("write it", 0) => Say::calls("write", &json!({"path": "a.txt", "content": "x"})),
            ("write it", 1) => spawn("help me", &json!({})),
            (who, _) => Say::says(format!("Final Answer: {who} is over.")),
        },
        "",
    );
    assert_eq!(answer(&executor), "main is over.");
    assert!(!executor.house.path("a.txt").exists());
    let told = last_question(&executor, "write it");
    assert!(told.contains("There is no tool named `write`"), "{told}");
    assert!(told.contains("## read"), "{told}");
    for other in [
        "## write",
        "## exec",
        "## sessions_spawn",
        "## sessions_list",
    ] {
        assert!(!told.contains(other), "{other}: {told}");
    }
    assert_eq!(runs(&executor.serving).len(), 2);
}

#[test]
fn after_kill_9_a_subagent_has_failed_and_its_parent_hears_of_it() {
    let house = House::new();
    let children = Arc::new(AtomicUsize::new(0));
    let asked = children.clone();
    let model = ModelServer::start(move |request| match (task_of(request), turns(request)) {
        ("main", 0) => spawn("forever", &json!({})),
        ("main", _) => Say::says("Final Answer: It was lost."),
        _ => {
            asked.fetch_add(1, Ordering::SeqCst);
            Say::Silence
        }
    })
    .expect("starts");
    let args = ["--model-url", &model.url()];
    let serving = house.serve(&args);
    let _asking = asking(&serving);
    eventually("the child is asked", || {
        (children.load(Ordering::SeqCst) == 1).then_some(())
    });
    serving.signal(Signal::KILL);
    assert_eq!(serving.ended().0, None, "killed");
    let serving = house.serve(&args);
    eventually("the parent has its answer", || {
        (status(&serving, 0)? == "answered").then_some(())
    });
    assert_eq!(
        status(&serving, 1).as_deref(),
        Some("cancelled"),
        "a child ends with its process"
    );
    assert_eq!(children.load(Ordering::SeqCst), 1, "and is not asked again");
    let told = model.asked().last().expect("a question")["messages"].to_string();
    assert!(
        told.contains("it was at work when the process ended"),
        "{told}"
    );
}

#[test]
fn after_kill_9_a_suspended_subagent_can_still_be_let_go_on() {
    let house = House::new();
    let is_killed = Arc::new(AtomicBool::new(false));
    let killed = is_killed.clone();
    let model = ModelServer::start(move |request| match (task_of(request), turns(request)) {
        ("main", 0) => spawn("spender", &json!({"tokenBudget": 200})),
        ("main", 1) if !killed.load(Ordering::SeqCst) => Say::Silence,
        ("main", 1) => Say::calls("sessions_resume", &json!({"session": session_in(request)})),
        ("main", 2) => Say::calls("sessions_list", &json!({"waitSeconds": 20})),
        ("main", _) => Say::says("Final Answer: All is well."),
        (_, 0) => Say::calls("read", &json!({"path": "missing"})),
        _ => Say::says("Final Answer: The spender got there."),
    })
    .expect("starts");
    let args = ["--model-url", &model.url()];
    let serving = house.serve(&args);
    let _asking = asking(&serving);
    eventually("the parent hears that it is suspended", || {
        let asked = model.asked();
        let told = asked.last()?["messages"].to_string();
        (told.contains("suspended") && told.contains("spending")).then_some(())
    });
    serving.signal(Signal::KILL);
    assert_eq!(serving.ended().0, None, "killed");
    is_killed.store(true, Ordering::SeqCst);
    let serving = house.serve(&args);
    eventually("the parent has its answer", || {
        (status(&serving, 0)? == "answered").then_some(())
    });
    assert_eq!(status(&serving, 1).as_deref(), Some("answered"));
    let told = model.asked().last().expect("a question")["messages"].to_string();
    assert!(told.contains("The spender got there."), "{told}");
    let questions = model.asked();
    let of_child = questions.iter().filter(|it| task_of(it) == "spender");
    assert_eq!(of_child.count(), 2, "it goes on where it was");
}
