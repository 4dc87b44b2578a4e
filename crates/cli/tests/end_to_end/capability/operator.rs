//! What operators do at the command line is in the audit log, like what they ask of a server.

use std::fs;

use serde_json::{Value, json};

use crate::common::House;

fn audit(house: &House) -> Vec<Value> {
    let text = fs::read_to_string(house.state().join("audit.log")).unwrap_or_default();
    let lines = text.lines().map(serde_json::from_str);
    lines.collect::<Result<_, _>>().expect("JSON")
}

#[test]
fn what_is_changed_is_written_down_and_what_is_looked_at_is_not() {
    let house = House::new();
    house.exec("k", "true", &[]).success();
    for look in [
        &["dedupe", "list"][..],
        &["dedupe", "show", "k"],
        &["breaker", "list"],
    ] {
        assert_eq!(house.run(look).code, Some(0));
    }
    assert_eq!(audit(&house), Vec::<Value>::new());
    let changes = [
        (
            &["breaker", "force-open", "exec", "--reason", "noon"][..],
            "force-open",
            "admin.done",
        ),
        (
            &["breaker", "reset", "exec", "--operator", "ann"],
            "reset",
            "admin.done",
        ),
        (
            &["breaker", "reset", "nothing-like-it"],
            "reset",
            "admin.failed",
        ),
        (&["dedupe", "clear", "k"], "clear", "admin.done"),
        (
            &["dedupe", "flush", "--tool", "exec"],
            "flush",
            "admin.done",
        ),
        (&["dedupe", "flush"], "flush", "admin.failed"),
    ];
    for (args, ..) in changes {
        house.run(args);
    }
    let written = audit(&house);
    assert_eq!(written.len(), 2 * changes.len(), "{written:#?}");
    for (pair, (_, action, end)) in written.chunks(2).zip(changes) {
        assert_eq!(
            (&pair[0]["event"], &pair[1]["event"]),
            (&json!("admin.asked"), &json!(end))
        );
        assert_eq!(pair[0]["fields"]["action"]["action"], action);
        assert_eq!(pair[0]["fields"]["id"], pair[1]["fields"]["id"]);
    }
    assert_eq!(written[0]["fields"]["operator"], "tester");
    assert_eq!(written[0]["fields"]["action"]["reason"], "noon");
    assert_eq!(written[2]["fields"]["operator"], "ann");
    let verified = house.run(&["audit-log", "verify"]);
    assert_eq!(verified.code, Some(0), "{verified:?}");
}
