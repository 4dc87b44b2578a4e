//! The one thread that writes.
//!
//! Everything that waits at the moment goes into one transaction, so that many durable claims
//! share one sync, and no answer leaves before the commit succeeded.
//!
//! An operation that fails has rarely written anything. Only if one has, the transaction is undone
//! and done again with a savepoint for each operation: savepoints cost every operation something.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use holdfast_database::FileIdentity;
use rusqlite::Connection;
use tokio::sync::oneshot;

use super::Shared;
use super::errors::{StepError, StepResult, explain_step, is_full};
use super::usage::Usage;
use crate::store::{StoreError, StoreResult};

/// The longest pause for callers that are likely to come back at once.
const LINGER_MAX: Duration = Duration::from_millis(2);

/// Whether an answer has to survive a power cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Durability {
    /// It survives the death of the process, and a power cut once a synced operation followed.
    Relaxed,
    /// It is on disk before it is answered.
    Synced,
}

/// One operation's view of the transaction.
pub(crate) struct Step<'a> {
    /// The connection, inside the transaction.
    pub(crate) conn: &'a Connection,
    /// The time of this operation.
    pub(crate) now_ms: u64,
    /// What the records take up.
    pub(super) usage: &'a Usage,
    after_commit: Vec<Box<dyn FnOnce() + Send>>,
}

impl Step<'_> {
    /// Has something done once the commit succeeded, before the answer leaves; never if it failed.
    pub(crate) fn after_commit(&mut self, act: impl FnOnce() + Send + 'static) {
        self.after_commit.push(Box::new(act));
    }
}

/// An operation on its way through the writer.
pub(super) trait Op: Send {
    fn durability(&self) -> Durability;
    /// Carries it out; `false` when its changes must be undone.
    fn apply(&mut self, shared: &Shared, conn: &Connection, usage: &Usage, now_ms: u64) -> bool;
    /// Answers, now that the transaction's fate is known.
    fn finish(self: Box<Self>, committed: StoreResult<()>);
}

/// An operation made of a closure. It may be carried out twice when the first transaction was
/// undone, so it is `FnMut`.
pub(super) struct ClosureOp<T, F> {
    durability: Durability,
    run: F,
    result: Option<StoreResult<T>>,
    after_commit: Vec<Box<dyn FnOnce() + Send>>,
    reply: Option<oneshot::Sender<StoreResult<T>>>,
}

impl<T, F> ClosureOp<T, F>
where
    T: Send + 'static,
    F: FnMut(&mut Step<'_>) -> StepResult<T> + Send + 'static,
{
    pub(super) fn new(
        durability: Durability,
        run: F,
        reply: Option<oneshot::Sender<StoreResult<T>>>,
    ) -> Self {
        Self {
            durability,
            run,
            result: None,
            after_commit: Vec::new(),
            reply,
        }
    }
}

impl<T, F> Op for ClosureOp<T, F>
where
    T: Send + 'static,
    F: FnMut(&mut Step<'_>) -> StepResult<T> + Send + 'static,
{
    fn durability(&self) -> Durability {
        self.durability
    }

    fn apply(&mut self, shared: &Shared, conn: &Connection, usage: &Usage, now_ms: u64) -> bool {
        // What an undone first try left behind goes before the second.
        self.result = None;
        self.after_commit.clear();
        let mut step = Step {
            conn,
            now_ms,
            usage,
            after_commit: Vec::new(),
        };
        // A panic must not take the thread and everybody else's answers with it.
        let outcome =
            catch_unwind(AssertUnwindSafe(|| (self.run)(&mut step))).unwrap_or_else(|_| {
                Err(StepError::Store(StoreError::Unavailable(
                    "an operation on the store panicked".to_owned(),
                )))
            });
        self.after_commit = step.after_commit;
        let kept = outcome.is_ok();
        self.result = Some(outcome.map_err(|error| explain_step(&shared.place, error)));
        kept
    }

    fn finish(self: Box<Self>, committed: StoreResult<()>) {
        let this = *self;
        let result = match (committed, this.result) {
            (_, Some(Err(error))) | (Err(error), _) => Err(error),
            (Ok(()), Some(Ok(value))) => {
                for act in this.after_commit {
                    act();
                }
                Ok(value)
            }
            (Ok(()), None) => Err(StoreError::Unavailable(
                "the operation never ran".to_owned(),
            )),
        };
        if let Some(reply) = this.reply {
            // A caller that has gone is told by the drop of the value, where that matters.
            drop(reply.send(result));
        }
    }
}

/// Why a transaction did not happen.
struct Undone {
    error: StoreError,
    next: Next,
}

/// What may be done after a transaction that did not happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    GiveUp,
    /// Certainly nothing was kept, and the operations may be tried one by one: the one that found
    /// no room must not take the others with it.
    Singly,
}

/// How an operation that failed after it had written something is undone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Care {
    /// With everything else.
    Together,
    /// Alone, by its savepoint.
    Savepoints,
}

/// The thread's own state.
pub(super) struct Writer {
    shared: Arc<Shared>,
    conn: Connection,
    identity: FileIdentity,
    synchronous: Option<Durability>,
    usage: Usage,
}

/// Ends everybody's wait when the thread ends, however it ends.
struct AbandonOnExit(Arc<Shared>);

impl Drop for AbandonOnExit {
    fn drop(&mut self) {
        self.0.queue.abandon();
        self.0.waiters.close();
        self.0.writer_done.set();
    }
}

impl Writer {
    pub(super) fn new(shared: Arc<Shared>, conn: Connection, identity: FileIdentity) -> Self {
        Self {
            shared,
            conn,
            identity,
            synchronous: None,
            usage: Usage::default(),
        }
    }

    /// Works until the queue is closed and empty.
    pub(super) fn run(mut self) {
        let guard = AbandonOnExit(self.shared.clone());
        let mut last_batch = 0;
        let mut linger = Duration::ZERO;
        loop {
            // One caller alone never waits for company.
            let expected = if last_batch > 1 { last_batch } else { 1 };
            let mut ops = self.shared.queue.take(expected, linger);
            if ops.is_empty() {
                break;
            }
            last_batch = ops.len();
            let started = Instant::now();
            let outcome = self.transact(&mut ops);
            // A fraction of what the batch costs: lingering pays only while it is the smaller part.
            linger = (started.elapsed() / 4).min(LINGER_MAX);
            self.finish(ops, outcome);
        }
        // Closed before the drop of the connection is announced, so that whoever waits for the end
        // of the store finds the files at rest.
        drop(self.conn);
        drop(guard);
    }

    fn finish(&mut self, ops: Vec<Box<dyn Op>>, outcome: Result<(), Undone>) {
        match outcome {
            Ok(()) => {
                for op in ops {
                    op.finish(Ok(()));
                }
            }
            Err(undone) if undone.next == Next::Singly && ops.len() > 1 => {
                for op in ops {
                    let mut single = vec![op];
                    let outcome = self.transact(&mut single).map_err(|undone| undone.error);
                    for op in single {
                        op.finish(outcome.clone());
                    }
                }
            }
            Err(undone) => {
                for op in ops {
                    op.finish(Err(undone.error.clone()));
                }
            }
        }
        self.shared.locks.recycle();
    }

    fn transact(&mut self, ops: &mut [Box<dyn Op>]) -> Result<(), Undone> {
        self.identity
            .check(&self.shared.place)
            .map_err(|error| Undone {
                error: error.into(),
                next: Next::GiveUp,
            })?;
        if !self.apply_all(ops, Care::Together)? {
            self.roll_back();
            self.apply_all(ops, Care::Savepoints)?;
        }
        #[cfg(test)]
        if let Some(error) = self.shared.hooks.before_commit() {
            self.roll_back();
            return Err(Undone {
                error,
                next: Next::GiveUp,
            });
        }
        if let Err(error) = self.cached("COMMIT") {
            self.roll_back();
            return Err(self.undone(&error, is_full(&error)));
        }
        self.shared.commits.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Opens a transaction and carries everything out in it. An operation's own failure is its
    /// own; an error means that the whole transaction is lost, and `false` that it has to be undone.
    fn apply_all(&mut self, ops: &mut [Box<dyn Op>], care: Care) -> Result<bool, Undone> {
        self.begin(ops)
            .map_err(|error| self.undone(&error, false))?;
        self.usage.forget();
        let applied = ops
            .iter_mut()
            .try_fold(true, |kept, op| Ok(kept && self.apply(op.as_mut(), care)?))
            .and_then(|kept| {
                if kept {
                    self.usage.store(&self.conn)?;
                }
                Ok(kept)
            });
        applied.map_err(|error: rusqlite::Error| {
            let certainly_undone = self.conn.is_autocommit() || is_full(&error);
            self.roll_back();
            self.undone(&error, certainly_undone)
        })
    }

    fn begin(&mut self, ops: &[Box<dyn Op>]) -> rusqlite::Result<()> {
        let durability = ops
            .iter()
            .map(|op| op.durability())
            .max()
            .unwrap_or(Durability::Synced);
        if self.synchronous != Some(durability) {
            let level = match durability {
                Durability::Synced => "FULL",
                Durability::Relaxed => "NORMAL",
            };
            self.conn.pragma_update(None, "synchronous", level)?;
            self.synchronous = Some(durability);
        }
        self.cached("BEGIN IMMEDIATE")
    }

    /// `false` when the operation failed and left something behind.
    fn apply(&self, op: &mut dyn Op, care: Care) -> rusqlite::Result<bool> {
        let usage_before = self.usage.clone();
        let changes_before = self.conn.total_changes();
        if care == Care::Savepoints {
            self.cached("SAVEPOINT op")?;
        }
        let kept = op.apply(
            &self.shared,
            &self.conn,
            &self.usage,
            self.shared.clock.now_ms(),
        );
        if self.conn.is_autocommit() {
            // SQLite has undone more than this operation: the others' changes are gone too.
            return Err(rusqlite::Error::SqliteFailure(
                rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_FULL),
                Some("the transaction was undone for want of space".to_owned()),
            ));
        }
        if care == Care::Savepoints {
            if !kept {
                self.cached("ROLLBACK TO op")?;
                self.usage.set(&usage_before);
            }
            self.cached("RELEASE op")?;
            return Ok(true);
        }
        Ok(kept || self.conn.total_changes() == changes_before)
    }

    fn cached(&self, sql: &str) -> rusqlite::Result<()> {
        self.conn.prepare_cached(sql)?.execute([]).map(|_| ())
    }

    fn roll_back(&self) {
        if !self.conn.is_autocommit() {
            // Nothing better can be done with an error here: the next BEGIN would report it.
            let _ = self.conn.execute_batch("ROLLBACK");
        }
    }

    fn undone(&self, error: &rusqlite::Error, certainly: bool) -> Undone {
        Undone {
            error: self.shared.place.explain(error).into(),
            next: if certainly {
                Next::Singly
            } else {
                Next::GiveUp
            },
        }
    }
}
