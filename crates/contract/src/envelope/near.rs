//! Fields that are nearly one of ours.
//!
//! `idempotency_key` is no key: passed over in silence, it would let an effect happen twice.

/// A name this short differs from another by one letter easily, and is not taken for a slip.
const SLIP_LETTERS_MIN: usize = 6;

/// The name that belongs into the payload. Anywhere else it would protect nothing.
const KEY: &str = "idempotencyKey";

pub(super) const TOP: [&str; 10] = [
    "contractVersion",
    "requestId",
    "toolCallId",
    "toolName",
    "toolNamespace",
    "target",
    "payload",
    "transport",
    "control",
    "trace",
];
pub(super) const TARGET: [&str; 9] = [
    "agentId",
    "sessionKey",
    "actorId",
    "workspaceId",
    "correlationId",
    "tenantId",
    "runId",
    "turnId",
    "modelId",
];
pub(super) const PAYLOAD: [&str; 5] = ["version", "params", KEY, "callHints", "toolStep"];
pub(super) const CALL_HINTS: [&str; 3] = ["safetyCritical", "expectedRetrySafe", "timeoutMs"];
pub(super) const TOOL_STEP: [&str; 2] = ["iteration", "index"];
pub(super) const TRANSPORT: [&str; 3] = ["dedupeMode", "retryBudget", "circuitBreakerHint"];
pub(super) const RETRY_BUDGET: [&str; 2] = ["maxAttempts", "maxElapsedMs"];
pub(super) const CONTROL: [&str; 3] = ["deadlineAtMs", "requestTags", "fromHook"];
pub(super) const TRACE: [&str; 2] = ["traceparent", "baggage"];

/// The field that was meant by a name that is none: one of these in another spelling or with a slip,
/// or the idempotency key in a place where it counts for nothing.
///
/// ```
/// use holdfast_contract::envelope::meant;
///
/// assert_eq!(meant("session_key", &["sessionKey"]), Some("sessionKey"));
/// assert_eq!(meant("region", &["sessionKey"]), None);
/// ```
pub fn meant(name: &str, known: &[&'static str]) -> Option<&'static str> {
    let letters = letters_of(name);
    if letters == letters_of(KEY) {
        return Some("payload.idempotencyKey");
    }
    let is_near = |field: &&&'static str| {
        let own = letters_of(field);
        own == letters || (own.len() >= SLIP_LETTERS_MIN && is_one_slip(&letters, &own))
    };
    known.iter().find(is_near).copied()
}

/// A name as it sounds: without case and separators.
fn letters_of(name: &str) -> Vec<u8> {
    let letters = name.bytes().filter(u8::is_ascii_alphanumeric);
    letters.map(|letter| letter.to_ascii_lowercase()).collect()
}

/// Whether one letter is wrong, missing, too many, or two have changed places.
fn is_one_slip(a: &[u8], b: &[u8]) -> bool {
    let (short, long) = if a.len() <= b.len() { (a, b) } else { (b, a) };
    if long.len() - short.len() > 1 {
        return false;
    }
    let same = short.iter().zip(long).take_while(|(a, b)| a == b).count();
    let (short_rest, long_rest) = (&short[same..], &long[same..]);
    if short.len() < long.len() {
        return short_rest == &long_rest[1..];
    }
    match (short_rest, long_rest) {
        ([_, a @ ..], [_, b @ ..]) if a == b => true,
        ([a, b, rest @ ..], [c, d, other @ ..]) => a == d && b == c && rest == other,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_and_other_spellings_are_noticed_and_other_names_are_not() {
        for (name, expected) in [
            ("idempotency_key", Some("payload.idempotencyKey")),
            ("IdempotencyKey", Some("payload.idempotencyKey")),
            ("session_key", Some("sessionKey")),
            ("sesionKey", Some("sessionKey")),
            ("sessoinKey", Some("sessionKey")),
            ("actorID", Some("actorId")),
            ("run-id", Some("runId")),
            ("ruxId", None),
            ("region", None),
            ("factor", None),
            ("", None),
        ] {
            assert_eq!(meant(name, &TARGET), expected, "{name}");
        }
    }
}
