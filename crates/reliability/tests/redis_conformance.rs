//! Every check of the conformance suite, on a real Redis server and on a cluster of three.

#![expect(
    clippy::unwrap_used,
    reason = "a test that can not be set up has failed"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use holdfast_reliability::for_each_store_check;
use holdfast_reliability::store::conformance::{self, Made, ManualClock, StoreFactory};
use holdfast_reliability::store::redis::{RedisOptions, RedisState, TimeSource};
use holdfast_testkit::redis::{Persistence, RedisCluster, RedisServer};

fn with_time_of_the_test(options: RedisOptions, keys_max: usize) -> RedisOptions {
    RedisOptions {
        keys_max: keys_max as u64,
        time: TimeSource::Caller,
        sweep_every_ms: 0,
        ..options
    }
}

struct Single;

impl StoreFactory for Single {
    fn make(&self, clock: Arc<ManualClock>, keys_max: usize) -> Made {
        let server = RedisServer::start(Persistence::None, &[]).unwrap();
        let options = with_time_of_the_test(RedisOptions::single(server.url()), keys_max);
        Made {
            store: RedisState::open(&options, clock).unwrap(),
            keep: Box::new(server),
        }
    }
}

macro_rules! tests {
    ([$factory:expr] $($check:ident)*) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $check() {
                conformance::$check(&$factory).await;
            }
        )*
    };
}

mod single {
    use super::*;
    for_each_store_check!(tests, Single);
}

/// All checks share one cluster, each store under a prefix of its own: nodes take a while to find
/// each other.
struct Cluster {
    cluster: RedisCluster,
    stores: AtomicU32,
}

impl StoreFactory for Cluster {
    fn make(&self, clock: Arc<ManualClock>, keys_max: usize) -> Made {
        let number = self.stores.fetch_add(1, Ordering::Relaxed);
        let options = RedisOptions {
            prefix: format!("check-{number}"),
            // Room for a handful can not be divided.
            shards: if keys_max < 100 { 1 } else { 8 },
            ..with_time_of_the_test(RedisOptions::cluster(self.cluster.urls()), keys_max)
        };
        Made {
            store: RedisState::open(&options, clock).unwrap(),
            keep: Box::new(()),
        }
    }
}

macro_rules! one_after_another {
    ([$factory:expr] $($check:ident)*) => {
        $(
            println!("{}", stringify!($check));
            conformance::$check($factory).await;
        )*
    };
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_of_three_passes_every_check() {
    let cluster = Cluster {
        cluster: RedisCluster::start(3).unwrap(),
        stores: AtomicU32::new(0),
    };
    for_each_store_check!(one_after_another, &cluster);
    // They really were spread: every node holds some of the records.
    for node in &cluster.cluster.nodes {
        let keys: u64 = node.command(&["DBSIZE"]).unwrap().parse().unwrap();
        assert!(keys > 0, "a node holds nothing");
    }
}
