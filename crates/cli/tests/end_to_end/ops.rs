//! The alerts and the dashboard in `ops/` ask for what this build really reports: every metric, label
//! and state in them exists. Where there is a `promtool`, it loads the rules and plays their tests.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Command;

use holdfast_contract::CircuitBreakerState;
use holdfast_reliability::observe::metrics::{METRICS, MetricDoc};
use serde_json::Value;

/// What Prometheus itself adds.
const ADDED: [&str; 3] = ["le", "instance", "job"];

fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../ops")
        .join(name)
}

fn rules() -> Vec<Value> {
    let text = std::fs::read_to_string(file("prometheus-rules.yml")).unwrap();
    let parsed: Value = serde_saphyr::from_str(&text).unwrap();
    let groups = parsed["groups"].as_array().unwrap();
    let rules = groups
        .iter()
        .flat_map(|group| group["rules"].as_array().unwrap());
    rules.cloned().collect()
}

fn dashboard() -> Value {
    let text = std::fs::read_to_string(file("grafana-dashboard.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// Every expression of both files, with where it stands.
fn expressions() -> Vec<(String, String)> {
    let mut found: Vec<_> = rules()
        .iter()
        .map(|rule| {
            (
                rule["alert"].to_string(),
                rule["expr"].as_str().unwrap().to_owned(),
            )
        })
        .collect();
    for panel in dashboard()["panels"].as_array().unwrap() {
        for target in panel["targets"].as_array().into_iter().flatten() {
            let expression = target["expr"].as_str().unwrap().to_owned();
            found.push((panel["title"].to_string(), expression));
        }
    }
    found
}

/// The metric behind a name in an expression: a histogram is asked for by its parts.
fn metric(name: &str) -> Option<&'static MetricDoc> {
    let whole = ["_bucket", "_sum", "_count"]
        .iter()
        .find_map(|part| name.strip_suffix(part));
    METRICS
        .iter()
        .find(|row| row.name == name || (row.kind == "histogram" && whole == Some(row.name)))
}

fn labels(row: &MetricDoc) -> BTreeSet<&'static str> {
    row.labels
        .split(", ")
        .filter(|label| !label.is_empty())
        .collect()
}

/// The words of an expression that are names of metrics, each with its matchers.
fn selectors(expression: &str) -> Vec<(&str, Vec<(&str, &str)>)> {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut found = Vec::new();
    for (at, _) in expression
        .match_indices("openclaw_")
        .chain(expression.match_indices("holdfast_"))
    {
        let name = expression[at..].split(|c| !word(c)).next().unwrap();
        let rest = &expression[at + name.len()..];
        let matchers = rest
            .strip_prefix('{')
            .and_then(|rest| rest.split('}').next());
        let matchers = matchers
            .unwrap_or_default()
            .split(", ")
            .filter(|text| !text.is_empty());
        let matchers = matchers.map(|matcher| {
            let label = matcher.split(|c| !word(c)).next().unwrap();
            (label, matcher.split('"').nth(1).expect("a value in quotes"))
        });
        found.push((name, matchers.collect()));
    }
    found
}

#[test]
fn every_metric_label_and_state_that_is_asked_for_exists() {
    let mut asked = 0;
    for (place, expression) in expressions() {
        let mut known = BTreeSet::from(ADDED);
        for (name, matchers) in selectors(&expression) {
            let row = metric(name).unwrap_or_else(|| panic!("{place} asks for {name}"));
            asked += 1;
            let labels = labels(row);
            for (label, value) in matchers {
                assert!(labels.contains(label), "{place}: {name} has no {label}");
                let is_state = label.ends_with("_state") || name.ends_with("breaker_state");
                if is_state && !value.contains('$') && label != "tool" {
                    let exists = |state: &CircuitBreakerState| state.as_str() == value;
                    assert!(
                        CircuitBreakerState::ALL.iter().any(exists),
                        "{place}: {value}"
                    );
                }
            }
            known.extend(labels);
        }
        for group in expression.split("by (").skip(1) {
            for label in group.split(')').next().unwrap().split(", ") {
                assert!(known.contains(label), "{place} groups by {label}");
            }
        }
    }
    assert!(asked > 15, "{asked}");
}

#[test]
fn alerts_and_panels_say_what_they_are_about() {
    let rules = rules();
    assert_eq!(rules.len(), 6);
    for rule in &rules {
        let severity = rule["labels"]["severity"].as_str().unwrap();
        assert!(["warning", "critical"].contains(&severity), "{rule}");
        // What a summary shows has to survive the aggregation.
        let summary = rule["annotations"]["summary"].as_str().unwrap();
        for label in summary.split("$labels.").skip(1) {
            let label = label.split(' ').next().unwrap();
            let expression = rule["expr"].as_str().unwrap();
            assert!(
                expression.contains("by (") && expression.contains(label),
                "{rule}"
            );
        }
    }
    let dashboard = dashboard();
    let panels = dashboard["panels"].as_array().unwrap();
    let ids: BTreeSet<_> = panels.iter().map(|panel| panel["id"].to_string()).collect();
    assert_eq!(ids.len(), panels.len(), "ids are unique");
    for panel in panels {
        assert!(
            panel["title"].is_string() && panel["type"].is_string(),
            "{panel}"
        );
        assert!(panel["gridPos"]["w"].as_u64().unwrap() <= 24);
    }
}

#[test]
fn promtool_takes_the_rules_and_they_fire_when_they_should() {
    let run = |words: [&str; 2], name: &str| {
        Command::new("promtool")
            .args(words)
            .arg(file(name))
            .output()
    };
    let Ok(checked) = run(["check", "rules"], "prometheus-rules.yml") else {
        // Not by a macro: the test runner would keep that to itself.
        let missing = "promtool is missing (Debian: prometheus): the alert rules were NOT played\n";
        std::io::stderr().write_all(missing.as_bytes()).unwrap();
        return;
    };
    let tested = run(["test", "rules"], "prometheus-rules-test.yml").unwrap();
    for output in [checked, tested] {
        let said = String::from_utf8_lossy(&output.stdout).into_owned()
            + &String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
    }
}
