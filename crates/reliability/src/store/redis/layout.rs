//! How things are named and packed.
//!
//! A record is one string: what scripts have to read stands first, in fixed places, then what never
//! changes, then what the last word brought. Scripts rewrite the first and copy the second.
//!
//! ```text
//!  1  state: i d f c u
//!  1  flags: 1 may be repeated; 2 in flight, waits for leave to start, or failed, may be retried;
//!     4 somebody waits
//! 40  version, created, updated, end of the lease, time to live (8 bytes each, little endian)
//! 16  the places of its session and tool in the index
//!  …  owner, digest of the arguments (2 bytes of length each), then JSON (4 bytes of length)
//!  …  nothing, or j and JSON, or z and compressed JSON, or L for a holder that was lost
//! ```

use std::borrow::Cow;
use std::sync::Arc;

use holdfast_contract::ResultOutput;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use crate::idempotency::key::StoredKey;
use crate::idempotency::record::{
    DedupeRecord, Execution, RecordError, RecordRequest, RecordState,
};
use crate::idempotency::transition::{self, ClaimRequest, Ending};
use crate::store::{StoreError, StoreResult, UnreadRecord};

/// The version of everything below; a store of another version is refused.
pub(super) const SCHEMA: u32 = 1;
/// Numbers above this are not exact in a script; they only mean "never".
pub(super) const EXACT_MAX: u64 = (1 << 53) - 1;
/// A key outlives its record by this much, so that a sweep finds it before the server drops it.
pub(super) const KEY_GRACE_MS: u64 = 15 * 60 * 1000;
/// A key does not live longer than this, about 95 years.
const KEY_TTL_MS_MAX: u64 = 3_000_000_000_000;
/// Nothing that was stored unpacks to more than this.
const UNPACKED_BYTES_MAX: usize = 256 * 1024 * 1024;
/// Of a record's fixed part, its time to live and its places in the index.
pub(super) const TTL_BYTES: usize = 8;
pub(super) const PLACES_BYTES: usize = 16;
/// Where a record's variable part begins.
const FIXED_BYTES: usize = size_of::<ClaimHead>() + TTL_BYTES + PLACES_BYTES;

/// Names of everything under one prefix.
#[derive(Debug, Clone)]
pub(super) struct Names {
    prefix: String,
    shards: u16,
}

/// The keys of one record.
pub(super) struct RecordNames {
    pub(super) record: Vec<u8>,
    pub(super) index: Vec<u8>,
}

impl Names {
    pub(super) fn new(prefix: &str, shards: u16) -> Self {
        Self {
            prefix: prefix.to_owned(),
            shards: shards.max(1),
        }
    }

    pub(super) fn shards(&self) -> std::ops::Range<u16> {
        0..self.shards
    }

    /// Everything of one shard has the same hash tag, so a cluster keeps it on one node.
    fn base(&self, shard: u16) -> Vec<u8> {
        format!("{{{}:{shard}}}", self.prefix).into_bytes()
    }

    pub(super) fn shard_of(&self, key: &StoredKey) -> u16 {
        key.family() % self.shards
    }

    pub(super) fn index(&self, shard: u16) -> Vec<u8> {
        with(self.base(shard), b'x', &[])
    }

    pub(super) fn record(&self, shard: u16, key: &[u8]) -> Vec<u8> {
        with(self.base(shard), b'r', key)
    }

    pub(super) fn of(&self, key: &StoredKey) -> RecordNames {
        let shard = self.shard_of(key);
        RecordNames {
            record: self.record(shard, key.as_bytes()),
            index: self.index(shard),
        }
    }

    pub(super) fn content(&self, content: &StoredKey) -> Vec<u8> {
        with(self.base(self.shard_of(content)), b'c', content.as_bytes())
    }

    /// Marks a claim that was cleared, and is not to be brought back.
    pub(super) fn cleared(&self, key: &StoredKey, owner: &str) -> Vec<u8> {
        let mut name = with(self.base(self.shard_of(key)), b't', key.as_bytes());
        name.extend_from_slice(owner.as_bytes());
        name
    }

    /// Something that there is once for all shards.
    pub(super) fn single(&self, what: &str) -> String {
        format!("{{{}}}:{what}", self.prefix)
    }
}

fn with(mut base: Vec<u8>, kind: u8, rest: &[u8]) -> Vec<u8> {
    base.reserve(1 + rest.len());
    base.push(kind);
    base.extend_from_slice(rest);
    base
}

/// The place of a session or tool in the index: no name of a person ends up in a key's name.
pub(super) fn place(name: &str) -> [u8; 8] {
    xxh3_64(name.as_bytes()).to_le_bytes()
}

/// A record's member of the index: its key, and where else it is listed.
pub(super) fn member(key: &StoredKey, session: &str, tool: &str) -> Vec<u8> {
    let mut member = Vec::with_capacity(48);
    member.extend_from_slice(key.as_bytes());
    member.extend_from_slice(&place(session));
    member.extend_from_slice(&place(tool));
    member
}

/// The key in a member of the index.
pub(super) fn key_of_member(member: &[u8]) -> Option<StoredKey> {
    Some(StoredKey::from_bytes(*member.first_chunk()?))
}

/// How long a server keeps the key of a record that lives this long.
pub(super) fn key_ttl_ms(ttl_ms: u64) -> u64 {
    ttl_ms.min(KEY_TTL_MS_MAX) + KEY_GRACE_MS
}

/// The same for one in flight: it is kept for as long again, see [`DedupeRecord::is_forgettable`].
pub(super) fn running_key_ttl_ms(ttl_ms: u64) -> u64 {
    key_ttl_ms(ttl_ms.saturating_mul(2))
}

/// What never changes about a record.
#[derive(Serialize, Deserialize)]
struct Constant<'a> {
    #[serde(rename = "t")]
    tool: Cow<'a, str>,
    #[serde(rename = "k")]
    idempotency_key: Cow<'a, str>,
    #[serde(rename = "r")]
    request: Cow<'a, RecordRequest>,
    #[serde(rename = "c", default, skip_serializing_if = "Option::is_none")]
    content: Option<StoredKey>,
}

/// What the last word brought.
#[derive(Serialize, Deserialize, Default)]
struct Body<'a> {
    #[serde(rename = "x", default, skip_serializing_if = "Option::is_none")]
    execution: Option<Cow<'a, Execution>>,
    #[serde(rename = "p", default, skip_serializing_if = "Option::is_none")]
    payload: Option<Cow<'a, ResultOutput>>,
    #[serde(rename = "e", default, skip_serializing_if = "Option::is_none")]
    error: Option<Cow<'a, RecordError>>,
}

/// From the time to live to the end of what never changes.
struct Tail<'a> {
    ttl_ms: u64,
    owner: &'a str,
    constant: Constant<'a>,
}

impl Tail<'_> {
    fn pack(&self) -> StoreResult<Vec<u8>> {
        let digest = &self.constant.request.params_digest;
        let mut tail = Vec::with_capacity(512);
        tail.extend_from_slice(&self.ttl_ms.to_le_bytes());
        tail.extend_from_slice(&place(&self.constant.request.session_key));
        tail.extend_from_slice(&place(&self.constant.tool));
        for text in [self.owner.as_bytes(), digest.as_bytes()] {
            let length = u16::try_from(text.len())
                .map_err(|_| StoreError::Unavailable("an owner or digest is too long".into()))?;
            tail.extend_from_slice(&length.to_le_bytes());
            tail.extend_from_slice(text);
        }
        let at = tail.len();
        tail.extend_from_slice(&[0; 4]);
        serde_json::to_writer(&mut tail, &self.constant).map_err(|error| unwritable(&error))?;
        let length = u32::try_from(tail.len() - at - 4)
            .map_err(|_| StoreError::Unavailable("a request is too large to be recorded".into()))?;
        tail[at..at + 4].copy_from_slice(&length.to_le_bytes());
        Ok(tail)
    }
}

fn unwritable(error: &serde_json::Error) -> StoreError {
    StoreError::Unavailable(format!("a record can not be written: {error}"))
}

/// What a granted claim stores, from the time to live on.
pub(super) fn claim_tail(wish: &ClaimRequest) -> StoreResult<Vec<u8>> {
    Tail {
        ttl_ms: wish.lifetimes.unknown_ms.max(wish.lifetimes.done_ms),
        owner: &wish.owner,
        constant: Constant {
            tool: Cow::Borrowed(&wish.tool),
            idempotency_key: Cow::Borrowed(&wish.idempotency_key),
            request: Cow::Borrowed(&wish.request),
            content: wish.content.as_ref().map(|lookup| lookup.key),
        },
    }
    .pack()
}

/// What stands in front of the tail of a record in flight.
pub(super) type ClaimHead = [u8; 34];

/// The same for the first claim of a key.
pub(super) fn claim_head(flags: u8, now_ms: u64, lease_ms: u64) -> ClaimHead {
    let mut head = [0; 34];
    (head[0], head[1]) = (letter(RecordState::Inflight), flags);
    let now_ms = now_ms.min(EXACT_MAX);
    let until_ms = now_ms.saturating_add(lease_ms).min(EXACT_MAX);
    for (at, number) in [(2, 1), (10, now_ms), (18, now_ms), (26, until_ms)] {
        head[at..at + 8].copy_from_slice(&number.to_le_bytes());
    }
    head
}

/// The front of a record after its last word: what is known of it before, else what the last word says.
pub(super) fn ending_front(
    claimed: Option<ClaimHead>,
    state: RecordState,
    retriable: bool,
    now_ms: u64,
) -> ClaimHead {
    let mut front = claimed.unwrap_or([0; size_of::<ClaimHead>()]);
    (front[0], front[1]) = (letter(state), (front[1] & 1) + 2 * u8::from(retriable));
    front[2..10].copy_from_slice(&2_u64.to_le_bytes());
    let mut created = [0; 8];
    created.copy_from_slice(&front[10..18]);
    // Time does not go back for a record.
    let updated_ms = now_ms.min(EXACT_MAX).max(u64::from_le_bytes(created));
    front[18..26].copy_from_slice(&updated_ms.to_le_bytes());
    front[26..].fill(0);
    front
}

/// The member of the index for a record with this tail.
pub(super) fn member_of_tail(key: &StoredKey, tail: &[u8]) -> Vec<u8> {
    let places = tail.get(8..24).unwrap_or_default();
    [&key.as_bytes()[..], places].concat()
}

/// The letter of a state.
pub(super) fn letter(state: RecordState) -> u8 {
    match state {
        RecordState::Inflight => b'i',
        RecordState::Done => b'd',
        RecordState::Failed => b'f',
        RecordState::Cancelled => b'c',
        RecordState::Unknown => b'u',
    }
}

/// When results are compressed, and when they are too large.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sizes {
    pub(super) compress_above_bytes: usize,
    pub(super) value_bytes_max: usize,
}

/// The time to live and the body that a last word stores. A result that is too large is left out: duplicates are told
/// that the call was done and its output is not kept.
pub(super) fn ending_body(
    ttl_ms: u64,
    ending: &Ending,
    execution: &Execution,
    sizes: Sizes,
) -> StoreResult<Vec<u8>> {
    let mut body = Body {
        execution: Some(Cow::Borrowed(execution)),
        ..Body::default()
    };
    match ending {
        Ending::Done(output) => body.payload = Some(Cow::Borrowed(output)),
        Ending::Failed(error) | Ending::Unknown(error) => body.error = Some(Cow::Borrowed(error)),
        Ending::DoneWithoutOutput | Ending::Cancelled => {}
    }
    let ttl = ttl_ms.to_le_bytes();
    let packed = pack_body(&ttl, &body, sizes)?;
    if packed.len() <= sizes.value_bytes_max || body.payload.is_none() {
        return Ok(packed);
    }
    body.payload = None;
    pack_body(&ttl, &body, sizes)
}

/// A body behind what has to stand in front of it.
fn pack_body(front: &[u8], body: &Body<'_>, sizes: Sizes) -> StoreResult<Vec<u8>> {
    let mut packed = front.to_vec();
    packed.push(b'j');
    serde_json::to_writer(&mut packed, body).map_err(|error| unwritable(&error))?;
    if packed.len() <= sizes.compress_above_bytes {
        return Ok(packed);
    }
    let mut small = front.to_vec();
    small.push(b'z');
    let json = &packed[front.len() + 1..];
    small.extend_from_slice(&lz4_flex::block::compress_prepend_size(json));
    Ok(if small.len() < packed.len() {
        small
    } else {
        packed
    })
}

/// A whole record, for one that comes from another store.
pub(super) fn pack(record: &DedupeRecord, sizes: Sizes) -> StoreResult<Vec<u8>> {
    let retriable = record
        .error
        .as_ref()
        .is_some_and(|error| error.should_retriable);
    let mut packed = vec![
        letter(record.state),
        u8::from(record.repeat_safe) + 2 * u8::from(retriable || record.held),
    ];
    for number in [
        record.version,
        record.created_at_ms,
        record.updated_at_ms,
        record.lock_until_ms.unwrap_or(0),
    ] {
        packed.extend_from_slice(&number.min(EXACT_MAX).to_le_bytes());
    }
    let tail = Tail {
        ttl_ms: record.ttl_ms,
        owner: &record.owner,
        constant: Constant {
            tool: Cow::Borrowed(&record.tool),
            idempotency_key: Cow::Borrowed(&record.idempotency_key),
            request: Cow::Borrowed(&record.request),
            content: record.content_key,
        },
    };
    packed.extend_from_slice(&tail.pack()?);
    if record.state != RecordState::Inflight {
        let body = Body {
            execution: record.execution.as_ref().map(Cow::Borrowed),
            payload: record.payload.as_ref().map(Cow::Borrowed),
            error: record.error.as_ref().map(Cow::Borrowed),
        };
        packed.extend_from_slice(&pack_body(&[], &body, sizes)?);
    }
    Ok(packed)
}

/// A record as a server keeps it.
pub(super) fn unpack(key: StoredKey, packed: &[u8]) -> StoreResult<DedupeRecord> {
    let wrong = |what: &str| {
        StoreError::Unavailable(format!(
            "the record {} can not be read ({what}): clear it, or use the Holdfast that wrote it",
            key.fingerprint()
        ))
    };
    let mut reader = Reader { rest: packed };
    let fixed = reader.take(FIXED_BYTES).ok_or_else(|| wrong("cut off"))?;
    let number = |index: usize| {
        let at = 2 + 8 * index;
        u64::from_le_bytes(fixed[at..at + 8].try_into().unwrap_or_default())
    };
    let state = match fixed[0] {
        b'i' => RecordState::Inflight,
        b'd' => RecordState::Done,
        b'f' => RecordState::Failed,
        b'c' => RecordState::Cancelled,
        b'u' => RecordState::Unknown,
        _ => return Err(wrong("no known state")),
    };
    let owner = reader
        .short()
        .and_then(|owner| std::str::from_utf8(owner).ok());
    let owner = owner.ok_or_else(|| wrong("its owner"))?.into();
    reader.short().ok_or_else(|| wrong("its digest"))?;
    let constant = reader.long().ok_or_else(|| wrong("its request"))?;
    let constant: Constant<'_> =
        serde_json::from_slice(constant).map_err(|error| wrong(&error.to_string()))?;
    let request = constant.request.into_owned();
    let body = unpack_body(reader.rest, &request.request_id).map_err(|error| wrong(&error))?;
    let (updated_at_ms, lock_ms, ttl_ms) = (number(2), number(3), number(4));
    Ok(DedupeRecord {
        key,
        tool: constant.tool.into(),
        idempotency_key: Cow::Owned(constant.idempotency_key.into_owned()),
        state,
        created_at_ms: number(1),
        updated_at_ms,
        expires_at_ms: updated_at_ms.saturating_add(ttl_ms),
        ttl_ms,
        request: Arc::new(request),
        execution: body.execution.map(Cow::into_owned),
        payload: body.payload.map(Cow::into_owned),
        error: body.error.map(Cow::into_owned),
        lock_until_ms: (state == RecordState::Inflight).then_some(lock_ms),
        version: number(0),
        owner,
        content_key: constant.content,
        repeat_safe: fixed[1] & 1 == 1,
        held: state == RecordState::Inflight && fixed[1] & 2 == 2,
    })
}

/// What the place of a record tells that can not be unpacked.
pub(super) fn unread(key: StoredKey, packed: &[u8], why: &StoreError) -> UnreadRecord {
    let updated = packed.get(18..26).and_then(|bytes| bytes.try_into().ok());
    UnreadRecord {
        key,
        state: packed
            .first()
            .map_or('?', |state| char::from(*state))
            .to_string(),
        tool: String::new(),
        session: String::new(),
        updated_at_ms: updated.map_or(0, u64::from_le_bytes),
        expires_at_ms: 0,
        why: why.to_string(),
    }
}

fn unpack_body(packed: &[u8], request_id: &str) -> Result<Body<'static>, String> {
    let json = match packed.split_first() {
        None => return Ok(Body::default()),
        Some((b'L', _)) => {
            return Ok(Body {
                error: Some(Cow::Owned(transition::lost(request_id))),
                ..Body::default()
            });
        }
        Some((b'j', json)) => Cow::Borrowed(json),
        Some((b'z', packed)) => {
            let (length, packed) =
                lz4_flex::block::uncompressed_size(packed).map_err(|error| error.to_string())?;
            if length > UNPACKED_BYTES_MAX {
                return Err("it unpacks to too much".to_owned());
            }
            Cow::Owned(
                lz4_flex::block::decompress(packed, length).map_err(|error| error.to_string())?,
            )
        }
        Some(_) => return Err("its body is of no known kind".to_owned()),
    };
    let mut deserializer = serde_json::Deserializer::from_slice(&json);
    // As in the embedded store: what was written must be readable, however deep.
    deserializer.disable_recursion_limit();
    Body::deserialize(&mut deserializer).map_err(|error| error.to_string())
}

struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(taken)
    }

    fn short(&mut self) -> Option<&'a [u8]> {
        let length = u16::from_le_bytes(self.take(2)?.try_into().ok()?);
        self.take(usize::from(length))
    }

    fn long(&mut self) -> Option<&'a [u8]> {
        let length = u32::from_le_bytes(self.take(4)?.try_into().ok()?);
        self.take(usize::try_from(length).ok()?)
    }
}

#[cfg(test)]
#[path = "layout_tests.rs"]
mod tests;
