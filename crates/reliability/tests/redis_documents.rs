//! Every check of documents, on a real Redis server and on a cluster of three.

#![expect(
    clippy::unwrap_used,
    reason = "a test that can not be set up has failed"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use holdfast_reliability::for_each_document_check;
use holdfast_reliability::store::conformance::ManualClock;
use holdfast_reliability::store::conformance::documents::{
    self, DocumentStoreFactory, MadeDocuments,
};
use holdfast_reliability::store::redis::{RedisOptions, RedisState, TimeSource};
use holdfast_testkit::redis::{Persistence, RedisCluster, RedisServer};

fn with_time_of_the_test(options: RedisOptions) -> RedisOptions {
    RedisOptions {
        time: TimeSource::Caller,
        sweep_every_ms: 0,
        ..options
    }
}

struct Single;

impl DocumentStoreFactory for Single {
    fn make_documents(&self, clock: Arc<ManualClock>) -> MadeDocuments {
        let server = RedisServer::start(Persistence::None, &[]).unwrap();
        let options = with_time_of_the_test(RedisOptions::single(server.url()));
        MadeDocuments {
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
                documents::$check(&$factory).await;
            }
        )*
    };
}

mod single {
    use super::*;
    for_each_document_check!(tests, Single);
}

/// All checks share one cluster, each store under a prefix of its own.
struct Cluster {
    cluster: RedisCluster,
    stores: AtomicU32,
}

impl DocumentStoreFactory for Cluster {
    fn make_documents(&self, clock: Arc<ManualClock>) -> MadeDocuments {
        let number = self.stores.fetch_add(1, Ordering::Relaxed);
        let options = RedisOptions {
            prefix: format!("check-{number}"),
            ..with_time_of_the_test(RedisOptions::cluster(self.cluster.urls()))
        };
        MadeDocuments {
            store: RedisState::open(&options, clock).unwrap(),
            keep: Box::new(()),
        }
    }
}

macro_rules! one_after_another {
    ([$factory:expr] $($check:ident)*) => {
        $(
            println!("{}", stringify!($check));
            documents::$check($factory).await;
        )*
    };
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_of_three_passes_every_check() {
    let cluster = Cluster {
        cluster: RedisCluster::start(3).unwrap(),
        stores: AtomicU32::new(0),
    };
    for_each_document_check!(one_after_another, &cluster);
}
