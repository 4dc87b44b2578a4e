//! What is counted about runs and the servers of their models.

use holdfast_testkit::model::{ModelServer, Say, turns};
use serde_json::{Value, json};

use crate::common::{House, eventually};
use crate::executor::runs::asking;
use crate::executor::subagents::task_of;
use crate::executor::{Executor, code, task};

/// What a client, a model and a server say; none of it may become a label.
const FOREIGN: &str = "foreign_words";

#[test]
fn runs_and_the_requests_of_models_are_counted_by_configured_names() {
    let executor = Executor::on(ModelServer::start(|request| {
        match (task_of(request), turns(request)) {
            ("refuse", _) => Say::Status(400, json!({"error": {"message": FOREIGN}}).to_string()),
            (_, 0) => Say::calls("read", &json!({"path": FOREIGN})),
            _ => Say::says(format!("Final Answer: {FOREIGN}")),
        }
    }));
    assert_eq!(executor.ask(&task(FOREIGN)).status, 200);
    assert_eq!(
        code(&executor.ask(&task("refuse"))).1,
        "gpt_oss_unreachable"
    );
    let mut other = task("hello");
    other["model"] = json!(FOREIGN);
    assert_eq!(code(&executor.ask(&other)).1, "model_not_found");
    let server = executor.model.url();
    let requests = |outcome: &str, count: u64| {
        format!(
            "holdfast_model_requests_total{{model=\"gpt-oss\",server=\"{server}\",outcome=\"{outcome}\"}} {count}"
        )
    };
    let wanted = [
        "holdfast_runs_begun_total 2".to_owned(),
        "holdfast_runs_ended_total{outcome=\"answered\"} 1".to_owned(),
        "holdfast_runs_ended_total{outcome=\"gpt_oss_unreachable\"} 1".to_owned(),
        "holdfast_runs_in_flight 0".to_owned(),
        "holdfast_run_iterations_total 2".to_owned(),
        requests("answered", 2),
        requests("refused", 1),
        format!(
            "holdfast_model_request_duration_ms_count{{model=\"gpt-oss\",server=\"{server}\"}} 3"
        ),
    ];
    // A run is told of as ended a moment after its answer.
    let page = eventually("all of it is on the page", || {
        let page = executor.serving.get("/metrics", None).text();
        let has = |line: &String| page.lines().any(|it| it == line);
        wanted.iter().all(has).then_some(page)
    });
    for kind in ["prompt", "completion"] {
        let line = format!("holdfast_run_tokens_total{{kind=\"{kind}\"}} ");
        let count = page.lines().find_map(|it| it.strip_prefix(&line));
        assert!(count.is_some_and(|it| it != "0"), "{line}: {page}");
    }
    assert!(!page.contains(FOREIGN), "{page}");
}

#[test]
fn a_run_that_there_is_no_room_for_gets_a_429() {
    let yaml = "executor: {runsBytesMax: 40000}";
    let executor = Executor::with(ModelServer::says(vec![Say::Silence]), yaml);
    let large = task(&"word ".repeat(6_000));
    let _waiting = asking(&executor.serving, &large);
    eventually("the first is asked", || {
        (executor.model.asked().len() == 1).then_some(())
    });
    let answer = executor.ask(&large);
    assert_eq!(code(&answer), (429, "rate_limited".to_owned()));
    assert!(answer.header("retry-after").is_some(), "{}", answer.text());
    assert_eq!(executor.model.asked().len(), 1);
}

#[test]
fn a_failover_is_logged_with_both_servers_and_counted() {
    let house = House::new();
    let away = ModelServer::start(|_| {
        Say::Status(
            503,
            "overloaded, sk-proj-abcdefghijklmnopqrstuvwxyz012345".to_owned(),
        )
    })
    .expect("starts");
    let well = ModelServer::start(|_| Say::says("Final Answer: I am here.")).expect("starts");
    let (from, to) = (away.url(), well.url());
    let with_secret = from.replace("http://", "http://user:hidden-word@");
    let log = house.path("runs.log");
    let yaml = format!(
        "executor:\n  gpt_oss_url: {with_secret}\n  upstreams: [\"{to}\"]\nlogging:\n  output: {}\n",
        log.display()
    );
    let config = house.file("executor.yaml", &yaml);
    let serving = house.serve(&["--config", &config]);
    let executor = Executor {
        house,
        model: well,
        serving,
    };
    let answer = executor.ask(&task("hello"));
    assert_eq!(answer.status, 200, "{}", answer.text());
    let text = std::fs::read_to_string(&log).expect("a log");
    let line = text.lines().find(|line| line.contains("gpt_oss_failover"));
    let line: Value = serde_json::from_str(line.expect("an event")).expect("JSON");
    assert_eq!((&line["from"], &line["to"]), (&json!(from), &json!(to)));
    let why = line["error"].as_str().unwrap_or_default();
    assert!(why.contains("503") || why.contains("overloaded"), "{line}");
    for secret in ["hidden-word", "abcdefghijklmnopqrstuvwxyz012345"] {
        assert!(!text.contains(secret), "{text}");
    }
    let page = executor.serving.get("/metrics", None).text();
    let counted = format!("holdfast_model_failovers_total{{from=\"{from}\",to=\"{to}\"}} 1");
    assert!(page.contains(&counted), "{page}");
    assert!(!page.contains("hidden-word"), "{page}");
}
