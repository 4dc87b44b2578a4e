//! `kill -9` at every step of a run with ten calls, and the run goes on in the next process.
//!
//! Killed between two steps, every effect is there exactly once. Killed inside a call, its effect is
//! there at most once, and the model is told that nobody knows.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use holdfast_testkit::model::{ModelServer, Say, turns};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::common::{House, eventually};
use crate::executor::runs::runs;
use crate::executor::{PATH, task};
use crate::harness::Serving;

/// The calls of each reply: ten in all.
const CALLS: [std::ops::Range<usize>; 4] = [0..3, 3..6, 6..8, 8..10];
const COUNT: usize = 10;
/// No question.
const NEVER: usize = usize::MAX;

/// What call number so-and-so runs. A file tells it to end its own server after its effect.
fn command(number: usize) -> String {
    format!(
        "echo {number} >> effects; if [ -f die-{number} ]; then rm die-{number}; kill -9 $PPID; \
         sleep 1000; fi"
    )
}

fn reply(turn: usize) -> Say {
    let Some(calls) = CALLS.get(turn) else {
        return Say::says("Final Answer: All ten are done.");
    };
    let each = calls.clone().map(|number| {
        let arguments = json!({"command": command(number)});
        format!("Action: exec\nAction Input: {arguments}")
    });
    Say::thinks(each.collect::<Vec<_>>().join("\n"))
}

/// Where the server is killed.
enum Point {
    /// When the model is asked for the how-manieth time.
    Ask(usize),
    /// When the hook of that phase is told of that call.
    Hook(&'static str, usize),
    /// By that call itself.
    Inside(usize),
}

struct Killed {
    house: House,
    model: ModelServer,
    serving: Serving,
}

/// Begins the run, lets it be killed there, and starts the next server on the same state.
fn killed_at(point: &Point) -> Killed {
    let house = House::new();
    let (pid, at) = (
        Arc::new(AtomicU32::new(0)),
        Arc::new(AtomicUsize::new(NEVER)),
    );
    let (victim, question) = (pid.clone(), at.clone());
    let model = ModelServer::start(move |request| {
        let turn = turns(request);
        let due = question.compare_exchange(turn, NEVER, Ordering::SeqCst, Ordering::SeqCst);
        if due.is_err() {
            return reply(turn);
        }
        let pid = i32::try_from(victim.load(Ordering::SeqCst)).ok();
        let pid = pid.and_then(Pid::from_raw).expect("a process");
        kill_process(pid, Signal::KILL).expect("kills");
        Say::Silence
    })
    .expect("starts");
    let mut yaml = "confinement: {signals: any}\n".to_owned();
    match point {
        Point::Ask(turn) => at.store(*turn, Ordering::SeqCst),
        Point::Inside(number) => {
            std::fs::write(house.path(&format!("die-{number}")), "").expect("writes");
        }
        Point::Hook(phase, number) => {
            let mark = house.file("mark", &format!("echo {number} >> "));
            let script = format!(
                "[ -f {mark} ] && grep -qF -f {mark} && rm {mark} && kill -9 $PPID; echo {{}}"
            );
            yaml = format!("{yaml}hooks:\n  {phase}:\n    - command: [sh, -c, '{script}']\n");
        }
    }
    let config = house.file("kill.yaml", &yaml);
    let args = ["--config", config.as_str(), "--model-url", &model.url()];
    let serving = house.serve(&args);
    pid.store(serving.pid(), Ordering::SeqCst);
    let mut asking = serving.connect();
    let body = task("Do all ten").to_string();
    let headers = [("content-type", "application/json")];
    asking
        .send_request("POST", PATH, &headers, body.as_bytes())
        .expect("sends");
    assert_eq!(serving.ended().0, None, "killed");
    let serving = house.serve(&args);
    Killed {
        house,
        model,
        serving,
    }
}

impl Killed {
    /// Waits for the answer; what happened, and whether the model was told that something is unknown.
    fn ended(&self) -> (Vec<usize>, bool) {
        let run = eventually("the run has its answer", || {
            let all = runs(&self.serving);
            let [run] = all.as_slice() else {
                panic!("{all:?}");
            };
            (run["status"] != "running" && run["status"] != "unfinished").then(|| run.clone())
        });
        assert_eq!(run["status"], "answered", "{run}");
        assert_eq!(run["tools_called"].as_array().map(Vec::len), Some(COUNT));
        let effects = std::fs::read_to_string(self.house.path("effects")).unwrap_or_default();
        let effects = effects.lines().map(|line| line.parse().expect("a number"));
        let told = self
            .model
            .asked()
            .iter()
            .any(|request: &Value| request["messages"].to_string().contains("outcome_unknown"));
        (effects.collect(), told)
    }
}

fn all() -> Vec<usize> {
    (0..COUNT).collect()
}

#[test]
fn killed_while_the_model_is_asked_every_effect_is_there_once() {
    for turn in 0..=CALLS.len() {
        let (effects, unknown) = killed_at(&Point::Ask(turn)).ended();
        assert_eq!((effects, unknown), (all(), false), "question {turn}");
    }
}

#[test]
fn killed_before_a_call_is_claimed_every_effect_is_there_once() {
    for number in 0..COUNT {
        let (effects, unknown) = killed_at(&Point::Hook("admit", number)).ended();
        assert_eq!((effects, unknown), (all(), false), "call {number}");
    }
}

#[test]
fn killed_between_claim_and_effect_it_is_never_there_and_unknown() {
    for number in 0..COUNT {
        let (effects, unknown) = killed_at(&Point::Hook("before", number)).ended();
        let mut others = all();
        others.remove(number);
        assert_eq!((effects, unknown), (others, true), "call {number}");
    }
}

#[test]
fn killed_inside_a_call_its_effect_is_there_once_and_unknown() {
    for number in 0..COUNT {
        let (effects, unknown) = killed_at(&Point::Inside(number)).ended();
        assert_eq!((effects, unknown), (all(), true), "call {number}");
    }
}

#[test]
fn killed_between_effect_and_record_it_is_there_once_and_unknown() {
    for number in 0..COUNT {
        let (effects, unknown) = killed_at(&Point::Hook("after", number)).ended();
        assert_eq!((effects, unknown), (all(), true), "call {number}");
    }
}
