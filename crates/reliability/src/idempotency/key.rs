//! Which calls are the same call: how an idempotency key becomes the key of a record.
//!
//! A key comes from the caller, else from a hook, else it is computed. Whatever its source, it is
//! hashed together with everything it must not collide across. Every part goes in with its length
//! in front and a mark for absent ones, so that no two lists of parts give the same bytes, and the
//! source is a part too: a caller can not name a computed key.
//!
//! **A computed key identifies an intent, not a content.** Reading an edited file again is the same
//! content and a new intent; answering it from a record would be wrong. So a computed key holds the
//! call's identity, which deliveries of one intent repeat and new intents do not. The [content
//! key](content_key) leaves it out: for external effects that must not happen twice it finds the
//! call that a model repeats under a new id.

use std::fmt;
use std::str::FromStr;

pub use holdfast_contract::ToolStep;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use crate::canonical::{Digest, ParseDigestError, write_hex};
use crate::scratch::Buffer;

/// Goes into every key first. A new version is a new keyspace: change it with the layout below.
const DOMAIN: &[u8] = b"holdfast/idempotency-key/3";

/// How much of a key a fingerprint shows: enough to tell records apart, too little to be the key.
const FINGERPRINT_BYTES: usize = 6;

/// The last bytes of a key say which family it is of, see [`StoredKey::family`].
const FAMILY_AT: usize = Digest::BYTES - 2;

/// Whether a tool changes anything when it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Running it twice is the same as running it once.
    ReadOnly,
    /// It may have an effect.
    Mutating,
}

/// How far a key reaches. `Global` can not be built for a tool that changes anything.
///
/// ```
/// use holdfast_reliability::idempotency::key::{Access, GlobalScopeError, Scope};
///
/// assert!(Scope::global(Access::ReadOnly).is_ok());
/// assert_eq!(Scope::global(Access::Mutating), Err(GlobalScopeError));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Scope(Reach);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
enum Reach {
    #[default]
    Session,
    Global,
    Shadow,
}

impl Scope {
    /// The same key in another session, or from another actor, is another key. The default.
    pub const SESSION: Self = Self(Reach::Session);

    /// Like a session's key, in the keyspace of calls that are only watched.
    pub const SHADOW: Self = Self(Reach::Shadow);

    /// The key is shared by all sessions and actors of a tenant and workspace.
    ///
    /// Only for read-only tools: one session must never get the answer to another one's effect.
    pub const fn global(access: Access) -> Result<Self, GlobalScopeError> {
        match access {
            Access::ReadOnly => Ok(Self(Reach::Global)),
            Access::Mutating => Err(GlobalScopeError),
        }
    }

    /// Whether sessions and actors share keys.
    pub const fn is_global(self) -> bool {
        matches!(self.0, Reach::Global)
    }
}

/// Global scope was asked for on behalf of a tool that is not read-only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("global idempotency scope is only for read-only tools")]
pub struct GlobalScopeError;

/// Everything a key must not collide across. Absent is not the same as empty.
#[derive(Debug, Clone, Copy)]
pub struct KeyParts<'a> {
    /// How far the key reaches.
    pub scope: Scope,
    /// `target.tenantId`.
    pub tenant: Option<&'a str>,
    /// `target.workspaceId`.
    pub workspace: Option<&'a str>,
    /// `toolNamespace`.
    pub namespace: &'a str,
    /// `toolName`.
    pub tool: &'a str,
    /// `target.sessionKey`; left out of a global key.
    pub session: &'a str,
    /// `target.actorId`; left out of a global key.
    pub actor: &'a str,
}

/// What stays the same over all deliveries of one intent, and differs between intents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Identity<'a> {
    /// A place in a run or a turn: a resumed run comes by here again.
    Step(Origin<'a>, Place<'a>),
    /// One request: all that is known is that a transport repeats its id.
    Request(&'a str),
}

/// What a step is counted in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Origin<'a> {
    /// `target.runId`.
    Run(&'a str),
    /// `target.turnId`.
    Turn(&'a str),
}

/// Which call of a run or turn it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Place<'a> {
    /// `payload.toolStep`.
    Step(ToolStep),
    /// `toolCallId`.
    ToolCall(&'a str),
}

/// Picks the identity of a call: run (else turn) plus step (else `toolCallId`), else `requestId`.
///
/// A bare `toolCallId` is none, since servers reuse `call_0` in every answer. An empty id names
/// nothing and counts as absent.
///
/// ```
/// use holdfast_reliability::idempotency::key::{Identity, Origin, Place, identity_of};
///
/// let call = identity_of(Some("run-1"), None, None, Some("call_0"), "req-1");
/// assert_eq!(call, Identity::Step(Origin::Run("run-1"), Place::ToolCall("call_0")));
/// let bare = identity_of(None, None, None, Some("call_0"), "req-1");
/// assert_eq!(bare, Identity::Request("req-1"));
/// ```
pub fn identity_of<'a>(
    run: Option<&'a str>,
    turn: Option<&'a str>,
    step: Option<ToolStep>,
    tool_call_id: Option<&'a str>,
    request_id: &'a str,
) -> Identity<'a> {
    let named = |id: Option<&'a str>| id.filter(|id| !id.is_empty());
    let origin = named(run)
        .map(Origin::Run)
        .or_else(|| named(turn).map(Origin::Turn));
    let place = step
        .map(Place::Step)
        .or_else(|| named(tool_call_id).map(Place::ToolCall));
    match (origin, place) {
        (Some(origin), Some(place)) => Identity::Step(origin, place),
        _ => Identity::Request(request_id),
    }
}

/// Where the key of a call comes from. The sources never collide with each other.
#[derive(Debug, Clone, Copy)]
pub enum KeySource<'a> {
    /// `payload.idempotencyKey`.
    Caller(&'a str),
    /// A key that an admit hook supplied.
    Hook(&'a str),
    /// Nobody gave one.
    Computed {
        /// Which intent it is.
        identity: Identity<'a>,
        /// The digest of the canonical form of `payload.params`, under the tool's options. It is part of
        /// the key of a step, since servers reuse the ids of calls, and not of a request's.
        params: Digest,
    },
}

impl<'a> KeySource<'a> {
    /// Applies the precedence: the caller's key, else the hook's, else a computed one.
    pub fn choose(
        caller: Option<&'a str>,
        hook: Option<&'a str>,
        identity: Identity<'a>,
        params: Digest,
    ) -> Self {
        match (caller, hook) {
            (Some(key), _) => Self::Caller(key),
            (None, Some(key)) => Self::Hook(key),
            (None, None) => Self::Computed { identity, params },
        }
    }
}

/// The key of a record in a store: 64 lower-case hexadecimal digits, of which nothing of the call
/// can be read back.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct StoredKey(Digest);

impl StoredKey {
    /// Takes the bytes of a key read back from a store.
    pub const fn from_bytes(bytes: [u8; Digest::BYTES]) -> Self {
        Self(Digest::from_bytes(bytes))
    }

    /// The bytes of the key.
    pub const fn as_bytes(&self) -> &[u8; Digest::BYTES] {
        self.0.as_bytes()
    }

    /// What an intent's key and the key of its content have in common: both belong to the same
    /// tool, session and actor. A store that spreads its records over several machines keeps a
    /// family together, so that one atomic step can look at both.
    pub const fn family(&self) -> u16 {
        let bytes = self.as_bytes();
        u16::from_be_bytes([bytes[FAMILY_AT], bytes[FAMILY_AT + 1]])
    }

    /// The first 12 digits, for logs and answers: they tell records apart, and are not the key.
    ///
    /// ```
    /// # use holdfast_reliability::idempotency::key::{KeyParts, KeySource, Scope, stored_key};
    /// # let parts = KeyParts { scope: Scope::SESSION, tenant: None, workspace: None,
    /// #     namespace: "n", tool: "t", session: "s", actor: "a" };
    /// let key = stored_key(&parts, &KeySource::Caller("order-17"));
    /// assert_eq!(key.fingerprint().to_string(), key.to_string()[..12]);
    /// ```
    pub fn fingerprint(&self) -> KeyFingerprint {
        let mut bytes = [0; FINGERPRINT_BYTES];
        bytes.copy_from_slice(&self.as_bytes()[..FINGERPRINT_BYTES]);
        KeyFingerprint(bytes)
    }
}

impl fmt::Display for StoredKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Shows the fingerprint only: debug output ends up in logs.
impl fmt::Debug for StoredKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StoredKey({}…)", self.fingerprint())
    }
}

impl FromStr for StoredKey {
    type Err = ParseDigestError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}

/// The part of a key that may be shown.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct KeyFingerprint([u8; FINGERPRINT_BYTES]);

impl fmt::Display for KeyFingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(&self.0, f)
    }
}

impl fmt::Debug for KeyFingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyFingerprint({self})")
    }
}

impl Serialize for KeyFingerprint {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The key of the record of a call.
pub fn stored_key(parts: &KeyParts<'_>, source: &KeySource<'_>) -> StoredKey {
    let mut hash = PartHash::of(parts);
    match *source {
        KeySource::Caller(key) => hash.kind(b'c').part(key.as_bytes()),
        KeySource::Hook(key) => hash.kind(b'h').part(key.as_bytes()),
        // The digest stands for the arguments, so that they are hashed once however many keys
        // are made of them.
        KeySource::Computed { identity, params } => {
            let computed = hash.kind(b'm').identity(identity);
            match identity {
                Identity::Step(..) => computed.part(params.as_bytes()),
                // The arguments are compared with those on record: a request has one content.
                Identity::Request(_) => computed,
            }
        }
    };
    hash.finish()
}

/// The key of the content of a call, whichever intent it belongs to.
///
/// Only for the second look-up of external tools that are not idempotent; never the key of a record.
pub fn content_key(parts: &KeyParts<'_>, params: Digest) -> StoredKey {
    let mut hash = PartHash::of(parts);
    hash.kind(b'n').part(params.as_bytes());
    hash.finish()
}

/// The length of an absent part. No part is this long, so absent differs from empty.
const ABSENT: u32 = u32::MAX;

/// Hashes a list of parts so that no two lists look alike. The parts are gathered first, since
/// they are many and short, and a hash is fastest over one piece; and they are packed, since a hash
/// costs by the block of 64 bytes.
struct PartHash {
    bytes: Buffer,
    family: u16,
}

impl PartHash {
    fn of(parts: &KeyParts<'_>) -> Self {
        let mut hash = Self {
            bytes: Buffer::borrow(),
            family: 0,
        };
        hash.part(DOMAIN);
        let (scope, session, actor) = match parts.scope.0 {
            Reach::Session => (b's', Some(parts.session), Some(parts.actor)),
            Reach::Shadow => (b'w', Some(parts.session), Some(parts.actor)),
            Reach::Global => (b'g', None, None),
        };
        hash.kind(scope)
            .optional(parts.tenant)
            .optional(parts.workspace)
            .part(parts.namespace.as_bytes())
            .part(parts.tool.as_bytes())
            .optional(session)
            .optional(actor);
        // Only spreads records: which family a key is of is no secret and proves nothing.
        let [high, low, ..] = xxh3_64(&hash.bytes).to_be_bytes();
        hash.family = u16::from_be_bytes([high, low]);
        hash
    }

    /// Says which parts follow.
    fn kind(&mut self, kind: u8) -> &mut Self {
        self.bytes.push(kind);
        self
    }

    fn identity(&mut self, identity: Identity<'_>) -> &mut Self {
        let (origin, place) = match identity {
            Identity::Request(id) => return self.kind(b'q').part(id.as_bytes()),
            Identity::Step(origin, place) => (origin, place),
        };
        match origin {
            Origin::Run(id) => self.kind(b'r').part(id.as_bytes()),
            Origin::Turn(id) => self.kind(b't').part(id.as_bytes()),
        };
        match place {
            Place::Step(ToolStep { iteration, index }) => self
                .kind(b'p')
                .part(&iteration.to_le_bytes())
                .part(&index.to_le_bytes()),
            Place::ToolCall(id) => self.kind(b'i').part(id.as_bytes()),
        }
    }

    fn optional(&mut self, part: Option<&str>) -> &mut Self {
        if let Some(part) = part {
            self.part(part.as_bytes())
        } else {
            self.bytes.extend_from_slice(&ABSENT.to_le_bytes());
            self
        }
    }

    fn part(&mut self, part: &[u8]) -> &mut Self {
        let length = u32::try_from(part.len()).unwrap_or(ABSENT - 1);
        self.bytes.extend_from_slice(&length.to_le_bytes());
        self.bytes.extend_from_slice(part);
        self
    }

    fn finish(self) -> StoredKey {
        let mut bytes = *Digest::of(&self.bytes).as_bytes();
        bytes[FAMILY_AT..].copy_from_slice(&self.family.to_be_bytes());
        StoredKey::from_bytes(bytes)
    }
}

#[cfg(test)]
mod tests;
