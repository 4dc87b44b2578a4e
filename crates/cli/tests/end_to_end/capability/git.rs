//! `holdfast git`: what git would run later waits for a person.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::common::House;

fn repository() -> House {
    let house = House::new();
    let made = Command::new("git")
        .args(["init", "-q", "."])
        .current_dir(house.workspace())
        .output()
        .expect("git runs");
    assert!(made.status.success(), "{made:?}");
    house
}

fn exec(house: &House, command: &str) -> Value {
    let args = serde_json::json!({ "command": command }).to_string();
    let called = house.run(&["call", "exec", "--json", "--args", &args]);
    called.json()["output"]["content"].clone()
}

const INSTALL: &str = "printf '#!/bin/sh\\necho checked\\n' > .git/hooks/pre-commit && \
                       chmod +x .git/hooks/pre-commit && git config core.pager ./page";

#[test]
fn what_git_would_run_is_shown_kept_and_dropped_by_a_person() {
    let house = repository();
    assert!(
        house
            .run(&["git", "list"])
            .stdout
            .contains("Nothing is set aside")
    );
    let answer = exec(&house, INSTALL);
    let told = answer["set_aside"].as_array().expect("a list");
    assert_eq!(told.len(), 2, "{answer}");
    assert!(
        answer["hint"]
            .as_str()
            .expect("a hint")
            .contains("holdfast git keep")
    );
    assert_eq!(answer["exit_code"], 0);
    let listed = house.run(&["git", "list"]).stdout;
    for shown in ["echo checked", "pre-commit", "core.pager", "./page"] {
        assert!(listed.contains(shown), "{shown}: {listed}");
    }
    let listed = house.run(&["git", "list", "--json"]).json();
    let id_of = |what: &str| {
        let found = listed
            .as_array()
            .expect("a list")
            .iter()
            .find(|it| it["what"] == what);
        found.expect("listed")["id"]
            .as_str()
            .expect("an id")
            .to_owned()
    };
    let (hook, setting) = (id_of("hook"), id_of("setting"));
    assert!(
        told.iter()
            .any(|it| it.as_str().expect("a line").starts_with(&hook))
    );
    assert_eq!(house.run(&["git", "keep", &hook]).code, Some(0));
    assert_eq!(house.run(&["git", "drop", &setting]).code, Some(0));
    let missing = house.run(&["git", "keep", &setting]);
    assert_eq!(missing.code, Some(1), "{missing:?}");
    assert!(missing.stderr.contains("holdfast git list"), "{missing:?}");
    // What a person has kept is known here, what was dropped is not.
    let again = exec(&house, &format!("rm .git/hooks/pre-commit; {INSTALL}"));
    let told = again["set_aside"].as_array().expect("a list");
    assert_eq!(told.len(), 1, "{again}");
    assert!(told[0].as_str().expect("a line").contains("core.pager"));
    assert!(house.path(".git/hooks/pre-commit").exists());
}

/// A tool can neither see nor answer what waits for a person.
#[test]
fn a_tool_keeps_nothing() {
    let house = repository();
    exec(&house, INSTALL);
    let binary = env!("CARGO_BIN_EXE_holdfast");
    let args = serde_json::json!({"command": format!("{binary} git keep")}).to_string();
    let refused = house
        .run(&["call", "exec", "--json", "--args", &args])
        .json();
    assert_eq!(refused["error"]["code"], "permission_denied", "{refused}");
    // Also where the text does not show it.
    let dir = Path::new(binary).parent().expect("a directory").display();
    let config = house.file("read.yaml", &format!("confinement: {{read: ['{dir}']}}"));
    let command = format!("{binary} $(printf git) $(printf keep)");
    let args = serde_json::json!({ "command": command }).to_string();
    let hidden = house.run(&[
        "--config", &config, "call", "exec", "--json", "--args", &args,
    ]);
    let hidden = hidden.json();
    let said = hidden["output"]["content"]["stderr"].as_str();
    let said = said.unwrap_or_else(|| panic!("{hidden}"));
    assert!(
        said.contains("by people") && said.contains("by a tool"),
        "{said}"
    );
    assert!(!house.path(".git/hooks/pre-commit").exists());
}

/// The process that answers ends what the command left, and looks once more.
#[test]
fn what_a_command_left_behind_is_compared_at_the_end_of_the_process() {
    let house = repository();
    let left = "(trap 'git config core.pager ./x; exit' TERM; while :; do sleep 0.01; done) >/dev/null 2>&1 & true";
    let answer = exec(&house, left);
    assert!(answer.get("set_aside").is_none(), "{answer}");
    let listed = house.run(&["git", "list", "--json"]).json();
    assert_eq!(listed[0]["setting"], "core.pager", "{listed}");
    let config = std::fs::read_to_string(house.path(".git/config")).expect("read");
    assert!(!config.contains("./x"), "{config}");
}
