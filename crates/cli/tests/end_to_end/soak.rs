//! A server under load for a while: memory and descriptors stay flat, caps hold.
//!
//! `HOLDFAST_SOAK_SECONDS` says how long; a few seconds unless told otherwise. Memory is judged from
//! half a minute on, since before that the caches are still filling.

use std::fs;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use holdfast_contract::Entropy;
use holdfast_testkit::SeededEntropy;
use holdfast_testkit::model::{ModelServer, Say};
use serde_json::{Value, json};

use crate::common::House;
use crate::harness::{Serving, envelope, post_on};

const CLIENTS: u64 = 6;
/// Clients that ask for completions.
const CHATTERS: u64 = 2;
const RECORDS_MAX: u64 = 1_500;
const CONNECTIONS_MAX: u64 = 32;
/// Memory is only judged in a run at least this long.
const JUDGED_FROM: Duration = Duration::from_secs(30);
/// Allocators keep some of what they were given; a leak at full rate is far beyond this.
const GROWTH_KB_MAX: u64 = 6 * 1024;
const DESCRIPTORS_MORE_MAX: usize = 8;

/// One look at the process.
#[derive(Debug, Clone, Copy)]
struct Sample {
    rss_kb: u64,
    descriptors: usize,
}

fn look(pid: u32) -> Sample {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let rss = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let rss = rss.and_then(|text| text.split_whitespace().next()?.parse().ok());
    let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).expect("it runs");
    Sample {
        rss_kb: rss.expect("a number"),
        descriptors: descriptors.count(),
    }
}

/// One client: mostly reads, now and then a keyed write, a duplicate, a mistake, a new connection.
fn load(server: &Serving, client: u64, end: &AtomicBool, answered: &AtomicU64) {
    let entropy = SeededEntropy::new(client);
    let mut connection = server.connect();
    let mut number = 0_u64;
    while !end.load(Ordering::Relaxed) {
        number += 1;
        let id = format!("c{client}-{number}");
        let (body, expected) = match entropy.next_u64() % 20 {
            0 => {
                let args = json!({"path": format!("f{client}"), "content": id});
                (envelope(&id, "write", &args, Some(&id)), 200)
            }
            1 => {
                let twice = format!("c{client}-twice");
                let mut body = envelope(&twice, "read", &json!({"path": "a.txt"}), Some("twice"));
                // A turn of its own, or the guard would cut it off as a loop.
                body["target"]["turnId"] = json!(id);
                (body, 200)
            }
            2 => (envelope(&id, "read", &json!({}), None), 400),
            3 => (json!({"contractVersion": "1.1"}), 400),
            4 => {
                connection = server.connect();
                (envelope(&id, "nope", &json!({}), None), 404)
            }
            _ => (envelope(&id, "read", &json!({"path": "a.txt"}), None), 200),
        };
        let answer = post_on(&mut connection, "/v1/tools/call", &server.token, &body);
        assert_eq!(answer.status, expected, "{}", answer.text());
        answered.fetch_add(1, Ordering::Relaxed);
    }
}

/// Completions: a tool and an answer, whole or as it comes.
fn chat(server: &Serving, end: &AtomicBool, answered: &AtomicU64) {
    let mut connection = server.connect();
    for number in 0_u64.. {
        if end.load(Ordering::Relaxed) {
            return;
        }
        let body = json!({
            "model": "gpt-oss", "stream": number % 2 == 0,
            "messages": [{"role": "user", "content": format!("Question {number}")}],
        });
        let answer = post_on(&mut connection, "/v1/chat/completions", "none", &body);
        let text = answer.text();
        assert!(answer.status == 200 && text.contains("Hello."), "{text}");
        answered.fetch_add(1, Ordering::Relaxed);
    }
}

fn overview(server: &Serving) -> Value {
    server
        .get("/debug/tool-reliability", Some(&server.admin_token))
        .json()
}

#[test]
fn under_load_memory_and_descriptors_stay_flat_and_caps_hold() {
    let seconds =
        std::env::var("HOLDFAST_SOAK_SECONDS").map_or(5, |text| text.parse().expect("a number"));
    let time = Duration::from_secs(seconds);
    let house = House::new();
    fs::write(house.path("a.txt"), "hello\n".repeat(20)).expect("writes");
    let config = house.file(
        "config.yaml",
        &format!(
            "server: {{connectionsMax: {CONNECTIONS_MAX}}}\nexecutor: {{requestsPerMinuteMax: 1000000}}\nreliability:\n  store: {{memoryKeysMax: {RECORDS_MAX}, diskKeysMax: {RECORDS_MAX}}}\n  ttl: {{doneMs: 2000}}\n"
        ),
    );
    let model = ModelServer::says(vec![
        Say::calls("read", &json!({"path": "a.txt"})),
        Say::says("Final Answer: Hello."),
    ]);
    let model = model.expect("starts");
    let server = house.serve(&["--config", &config, "--model-url", &model.url()]);
    let completed = AtomicU64::new(0);
    let (end, answered) = (AtomicBool::new(false), AtomicU64::new(0));
    let samples = std::thread::scope(|scope| {
        for client in 0..CLIENTS {
            let (server, end, answered) = (&server, &end, &answered);
            scope.spawn(move || load(server, client, end, answered));
        }
        for _ in 0..CHATTERS {
            scope.spawn(|| chat(&server, &end, &completed));
        }
        let watched = watch(&server, time);
        end.store(true, Ordering::Relaxed);
        watched
    });
    let completed = completed.load(Ordering::Relaxed);
    println!(
        "{} calls and {completed} completions in {seconds} s",
        answered.load(Ordering::Relaxed)
    );
    assert!(completed > 0);
    judge(&samples, time);
}

/// Looks once a second; the caps are checked on the way.
fn watch(server: &Serving, time: Duration) -> Vec<Sample> {
    let begun = Instant::now();
    let mut samples = Vec::new();
    while begun.elapsed() < time {
        std::thread::sleep(Duration::from_secs(1));
        samples.push(look(server.pid()));
        let seen = overview(server);
        for store in ["memory", "durable"] {
            let records = seen["store"][store]["records"].as_u64().expect("a number");
            assert!(records <= RECORDS_MAX, "{store} holds {records} records");
        }
        let open = seen["connections"]["open"].as_u64().expect("a number");
        assert!(open <= CONNECTIONS_MAX, "{open} connections");
        assert_eq!(seen["degraded"], json!(null), "{seen}");
    }
    samples
}

fn judge(samples: &[Sample], time: Duration) {
    let (first, last) = (samples[samples.len() / 4], samples[samples.len() - 1]);
    println!("a quarter in: {first:?}, at the end: {last:?}");
    let most = |samples: &[Sample], pick: fn(&Sample) -> usize| {
        samples.iter().map(pick).max().unwrap_or_default()
    };
    let (early, late) = samples.split_at(samples.len() / 2);
    let descriptors = |sample: &Sample| sample.descriptors;
    assert!(
        most(late, descriptors) <= most(early, descriptors) + DESCRIPTORS_MORE_MAX,
        "descriptors grow: {samples:?}"
    );
    if time >= JUDGED_FROM {
        // The median does not care about one large answer in flight.
        let median = |samples: &[Sample]| {
            let mut rss: Vec<u64> = samples.iter().map(|sample| sample.rss_kb).collect();
            rss.sort_unstable();
            rss[rss.len() / 2]
        };
        let quarter = samples.len() / 4;
        let (warm, end) = (
            median(&samples[quarter..2 * quarter]),
            median(&samples[3 * quarter..]),
        );
        assert!(
            end <= warm + warm / 10 + GROWTH_KB_MAX,
            "memory grows from {warm} to {end} kB: {samples:?}"
        );
    }
}
