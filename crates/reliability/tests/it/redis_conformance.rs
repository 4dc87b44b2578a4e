//! Every check of the conformance suites, on a real Redis server and on a cluster of three.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use holdfast_reliability::store::conformance::documents::{
    self, DocumentStoreFactory, MadeDocuments,
};
use holdfast_reliability::store::conformance::{self, Made, ManualClock, StoreFactory};
use holdfast_reliability::store::redis::{RedisOptions, RedisState, TimeSource};
use holdfast_reliability::{for_each_document_check, for_each_store_check};
use holdfast_testkit::redis::{Persistence, RedisCluster, RedisServer};
use holdfast_testkit::{checks_in_turn, tests_of_checks};

/// Documents have no limit of their own, and records of these checks need no more.
const KEYS_MAX: usize = 25_000;

fn open(options: RedisOptions, clock: Arc<ManualClock>, keys_max: usize) -> Arc<RedisState> {
    let options = RedisOptions {
        keys_max: keys_max as u64,
        time: TimeSource::Caller,
        sweep_every_ms: 0,
        ..options
    };
    RedisState::open(&options, clock).unwrap()
}

struct Single;

impl Single {
    fn open(clock: Arc<ManualClock>, keys_max: usize) -> (Arc<RedisState>, RedisServer) {
        let server = RedisServer::start(Persistence::None, &[]).unwrap();
        let store = open(RedisOptions::single(server.url()), clock, keys_max);
        (store, server)
    }
}

impl StoreFactory for Single {
    fn make(&self, clock: Arc<ManualClock>, keys_max: usize) -> Made {
        let (store, server) = Self::open(clock, keys_max);
        Made {
            store,
            keep: Box::new(server),
        }
    }
}

impl DocumentStoreFactory for Single {
    fn make_documents(&self, clock: Arc<ManualClock>) -> MadeDocuments {
        let (store, server) = Self::open(clock, KEYS_MAX);
        MadeDocuments {
            store,
            keep: Box::new(server),
        }
    }
}

mod single {
    use super::*;
    for_each_store_check!(tests_of_checks, conformance, Single);
}

mod single_documents {
    use super::*;
    for_each_document_check!(tests_of_checks, documents, Single);
}

/// All checks share one cluster, each store under a prefix of its own: nodes take a while to find
/// each other.
struct Cluster {
    cluster: RedisCluster,
    stores: AtomicU32,
}

impl Cluster {
    fn start() -> Self {
        Self {
            cluster: RedisCluster::start(3).unwrap(),
            stores: AtomicU32::new(0),
        }
    }

    fn open(&self, clock: Arc<ManualClock>, keys_max: usize) -> Arc<RedisState> {
        let number = self.stores.fetch_add(1, Ordering::Relaxed);
        let options = RedisOptions {
            prefix: format!("check-{number}"),
            // Room for a handful can not be divided.
            shards: if keys_max < 100 { 1 } else { 8 },
            ..RedisOptions::cluster(self.cluster.urls())
        };
        open(options, clock, keys_max)
    }
}

impl StoreFactory for Cluster {
    fn make(&self, clock: Arc<ManualClock>, keys_max: usize) -> Made {
        Made {
            store: self.open(clock, keys_max),
            keep: Box::new(()),
        }
    }
}

impl DocumentStoreFactory for Cluster {
    fn make_documents(&self, clock: Arc<ManualClock>) -> MadeDocuments {
        MadeDocuments {
            store: self.open(clock, KEYS_MAX),
            keep: Box::new(()),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_of_three_passes_every_check() {
    let cluster = Cluster::start();
    for_each_store_check!(checks_in_turn, conformance, cluster);
    // They really were spread: every node holds some of the records.
    for node in &cluster.cluster.nodes {
        let keys: u64 = node.command(&["DBSIZE"]).unwrap().parse().unwrap();
        assert!(keys > 0, "a node holds nothing");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_of_three_passes_every_check_of_documents() {
    let cluster = Cluster::start();
    for_each_document_check!(checks_in_turn, documents, cluster);
}
