//! `holdfast sessions`: the tree as another process keeps it.

use std::sync::Arc;

use holdfast_contract::{SessionKind, SystemClock, SystemEntropy};
use holdfast_reliability::observe::Observers;
use holdfast_reliability::runtime::Runtime;
use holdfast_reliability::store::sqlite::{SqliteOptions, SqliteState};
use holdfast_toolbox::session::{
    Session, SessionArtifact, SessionLimits, SessionResult, SessionStatus, SessionTree, Spawn,
};
use serde_json::{Value, json};

use crate::common::House;

/// The process that works on the sessions.
struct Host {
    tree: SessionTree,
    runtime: tokio::runtime::Runtime,
}

impl Host {
    fn new(house: &House) -> Self {
        let clock = Arc::new(SystemClock);
        let state = SqliteState::open(&house.state(), clock.clone(), SqliteOptions::default());
        let runtime = Runtime::new(clock, Arc::new(SystemEntropy), Observers::new());
        let limits = SessionLimits::default();
        let tree = SessionTree::new(state.expect("opens"), Arc::new(runtime), limits, vec![]);
        Self {
            tree,
            runtime: tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime"),
        }
    }

    fn main(&self, house: &House) {
        let opened = self.tree.open_main("s1", "ada", house.workspace(), None);
        self.runtime.block_on(opened).expect("opens");
    }

    fn spawn(&self, parent: &str, kind: SessionKind, told: &str, budget: u64) -> Session {
        let wish = Spawn {
            kind,
            context_summary: told.to_owned(),
            token_budget: Some(budget),
        };
        let made = self.tree.spawn(parent, wish);
        self.runtime.block_on(made).expect("spawns")
    }
}

fn listed(house: &House, more: &[&str]) -> Vec<Value> {
    let ran = house.run(&[&["sessions", "list", "--json"], more].concat());
    serde_json::from_value(ran.json()).expect("a list")
}

#[test]
fn the_tree_is_listed_shown_and_cancelled_from_another_process() {
    let house = House::new();
    assert!(listed(&house, &[]).is_empty());
    let said = house.run(&["sessions", "list"]);
    assert!(said.stdout.contains("No session is at work"), "{said:?}");
    let host = Host::new(&house);
    host.main(&house);
    let branch = host.spawn("s1", SessionKind::Branch, "Look for the bug.", 1_000);
    let worker = host.spawn(&branch.id, SessionKind::Worker, "Read main.rs.", 500);
    host.runtime
        .block_on(host.tree.spend(&worker.id, 120))
        .expect("spends");
    let mut result = SessionResult::new(SessionStatus::Completed, "It is on line 7.");
    result.artifacts.push(SessionArtifact::File {
        path: "notes.md".to_owned(),
    });
    host.runtime
        .block_on(host.tree.finish(&worker.id, result))
        .expect("finishes");

    let at_work = listed(&house, &[]);
    let places: Vec<_> = at_work.iter().map(|it| (&it["id"], &it["depth"])).collect();
    assert_eq!(
        places,
        [(&json!("s1"), &json!(0)), (&json!(branch.id), &json!(1))]
    );
    assert_eq!(at_work[0]["children"], json!([branch.id]));
    let all = listed(&house, &["--all"]);
    let ended = &all[2];
    assert_eq!(ended["kind"], "worker");
    assert_eq!(ended["parent"], json!(branch.id));
    assert_eq!(ended["state"], "completed");
    assert_eq!(ended["tokensSpent"], 120);
    assert_eq!(ended["limits"]["tokenBudget"], 500);
    assert_eq!(ended["limits"]["depthMax"], 4);
    assert_eq!(ended["result"]["summary"], "It is on line 7.");
    let table = house.run(&["sessions", "list", "--all"]).stdout;
    assert!(table.contains(&format!("    {}", worker.id)), "{table}");
    assert!(table.contains("120 of 500"), "{table}");
    let shown = house.run(&["sessions", "show", &worker.id]).stdout;
    for part in ["It is on line 7.", "notes.md", "Read main.rs.", "2 of 4"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }

    let told = house.run(&["sessions", "cancel", &branch.id, "--json"]);
    assert_eq!(told.json()["state"], "ending", "{told:?}");
    assert_eq!(listed(&house, &[])[1]["state"], "ending");
    // The process that works on it hears of it when it looks at the time.
    host.runtime.block_on(async {
        host.tree.tick().await.expect("ticks");
        host.tree.cancelled(&branch.id).await;
    });
}

#[test]
fn in_a_main_that_was_cancelled_nothing_runs_until_a_person_opens_it_again() {
    let house = House::new();
    let host = Host::new(&house);
    host.main(&house);
    let call = |key: &str| house.exec(key, "echo ran >> effect", &["--session", "s1"]);
    call("k1").success();
    let early = house.run(&["sessions", "reopen", "s1"]);
    assert_eq!(early.code, Some(1), "{early:?}");
    let told = house.run(&["sessions", "cancel", "s1"]);
    assert!(told.stdout.contains("holdfast sessions reopen"), "{told:?}");
    let refused = call("k2").json();
    assert_eq!(refused["error"]["code"], "permission_denied", "{refused}");
    let why = refused["error"]["message"].as_str().expect("a text");
    assert!(why.contains("holdfast sessions reopen"), "{why}");
    // Another session is another matter.
    house
        .exec("k3", "echo ran >> effect", &["--session", "s2"])
        .success();
    let opened = house.run(&["sessions", "reopen", "s1", "--json"]);
    assert_eq!(opened.json()["state"], "active", "{opened:?}");
    call("k4").success();
    assert_eq!(house.lines("effect"), 3);
}

/// A session that only calls name is in no tree, and can be cancelled all the same.
#[test]
fn the_session_of_calls_is_cancelled_by_its_name() {
    let house = House::new();
    let call = |key: &str| house.exec(key, "echo ran >> effect", &["--session", "web-42"]);
    call("k1").success();
    let unlisted = house.run(&["sessions", "cancel", "web-42"]);
    assert_eq!(unlisted.code, Some(1), "{unlisted:?}");
    assert!(unlisted.stderr.contains("--main"), "{unlisted:?}");
    let told = house.run(&["sessions", "cancel", "web-42", "--main"]);
    assert_eq!(told.code, Some(0), "{told:?}");
    let refused = call("k2").json();
    assert_eq!(refused["error"]["code"], "permission_denied", "{refused}");
    let twice = house.run(&["sessions", "cancel", "web-42", "--main"]);
    assert_eq!(twice.code, Some(1), "{twice:?}");
    assert_eq!(house.run(&["sessions", "reopen", "web-42"]).code, Some(0));
    call("k3").success();
    assert_eq!(house.lines("effect"), 2);
    assert!(
        listed(&house, &["--all"]).is_empty(),
        "nobody has opened it"
    );
}

#[test]
fn a_session_is_named_by_its_beginning_if_that_is_enough() {
    let house = House::new();
    let host = Host::new(&house);
    host.main(&house);
    let opened = host.tree.open_main("s2", "ada", house.workspace(), None);
    host.runtime.block_on(opened).expect("opens");
    let shown = house.run(&["sessions", "show", "s1", "--json"]);
    assert_eq!(shown.json()["id"], "s1");
    let unclear = house.run(&["sessions", "show", "s"]);
    assert_eq!(unclear.code, Some(1));
    assert!(unclear.stderr.contains("several sessions"), "{unclear:?}");
    for command in ["show", "cancel", "reopen"] {
        let missing = house.run(&["sessions", command, "nobody"]);
        assert_eq!(missing.code, Some(1));
        assert!(
            missing.stderr.contains("there is no session"),
            "{missing:?}"
        );
    }
    // What a tool starts is not a person.
    let command = "holdfast sessions cancel s1 || true; echo over";
    let path = std::path::Path::new(env!("CARGO_BIN_EXE_holdfast"));
    let dir = path.parent().expect("a directory").display().to_string();
    let command = format!("PATH={dir}:$PATH; {command}");
    house.exec("k", &command, &[]);
    assert_eq!(listed(&house, &[])[0]["state"], "active");
}
