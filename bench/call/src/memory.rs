//! What records in memory weigh, and that more of them do not weigh more.

use std::io;
use std::sync::Arc;

use holdfast_contract::{ResultOutput, SystemClock};
use holdfast_reliability::canonical::Digest;
use holdfast_reliability::idempotency::key::StoredKey;
use holdfast_reliability::idempotency::record::{
    AttemptNote, AttemptStatus, Execution, RecordRequest,
};
use holdfast_reliability::idempotency::transition::{
    ClaimRequest, Ending, Finalisation, Hold, Lifetimes, OnRetriableFailure,
};
use holdfast_reliability::retry::RepeatSafety;
use holdfast_reliability::store::DedupeStore;
use holdfast_reliability::store::memory::{MEMORY_KEYS_MAX, MemoryDedupeStore, MemoryLimits};
use serde::Serialize;
use serde_json::Value;

/// Resident memory around two fillings of the store.
#[derive(Debug, Clone, Serialize)]
pub struct Memory {
    pub records: usize,
    pub before_bytes: u64,
    pub full_bytes: u64,
    pub after_as_many_again_bytes: u64,
    /// As the store counts them.
    pub store_bytes: u64,
}

pub async fn measure() -> io::Result<Memory> {
    let store = MemoryDedupeStore::new(Arc::new(SystemClock), MemoryLimits::default());
    let before_bytes = resident_bytes()?;
    fill(&store, 0).await?;
    let full_bytes = resident_bytes()?;
    fill(&store, MEMORY_KEYS_MAX).await?;
    let after_as_many_again_bytes = resident_bytes()?;
    let size = store.size().await.map_err(io::Error::other)?;
    Ok(Memory {
        records: usize::try_from(size.records).unwrap_or(0),
        before_bytes,
        full_bytes,
        after_as_many_again_bytes,
        store_bytes: size.bytes,
    })
}

/// Ended records, each with 1 KB of output. Of the arguments a record keeps only the digest.
async fn fill(store: &MemoryDedupeStore, from: usize) -> io::Result<()> {
    for number in from..from + MEMORY_KEYS_MAX {
        let digest = Digest::of(&number.to_le_bytes());
        let wish = ClaimRequest {
            key: StoredKey::from_bytes(*digest.as_bytes()),
            content: None,
            tool: "send_message".into(),
            idempotency_key: "computed".into(),
            request: Arc::new(RecordRequest {
                session_key: "agent:main:session-0042".into(),
                workspace_id: None,
                actor_id: "user-17".into(),
                request_id: format!("0198c0de-0000-7000-8000-{number:012}"),
                tool_call_id: None,
                params_digest: digest,
                shadow: false,
            }),
            owner: format!("{number:032x}").into(),
            lifetimes: Lifetimes::default(),
            repeat: RepeatSafety::Unsafe,
            on_retriable_failure: OnRetriableFailure::Replay,
            hold: Hold::None,
        };
        store.claim(&wish).await.map_err(io::Error::other)?;
        let note = AttemptNote {
            started_at_ms: 0,
            finished_at_ms: 0,
            status: AttemptStatus::Success,
            retriable: false,
            error_code: None,
        };
        let last_word = Finalisation {
            key: wish.key,
            owner: wish.owner,
            ending: Ending::Done(ResultOutput {
                content: Arc::new(Value::String("x".repeat(1024))),
                metadata: None,
            }),
            execution: Execution {
                attempt_count: 1,
                attempts: [note].into(),
            },
            lifetimes: wish.lifetimes,
        };
        let taken = store.finalise(last_word).await.map_err(io::Error::other)?;
        assert!(taken.is_ok(), "the holder is believed");
    }
    Ok(())
}

fn resident_bytes() -> io::Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let kilobytes = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .and_then(|rest| rest.trim().trim_end_matches(" kB").parse::<u64>().ok())
        .ok_or_else(|| io::Error::other("no VmRSS"))?;
    Ok(kilobytes * 1024)
}
