//! Calls that are made again within minutes, under a key of their own.
//!
//! A caller that tries again under a new key gets the effect a second time, and no record shows it.
//! So the contents of the last calls are remembered, as hashes.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::num::NonZeroUsize;

use lru::LruCache;
use parking_lot::Mutex;

use crate::call::Call;
use crate::canonical::Digest;

/// Contents that are remembered; beyond that the oldest are forgotten.
pub const REPEATS_REMEMBERED_MAX: usize = 4096;

/// An equal call is a repeat for this long.
pub const REPEAT_WINDOW_MS: u64 = 10 * 60 * 1000;

/// What was called last, and when.
pub(super) struct Repeats(Mutex<LruCache<u64, u64>>);

impl Default for Repeats {
    fn default() -> Self {
        let most = NonZeroUsize::new(REPEATS_REMEMBERED_MAX).unwrap_or(NonZeroUsize::MIN);
        Self(Mutex::new(LruCache::new(most)))
    }
}

impl Repeats {
    /// Whether a call that runs now repeats one of the last minutes.
    pub(super) fn is_repeat(&self, call: &Call, params: &Digest) -> bool {
        let target = &call.envelope.target;
        let mut content = DefaultHasher::new();
        (&call.envelope.tool_name, params.as_bytes()).hash(&mut content);
        (&target.session_key, &target.actor_id, &target.workspace_id).hash(&mut content);
        let now_ms = call.admitted_at_ms;
        let before = self.0.lock().put(content.finish(), now_ms);
        before.is_some_and(|at_ms| now_ms.saturating_sub(at_ms) < REPEAT_WINDOW_MS)
    }
}

/// Whether equal calls of its tool are repeats. What runs on this machine is called again as a
/// matter of course.
pub(super) fn counts(call: &Call) -> bool {
    call.policy.content_windows.is_some()
}
