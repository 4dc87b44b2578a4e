//! The audit log: written by many at once, and honest about every change.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use holdfast_contract::SystemClock;
use holdfast_contract::redact::Redactor;
use holdfast_reliability::store::conformance::interposed_documents::{
    DocumentStep, InterposedDocuments,
};
use holdfast_reliability::store::documents::DocumentStore;
use holdfast_reliability::store::memory::MemoryDocumentStore;
use holdfast_reliability::store::sqlite::{SqliteOptions, SqliteState};
use holdfast_reliability::store::{StoreError, StoreResult};
use holdfast_toolbox::audit::{AUDIT_LINE_BYTES_MAX, AuditLog, Head, Report, files, verify};
use serde_json::{Map, Value, json};

fn fields(value: impl Into<Value>) -> Map<String, Value> {
    let value = value.into();
    value.as_object().unwrap().clone()
}

fn log_in(dir: &Path) -> Arc<AuditLog> {
    let clock = Arc::new(SystemClock);
    let store = Arc::new(MemoryDocumentStore::new(clock.clone()));
    Arc::new(AuditLog::new(dir, store, clock, Redactor::default()))
}

fn report(text: &str, head: &Head) -> Report {
    verify(text.as_bytes(), head).expect("readable")
}

fn whats(text: &str, head: &Head) -> Vec<String> {
    let found = report(text, head).problems;
    found
        .into_iter()
        .map(|problem| format!("{}: {}", problem.line, problem.what))
        .collect()
}

#[tokio::test]
async fn every_kind_of_tampering_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let log = log_in(dir.path());
    for number in 1..=5 {
        log.append("test.event", fields(json!({"n": number})))
            .await
            .unwrap();
    }
    let text = std::fs::read_to_string(log.path()).unwrap();
    let head = log.head().await.unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let join = |list: &[&str]| list.join("\n") + "\n";
    assert_eq!(
        report(&text, &head),
        Report {
            lines: 5,
            problems: vec![]
        }
    );

    let changed = text.replace("\"n\":3", "\"n\":4");
    assert_eq!(
        whats(&changed, &head),
        ["3: entry 3 was changed: its hash does not fit it"]
    );
    let spaced = text.replace("\"n\":3", "\"n\": 3");
    assert_eq!(
        whats(&spaced, &head),
        ["3: entry 3 was changed: its hash does not fit it"]
    );
    let removed = join(&[lines[0], lines[1], lines[3], lines[4]]);
    assert_eq!(
        whats(&removed, &head),
        ["3: entry 3 was removed before entry 4"]
    );
    let more_removed = join(&[lines[0], lines[4]]);
    assert_eq!(
        whats(&more_removed, &head),
        ["2: entries 2 to 4 were removed before entry 5"]
    );
    let swapped = join(&[lines[0], lines[2], lines[1], lines[3], lines[4]]);
    let said = whats(&swapped, &head);
    assert!(
        said.contains(&"3: entry 2 stands after entry 3: lines were moved or repeated".into()),
        "{said:?}"
    );
    let cut = join(&lines[..3]);
    assert_eq!(
        whats(&cut, &head),
        ["4: the end was cut off: entries 4 to 5 are missing"]
    );
    assert_eq!(
        whats("", &head),
        ["1: the end was cut off: entries 1 to 5 are missing"]
    );
    let foreign = join(&[lines[0], "{}", lines[1], lines[2], lines[3], lines[4]]);
    assert_eq!(
        whats(&foreign, &head),
        ["2: it is not a line of the audit log"]
    );
    // A whole new chain, right in itself, is not the one that was anchored.
    let other = log_in(tempfile::tempdir().unwrap().path());
    assert_eq!(other.head().await.unwrap(), Head::default());
    let forged = Head {
        seq: 5,
        hash: "1".repeat(64),
    };
    assert_eq!(
        whats(&text, &forged),
        ["6: entry 5 is not the one that was written last"]
    );
    let behind = Head {
        seq: 3,
        hash: head.hash.clone(),
    };
    assert_eq!(
        whats(&text, &behind),
        ["6: entries 4 to 5 were added by something else than Holdfast"]
    );
}

#[tokio::test]
async fn a_gap_stays_visible_after_more_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let log = log_in(dir.path());
    for number in 1..=4 {
        log.append("test.event", fields(json!({"n": number})))
            .await
            .unwrap();
    }
    let text = std::fs::read_to_string(log.path()).unwrap();
    let kept: Vec<&str> = text.lines().take(2).collect();
    std::fs::write(log.path(), kept.join("\n") + "\n").unwrap();
    log.append("test.event", fields(json!({"n": 5})))
        .await
        .unwrap();
    let text = std::fs::read_to_string(log.path()).unwrap();
    let head = log.head().await.unwrap();
    assert_eq!(
        whats(&text, &head),
        ["3: entries 3 to 4 were removed before entry 5"]
    );
}

#[tokio::test]
async fn a_death_between_file_and_database_is_no_tampering() {
    let dir = tempfile::tempdir().unwrap();
    let log = log_in(dir.path());
    for number in 1..=2 {
        log.append("test.event", fields(json!({"n": number})))
            .await
            .unwrap();
    }
    let before = log.head().await.unwrap();
    log.append("test.event", fields(json!({"n": 3})))
        .await
        .unwrap();
    let text = std::fs::read_to_string(log.path()).unwrap();
    assert_eq!(whats(&text, &before), Vec::<String>::new());
    // Half a line is of a power cut; nobody was told of it.
    std::fs::write(log.path(), format!("{text}{{\"seq\":4,")).unwrap();
    log.append("test.event", fields(json!({"n": 4})))
        .await
        .unwrap();
    let text = std::fs::read_to_string(log.path()).unwrap();
    assert_eq!(
        whats(&text, &log.head().await.unwrap()),
        Vec::<String>::new()
    );
    assert_eq!(text.lines().count(), 4);
}

#[tokio::test]
async fn secrets_and_floods_stay_out() {
    let dir = tempfile::tempdir().unwrap();
    let log = log_in(dir.path());
    let secret = "sk-abcdefghijklmnopqrstuvwxyz0123456789";
    log.append(
        "a",
        fields(json!({"api_key": secret, "text": format!("Bearer {secret}")})),
    )
    .await
    .unwrap();
    let flood = "x".repeat(2 * AUDIT_LINE_BYTES_MAX);
    let told = json!({"arguments": {"flood": flood}, "digest": "d", "approval": "a", "by": "ann"});
    let line = log.append("b", fields(told)).await.unwrap();
    // Only what is too large goes: who, which and the digest stay.
    let kept = ["digest", "approval", "by"].map(|name| line.fields[name].clone());
    assert_eq!(kept, ["d", "a", "ann"].map(Value::from));
    let left_out = &line.fields["arguments"]["leftOut"];
    assert!(left_out["bytes"].as_u64().unwrap() > flood.len() as u64);
    assert_eq!(left_out["sha256"].as_str().unwrap().len(), 64);
    let many: Map<String, Value> = (0..9_000)
        .map(|n| (n.to_string(), json!("0123456789")))
        .collect();
    let line = log
        .append("c", fields(json!({"many": many, "by": "ann"})))
        .await
        .unwrap();
    assert_eq!(line.fields["by"], "ann");
    log.append("c", Map::new()).await.unwrap();
    let text = std::fs::read_to_string(log.path()).unwrap();
    assert!(!text.contains(secret), "{text}");
    assert_eq!(
        whats(&text, &log.head().await.unwrap()),
        Vec::<String>::new()
    );
    assert_eq!(log.path().metadata().unwrap().mode() & 0o777, 0o600);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_writers_make_one_chain() {
    let dir = tempfile::tempdir().unwrap();
    let clock = Arc::new(SystemClock);
    let logs: Vec<Arc<AuditLog>> = (0..3)
        .map(|_| {
            let store =
                SqliteState::open(dir.path(), clock.clone(), SqliteOptions::default()).unwrap();
            Arc::new(AuditLog::new(
                dir.path(),
                store,
                clock.clone(),
                Redactor::default(),
            ))
        })
        .collect();
    let tasks: Vec<_> = (0..30)
        .map(|number| {
            let log = logs[number % 3].clone();
            tokio::spawn(
                async move { log.append("n", fields(json!({"n": number}))).await.unwrap() },
            )
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let text = std::fs::read_to_string(logs[0].path()).unwrap();
    let found = report(&text, &logs[1].head().await.unwrap());
    assert_eq!(
        found,
        Report {
            lines: 30,
            problems: vec![]
        }
    );
}

/// Documents that can be told to take no changes.
struct Stubborn {
    inner: MemoryDocumentStore,
    refuses: AtomicBool,
}

impl InterposedDocuments for Stubborn {
    fn behind(&self) -> &dyn DocumentStore {
        &self.inner
    }

    fn before(&self, step: DocumentStep<'_>) -> StoreResult<()> {
        if step == DocumentStep::Replace && self.refuses.load(Ordering::SeqCst) {
            return Err(StoreError::Unavailable("away".to_owned()));
        }
        Ok(())
    }
}

/// However often the head can not be written, one line at most waits for its anchor.
#[tokio::test]
async fn a_database_that_refuses_again_and_again_is_no_tampering() {
    let dir = tempfile::tempdir().unwrap();
    let clock = Arc::new(SystemClock);
    let store = Arc::new(Stubborn {
        inner: MemoryDocumentStore::new(clock.clone()),
        refuses: AtomicBool::new(false),
    });
    let log = AuditLog::new(dir.path(), store.clone(), clock, Redactor::default());
    let add = |number: u32| log.append("test.event", fields(json!({ "n": number })));
    add(1).await.unwrap();
    store.refuses.store(true, Ordering::SeqCst);
    for number in 2..5 {
        assert!(add(number).await.is_err());
    }
    store.refuses.store(false, Ordering::SeqCst);
    add(5).await.unwrap();
    let text = std::fs::read_to_string(log.path()).unwrap();
    let head = log.head().await.unwrap();
    assert_eq!(report(&text, &head).problems, []);
    assert_eq!(text.lines().count(), 3);
}

/// All files of the log as one text.
fn whole(log: &AuditLog) -> String {
    let read = |path| std::fs::read_to_string(path).unwrap();
    files(log.path()).unwrap().into_iter().map(read).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_chain_goes_on_over_files_that_are_set_aside() {
    let dir = tempfile::tempdir().unwrap();
    let clock = Arc::new(SystemClock);
    let store = Arc::new(MemoryDocumentStore::new(clock.clone()));
    let writers: Vec<Arc<AuditLog>> = (0..4)
        .map(|_| {
            let log = AuditLog::new(
                dir.path(),
                store.clone(),
                clock.clone(),
                Redactor::default(),
            );
            Arc::new(log.with_files_of(4_000))
        })
        .collect();
    let tasks = writers.iter().map(|log| {
        let log = log.clone();
        tokio::spawn(async move {
            for number in 0..50 {
                let told = fields(json!({"n": number}));
                log.append("test.event", told).await.unwrap();
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    let log = &writers[0];
    let head = log.head().await.unwrap();
    let all = files(log.path()).unwrap();
    assert!(all.len() > 5, "{all:?}");
    for file in &all {
        let meta = std::fs::metadata(file).unwrap();
        assert!(meta.len() < 5_000, "{file:?}");
        assert_eq!(meta.mode() & 0o777, 0o600, "{file:?}");
    }
    let found = report(&whole(log), &head);
    assert_eq!((found.lines, found.problems), (200, vec![]));
    // One that is gone is missed like any other line.
    std::fs::remove_file(&all[2]).unwrap();
    let found = report(&whole(log), &head).problems;
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].what.contains("were removed before"), "{found:?}");
}
