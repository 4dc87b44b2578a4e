//! Export and import.

use holdfast_contract::{
    MemoryQuery, MemoryRead, MemoryStore as _, MemoryType, MemoryWrite, Trust,
};

use super::{Bench, MemoryFactory, whole};
use crate::transfer::{self, Imported, TransferError};

const NOW_MS: u64 = 1_772_270_130_123;

async fn export(bench: &Bench) -> Vec<u8> {
    let mut snapshot = bench.memory.snapshot().await.expect("a snapshot");
    let mut out = Vec::new();
    transfer::export(&mut *snapshot, "agent-7", NOW_MS, &mut out, |_| ()).expect("written");
    out
}

async fn import(bench: &Bench, file: &[u8]) -> Result<Imported, TransferError> {
    transfer::import(&*bench.memory, file, Trust::User, |_| ()).await
}

async fn filled(factory: &dyn MemoryFactory) -> Bench {
    let bench = Bench::new(factory).await;
    bench
        .facts(&["The kitten sleeps.", "Émile: \"ça va?\"", "会議は東京で"])
        .await;
    bench
        .remember(MemoryType::Decision, "We ship on Fridays.")
        .await;
    bench.model.set_away(true);
    bench
        .remember(MemoryType::Identity, "The agent is called Rem.")
        .await;
    bench
}

/// Into an empty store: the same records, the same answers, and the same bytes when exported again.
pub async fn an_export_comes_back_the_same(factory: &dyn MemoryFactory) {
    let bench = filled(factory).await;
    let file = export(&bench).await;
    let text = String::from_utf8(file.clone()).expect("UTF-8");
    let header = text.lines().next().expect("a first line");
    assert_eq!(
        header,
        r#"{"schema_version":2,"exported_at":"2026-02-28T09:15:30.123Z","agent":"agent-7","record_types":["decision","fact","identity"],"records":5}"#
    );
    let other = Bench::new(factory).await;
    let done = import(&other, &file).await.expect("imported");
    assert_eq!((done.added, done.unchanged), (5, 0));
    assert_eq!(other.count().await, bench.count().await);
    assert_eq!(export(&other).await, file);
    let query = MemoryQuery::new("feline");
    assert_eq!(
        other.search(&query).await.hits[0].record.content,
        "The kitten sleeps."
    );
}

/// What is written while an export runs is not in it.
pub async fn an_export_is_one_moment(factory: &dyn MemoryFactory) {
    let bench = filled(factory).await;
    let before = export(&bench).await;
    let mut snapshot = bench.memory.snapshot().await.expect("a snapshot");
    bench.remember(MemoryType::Preference, "Later.").await;
    let hits = bench.search(&MemoryQuery::new("ship")).await.hits;
    assert!(
        bench
            .memory
            .delete(&hits[0].record.id)
            .await
            .expect("deleted")
    );
    let mut out = Vec::new();
    transfer::export(&mut *snapshot, "agent-7", NOW_MS, &mut out, |_| ()).expect("written");
    assert_eq!(out, before);
}

/// The second time everything is there already.
pub async fn an_import_can_be_repeated(factory: &dyn MemoryFactory) {
    let bench = filled(factory).await;
    let file = export(&bench).await;
    let done = import(&bench, &file).await.expect("imported");
    assert_eq!((done.added, done.unchanged), (0, 5));
    assert_eq!(export(&bench).await, file);
}

/// A record with a known id and other content is named, not taken.
pub async fn a_conflicting_import_keeps_what_is_there(factory: &dyn MemoryFactory) {
    let bench = filled(factory).await;
    let file = String::from_utf8(export(&bench).await).expect("UTF-8");
    let changed = file.replace("We ship on Fridays.", "We ship on Mondays.");
    let done = import(&bench, changed.as_bytes()).await.expect("imported");
    assert_eq!(
        (done.added, done.unchanged, done.conflicting.len()),
        (0, 4, 1)
    );
    assert_eq!(done.other_trust, 0);
    let kept = bench
        .memory
        .get(&done.conflicting[0])
        .await
        .expect("a look");
    assert_eq!(kept.expect("there").content, "We ship on Fridays.");
}

/// What a file says of itself can lower the trust of its records, and not raise it.
pub async fn an_import_raises_no_trust(factory: &dyn MemoryFactory) {
    let from = Bench::without_model(factory).await;
    let records = Trust::ALL.map(|trust| {
        let mut record = whole(trust.as_str(), &format!("A word of {}.", trust.as_str()));
        record.trust = trust;
        record
    });
    let put = from.memory.insert(records.to_vec()).await;
    assert_eq!(put.expect("put in").added, 4);
    let file = export(&from).await;
    for (trust_max, lowered) in [
        (Trust::System, 0),
        (Trust::User, 1),
        (Trust::Tool, 2),
        (Trust::Untrusted, 3),
    ] {
        let other = Bench::without_model(factory).await;
        let done = transfer::import(&*other.memory, file.as_slice(), trust_max, |_| ()).await;
        let done = done.expect("imported");
        assert_eq!((done.added, done.lowered), (4, lowered), "{trust_max:?}");
        for said in Trust::ALL {
            let record = other.memory.get(said.as_str()).await.expect("a look");
            let trust = record.expect("there").trust;
            assert_eq!(trust, said.min(trust_max), "{trust_max:?}");
        }
        // Again, and nothing is in the way of itself.
        let done = transfer::import(&*other.memory, file.as_slice(), trust_max, |_| ()).await;
        let done = done.expect("imported");
        assert_eq!((done.unchanged, done.conflicting.len()), (4, 0));
        assert_eq!(done.lowered, 0, "{trust_max:?}: they were there");
    }
    // A record that is known can not be brought to more by a file with the same id.
    let other = Bench::without_model(factory).await;
    let done = transfer::import(&*other.memory, file.as_slice(), Trust::Untrusted, |_| ()).await;
    assert_eq!(done.expect("imported").added, 4);
    let done = import(&other, &file).await.expect("imported");
    assert_eq!((done.unchanged, done.conflicting.len()), (1, 3));
    assert_eq!(done.other_trust, 3);
    let record = other.memory.get("system").await.expect("a look");
    assert_eq!(record.expect("there").trust, Trust::Untrusted);
}

/// What stands before it is in, and the number says where to look.
pub async fn a_broken_line_ends_an_import_with_its_number(factory: &dyn MemoryFactory) {
    let bench = filled(factory).await;
    let file = String::from_utf8(export(&bench).await).expect("UTF-8");
    let mut lines: Vec<&str> = file.lines().collect();
    lines[3] = r#"{"id": "half"#;
    let other = Bench::new(factory).await;
    let broken = import(&other, lines.join("\n").as_bytes()).await;
    let message = broken.expect_err("a broken line").to_string();
    assert!(message.starts_with("line 4: "), "{message}");
    assert!(message.contains("2 records before it are in"), "{message}");
    assert_eq!(other.count().await, 2);
    // The whole file afterwards adds what is missing.
    let done = import(&other, file.as_bytes()).await.expect("imported");
    assert_eq!((done.added, done.unchanged), (3, 2));
}
