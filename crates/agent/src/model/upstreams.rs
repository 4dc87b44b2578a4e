//! Several servers of one model: the first that is well is asked, the next when it is away.
//!
//! Which one is asked is a pure decision over what is known of each. A server that failed is left
//! alone for a while, which doubles with every further failure; when all of them are ill, the one
//! that is due first is asked all the same, so that nobody is refused without being asked.

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::future::join_all;
use holdfast_contract::Clock;
use holdfast_reliability::observe::runs::RunEvent;
use parking_lot::Mutex;

use super::{Hear, Model, ModelError, ModelReply, ModelRequest, Piece};

/// How long a server that failed once is left alone.
pub const UPSTREAM_REST_MS: u64 = 5_000;
/// How long one that keeps failing is left alone at most.
pub const UPSTREAM_REST_MS_MAX: u64 = 60_000;

/// What is known of a server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Health {
    /// Failures since it last answered.
    pub failures: u32,
    /// When it is asked again before others; zero when it is well.
    pub rests_until_ms: u64,
}

impl Health {
    /// It answered, if only to refuse.
    pub fn answered() -> Self {
        Self::default()
    }

    /// It did not.
    #[must_use]
    pub fn failed(self, now_ms: u64) -> Self {
        let doubled = UPSTREAM_REST_MS.saturating_mul(1 << self.failures.min(16));
        Self {
            failures: self.failures.saturating_add(1),
            rests_until_ms: now_ms.saturating_add(doubled.min(UPSTREAM_REST_MS_MAX)),
        }
    }

    /// Whether it is asked in its turn.
    pub fn is_well(self, now_ms: u64) -> bool {
        self.rests_until_ms <= now_ms
    }
}

/// The servers in the order in which they are asked: those that are well in their own order. When
/// none is, all of them, the one that is due first at the front.
pub fn order(known: &[Health], now_ms: u64) -> Vec<usize> {
    let well: Vec<usize> = (0..known.len())
        .filter(|at| known[*at].is_well(now_ms))
        .collect();
    if !well.is_empty() {
        return well;
    }
    let mut all: Vec<usize> = (0..known.len()).collect();
    all.sort_by_key(|at| known[*at].rests_until_ms);
    all
}

/// Several servers as one model.
pub struct Upstreams {
    servers: Vec<Arc<dyn Model>>,
    known: Mutex<Vec<Health>>,
    clock: Arc<dyn Clock>,
}

impl Upstreams {
    /// These, in the order in which they are asked.
    pub fn new(servers: Vec<Arc<dyn Model>>, clock: Arc<dyn Clock>) -> Self {
        let known = Mutex::new(vec![Health::default(); servers.len()]);
        Self {
            servers,
            known,
            clock,
        }
    }

    /// The servers of a model as it is configured; the error says which one can not be.
    #[cfg(feature = "http")]
    pub fn connect(
        settings: &crate::config::ModelSettings,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, String> {
        let servers = settings.upstreams.iter().map(|base_url| {
            let server = super::HttpModel::new(&super::HttpModelConfig {
                base_url: base_url.clone(),
                model: settings.model.clone(),
                api_key: settings.api_key.reveal().map(str::to_owned),
                http2: settings.http2,
            })?;
            Ok::<Arc<dyn Model>, String>(Arc::new(server))
        });
        Ok(Self::new(servers.collect::<Result<_, _>>()?, clock))
    }

    /// What is known of each.
    pub fn known(&self) -> Vec<Health> {
        self.known.lock().clone()
    }

    fn learn(&self, at: usize, failed: bool) {
        let now_ms = self.clock.now_ms();
        if let Some(health) = self.known.lock().get_mut(at) {
            *health = if failed {
                health.failed(now_ms)
            } else {
                Health::answered()
            };
        }
    }
}

/// Nobody who comes again finds one.
fn none() -> ModelError {
    ModelError::Refused("no model server is configured".to_owned())
}

/// Why no server has answered. One that was not asked because it rests, or whose trouble may pass, makes
/// it worth the while to come again, whatever the others said.
fn failure(
    away: Option<(&str, ModelError)>,
    passing: Option<ModelError>,
    rests: bool,
) -> ModelError {
    let last = away.map_or_else(none, |(_, why)| why);
    match passing.unwrap_or(last) {
        ModelError::Barred(why) if rests => ModelError::Unavailable(why),
        error => error,
    }
}

/// Tells that the next server is asked because the one before it was away.
fn moves_on(request: &ModelRequest, away: Option<&(&str, ModelError)>, to: &str) {
    if let Some((from, why)) = away {
        let failed_over = RunEvent::FailedOver { from, to };
        request.reports.tell(failed_over, Some(why));
    }
}

#[async_trait]
impl Model for Upstreams {
    async fn complete(&self, request: &ModelRequest) -> Result<ModelReply, ModelError> {
        let mut away: Option<(&str, ModelError)> = None;
        let mut passing = None;
        let asked = order(&self.known(), self.clock.now_ms());
        let rests = asked.len() < self.servers.len();
        for at in asked {
            let Some(server) = self.servers.get(at) else {
                continue;
            };
            moves_on(request, away.as_ref(), server.name());
            match server.complete(request).await {
                Err(error) if error.is_of_one_server() => {
                    self.learn(at, true);
                    if error.may_pass() {
                        passing = Some(error.clone());
                    }
                    away = Some((server.name(), error));
                }
                // One that refuses is well, and another of the same model would refuse too.
                answered => {
                    self.learn(at, false);
                    return answered;
                }
            }
        }
        Err(failure(away, passing, rests))
    }

    /// Another server is asked only while nothing of an answer was told: two halves are no whole.
    async fn stream(
        &self,
        request: &ModelRequest,
        hear: Hear<'_>,
    ) -> Result<ModelReply, ModelError> {
        let mut away: Option<(&str, ModelError)> = None;
        let mut passing = None;
        let asked = order(&self.known(), self.clock.now_ms());
        let rests = asked.len() < self.servers.len();
        for at in asked {
            let Some(server) = self.servers.get(at) else {
                continue;
            };
            moves_on(request, away.as_ref(), server.name());
            let mut told = false;
            let mut note = |piece: Piece<'_>| {
                told |= matches!(piece, Piece::Content(_));
                hear(piece);
            };
            match server.stream(request, &mut note).await {
                Err(error) if error.is_of_one_server() => {
                    self.learn(at, true);
                    if error.may_pass() {
                        passing = Some(error.clone());
                    }
                    away = Some((server.name(), error));
                    if told {
                        break;
                    }
                }
                answered => {
                    self.learn(at, false);
                    return answered;
                }
            }
        }
        Err(failure(away, passing, rests))
    }

    /// One that is there is enough.
    async fn reach(&self) -> Result<(), ModelError> {
        let mut why = none();
        for server in &self.servers {
            match server.reach().await {
                Ok(()) => return Ok(()),
                Err(error) => why = error,
            }
        }
        Err(why)
    }

    async fn reach_each(&self) -> Vec<(String, Result<(), ModelError>)> {
        let each = self.servers.iter().map(|server| server.reach_each());
        join_all(each).await.into_iter().flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use holdfast_testkit::TokioClock;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    struct Server {
        asked: AtomicU64,
        answers: Mutex<Result<ModelReply, ModelError>>,
    }

    impl Server {
        fn new(answers: Result<ModelReply, ModelError>) -> Arc<Self> {
            Arc::new(Self {
                asked: AtomicU64::new(0),
                answers: Mutex::new(answers),
            })
        }

        fn asked(&self) -> u64 {
            self.asked.load(Ordering::SeqCst)
        }
    }

    #[async_trait]
    impl Model for Server {
        async fn complete(&self, _: &ModelRequest) -> Result<ModelReply, ModelError> {
            self.asked.fetch_add(1, Ordering::SeqCst);
            self.answers.lock().clone()
        }

        async fn reach(&self) -> Result<(), ModelError> {
            self.answers.lock().clone().map(|_| ())
        }
    }

    fn away() -> Result<ModelReply, ModelError> {
        Err(ModelError::Unavailable("connection refused".to_owned()))
    }

    #[tokio::test]
    async fn what_may_pass_is_told_whichever_server_says_it() {
        let clock = || Arc::new(TokioClock::default());
        let barred = || Server::new(Err(ModelError::Barred("401".to_owned())));
        for both in [
            [Server::new(away()), barred()],
            [barred(), Server::new(away())],
        ] {
            let servers = both.map(|it| it as Arc<dyn Model>);
            let model = Upstreams::new(servers.to_vec(), clock());
            let error = model.complete(&question()).await.unwrap_err();
            assert!(error.may_pass(), "{error:?}");
            let mut hear = |_: Piece<'_>| {};
            let error = model.stream(&question(), &mut hear).await.unwrap_err();
            assert!(error.may_pass(), "{error:?}");
        }
        // One that rests may be back by the time somebody comes again.
        let (rests, bars) = (Server::new(away()), Server::new(Ok(ModelReply::default())));
        let model = Upstreams::new(vec![rests, bars.clone()], clock());
        model.complete(&question()).await.unwrap();
        *bars.answers.lock() = Err(ModelError::Barred("401".to_owned()));
        let error = model.complete(&question()).await.unwrap_err();
        assert!(error.may_pass(), "{error:?}");
        let alone = Upstreams::new(vec![barred()], clock());
        let error = alone.complete(&question()).await.unwrap_err();
        assert!(!error.may_pass(), "{error:?}");
    }

    fn question() -> ModelRequest {
        ModelRequest {
            body: json!({}),
            timeout_ms: 1000,
            reports: super::super::Reports::default(),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_next_server_answers_while_the_first_is_away() {
        let (first, second) = (Server::new(away()), Server::new(Ok(ModelReply::default())));
        let clock = Arc::new(TokioClock::new());
        let both = Upstreams::new(vec![first.clone(), second.clone()], clock);
        for _ in 0..3 {
            both.complete(&question()).await.unwrap();
        }
        assert_eq!((first.asked(), second.asked()), (1, 3));
        assert_eq!(both.reach().await, Ok(()));
        *first.answers.lock() = Ok(ModelReply::default());
        tokio::time::advance(std::time::Duration::from_millis(UPSTREAM_REST_MS)).await;
        both.complete(&question()).await.unwrap();
        assert_eq!((first.asked(), second.asked()), (2, 3));
        assert_eq!(both.known()[0], Health::default());
    }

    #[tokio::test(start_paused = true)]
    async fn when_all_are_away_all_are_asked_and_a_refusal_is_an_answer() {
        let (first, second) = (Server::new(away()), Server::new(away()));
        let both = Upstreams::new(
            vec![first.clone(), second.clone()],
            Arc::new(TokioClock::new()),
        );
        assert!(both.complete(&question()).await.is_err());
        assert!(both.complete(&question()).await.is_err());
        assert_eq!((first.asked(), second.asked()), (2, 2));
        assert!(both.reach().await.is_err());
        *first.answers.lock() = Err(ModelError::Refused("no".to_owned()));
        assert_eq!(
            both.complete(&question()).await,
            Err(ModelError::Refused("no".to_owned()))
        );
        assert_eq!(second.asked(), 2);
        // A wrong key, or a model that is not there: the next one may have it.
        *first.answers.lock() = Err(ModelError::Barred("401".to_owned()));
        *second.answers.lock() = Ok(ModelReply::default());
        tokio::time::advance(std::time::Duration::from_millis(UPSTREAM_REST_MS_MAX)).await;
        assert!(both.complete(&question()).await.is_ok());
        assert_eq!(second.asked(), 3);
        // Whoever comes again finds none either.
        let none = Upstreams::new(Vec::new(), Arc::new(TokioClock::new()));
        assert!(matches!(
            none.complete(&question()).await,
            Err(ModelError::Refused(_))
        ));
    }

    proptest! {
        #[test]
        fn somebody_is_always_asked_and_nobody_twice(
            failures in prop::collection::vec((0..40_u32, 0..200_000_u64), 1..6), now_ms in 0..400_000_u64,
        ) {
            let known: Vec<Health> = failures.iter().map(|(failures, at)| {
                let begun = Health { failures: *failures, rests_until_ms: 0 };
                begun.failed(*at)
            }).collect();
            let turns = order(&known, now_ms);
            prop_assert!(!turns.is_empty());
            let distinct: std::collections::BTreeSet<_> = turns.iter().collect();
            prop_assert_eq!(distinct.len(), turns.len());
            for (at, (_, failed_ms)) in failures.iter().enumerate() {
                prop_assert!(known[at].rests_until_ms <= failed_ms + UPSTREAM_REST_MS_MAX);
                let any_well = known.iter().any(|it| it.is_well(now_ms));
                prop_assert_eq!(turns.contains(&at), !any_well || known[at].is_well(now_ms));
            }
        }
    }
}
