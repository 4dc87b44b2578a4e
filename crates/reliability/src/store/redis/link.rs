//! The connection: shared by all, made again when it breaks, and honest about being away.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use holdfast_contract::Clock;
use parking_lot::Mutex;
use redis::{Cmd, ErrorKind, Pipeline, RedisError, ServerErrorKind, Value};
use tokio::sync::{Notify, watch};

use super::layout::SCHEMA;
use super::options::{AWAY_GRACE_MS, RECONNECT_BACKOFF_MS_MAX, RedisOptions, TimeSource};
use super::plan::{Conn, Plan};
use super::server_time::ServerTime;
use crate::store::{Degraded, StoreError, StoreResult};

/// The first wait between two attempts to connect.
const BACKOFF_MS_MIN: u64 = 20;

/// A script, known to the server by its hash.
pub(super) struct Script {
    text: Cow<'static, str>,
    hash: String,
}

impl Script {
    pub(super) fn new(text: impl Into<Cow<'static, str>>) -> Self {
        let text = text.into();
        Self {
            hash: redis::Script::new(&text).get_hash().to_owned(),
            text,
        }
    }
}

/// One connection: what is sent on it arrives in this order.
pub(super) struct Lane {
    conn: Conn,
    round: u64,
}

/// Why something could not be asked, or was not answered.
#[derive(Debug)]
pub(super) enum Trouble {
    /// It may go well another time.
    Passing(StoreError),
    /// The server answers, and will say the same again.
    Lasting(StoreError),
}

impl From<StoreError> for Trouble {
    fn from(error: StoreError) -> Self {
        Self::Passing(error)
    }
}

impl From<Trouble> for StoreError {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::Passing(error) | Trouble::Lasting(error) => error,
        }
    }
}

#[derive(Clone)]
enum State {
    /// Nobody has connected yet.
    Starting,
    Up {
        conn: Conn,
        round: u64,
    },
    Away {
        since: Instant,
        why: Arc<str>,
    },
}

type Listener = Box<dyn Fn(Option<&Degraded>) + Send + Sync>;

/// What `Link` shares with its task.
pub(super) struct Link {
    plan: Plan,
    state: watch::Sender<State>,
    broken: Notify,
    clock: Arc<dyn Clock>,
    time: TimeSource,
    /// The server's clock minus ours.
    skew_ms: AtomicI64,
    server_time: ServerTime,
    rounds: AtomicU64,
    degraded: Mutex<Option<Degraded>>,
    is_degraded: AtomicBool,
    listener: Mutex<Option<Listener>>,
    connect: Duration,
    wait_replicas: u32,
    response_ms: u64,
    meta: (String, String),
}

impl Link {
    pub(super) fn new(
        options: &RedisOptions,
        meta_key: String,
        clock: Arc<dyn Clock>,
    ) -> StoreResult<Self> {
        Ok(Self {
            plan: Plan::new(options).map_err(StoreError::Unavailable)?,
            state: watch::Sender::new(State::Starting),
            broken: Notify::new(),
            clock,
            time: options.time,
            skew_ms: AtomicI64::new(0),
            server_time: ServerTime::default(),
            rounds: AtomicU64::new(0),
            degraded: Mutex::default(),
            is_degraded: AtomicBool::new(false),
            listener: Mutex::default(),
            connect: Duration::from_millis(options.connect_ms),
            wait_replicas: options.wait_replicas,
            response_ms: options.response_ms,
            meta: (meta_key, format!("{SCHEMA}:{}", options.shards)),
        })
    }

    pub(super) fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The time to give to a script: 0 lets the server's own count.
    pub(super) fn script_time_ms(&self) -> u64 {
        match self.time {
            TimeSource::Server => 0,
            TimeSource::Caller => self.clock.now_ms(),
        }
    }

    /// The time for a command that can not ask the server for it; `None` when it is not known well
    /// enough, or when the server takes no such commands.
    pub(super) fn plain_time_ms(&self, lane: &Lane) -> Option<u64> {
        match (&lane.conn, self.time) {
            (Conn::Cluster(_), _) => None,
            (Conn::One(_), TimeSource::Caller) => Some(self.clock.now_ms()),
            (Conn::One(_), TimeSource::Server) => self.server_time.now_ms(lane.round),
        }
    }

    /// The store's time as well as it is known here.
    pub(super) fn now_ms(&self) -> u64 {
        self.clock
            .now_ms()
            .saturating_add_signed(self.skew_ms.load(Ordering::Relaxed))
    }

    pub(super) fn degraded(&self) -> Option<Degraded> {
        self.degraded.lock().clone()
    }

    /// Tells `listener` of every change from now on, and how it is right now if that is bad.
    pub(super) fn on_change(&self, listener: Listener) {
        if let Some(degraded) = self.degraded() {
            listener(Some(&degraded));
        }
        *self.listener.lock() = Some(listener);
    }

    pub(super) fn is_up(&self) -> bool {
        matches!(*self.state.borrow(), State::Up { .. })
    }

    /// Waits until there is a connection.
    pub(super) async fn up(&self) {
        let mut states = self.state.subscribe();
        // The sender is in `self`, so this does not fail.
        let _ = states
            .wait_for(|state| matches!(state, State::Up { .. }))
            .await;
    }

    /// The connection; without one, nothing was sent.
    pub(super) async fn lane(&self) -> StoreResult<Lane> {
        let up = |conn: &Conn, round: u64| Lane {
            conn: conn.clone(),
            round,
        };
        let patience = match &*self.state.borrow() {
            State::Up { conn, round } => return Ok(up(conn, *round)),
            State::Starting => self.connect,
            State::Away { since, .. } => {
                Duration::from_millis(AWAY_GRACE_MS).saturating_sub(since.elapsed())
            }
        };
        if !patience.is_zero() {
            let _ = tokio::time::timeout(patience, self.up()).await;
        }
        match &*self.state.borrow() {
            State::Up { conn, round } => Ok(up(conn, *round)),
            State::Starting => Err(StoreError::Unavailable("Redis does not answer".to_owned())),
            State::Away { why, .. } => {
                Err(StoreError::Unavailable(format!("Redis is away: {why}")))
            }
        }
    }

    /// One command, one round trip.
    pub(super) async fn send(&self, cmd: &Cmd) -> StoreResult<Value> {
        let mut lane = self.lane().await?;
        Ok(self.send_on(&mut lane, cmd).await?)
    }

    /// Several commands, one round trip.
    pub(super) async fn send_all_on(
        &self,
        lane: &mut Lane,
        pipe: &Pipeline,
        count: usize,
    ) -> Result<Vec<Value>, Trouble> {
        let answers = lane.conn.send_all(pipe, count).await;
        self.judge(lane.round, answers)
    }

    async fn send_on(&self, lane: &mut Lane, cmd: &Cmd) -> Result<Value, Trouble> {
        let answer = lane.conn.send(cmd).await;
        self.judge(lane.round, answer)
    }

    /// One script, one round trip; a server that does not know it yet is given its text.
    pub(super) async fn eval(
        &self,
        script: &Script,
        keys: &[&[u8]],
        args: &[&[u8]],
    ) -> StoreResult<Value> {
        let mut lane = self.lane().await?;
        Ok(self.eval_on(&mut lane, script, keys, args).await?)
    }

    /// The same on a connection that is kept for what follows.
    pub(super) async fn eval_on(
        &self,
        lane: &mut Lane,
        script: &Script,
        keys: &[&[u8]],
        args: &[&[u8]],
    ) -> Result<Value, Trouble> {
        let conn = &mut lane.conn;
        let mut answer = conn
            .send(&eval_cmd("EVALSHA", &script.hash, keys, args))
            .await;
        if let Err(error) = &answer
            && error.kind() == ErrorKind::Server(ServerErrorKind::NoScript)
        {
            answer = conn.send(&eval_cmd("EVAL", &script.text, keys, args)).await;
        }
        self.judge(lane.round, answer)
    }

    /// Waits until enough replicas have what was written on this connection so far. Another
    /// connection, to a server that took over, knows nothing of it.
    pub(super) async fn replicated(&self, lane: &mut Lane) -> StoreResult<()> {
        if self.wait_replicas == 0 {
            return Ok(());
        }
        if !matches!(&*self.state.borrow(), State::Up { round, .. } if *round == lane.round) {
            return Err(StoreError::Unavailable(
                "the connection broke before the replicas had it".to_owned(),
            ));
        }
        let mut cmd = redis::cmd("WAIT");
        cmd.arg(self.wait_replicas).arg(self.response_ms / 2);
        let Value::Int(have) = self.send_on(lane, &cmd).await? else {
            return Err(surprise("WAIT"));
        };
        if have >= i64::from(self.wait_replicas) {
            return Ok(());
        }
        Err(StoreError::Unavailable(format!(
            "only {have} of {} replicas have it",
            self.wait_replicas
        )))
    }

    fn judge<T>(&self, round: u64, answer: Result<T, RedisError>) -> Result<T, Trouble> {
        match answer {
            Ok(value) => {
                if self.is_degraded.load(Ordering::Relaxed) && self.plan.is_cluster() {
                    self.recovered();
                }
                Ok(value)
            }
            Err(error) if error.code() == Some("OOM") => Err(Trouble::Passing(StoreError::Full(
                "the Redis server is at its maxmemory".to_owned(),
            ))),
            Err(error) => {
                let unavailable = StoreError::Unavailable(format!("Redis: {error}"));
                if is_away(&error) {
                    self.lost(round, &error.to_string());
                } else if matches!(error.code(), Some("ERR" | "NOPERM" | "WRONGTYPE")) {
                    return Err(Trouble::Lasting(unavailable));
                }
                Err(Trouble::Passing(unavailable))
            }
        }
    }

    /// The connection of this round is of no use any more.
    fn lost(&self, round: u64, why: &str) {
        if self.plan.is_cluster() {
            // It mends itself, and its other nodes may well be there.
            self.worse(why);
            return;
        }
        let away = self.state.send_if_modified(|state| {
            let mine = matches!(state, State::Up { round: current, .. } if *current == round);
            if mine {
                *state = State::Away {
                    since: Instant::now(),
                    why: why.into(),
                };
            }
            mine
        });
        if away {
            self.worse(why);
            self.broken.notify_one();
        }
    }

    fn worse(&self, why: &str) {
        let degraded = {
            let mut held = self.degraded.lock();
            if held.is_some() {
                return;
            }
            self.is_degraded.store(true, Ordering::Relaxed);
            held.insert(Degraded {
                since_ms: self.clock.now_ms(),
                why: why.to_owned(),
            })
            .clone()
        };
        if let Some(listener) = &*self.listener.lock() {
            listener(Some(&degraded));
        }
    }

    fn recovered(&self) {
        self.is_degraded.store(false, Ordering::Relaxed);
        if self.degraded.lock().take().is_some()
            && let Some(listener) = &*self.listener.lock()
        {
            listener(None);
        }
    }

    /// Connects, and connects again whenever that is needed, until it is dropped.
    pub(super) async fn keep_up(self: Arc<Self>) {
        loop {
            let mut backoff_ms = BACKOFF_MS_MIN;
            while let Err(why) = self.connect_once().await {
                self.state.send_modify(|state| match state {
                    State::Away { why: known, .. } => *known = why.as_str().into(),
                    _ => {
                        *state = State::Away {
                            since: Instant::now(),
                            why: why.as_str().into(),
                        }
                    }
                });
                self.worse(&why);
                tokio::time::sleep(Duration::from_millis(jitter(backoff_ms))).await;
                backoff_ms = (backoff_ms * 2).min(RECONNECT_BACKOFF_MS_MAX);
            }
            self.recovered();
            self.broken.notified().await;
        }
    }

    async fn connect_once(&self) -> Result<(), String> {
        let mut conn = self
            .plan
            .connect()
            .await
            .map_err(|error| error.to_string())?;
        conn.check_evictions().await?;
        self.check_meta(&mut conn).await?;
        let round = self.rounds.fetch_add(1, Ordering::Relaxed) + 1;
        // A server that does not tell its time is as good, only dearer to claim from.
        let _ = self.measure_time(&mut conn, round).await;
        self.state.send_replace(State::Up { conn, round });
        Ok(())
    }

    /// What lies under the prefix has to be of this version and cut into as many shards.
    async fn check_meta(&self, conn: &mut Conn) -> Result<(), String> {
        let (key, wanted) = &self.meta;
        let mut set = redis::cmd("SET");
        set.arg(key).arg(wanted).arg("NX");
        let mut get = redis::cmd("GET");
        get.arg(key);
        conn.send(&set).await.map_err(|error| error.to_string())?;
        match conn.send(&get).await.map_err(|error| error.to_string())? {
            Value::BulkString(found) if found == wanted.as_bytes() => Ok(()),
            Value::BulkString(found) => Err(format!(
                "what lies under this prefix was made by another version or with another number of \
                 shards ({} instead of {wanted}): use another prefix, or export and import",
                String::from_utf8_lossy(&found)
            )),
            _ => Err("the server does not keep what is written".to_owned()),
        }
    }

    /// Measures the server's time, now and then.
    pub(super) async fn watch_time(&self) {
        if let Ok(mut lane) = self.lane().await {
            let round = lane.round;
            // What was measured before holds for a while.
            let _ = self.measure_time(&mut lane.conn, round).await;
        }
    }

    async fn measure_time(&self, conn: &mut Conn, round: u64) -> Result<(), RedisError> {
        if self.time == TimeSource::Caller {
            return Ok(());
        }
        let (asked, before_ms) = (Instant::now(), self.clock.now_ms());
        let answer = conn.send(&redis::cmd("TIME")).await?;
        let took_ms = self.clock.now_ms().saturating_sub(before_ms);
        let (seconds, micros): (u64, u64) = redis::from_redis_value(one_node(answer))?;
        let server_ms = seconds * 1000 + micros / 1000;
        self.server_time.measured(round, asked, server_ms);
        let ours_ms = before_ms + took_ms / 2;
        let skew_ms = server_ms.cast_signed().wrapping_sub(ours_ms.cast_signed());
        self.skew_ms.store(skew_ms, Ordering::Relaxed);
        Ok(())
    }
}

/// A cluster answers some commands for each of its nodes.
fn one_node(answer: Value) -> Value {
    match answer {
        Value::Map(nodes) => nodes
            .into_iter()
            .next()
            .map_or(Value::Nil, |(_, value)| value),
        other => other,
    }
}

fn eval_cmd(name: &str, script: &str, keys: &[&[u8]], args: &[&[u8]]) -> Cmd {
    let mut cmd = redis::cmd(name);
    cmd.arg(script).arg(keys.len());
    for part in keys.iter().chain(args) {
        cmd.arg(*part);
    }
    cmd
}

/// Whether the error says that there is no server to talk to, rather than what it thinks.
fn is_away(error: &RedisError) -> bool {
    error.is_timeout()
        || error.is_io_error()
        || error.is_connection_dropped()
        || error.is_unrecoverable_error()
        || matches!(
            error.kind(),
            ErrorKind::Server(
                ServerErrorKind::BusyLoading
                    | ServerErrorKind::MasterDown
                    | ServerErrorKind::ReadOnly
                    | ServerErrorKind::ClusterDown
            )
        )
}

/// Somewhere in the upper half of a wait, so that many processes do not come back at once.
pub(super) fn jitter(wait_ms: u64) -> u64 {
    use holdfast_contract::Entropy;
    wait_ms / 2 + holdfast_contract::SystemEntropy.next_u64() % (wait_ms / 2 + 1)
}

/// An answer that no version of a server gives.
pub(super) fn surprise(what: &str) -> StoreError {
    StoreError::Unavailable(format!("Redis gave no understandable answer to {what}"))
}
