//! Commands: what runs, what is undone, what a person is asked about.

use serde_json::{Value, json};

use crate::common::{House, eventually, eventually_lines};

fn exec(house: &House, params: &Value, more: &[&str]) -> Value {
    let args = params.to_string();
    let mut words = vec!["call", "exec", "--json", "--args", &args];
    words.extend_from_slice(more);
    house.run(&words).json()
}

fn asked(house: &House) -> Value {
    eventually("a person is asked", || {
        let listed = house.run(&["approvals", "list", "--json"]).json();
        listed.as_array()?.first().cloned()
    })
}

#[test]
fn judge_says_what_would_happen_and_runs_nothing() {
    let house = House::new();
    let judged = |command: &str| house.run(&["judge", "--json", command]).json();
    for (command, asks, undoable) in [
        ("cargo test && rm -rf target .git", false, true),
        ("echo x > made", false, true),
        ("git push --force", true, false),
        ("vercel --prod", true, false),
        ("curl -X DELETE https://api.example.com/x", true, false),
        ("psql -c 'UPDATE users SET admin = true'", true, false),
    ] {
        let found = judged(command);
        assert_eq!(found["asks"], asks, "{command}: {found}");
        assert_eq!(found["undoable"], undoable, "{command}: {found}");
        let reasons = found["reasons"].as_array().expect("a list");
        assert_eq!(reasons.is_empty(), !asks, "{command}: {found}");
    }
    assert!(!house.workspace().join("made").exists());
    let config = house.file(
        "rules.yaml",
        "permissions:\n  commands:\n    blocked: ['git push']\n    ask:\n    - {id: our-release, text: releases our \
         product, program: [make], verb: [release]}\n",
    );
    let under = |command: &str| house.run(&["--config", &config, "judge", command]).stdout;
    assert!(under("nice git push").contains("refused"));
    assert!(under("make release").contains("releases our product"));
    assert!(under("make test").contains("without a question"));
}

#[test]
fn a_rule_that_can_not_be_used_is_a_configuration_error() {
    let house = House::new();
    let config = house.file(
        "rules.yaml",
        "permissions: {commands: {ask: [{id: x, text: does x, program: [x], arg: '('}]}}",
    );
    let checked = house.run(&["config", "check", &config, "--offline"]);
    assert_eq!(checked.code, Some(2), "{checked:?}");
    assert!(checked.stderr.contains("rule \"x\""), "{checked:?}");
}

#[test]
fn an_agent_that_removes_everything_has_removed_nothing() {
    let house = House::new();
    let run = |command: &str| exec(&house, &json!({ "command": command }), &[]);
    run(
        "git init -q . && mkdir src && echo 'fn main() {}' > src/main.rs && git add . && \
         git -c user.name=a -c user.email=a@b.c commit -qm first",
    );
    let gone = run("rm -rf .git src");
    assert_eq!(
        gone["output"]["metadata"]["undo"]["covers"], "full",
        "{gone}"
    );
    assert!(!house.workspace().join(".git").exists());
    assert_eq!(house.run(&["undo"]).code, Some(0));
    let log = run("git log --format=%s && git status --porcelain && cat src/main.rs");
    assert_eq!(
        log["output"]["content"]["stdout"], "first\nfn main() {}\n",
        "{log}"
    );
}

#[test]
fn where_nothing_can_be_undone_a_person_is_asked() {
    let house = House::new();
    std::fs::create_dir(house.workspace().join("src")).expect("made");
    let off = house.file("off.yaml", "undo: {pointsMax: 0}");
    let call = house.start_exec("k", "rm -r src", &["--config", &off]);
    let reason = asked(&house)["reasons"][0].clone();
    assert_eq!(reason["code"], "destructive_command", "{reason}");
    drop(call);
    // That a workspace is too large is only known when it was walked: then nothing has run.
    let house = House::new();
    for dir in ["src", "a", "b", "c"] {
        std::fs::create_dir(house.workspace().join(dir)).expect("made");
    }
    let small = house.file("small.yaml", "undo: {filesMax: 2}");
    let first = exec(
        &house,
        &json!({"command": "rm -r src"}),
        &["--config", &small],
    );
    let said = first["error"]["message"].as_str().expect("refused");
    assert!(said.contains("Call it again"), "{first}");
    let call = house.start_exec("k", "rm -r src", &["--config", &small]);
    assert_eq!(asked(&house)["reasons"][0]["code"], "destructive_command");
    drop(call);
    assert!(house.workspace().join("src").exists());
    // What takes nothing away is not held up.
    let made = exec(
        &house,
        &json!({"command": "mkdir d"}),
        &["--config", &small],
    );
    assert_eq!(
        made["output"]["metadata"]["undo"]["covers"], "none",
        "{made}"
    );
}

#[test]
fn a_yes_grants_the_path_that_was_shown() {
    let house = House::new();
    let aside = house.workspace().join("../aside");
    std::fs::write(house.workspace().join("a"), "x").expect("written");
    // Both are held by the kernel, and both are told the way.
    for command in ["cp a ../aside/b", "cat a > ../aside/b"] {
        let held = exec(&house, &json!({ "command": command }), &[]);
        let output = &held["output"]["content"];
        assert_ne!(output["exit_code"], 0, "{held}");
        let hint = output["hint"].as_str().expect("a hint");
        assert!(hint.contains("`writes`"), "{held}");
    }
    let args = json!({
        "command": "cp a ../aside/b; cp a ../beside; echo ran >> effect",
        "writes": ["../aside"]
    });
    let args = args.to_string();
    let call = house.start(&["call", "exec", "--json", "--args", &args]);
    let request = asked(&house);
    let shown = request["reasons"][0]["text"].as_str().expect("text");
    assert!(
        shown.contains("everything in") && shown.contains("aside"),
        "{shown}"
    );
    let id = request["id"].as_str().expect("an id");
    assert_eq!(house.run(&["approvals", "approve", id]).code, Some(0));
    call.ended().success();
    eventually_lines(&house, "effect", 1);
    assert!(aside.join("b").exists());
    assert!(!house.workspace().join("../beside").exists());
}

/// `&>` is one operator in bash, and two in other shells: what we read is what runs.
#[test]
fn what_is_read_is_what_runs() {
    let house = House::new();
    let bin = house.workspace().join("bin");
    std::fs::create_dir(&bin).expect("made");
    let blocked = house.file("b.yaml", "permissions: {commands: {blocked: ['git push']}}");
    for command in [
        "true &>/dev/null git push --force",
        "x=$(case a in a) echo git push;; esac); echo \"$x\"",
        "cat <<$'E'\ngit push\nE\n",
        "# \r\ntrue",
    ] {
        let command = format!("git() {{ echo \"$@\" >> started; }}; {command}");
        exec(
            &house,
            &json!({ "command": command }),
            &["--config", &blocked],
        );
        assert_eq!(house.lines("started"), 0, "{command}");
    }
}
