//! Approvals of two machines on one Redis: the same workspace, each with a state of its own.

use std::process::Command;
use std::time::Duration;

use holdfast_testkit::redis::{Persistence, RedisServer};
use holdfast_testkit::wait::eventually_within;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::common::{House, Ran, eventually};
use crate::harness::{Serving, envelope};

/// A dead holder is known by its lease. The living renew theirs at a third of it.
const LEASE_MS: u64 = 6_000;
/// Longer than a lease and the time until a server looks, twice.
const TAKEN_UP_WITHIN: Duration = Duration::from_mins(2);

/// What two machines share.
struct Shared {
    _redis: RedisServer,
    house: House,
    config: String,
}

impl Shared {
    fn new() -> Self {
        let redis = RedisServer::start(Persistence::None, &[]).expect("Redis");
        let house = House::new();
        let yaml = format!(
            "reliability:\n  ttl: {{leaseMs: {LEASE_MS}}}\n  store:\n    kind: redis\n    redis: {{url: \"{}\"}}\n",
            redis.url()
        );
        Self {
            config: house.file("shared.yaml", &yaml),
            _redis: redis,
            house,
        }
    }

    fn machine(&self, name: &str) -> impl Fn(&mut Command) + use<> {
        let state = self.house.home().join(name);
        move |command| {
            command.env("HOLDFAST_STATE", &state);
        }
    }

    fn serve(&self, name: &str) -> Serving {
        let more = ["--config", self.config.as_str()];
        self.house.serve_with(&more, self.machine(name))
    }

    /// The command line on one of the machines.
    fn run(&self, name: &str, args: &[&str]) -> Ran {
        let words = [args, &["--json", "--config", &self.config]].concat();
        let mut command = self.house.command(&words);
        self.machine(name)(&mut command);
        Ran::of(&command.output().expect("runs"))
    }

    /// The log of each machine is whole.
    fn is_audited(&self, names: &[&str]) {
        for name in names {
            let verified = self.run(name, &["audit-log", "verify"]);
            assert_eq!(verified.code, Some(0), "{name}: {verified:?}");
        }
    }
}

/// Asked about by a rule. Each run leaves a line.
fn command(name: &str) -> String {
    format!("git push --force {name}; echo ran >> {name}")
}

/// Calls on one machine, lets something happen while the call waits, and gives its answer back;
/// none if its server died.
fn while_it_waits(first: &Serving, name: &str, then: impl FnOnce(&str)) -> Option<Value> {
    let params = json!({ "command": command(name) });
    let body = envelope(name, "exec", &params, Some(name)).to_string();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(move || {
            let bearer = format!("Bearer {}", first.token);
            let headers = [
                ("authorization", bearer.as_str()),
                ("content-type", "application/json"),
            ];
            let mut connection = first.connect();
            connection.request("POST", "/v1/tools/call", &headers, body.as_bytes())
        });
        let request = first.pending();
        then(request["id"].as_str().expect("an id"));
        let answer = waiting.join().expect("no panic");
        answer.ok().map(|answer| answer.json())
    })
}

#[test]
fn what_waits_on_one_machine_is_answered_on_another() {
    let shared = Shared::new();
    let [one, two] = ["one", "two"].map(|name| shared.serve(name));
    let answer = while_it_waits(&one, "yes", |id| {
        assert_eq!(two.pending()["id"], json!(id), "it is seen elsewhere");
        let (status, answered) = two.answer(id, "approve", &json!({"by": "ann"}));
        assert_eq!((status, &answered["state"]), (200, &json!("approved")));
    });
    let answer = answer.expect("an answer");
    assert_eq!(answer["status"], "success", "{answer}");
    // And by the command line, which says no.
    let answer = while_it_waits(&one, "no", |id| {
        let denied = shared.run("two", &["approvals", "deny", id, "--reason", "not today"]);
        assert_eq!(denied.code, Some(0), "{denied:?}");
    });
    let answer = answer.expect("an answer");
    assert_eq!(answer["error"]["code"], "permission_denied", "{answer}");
    assert!(answer.to_string().contains("not today"), "{answer}");
    // What the answering machine has begun has ended once both are gone.
    drop((one, two));
    assert_eq!(
        (shared.house.lines("yes"), shared.house.lines("no")),
        (1, 0)
    );
    shared.is_audited(&["one", "two"]);
}

#[test]
fn of_answers_on_two_machines_at_once_one_counts() {
    let shared = Shared::new();
    let machines = ["one", "two"].map(|name| shared.serve(name));
    for round in ["first", "second", "third"] {
        let mut taken = Vec::new();
        let answer = while_it_waits(&machines[0], round, |id| {
            let answers: Vec<(u16, &str)> = std::thread::scope(|scope| {
                let answering: Vec<_> = (0..8)
                    .map(|number| {
                        let machine = &machines[number % 2];
                        let way = if number % 4 < 2 { "approve" } else { "deny" };
                        scope.spawn(move || (machine.answer(id, way, &json!({})).0, way))
                    })
                    .collect();
                let answers = answering
                    .into_iter()
                    .map(std::thread::ScopedJoinHandle::join);
                answers.map(|it| it.expect("no panic")).collect()
            });
            assert!(
                answers
                    .iter()
                    .all(|(status, _)| [200, 409].contains(status)),
                "{answers:?}"
            );
            taken.extend(answers.into_iter().filter(|(status, _)| *status == 200));
        });
        assert_eq!(taken.len(), 1, "{taken:?}");
        let runs = usize::from(taken[0].1 == "approve");
        let answer = answer.expect("an answer");
        assert_eq!(answer["status"] == "success", runs == 1, "{answer}");
        assert_eq!(shared.house.lines(round), runs, "{answer}");
    }
    shared.is_audited(&["one", "two"]);
}

/// Kills the machine that waits, and answers; the other one has to end it.
fn killed_and_answered(answer: impl FnOnce(&Shared, &Serving, &str)) {
    let shared = Shared::new();
    let [one, two] = ["one", "two"].map(|name| shared.serve(name));
    let died = while_it_waits(&one, "taken", |id| {
        // A request is seen before it is in the log of the machine that made it.
        eventually("it is in the log", || {
            let verified = shared.run("one", &["audit-log", "verify"]);
            (verified.code == Some(0)).then_some(())
        });
        one.signal(Signal::KILL);
        answer(&shared, &two, id);
        eventually_within(TAKEN_UP_WITHIN, "it is taken up", || {
            (two.state_of(id) == "used").then_some(())
        });
    });
    assert_eq!(died, None);
    eventually("it ran", || (shared.house.lines("taken") > 0).then_some(()));
    // Delivered again, it is on record, with the arguments that were approved.
    let params = json!({ "command": command("taken") });
    let again = two.call(&envelope("taken", "exec", &params, Some("taken")));
    let again = again.json();
    assert_eq!(
        (&again["status"], &again["fromCache"]),
        (&json!("success"), &json!(true)),
        "{again}"
    );
    assert_eq!(shared.house.lines("taken"), 1);
    shared.is_audited(&["one", "two"]);
}

#[test]
fn what_a_killed_machine_asked_for_runs_on_the_one_that_is_answered() {
    killed_and_answered(|_, two, id| {
        let (status, answered) = two.answer(id, "approve", &json!({"by": "ann"}));
        assert_eq!((status, &answered["state"]), (200, &json!("approved")));
    });
}

#[test]
fn what_a_killed_machine_asked_for_is_taken_up_when_the_answer_comes_from_elsewhere() {
    killed_and_answered(|shared, _, id| {
        let approved = shared.run("three", &["approvals", "approve", id]);
        assert_eq!(approved.code, Some(0), "{approved:?}");
    });
}
