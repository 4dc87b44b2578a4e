//! The state directory, its tokens, its audit log, and Redis.

use std::collections::BTreeSet;
use std::fmt;
use std::fs::File;
use std::io::BufReader;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use holdfast_memory::MemoryStoreKind;
use holdfast_memory::sqlite::{MEMORY_FILE, examine};
use holdfast_reliability::config::StoreKind;
use holdfast_reliability::idempotency::record::RecordState;
use holdfast_reliability::store::sqlite::SqliteState;
use holdfast_reliability::store::{DedupeStore, RecordFilter, StoreResult};
use holdfast_toolbox::audit::verify;
use holdfast_toolbox::token::{ADMIN_TOKEN_FILE, APPROVER_TOKEN_FILE, TOKEN_FILE};

use super::Check;
use crate::app::App;

/// Open calls that are looked at one by one.
const OPEN_LOOKED_AT_MAX: usize = 1_000;
/// How long Redis may take to answer.
const REDIS_WAIT: Duration = Duration::from_secs(3);

pub(super) async fn checks(app: &App) -> Vec<Check> {
    let mut checks = vec![state(app).await];
    checks.extend(tokens(&app.state_dir));
    checks.extend(second_names(app));
    if app.state_dir.exists() {
        checks.extend(audit_log(app).await);
    }
    checks.extend(memory(app));
    if app.config.reliability.store.kind == StoreKind::Redis {
        checks.push(redis(app).await);
    }
    checks
}

async fn state(app: &App) -> Check {
    const NAME: &str = "state";
    let dir = app.state_dir.display();
    let Ok(seen) = app.state_dir.metadata() else {
        return Check::ok(NAME, format!("{dir} will be made by the first call"));
    };
    if seen.mode() & 0o077 != 0 {
        return Check::bad(
            NAME,
            format!(
                "{dir} can be entered by others (mode {:o})",
                seen.mode() & 0o777
            ),
            format!("`chmod 700 {dir}`; records hold what tools answered."),
        );
    }
    let away = |error: String| {
        Check::bad(
            NAME,
            error,
            "Calls that change something are refused until the state can be opened. Look at the \
             disk and at who owns the directory, or name another with --state DIR.",
        )
    };
    let state = match app.open_state() {
        Ok(state) => state,
        Err(error) => return away(error.to_string()),
    };
    match looked_at(&state).await {
        Ok((records, open)) => Check::ok(NAME, format!("{dir}: {records} records, {open}")),
        Err(error) => away(error.to_string()),
    }
}

/// Records of calls that have not ended, by what is known of them.
#[derive(Default)]
struct Open {
    /// Their tools run.
    running: u64,
    /// A person is asked first.
    waiting: u64,
    /// Their processes died while a person was asked: nothing ran.
    orphaned: u64,
    /// Their processes died later: it may have.
    abandoned: u64,
    /// Not looked at: there are too many.
    more: u64,
}

impl fmt::Display for Open {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.more > 0 {
            f.write_str("at least ")?;
        }
        write!(f, "{} in flight", self.running)?;
        for (count, what) in [
            (self.waiting, "waiting for a person"),
            (self.orphaned, "left waiting for a person"),
            (self.abandoned, "abandoned"),
            (self.more, "more that were not looked at"),
        ] {
            if count > 0 {
                write!(f, ", {count} {what}")?;
            }
        }
        if self.orphaned > 0 {
            f.write_str(
                " (their callers are gone and nothing ran: see `holdfast approvals list`)",
            )?;
        }
        Ok(())
    }
}

/// How many records there are, and those that are open.
async fn looked_at(state: &SqliteState) -> StoreResult<(u64, Open)> {
    let size = DedupeStore::size(state).await?;
    let filter = RecordFilter {
        state: Some(RecordState::Inflight),
        limit: Some(OPEN_LOOKED_AT_MAX),
        ..RecordFilter::default()
    };
    let found = DedupeStore::list(state, &filter).await?;
    let mut open = Open {
        more: size.in_flight.saturating_sub(found.len() as u64),
        ..Open::default()
    };
    if found.len() < OPEN_LOOKED_AT_MAX {
        // They were all there: what has begun since is not counted.
        open.more = 0;
    }
    for record in found {
        let count = match (record.held, state.is_abandoned(record.key).await?) {
            (false, false) => &mut open.running,
            (true, false) => &mut open.waiting,
            (true, true) => &mut open.orphaned,
            (false, true) => &mut open.abandoned,
        };
        *count += 1;
    }
    Ok((size.records, open))
}

fn tokens(state_dir: &Path) -> Vec<Check> {
    let exposed = [TOKEN_FILE, ADMIN_TOKEN_FILE, APPROVER_TOKEN_FILE]
        .iter()
        .map(|name| state_dir.join(name))
        .filter(|path| path.metadata().is_ok_and(|seen| seen.mode() & 0o077 != 0));
    exposed
        .map(|path| {
            let path = path.display();
            Check::bad(
                "tokens",
                format!("{path} can be read by others"),
                format!("Remove {path}; a new one is made when it is next needed."),
            )
        })
        .collect()
}

/// What guards the calls is out of reach by its own name: under another one it may lie anywhere.
fn second_names(app: &App) -> Vec<Check> {
    let kept = std::fs::read_dir(&app.state_dir).into_iter().flatten();
    let kept = kept.filter_map(|entry| Some(entry.ok()?.path()));
    let named = app.reserved().into_iter().chain(kept);
    let is_linked = |path: &PathBuf| {
        let seen = path.metadata();
        seen.is_ok_and(|seen| seen.is_file() && seen.nlink() > 1)
    };
    let linked: BTreeSet<PathBuf> = named.filter(is_linked).collect();
    let found = |path: &PathBuf| {
        let path = path.display();
        Check::bad(
            "second names",
            format!("{path} has another name (a hard link), under which commands may reach it"),
            format!("`find DIR -samefile {path}` finds it: remove it there."),
        )
    };
    linked.iter().map(found).collect()
}

async fn audit_log(app: &App) -> Option<Check> {
    const NAME: &str = "audit log";
    let log = app.audit_log(app.open_state().ok()?);
    let file = File::open(log.path()).ok()?;
    let head = log.head().await.ok()?;
    Some(match verify(BufReader::new(file), &head) {
        Ok(report) if report.problems.is_empty() => Check::ok(
            NAME,
            format!("{} entries, all as they were written", report.lines),
        ),
        Ok(report) => Check::bad(
            NAME,
            format!(
                "{} entries are not as they were written",
                report.problems.len()
            ),
            "`holdfast audit-log verify` names them. Somebody or something other than Holdfast has \
             written to it.",
        ),
        Err(error) => Check::bad(NAME, error.to_string(), "Look at the disk."),
    })
}

/// What agents remember, where it is in a file of ours.
fn memory(app: &App) -> Option<Check> {
    const NAME: &str = "memory";
    if app.config.memory.store != MemoryStoreKind::Sqlite {
        return None;
    }
    Some(match examine(&app.state_dir).transpose()? {
        Ok(records) => Check::ok(NAME, format!("{records} records")),
        Err(error) => {
            let file = app.state_dir.join(MEMORY_FILE);
            let file = file.display();
            Check::bad(
                NAME,
                error.to_string(),
                format!(
                    "Nothing is stored or found until it can be read. Save what can still be read \
                     with `holdfast memory export FILE`, move {file} and its -wal and -shm away, and \
                     `holdfast memory import` that or your last export."
                ),
            )
        }
    })
}

async fn redis(app: &App) -> Check {
    const NAME: &str = "redis";
    let advice = "Mutating calls are refused while it is away. Look at reliability.store.redis and \
                  at the server.";
    let shared = match app.open_shared() {
        Ok(shared) => shared,
        Err(error) => return Check::bad(NAME, error.to_string(), advice),
    };
    match tokio::time::timeout(REDIS_WAIT, DedupeStore::size(&*shared)).await {
        Ok(Ok(size)) => Check::ok(NAME, format!("answers, {} records", size.records)),
        Ok(Err(error)) => Check::bad(NAME, error.to_string(), advice),
        Err(_) => Check::bad(
            NAME,
            format!("does not answer within {} s", REDIS_WAIT.as_secs()),
            advice,
        ),
    }
}
