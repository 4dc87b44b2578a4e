//! A server that goes away and comes back.

use std::sync::Arc;
use std::time::Duration;

use holdfast_contract::{Clock, ResultOutput, SystemClock};
use holdfast_reliability::canonical::Digest;
use holdfast_reliability::idempotency::key::StoredKey;
use holdfast_reliability::idempotency::record::{Execution, RecordRequest, RecordState};
use holdfast_reliability::idempotency::transition::{
    ClaimRequest, Ending, Finalisation, Hold, Lifetimes, OnRetriableFailure, Refused,
};
use holdfast_reliability::retry::RepeatSafety;
use holdfast_reliability::store::documents::{Created, DocumentStore, NewDocument, Replacement};
use holdfast_reliability::store::redis::{RedisOptions, RedisState};
use holdfast_reliability::store::{Claim, ClearIf, Cleared, DedupeStore, RecordFilter, StoreError};
use holdfast_testkit::redis::{Persistence, RedisServer};
use holdfast_testkit::wait::until;
use parking_lot::Mutex;
use serde_json::json;

fn options(url: String) -> RedisOptions {
    RedisOptions {
        response_ms: 300,
        connect_ms: 300,
        ..RedisOptions::single(url)
    }
}

fn wish(number: u8, owner: &str) -> ClaimRequest {
    ClaimRequest {
        key: StoredKey::from_bytes([number; 32]),
        content: None,
        tool: "message".into(),
        idempotency_key: "computed".into(),
        request: Arc::new(RecordRequest {
            session_key: "session".into(),
            workspace_id: None,
            actor_id: "actor".into(),
            request_id: owner.to_owned(),
            tool_call_id: None,
            params_digest: Digest::of(b"{}"),
            shadow: false,
        }),
        owner: owner.into(),
        lifetimes: Lifetimes::default(),
        repeat: RepeatSafety::Unsafe,
        on_retriable_failure: OnRetriableFailure::Replay,
        hold: Hold::None,
    }
}

fn done(wish: &ClaimRequest) -> Finalisation {
    Finalisation {
        key: wish.key,
        owner: wish.owner.clone(),
        ending: Ending::Done(ResultOutput {
            content: Arc::new(json!("sent")),
            metadata: None,
        }),
        execution: Execution::default(),
        lifetimes: wish.lifetimes,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_finished_while_redis_was_away_is_written_back() {
    let mut server = RedisServer::start(Persistence::Always, &[]).unwrap();
    let store = RedisState::open(&options(server.url()), Arc::new(SystemClock)).unwrap();
    let told = Arc::new(Mutex::new(Vec::new()));
    let listener = told.clone();
    store.on_health(move |degraded| listener.lock().push(degraded.is_some()));
    let first = wish(1, "first");
    assert!(matches!(
        store.claim(&first).await.unwrap(),
        Claim::Granted { .. }
    ));

    server.kill().unwrap();
    let refused = store.finalise(done(&first)).await;
    assert!(
        matches!(refused, Err(StoreError::Unavailable(_))),
        "{refused:?}"
    );
    // As the layer's guard does.
    store.finalise_detached(done(&first));
    let claim = store.claim(&wish(2, "second")).await;
    assert!(
        matches!(claim, Err(StoreError::Unavailable(_))),
        "fails closed"
    );
    assert!(store.health().degraded.is_some());
    assert_eq!(store.health().write_backs_waiting, 1);

    server.run().unwrap();
    until("it recovers", async || store.health().degraded.is_none()).await;
    until("it is written back", async || {
        store.health().write_backs_waiting == 0
    })
    .await;
    // Another process sees it; nothing runs twice.
    let other = RedisState::open(&options(server.url()), Arc::new(SystemClock)).unwrap();
    match other.claim(&wish(1, "third")).await.unwrap() {
        Claim::Ended(record) => assert_eq!(record.state, RecordState::Done),
        claim => panic!("it was done: {claim:?}"),
    }
    assert_eq!(*told.lock(), [true, false]);
}

/// The call that made it is gone: nobody says it a second time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_document_that_was_changed_while_redis_was_away_is_written_when_it_is_back() {
    let mut server = RedisServer::start(Persistence::Always, &[]).unwrap();
    let store = RedisState::open(&options(server.url()), Arc::new(SystemClock)).unwrap();
    let new = NewDocument {
        kind: "note".to_owned(),
        id: "a".to_owned(),
        group: String::new(),
        body: json!("pending"),
        expires_at_ms: None,
    };
    let Created::New(document) = store.create(new).await.unwrap() else {
        panic!("it is new");
    };
    server.kill().unwrap();
    store.replace_detached(Replacement::of(&document, json!("withdrawn")));
    until("it is away", async || store.health().degraded.is_some()).await;
    // What comes after it can not see it, so it sees nothing.
    let looked = store.document("note", "a").await;
    assert!(
        matches!(looked, Err(StoreError::Unavailable(_))),
        "{looked:?}"
    );
    server.run().unwrap();
    // This process does nothing more with it; another one looks.
    let other = RedisState::open(&options(server.url()), Arc::new(SystemClock)).unwrap();
    until("it is written", async || {
        let found = other.document("note", "a").await;
        found.is_ok_and(|found| found.is_some_and(|it| it.body == "withdrawn"))
    })
    .await;
    let kept = store.document("note", "a").await.unwrap().unwrap();
    assert_eq!(kept.version, document.version + 1, "it is changed once");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_hangs_is_given_up_on_in_time() {
    let server = RedisServer::start(Persistence::None, &[]).unwrap();
    let store = RedisState::open(&options(server.url()), Arc::new(SystemClock)).unwrap();
    assert!(store.connected(Duration::from_secs(10)).await);
    server.pause().unwrap();
    let claim = store.claim(&wish(1, "lost")).await;
    assert!(
        matches!(claim, Err(StoreError::Unavailable(_))),
        "{claim:?}"
    );
    server.resume().unwrap();
    until("it recovers", async || store.health().degraded.is_none()).await;
    // The claim may have been granted to nobody. Its holder gives it back, and the next one runs.
    store.finalise_detached(Finalisation {
        ending: Ending::Cancelled,
        ..done(&wish(1, "lost"))
    });
    until("the next one runs", async || {
        matches!(
            store.claim(&wish(1, "next")).await,
            Ok(Claim::Granted { .. })
        )
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_was_never_there_is_an_error_and_its_password_no_part_of_it() {
    let url = "redis://:s3cret@127.0.0.1:1/".to_owned();
    let store = RedisState::open(&options(url), Arc::new(SystemClock)).unwrap();
    let error = store.claim(&wish(1, "a")).await.unwrap_err();
    assert!(!error.to_string().contains("s3cret"), "{error}");
    until("it says so", async || store.health().degraded.is_some()).await;
    assert!(!format!("{:?}", store.health()).contains("s3cret"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_server_refuses_and_a_wrong_number_of_shards_is_noticed() {
    let server = RedisServer::start(Persistence::None, &[]).unwrap();
    let store = RedisState::open(&options(server.url()), Arc::new(SystemClock)).unwrap();
    assert!(matches!(
        store.claim(&wish(1, "a")).await.unwrap(),
        Claim::Granted { .. }
    ));
    server
        .command(&["CONFIG", "SET", "maxmemory", "1"])
        .unwrap();
    let full = store.claim(&wish(2, "b")).await;
    assert!(matches!(full, Err(StoreError::Full(_))), "{full:?}");
    server
        .command(&["CONFIG", "SET", "maxmemory", "0"])
        .unwrap();

    let other = RedisOptions {
        shards: 4,
        ..options(server.url())
    };
    let other = RedisState::open(&other, Arc::new(SystemClock)).unwrap();
    let error = other.claim(&wish(3, "c")).await.unwrap_err();
    assert!(error.to_string().contains("shards"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_waits_for_its_replicas_where_that_is_asked() {
    let server = RedisServer::start(Persistence::None, &[]).unwrap();
    let careful = RedisOptions {
        wait_replicas: 1,
        ..options(server.url())
    };
    let store = RedisState::open(&careful, Arc::new(SystemClock)).unwrap();
    let alone = store.claim(&wish(1, "a")).await;
    assert!(
        matches!(&alone, Err(StoreError::Unavailable(why)) if why.contains("replicas")),
        "{alone:?}"
    );
    let port = server.port().to_string();
    let _replica =
        RedisServer::start(Persistence::None, &["--replicaof", "127.0.0.1", &port]).unwrap();
    until("the replica has it", async || {
        matches!(store.claim(&wish(2, "b")).await, Ok(Claim::Granted { .. }))
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failover_that_sentinels_announce_is_followed() {
    let master = RedisServer::start(Persistence::None, &[]).unwrap();
    let port = master.port().to_string();
    let sentinel = holdfast_testkit::redis::RedisSentinel::start("main", master.port()).unwrap();
    let mut replica =
        RedisServer::start(Persistence::None, &["--replicaof", "127.0.0.1", &port]).unwrap();
    sentinel.until_it_knows_a_replica("main").unwrap();
    let options = RedisOptions {
        topology: holdfast_reliability::store::redis::Topology::Sentinel {
            master: "main".to_owned(),
        },
        ..options(sentinel.url())
    };
    let store = RedisState::open(&options, Arc::new(SystemClock)).unwrap();
    assert!(matches!(
        store.claim(&wish(1, "a")).await.unwrap(),
        Claim::Granted { .. }
    ));
    sentinel.failover("main").unwrap();
    drop(master);
    until("the new one in charge is found", async || {
        matches!(store.claim(&wish(2, "b")).await, Ok(Claim::Granted { .. }))
    })
    .await;
    assert!(
        replica
            .command(&["INFO", "replication"])
            .unwrap()
            .contains("role:master")
    );
    replica.kill().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_and_a_result_that_the_server_lost_are_brought_back() {
    let mut server = RedisServer::start(Persistence::None, &[]).unwrap();
    let store = RedisState::open(&options(server.url()), Arc::new(SystemClock)).unwrap();
    let other = RedisState::open(&options(server.url()), Arc::new(SystemClock)).unwrap();
    let (renewed, finished) = (wish(1, "renewed"), wish(2, "finished"));
    for wish in [&renewed, &finished] {
        let claim = store.claim(wish).await.unwrap();
        assert!(matches!(claim, Claim::Granted { .. }), "{claim:?}");
    }
    // It comes back without its last second, or here without anything.
    server.kill().unwrap();
    server.run().unwrap();
    until("the other is back", async || {
        other.get(&renewed.key).await == Ok(None)
    })
    .await;
    until("it is renewed", async || {
        let lease_ms = renewed.lifetimes.lease_ms;
        let taken = store.renew(&renewed.key, &renewed.owner, lease_ms).await;
        taken == Ok(Ok(()))
    })
    .await;
    assert_eq!(store.finalise(done(&finished)).await, Ok(Ok(())));

    // Nobody runs either of them again.
    let claim = other.claim(&wish(1, "second")).await.unwrap();
    assert!(matches!(claim, Claim::InFlight { .. }), "{claim:?}");
    let claim = other.claim(&wish(2, "second")).await.unwrap();
    assert!(
        matches!(&claim, Claim::Ended(record) if record.state == RecordState::Done),
        "{claim:?}"
    );
    assert_eq!(store.finalise(done(&renewed)).await, Ok(Ok(())));
    // Listed as any other.
    let listed = other.list(&RecordFilter::default()).await.unwrap();
    assert_eq!(listed.len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_cleared_or_given_to_another_is_not_brought_back() {
    let server = RedisServer::start(Persistence::None, &[]).unwrap();
    let store = RedisState::open(&options(server.url()), Arc::new(SystemClock)).unwrap();
    let cleared = wish(1, "cleared");
    let _ = store.claim(&cleared).await.unwrap();
    let clearing = store.clear(&cleared.key, ClearIf::There);
    assert_eq!(clearing.await, Ok(Cleared::Forgotten));
    let lease_ms = cleared.lifetimes.lease_ms;
    let renewal = store.renew(&cleared.key, "cleared", lease_ms).await;
    assert_eq!(renewal, Ok(Err(Refused::Gone)));
    assert_eq!(store.finalise(done(&cleared)).await, Ok(Err(Refused::Gone)));
    assert_eq!(store.get(&cleared.key).await, Ok(None));

    // Finished, with the answer lost on the way, and flushed before the word is said again.
    let flushed = wish(5, "flushed");
    let _ = store.claim(&flushed).await.unwrap();
    let other = RedisState::open(&options(server.url()), Arc::new(SystemClock)).unwrap();
    assert_eq!(other.finalise(done(&flushed)).await, Ok(Ok(())));
    assert_eq!(other.flush(&RecordFilter::default()).await, Ok(1));
    assert_eq!(store.finalise(done(&flushed)).await, Ok(Err(Refused::Gone)));
    assert_eq!(store.get(&flushed.key).await, Ok(None));

    let (late, next) = (wish(2, "late"), wish(2, "next"));
    let _ = store.claim(&late).await.unwrap();
    server.command(&["FLUSHALL"]).unwrap();
    let claim = store.claim(&next).await.unwrap();
    assert!(matches!(claim, Claim::Granted { .. }), "{claim:?}");
    assert_eq!(
        store.finalise(done(&late)).await,
        Ok(Err(Refused::NotTheHolder))
    );

    // One that had not begun, and one that ended without an effect, leave nothing behind.
    let held = ClaimRequest {
        hold: Hold::Held,
        ..wish(3, "held")
    };
    let _ = store.claim(&held).await.unwrap();
    server.command(&["FLUSHALL"]).unwrap();
    let begun = store.begin(&held.key, "held", lease_ms).await;
    assert_eq!(begun, Ok(Err(Refused::Gone)));
    let nothing = Finalisation {
        ending: Ending::Cancelled,
        ..done(&held)
    };
    assert_eq!(store.finalise(nothing).await, Ok(Err(Refused::Gone)));
    assert_eq!(store.get(&held.key).await, Ok(None));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_had_anew_after_a_clearing_is_brought_back_until_it_is_cleared_again() {
    let server = RedisServer::start(Persistence::None, &[]).unwrap();
    let store = RedisState::open(&options(server.url()), Arc::new(SystemClock)).unwrap();
    let held = ClaimRequest {
        hold: Hold::Held,
        ..wish(1, "waits")
    };
    let lease_ms = held.lifetimes.lease_ms;
    // As a server that comes back without its last second: what it forgot before is still forgotten.
    let lose = "for _, k in ipairs(redis.call('KEYS', '*}r*')) do redis.call('DEL', k) end";
    for _ in 0..3 {
        let claim = store.claim(&held).await.unwrap();
        assert!(matches!(claim, Claim::Granted { .. }), "{claim:?}");
        server.command(&["EVAL", lose, "0"]).unwrap();
        assert_eq!(store.get(&held.key).await, Ok(None));
        let renewed = store.renew(&held.key, "waits", lease_ms).await;
        assert_eq!(renewed, Ok(Ok(())));
        let clearing = store.clear(&held.key, ClearIf::There);
        assert_eq!(clearing.await, Ok(Cleared::Forgotten));
        let renewed = store.renew(&held.key, "waits", lease_ms).await;
        assert_eq!(renewed, Ok(Err(Refused::Gone)));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_that_was_never_sent_leaves_no_word_to_say() {
    let mut server = RedisServer::start(Persistence::None, &[]).unwrap();
    let store = RedisState::open(&options(server.url()), Arc::new(SystemClock)).unwrap();
    let first = wish(1, "first");
    let _ = store.claim(&first).await.unwrap();
    server.kill().unwrap();
    until("it is noticed", async || store.health().degraded.is_some()).await;
    store.finalise_detached(done(&first));
    for number in 2..10 {
        let refused = wish(number, "refused");
        let claim = store.claim(&refused).await;
        assert!(matches!(claim, Err(StoreError::Unavailable(_))));
        // As the layer's guard does, which can not know.
        store.finalise_detached(Finalisation {
            ending: Ending::Cancelled,
            ..done(&refused)
        });
    }
    assert_eq!(store.health().write_backs_waiting, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_word_that_the_server_keeps_refusing_is_given_up_aloud() {
    let server = RedisServer::start(Persistence::None, &[]).unwrap();
    let store = RedisState::open(&options(server.url()), Arc::new(SystemClock)).unwrap();
    let told = Arc::new(Mutex::new(Vec::new()));
    let listener = told.clone();
    store.on_given_up(move |error| listener.lock().push(error.to_string()));
    let (spoilt, healthy) = (wish(b'a', "spoilt"), wish(b'b', "healthy"));
    for wish in [&spoilt, &healthy] {
        let _ = store.claim(wish).await.unwrap();
    }
    let record = format!("{{holdfast:0}}r{}", "a".repeat(32));
    assert_eq!(server.command(&["DEL", &record]).unwrap(), "1");
    server.command(&["LPUSH", &record, "not ours"]).unwrap();
    store.finalise_detached(done(&spoilt));
    store.finalise_detached(done(&healthy));
    until("it is given up", async || {
        store.health().write_backs_waiting == 0
    })
    .await;
    assert_eq!(store.health().write_backs_lost, 1);
    let told = told.lock().clone();
    assert!(told.len() == 1 && told[0].contains("WRONGTYPE"), "{told:?}");
    let record = store.get(&healthy.key).await.unwrap().unwrap();
    assert_eq!(record.state, RecordState::Done);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_claim_makes_room_in_a_bounded_number_of_steps() {
    let server = RedisServer::start(Persistence::None, &[]).unwrap();
    let wide = RedisState::open(&options(server.url()), Arc::new(SystemClock)).unwrap();
    for number in 0..100 {
        let wish = wish(number, "ended");
        let _ = wide.claim(&wish).await.unwrap();
        assert_eq!(wide.finalise(done(&wish)).await, Ok(Ok(())));
    }
    // Somebody has lowered the bound.
    let narrow = RedisOptions {
        keys_max: 10,
        ..options(server.url())
    };
    let narrow = RedisState::open(&narrow, Arc::new(SystemClock)).unwrap();
    let claim = narrow.claim(&wish(200, "next")).await.unwrap();
    assert!(matches!(claim, Claim::Granted { .. }), "{claim:?}");
    let records = server.command(&["SCARD", "{holdfast:0}x"]).unwrap();
    assert_eq!(records, "85", "sixteen made room for one");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_may_forget_records_is_refused_until_it_is_set_right() {
    let policy = ["--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"];
    let server = RedisServer::start(Persistence::None, &policy).unwrap();
    let store = RedisState::open(&options(server.url()), Arc::new(SystemClock)).unwrap();
    let error = store.claim(&wish(1, "a")).await.unwrap_err().to_string();
    assert!(
        error.contains("allkeys-lru") && error.contains("noeviction"),
        "{error}"
    );
    server
        .command(&["CONFIG", "SET", "maxmemory-policy", "noeviction"])
        .unwrap();
    until("it is set right", async || {
        matches!(store.claim(&wish(1, "a")).await, Ok(Claim::Granted { .. }))
    })
    .await;
}

/// A machine whose clock is an hour ahead.
struct Ahead;

impl Clock for Ahead {
    fn now_ms(&self) -> u64 {
        SystemClock.now_ms() + 60 * 60 * 1000
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_is_judged_by_the_time_of_the_store() {
    let server = RedisServer::start(Persistence::None, &[]).unwrap();
    let store = RedisState::open(&options(server.url()), Arc::new(Ahead)).unwrap();
    let _ = store.claim(&wish(1, "a")).await.unwrap();
    let record = store.get(&wish(1, "a").key).await.unwrap().unwrap();
    assert!(record.lease_has_ended(Ahead.now_ms()));
    assert!(!record.lease_has_ended(store.now_ms()), "it runs");
}
