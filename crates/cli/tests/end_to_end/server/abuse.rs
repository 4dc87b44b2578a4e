//! Ten thousand requests that are wrong in every way: each gets a 4xx or a closed connection.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use holdfast_testkit::SeededEntropy;
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::common::{House, eventually};
use crate::server::villain::Villain;

const REQUESTS: u64 = 10_000;
const CLIENTS: u64 = 8;
const SEED: u64 = 20_261_115;
const CONFIG: &str = "server: {headMsMax: 250, bodyMsMax: 250}\n";

/// Sends its share of the attacks, and counts what came back.
fn attack(villain: &Villain, next: &AtomicU64, came: &Mutex<BTreeMap<String, u64>>) {
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        if number >= REQUESTS {
            return;
        }
        let attack = villain.attack(number);
        let status = villain
            .send(&attack)
            .unwrap_or_else(|error| panic!("{} hung or failed: {error}", attack.name));
        assert!(
            status.is_none_or(|status| (400..500).contains(&status)),
            "{} got {status:?}: {}",
            attack.name,
            String::from_utf8_lossy(&attack.bytes[..attack.bytes.len().min(2000)])
        );
        let what = status.map_or("closed".to_owned(), |status| status.to_string());
        let name = format!("{} {what}", attack.name);
        *came.lock().entry(name).or_default() += 1;
    }
}

#[test]
fn ten_thousand_bad_requests_get_4xx_or_a_closed_connection_and_leave_nothing() {
    let house = House::new();
    let config = house.file("config.yaml", CONFIG);
    let server = house.serve(&["--config", &config]);
    let seed = std::env::var("HOLDFAST_ABUSE_SEED").ok();
    let seed = seed.map_or(SEED, |text| text.parse().expect("a number"));
    println!("HOLDFAST_ABUSE_SEED={seed}");
    let next = AtomicU64::new(0);
    let came = Mutex::new(BTreeMap::new());
    std::thread::scope(|scope| {
        for client in 0..CLIENTS {
            let villain = Villain {
                entropy: SeededEntropy::new(seed + client),
                address: server.address,
                token: server.token.clone(),
            };
            let (next, came) = (&next, &came);
            scope.spawn(move || attack(&villain, next, came));
        }
    });
    for (what, count) in came.lock().iter() {
        println!("{count:6} {what}");
    }
    // It is as well as before: no effect, no record, no admin action, no connection left.
    assert_eq!(house.lines("effects"), 0);
    assert_eq!(house.records(), Vec::<Value>::new());
    assert!(!house.state().join("audit.log").exists());
    eventually("all connections are closed", || {
        (server.metric("holdfast_http_connections") == Some(1.0)).then_some(())
    });
    assert_eq!(server.get("/health", None).status, 200);
    let answer = server.invoke(&json!({"tool": "exec", "args": {"command": "echo fine"}}));
    assert_eq!(answer.status, 200, "{}", answer.text());
}
