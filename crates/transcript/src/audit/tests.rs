use serde_json::{Value, json};

use super::{Audit, Judge, Prices, Verdict};
use crate::Format;
use crate::history::{self, Session};

/// Says what it was told to say.
struct Told(Vec<Verdict>);

impl Judge for Told {
    fn judge(&mut self, _: &Session) -> Vec<Verdict> {
        self.0.clone()
    }
}

fn session(entries: &[Value]) -> Session {
    let lines: Vec<String> = entries.iter().map(Value::to_string).collect();
    let text = lines.join("\n");
    history::read(Format::OpenClaw, text.as_bytes()).expect("a transcript")
}

fn answer(at: &str, calls: &[(&str, &str)]) -> Value {
    let blocks: Vec<Value> = calls
        .iter()
        .map(|(id, name)| json!({"type": "toolCall", "id": id, "name": name, "arguments": {}}))
        .collect();
    json!({"type": "message", "timestamp": at, "message": {
        "role": "assistant", "model": "gpt-4o", "content": blocks,
        "usage": {"input": 1_000_000, "output": 0}}})
}

fn result(at: &str, id: &str, failed: bool) -> Value {
    json!({"type": "message", "timestamp": at, "message": {
        "role": "toolResult", "toolCallId": id, "isError": failed, "content": "text"}})
}

#[test]
fn a_requests_cost_is_shared_by_its_calls() {
    let session = session(&[
        answer("2026-11-14T23:59:58Z", &[("a", "read"), ("b", "send")]),
        result("2026-11-14T23:59:59Z", "a", true),
        result("2026-11-15T00:00:00Z", "b", false),
        answer("2026-11-15T00:00:01Z", &[]),
    ]);
    let mut audit = Audit::new(Prices::list());
    let mut judge = Told(vec![Verdict::Stopped, Verdict::Duplicate]);
    audit.add("s", &session, 0, &mut judge);
    let report = audit.finish();

    let read = &report.by_tool["read"];
    assert_eq!(
        (read.calls, read.failed, read.loops, read.stopped),
        (1, 1, 1, 1)
    );
    // Half of a million tokens at $2.50, and a second of its own.
    assert!((read.saved.usd - 1.25).abs() < 1e-9, "{read:?}");
    assert!((read.saved.ms - 1_000.0).abs() < 1e-9, "{read:?}");
    let send = &report.by_tool["send"];
    assert_eq!(
        (send.duplicates, send.stopped, send.stopped_that_worked),
        (1, 1, 0)
    );
    assert_eq!(report.total.requests, 2);
    assert!((report.total.spent.usd - 5.0).abs() < 1e-9);
    assert_eq!(
        report.by_day.keys().collect::<Vec<_>>(),
        ["2026-11-14", "2026-11-15"]
    );
    assert_eq!(report.worst[0].session, "s");
}

#[test]
fn a_warned_call_is_waste_and_was_not_stopped() {
    let session = session(&[
        answer("2026-11-15T00:00:00Z", &[("a", "read")]),
        result("2026-11-15T00:00:01Z", "a", true),
        answer("2026-11-15T00:00:02Z", &[]),
    ]);
    let mut audit = Audit::new(Prices::list());
    audit.add("s", &session, 0, &mut Told(vec![Verdict::Warned]));
    let total = audit.finish().total;
    assert_eq!((total.loops, total.stopped), (1, 0));
    assert!(total.wasted.tokens > 0.0 && total.saved.tokens == 0.0);
}

#[test]
fn a_call_without_a_result_is_an_orphan_unless_it_is_the_last() {
    let lost = session(&[
        answer("2026-11-15T00:00:00Z", &[("a", "read")]),
        answer("2026-11-15T00:00:02Z", &[("b", "read")]),
    ]);
    let mut audit = Audit::new(Prices::list());
    audit.add("s", &lost, 2, &mut Told(vec![]));
    let report = audit.finish();
    assert_eq!(report.by_tool["read"].orphans, 1);
    assert_eq!(report.total.orphans, 1);
    assert_eq!(report.total.orphaned_results, 2);
    assert_eq!(report.total.trouble(), 1);
}

#[test]
fn a_model_without_a_price_is_named_and_costs_nothing() {
    let entry = json!({"type": "message", "message": {"role": "assistant", "content": [],
                       "model": "home-grown", "usage": {"input": 5, "output": 5}}});
    let mut audit = Audit::new(Prices::list());
    audit.add("s", &session(&[entry]), 0, &mut Told(vec![]));
    let report = audit.finish();
    assert!(report.models_without_price.contains("home-grown"));
    assert!((report.total.spent.unpriced_tokens - 10.0).abs() < 1e-9);
    assert_eq!(report.by_day.keys().collect::<Vec<_>>(), ["unknown day"]);
}
