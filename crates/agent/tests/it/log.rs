//! What is written down about runs: the events of the specification, and pages of errors that
//! several processes write at once.

mod events;

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use crate::common::{Script, call, counted, stack, task};
use holdfast_agent::log::lines::LOG_TEXT_CHARS_MAX;
use holdfast_agent::log::pages::{Entry, PAGE_QUEUE_MAX};
use holdfast_agent::log::{ErrorPages, Format, Level, RunLog, Watch};
use holdfast_agent::model::{Model, ModelError};
use holdfast_agent::run::{Loop, NoCheckpoint, RunState};
use holdfast_contract::redact::{Redactor, RedactorOptions};
use holdfast_contract::{Effect, Tool};
use holdfast_reliability::observe::log::LineSink;
use holdfast_reliability::store::conformance::ManualClock;
use parking_lot::Mutex;
use serde_json::{Value, json};

#[derive(Default)]
struct Lines(Mutex<Vec<String>>);

impl LineSink for Lines {
    fn line(&self, line: &[u8]) {
        self.0
            .lock()
            .push(String::from_utf8_lossy(line).into_owned());
    }
}

fn redactor() -> Redactor {
    Redactor::new(&RedactorOptions::default())
}

struct Told {
    lines: Arc<Lines>,
    dir: tempfile::TempDir,
}

impl Told {
    /// A run that is watched.
    async fn of(
        says: Vec<Result<Value, ModelError>>,
        level: Level,
        state: fn(RunState) -> RunState,
    ) -> Self {
        Self::with(vec![counted("note", Effect::External)], says, level, state).await
    }

    /// The same with these tools.
    async fn with(
        tools: Vec<Arc<dyn Tool>>,
        says: Vec<Result<Value, ModelError>>,
        level: Level,
        state: fn(RunState) -> RunState,
    ) -> Self {
        Self::on(Script::new(says), tools, level, state).await
    }

    /// The same with this model.
    async fn on(
        model: Arc<dyn Model>,
        tools: Vec<Arc<dyn Tool>>,
        level: Level,
        state: fn(RunState) -> RunState,
    ) -> Self {
        let told = Self {
            lines: Arc::default(),
            dir: tempfile::tempdir().expect("a directory"),
        };
        let stack = stack(tools);
        let clock = stack.runtime().clock.clone();
        let log = RunLog::new(
            told.lines.clone(),
            clock.clone(),
            redactor(),
            level,
            Format::Json,
        );
        let pages = ErrorPages::new(
            told.dir.path(),
            "YYYY-MM-DD-errors.md",
            clock.clone(),
            redactor(),
        );
        let watch = Watch::new(Arc::new(log), Some(Arc::new(pages)), clock);
        let agent = Loop::new(model, stack.clone()).with_watch(watch);
        agent
            .go_on(state(task(&stack)), &NoCheckpoint)
            .await
            .expect("kept");
        told
    }

    fn events(&self) -> Vec<Value> {
        let read = |line: &String| serde_json::from_str(line).expect("a line is JSON");
        self.lines.0.lock().iter().map(read).collect()
    }

    fn names(&self) -> Vec<String> {
        let name = |event: &Value| event["event"].as_str().expect("a name").to_owned();
        self.events().iter().map(name).collect()
    }

    /// Written by the time the agent that watched is gone.
    fn page(&self) -> String {
        let mut pages = std::fs::read_dir(self.dir.path()).expect("a directory");
        pages.next().map_or(String::new(), |page| {
            std::fs::read_to_string(page.expect("a page").path()).expect("a text")
        })
    }
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "one reply of a list that also holds failures"
)]
fn thinks(text: &str) -> Result<Value, ModelError> {
    Ok(
        json!({"choices": [{"message": {"content": "", "reasoning_content": text}, "finish_reason": "stop"}],
              "usage": {"prompt_tokens": 5, "completion_tokens": 2}}),
    )
}

fn away() -> Result<Value, ModelError> {
    Err(ModelError::Unavailable("connection refused".to_owned()))
}

#[tokio::test(start_paused = true)]
async fn the_events_of_a_run_are_those_of_the_specification() {
    let says = vec![
        away(),
        thinks(&call("note", "sk-proj-abcdefghijklmnopqrstuvwx0123")),
        thinks("Final Answer: done"),
    ];
    let told = Told::of(says, Level::Info, |state| state).await;
    assert_eq!(
        told.names(),
        [
            "executor_run_start",
            "gpt_oss_call_start",
            "gpt_oss_call_failed",
            "gpt_oss_call_complete",
            "tool_intents_parsed",
            "tool_execution_start",
            "tool_execution_success",
            "tool_execution_complete",
            "gpt_oss_call_start",
            "gpt_oss_call_complete",
            "completion_signal_detected",
            "executor_run_end",
        ]
    );
    let events = told.events();
    assert_eq!(events[0]["max_iterations"], 5);
    assert_eq!(events[0]["timeout_seconds"], 300);
    assert_eq!(events[0]["level"], "INFO");
    assert_eq!(events[0]["logger"], "executor");
    assert_eq!(
        (&events[2]["level"], &events[2]["error"]),
        (&json!("ERROR"), &json!("connection refused"))
    );
    assert_eq!(
        (&events[3]["tokens"], &events[3]["finish_reason"]),
        (&json!(7), &json!("stop"))
    );
    assert_eq!(events[4]["tool_names"], json!(["note"]));
    // A question, its answer and the calls in it belong to one iteration.
    let iterations = events.iter().map(|event| event["iteration"].as_u64());
    let iterations: Option<Vec<u64>> = iterations.collect();
    let expected = vec![0, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2];
    assert_eq!(iterations, Some(expected));
    assert!(events.iter().all(|event| event["run_id"] == "r"));
    assert!(
        !format!("{events:?}").contains("abcdefghijklmnop"),
        "a key was said aloud"
    );
    let page = told.page();
    assert!(page.starts_with("## 2027-01-15\n\n["), "{page}");
    assert!(page.contains("] gpt_oss | Error: connection refused | Attempted fix: asked again | Status: recovered on retry 1\n"), "{page}");
}

#[tokio::test(start_paused = true)]
async fn what_goes_wrong_is_on_the_page() {
    let wrong = thinks("Thought: x\nAction: note\nAction Input: {\"text\": [1]}");
    let told = Told::of(vec![wrong], Level::Error, |state| state).await;
    // Warnings are not logged at this level, and the page has them all the same.
    assert!(
        told.names()
            .iter()
            .all(|name| name == "gpt_oss_call_failed"),
        "{:?}",
        told.names()
    );
    let page = told.page();
    assert!(page.contains("] gpt_oss | Error: gpt_oss_unreachable: nothing left to say | Attempted fix: asked again | Status: failed after 3 attempts\n"), "{page}");
    let told = Told::of(
        vec![thinks(&call("note", "a"))],
        Level::Error,
        |mut state| {
            state.settings.max_iterations = 1;
            state
        },
    )
    .await;
    assert_eq!(told.names(), ["executor_max_iterations_exceeded"]);
    assert!(
        told.page()
            .contains("] executor | Error: max_iterations_exceeded: "),
        "{}",
        told.page()
    );
}

#[tokio::test(start_paused = true)]
async fn debug_shows_whole_requests_without_their_secrets() {
    let told = Told::of(
        vec![thinks("Final Answer: x")],
        Level::Debug,
        |mut state| {
            state.messages[0].content = "my key is sk-proj-abcdefghijklmnopqrstuvwx0123".to_owned();
            state
        },
    )
    .await;
    let events = told.events();
    let request = events
        .iter()
        .find(|event| event["event"] == "gpt_oss_request")
        .expect("a request");
    assert!(
        request["request"]["messages"]
            .to_string()
            .contains("my key is")
    );
    assert!(!format!("{events:?}").contains("abcdefghijklmnop"));
    assert!(told.names().contains(&"gpt_oss_reply".to_owned()));
}

/// Whoever looks for the reason of a call finds what the model wrote, what was read from it and what
/// came of it.
#[tokio::test(start_paused = true)]
async fn debug_shows_what_was_read_and_what_came_of_it() {
    let secret = "sk-proj-abcdefghijklmnopqrstuvwx0123";
    let arguments = json!({"text": format!("note {secret}")}).to_string();
    let function = json!({"name": "note", "arguments": arguments});
    let call = json!({"id": "c1", "type": "function", "function": function});
    let natively = json!({"choices": [{"message": {"content": "I do.", "tool_calls": [call]},
                                       "finish_reason": "tool_calls"}]});
    let says = || {
        vec![
            Ok(natively.clone()),
            thinks(&crate::common::call("note", "in words")),
            thinks("Final Answer: x"),
        ]
    };
    let told = Told::of(says(), Level::Debug, |state| state).await;
    let events = told.events();
    let named = |name: &str| -> Vec<Value> {
        let found = events.iter().filter(|event| event["event"] == name);
        found.cloned().collect()
    };
    let replies = named("gpt_oss_reply");
    assert_eq!(replies.len(), 3);
    assert_eq!(replies[0]["content"], "I do.");
    assert_eq!(replies[0]["calls"][0]["function"]["name"], "note");
    assert!(replies[1].get("calls").is_none(), "{:?}", replies[1]);
    let read = named("gpt_oss_reply_read");
    let intents: Vec<&Value> = read.iter().map(|event| &event["intents"]).collect();
    assert_eq!(intents[0][0]["strategy"], "native");
    assert_eq!(intents[1][0]["strategy"], "react");
    assert_eq!(intents[1][0]["arguments"], json!({"text": "in words"}));
    assert!(
        intents[1][0]["confidence"]
            .as_f64()
            .is_some_and(|it| it > 0.5)
    );
    assert_eq!((intents[2], &read[2]["final"]), (&json!([]), &json!("x")));
    let results = named("tool_result");
    assert_eq!(results.len(), 2);
    assert_eq!(results[1]["tool"], "note");
    let result = results[1]["result"].as_str().expect("a text");
    assert!(result.contains("in words (2)"), "{result}");
    assert!(!format!("{events:?}").contains("abcdefghijklmnop"));
    assert!(events.iter().all(|event| event["run_id"] == "r"));
    // It is for those who ask for it.
    let told = Told::of(says(), Level::Info, |state| state).await;
    let whole = ["gpt_oss_reply", "gpt_oss_reply_read", "tool_result"];
    assert!(told.names().iter().all(|it| !whole.contains(&it.as_str())));
}

#[tokio::test(start_paused = true)]
async fn no_text_makes_a_line_without_end() {
    let long = thinks(&"x".repeat(LOG_TEXT_CHARS_MAX + 7));
    let told = Told::of(vec![long], Level::Debug, |state| state).await;
    let events = told.events();
    let reply = events.iter().find(|it| it["event"] == "gpt_oss_reply");
    let shown = reply.expect("a reply")["reasoning"].as_str().expect("text");
    assert!(shown.ends_with("x… (7 characters more)"), "{}", shown.len());
}

const DIR: &str = "HOLDFAST_TEST_PAGES";
const WRITERS: usize = 6;
const LINES_EACH: usize = 200;

/// Noon, so that a test ends on the day on which it began.
const NOON_MS: u64 = 12 * 3_600_000;

fn pages(dir: &Path) -> ErrorPages {
    let clock = ManualClock::new(NOON_MS);
    ErrorPages::new(dir, "YYYY-MM-DD-errors.md", clock, redactor())
}

/// Does nothing, unless it is started by the test below.
#[test]
fn writes_its_lines() {
    let Some(dir) = std::env::var_os(DIR) else {
        return;
    };
    let pages = pages(Path::new(&dir));
    for number in 0..LINES_EACH {
        let error = format!("{} of {}", number, std::process::id());
        pages.add(&Entry {
            component: "read",
            error: &error,
            attempted_fix: "none",
            status: "x\ny|z",
        });
    }
    assert_eq!(pages.close(), 0);
}

#[test]
fn several_processes_write_one_page() {
    let dir = tempfile::tempdir().expect("a directory");
    let logs = dir.path().join("logs");
    let writers: Vec<_> = (0..WRITERS)
        .map(|_| {
            Command::new(std::env::current_exe().expect("this test"))
                .args(["--exact", "log::writes_its_lines"])
                .env(DIR, &logs)
                .stdout(Stdio::null())
                .spawn()
                .expect("a process")
        })
        .collect();
    for mut writer in writers {
        assert!(writer.wait().expect("its end").success());
    }
    let mut entries = 0;
    for page in std::fs::read_dir(&logs).expect("a directory") {
        let text = std::fs::read_to_string(page.expect("a page").path()).expect("a text");
        assert_eq!(text.matches("## ").count(), 1, "one heading");
        assert!(text.starts_with("## "));
        for line in text.lines().skip(2) {
            assert!(
                line.starts_with('[') && line.ends_with("| Status: x y\\|z"),
                "{line}"
            );
            entries += 1;
        }
    }
    assert_eq!(entries, WRITERS * LINES_EACH);
}

fn one_error(pages: &ErrorPages) {
    pages.add(&Entry {
        component: "read",
        error: "$(touch made-by-a-tool)",
        attempted_fix: "none",
        status: "told",
    });
}

fn page_of_today(dir: &Path) -> std::path::PathBuf {
    dir.join("1970-01-01-errors.md")
}

/// What a tool can put in the place of a page, or of their directory.
#[test]
fn nothing_is_written_through_what_a_tool_has_put_there() {
    type Trap = fn(&Path, &Path);
    let traps: [(&str, Trap); 4] = [
        ("a link to a file", |logs, victim| {
            std::fs::create_dir(logs).expect("a directory");
            std::os::unix::fs::symlink(victim, page_of_today(logs)).expect("a link");
        }),
        ("a second name of a file", |logs, victim| {
            std::fs::create_dir(logs).expect("a directory");
            std::fs::hard_link(victim, page_of_today(logs)).expect("a link");
        }),
        ("a pipe", |logs, _| {
            std::fs::create_dir(logs).expect("a directory");
            let made = Command::new("mkfifo").arg(page_of_today(logs)).status();
            assert!(made.expect("runs").success());
        }),
        ("a link to a directory", |logs, victim| {
            let other = victim.parent().expect("a directory");
            std::os::unix::fs::symlink(other, logs).expect("a link");
        }),
    ];
    for (what, lay) in traps {
        let dir = tempfile::tempdir().expect("a directory");
        let home = dir.path().join("home");
        std::fs::create_dir(&home).expect("a directory");
        let victim = home.join("profile");
        std::fs::write(&victim, "mine\n").expect("writes");
        let logs = dir.path().join("logs");
        let pages = pages(&logs);
        lay(&logs, &victim);
        one_error(&pages);
        assert_eq!(pages.close(), 1, "{what}");
        let text = std::fs::read_to_string(&victim).expect("reads");
        assert_eq!(text, "mine\n", "{what}");
        assert_eq!(
            std::fs::read_dir(&home).expect("lists").count(),
            1,
            "{what}"
        );
    }
}

#[test]
fn the_operator_may_have_the_pages_behind_a_link() {
    let dir = tempfile::tempdir().expect("a directory");
    let real = dir.path().join("real");
    std::fs::create_dir(&real).expect("a directory");
    std::os::unix::fs::symlink(&real, dir.path().join("link")).expect("a link");
    let pages = pages(&dir.path().join("link/deep/logs"));
    one_error(&pages);
    assert_eq!(pages.close(), 0);
    assert!(page_of_today(&real.join("deep/logs")).exists());
}

#[test]
fn whoever_holds_a_page_holds_nobody_up() {
    // One queue may be on its way to the page, and one behind it.
    const SENT: usize = 4 * PAGE_QUEUE_MAX;
    let dir = tempfile::tempdir().expect("a directory");
    let held = std::fs::File::create(page_of_today(dir.path())).expect("a page");
    held.lock().expect("locks");
    let pages = pages(dir.path());
    // More than there is room for: not one of them waits.
    for _ in 0..SENT {
        one_error(&pages);
    }
    held.unlock().expect("unlocks");
    let lost = pages.close();
    let text = std::fs::read_to_string(page_of_today(dir.path())).expect("reads");
    let written = text.lines().filter(|line| line.starts_with('[')).count() as u64;
    assert!(written > 0 && lost > 0);
    assert_eq!(written + lost, SENT as u64);
}
