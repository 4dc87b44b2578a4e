//! What Holdfast is measured against, as far as it runs in this process.

use std::convert::Infallible;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use holdfast_contract::ToolCallEnvelope;
use holdfast_reliability::canonical::{CanonicalOptions, digest};
use serde_json::{Value, json};
use tower::{Service, ServiceBuilder, ServiceExt, service_fn};
use tower_resilience::circuitbreaker::{CircuitBreakerError, CircuitBreakerLayer};
use tower_resilience::retry::RetryLayer;
use tower_resilience::timelimiter::{TimeLimiterError, TimeLimiterLayer};

use crate::load::{BATCH, Calls, MUTATING};
use crate::sample::{Meter, Round};

/// The least that any key over arguments costs: their canonical form and its SHA-256.
pub fn floor_round(source: &mut Calls, calls: usize) -> Round {
    let mut meter = Meter::default();
    for _ in 0..calls.div_ceil(BATCH) {
        let batch = source.batch();
        let begun = Instant::now();
        for envelope in &batch {
            black_box(digest(&envelope.payload.params, &CanonicalOptions::EXACT));
        }
        meter.add_batch(begun.elapsed(), BATCH);
    }
    for _ in 0..calls.div_ceil(BATCH) {
        for envelope in &source.batch() {
            let begun = Instant::now();
            black_box(digest(&envelope.payload.params, &CanonicalOptions::EXACT));
            meter.add_each(begun);
        }
    }
    meter.round()
}

/// Shared, so that the clone which a retry layer takes of each request costs the peer nothing.
type Request = Arc<ToolCallEnvelope>;
type Failed = CircuitBreakerError<TimeLimiterError<Infallible>>;

async fn noop(request: Request) -> Result<Value, Infallible> {
    let path = request.payload.params["path"].clone();
    Ok(json!({"ok": true, "path": path}))
}

/// Retry, breaker and timeout, and nothing else: no key, no record, no guard, no schema, no log.
#[expect(clippy::unwrap_used, reason = "the settings are constants")]
fn tower_stack() -> impl Service<Request, Response = Value, Error = Failed> {
    ServiceBuilder::new()
        .layer(
            RetryLayer::<Request, Value, Failed>::builder()
                .max_attempts(4)
                .exponential_backoff(Duration::from_millis(100))
                .build(),
        )
        .layer(
            CircuitBreakerLayer::builder()
                .failure_rate_threshold(0.5)
                .sliding_window_size(100)
                .build()
                .unwrap(),
        )
        .layer(
            TimeLimiterLayer::builder()
                .timeout_duration(Duration::from_secs(30))
                .build(),
        )
        .service(service_fn(noop))
}

/// The tower stack with its load.
pub struct Tower<S> {
    service: S,
    calls: Calls,
}

pub fn tower() -> Tower<impl Service<Request, Response = Value, Error = Failed>> {
    Tower {
        service: tower_stack(),
        calls: Calls::new(MUTATING, 7),
    }
}

impl<S: Service<Request, Response = Value, Error = Failed>> Tower<S> {
    fn batch(&mut self) -> Vec<Request> {
        self.calls.batch().into_iter().map(Arc::new).collect()
    }

    async fn call(&mut self, request: Request) {
        let answer = match self.service.ready().await {
            Ok(service) => service.call(request).await,
            Err(error) => Err(error),
        };
        assert!(answer.is_ok());
    }

    pub async fn round(&mut self, calls: usize) -> Round {
        let mut meter = Meter::default();
        for _ in 0..calls.div_ceil(BATCH) {
            let batch = self.batch();
            let begun = Instant::now();
            for request in batch {
                self.call(request).await;
            }
            meter.add_batch(begun.elapsed(), BATCH);
        }
        for _ in 0..calls.div_ceil(BATCH) {
            for request in self.batch() {
                let begun = Instant::now();
                self.call(request).await;
                meter.add_each(begun);
            }
        }
        meter.round()
    }
}
