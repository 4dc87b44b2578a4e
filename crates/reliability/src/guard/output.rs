//! Whether two results are the same result.
//!
//! Unlike an error signature this keeps plain numbers: `34 %` and then `35 %` is progress. Only what
//! changes although nothing happened is left out: times, durations, UUIDs, memory addresses, and
//! fields of a structured result that exist to hold such values. Results are compared whole.

use serde_json::{Map, Value};
use xxhash_rust::xxh3::Xxh3;

use super::digits::DigitRuns;
use super::hash::Hash64;
use super::signature::ErrorSignature;
use super::volatile::volatile_part;

/// Digest of a successful result.
///
/// Build it from what the tool returned, before any advice is appended to it.
///
/// ```
/// use holdfast_reliability::guard::OutputDigest;
/// use serde_json::json;
///
/// let first = OutputDigest::of(&json!({ "text": "done in 1.2s", "durationMs": 1200 }));
/// let again = OutputDigest::of(&json!({ "text": "done in 1.4s", "durationMs": 1389 }));
/// assert_eq!(first, again);
/// assert_ne!(OutputDigest::of_text("34 %"), OutputDigest::of_text("35 %"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OutputDigest(pub(super) Hash64);

impl OutputDigest {
    /// Digest of a structured result.
    pub fn of(output: &Value) -> Self {
        let mut hasher = Xxh3::new();
        digest_value(&mut hasher, output);
        Self(Hash64(hasher.digest()))
    }

    /// Digest of a textual result; the same as that of the text as a JSON string.
    pub fn of_text(output: &str) -> Self {
        let mut hasher = Xxh3::new();
        digest_text(&mut hasher, output);
        Self(Hash64(hasher.digest()))
    }
}

/// Digest of what a command printed that ran and returned non-zero.
///
/// It is compared twice: exactly like a success for "no progress at all", and as an error for the
/// slow net under it, so that a changing line number does not hide a loop for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ExitDigest {
    pub(super) output: OutputDigest,
    pub(super) signature: ErrorSignature,
}

impl ExitDigest {
    /// Digest of a structured result.
    pub fn of(output: &Value) -> Self {
        let signature = match output {
            Value::String(text) => ErrorSignature::of(text),
            other => ErrorSignature::of(&other.to_string()),
        };
        Self {
            output: OutputDigest::of(output),
            signature,
        }
    }

    /// Digest of a textual result.
    pub fn of_text(output: &str) -> Self {
        Self {
            output: OutputDigest::of_text(output),
            signature: ErrorSignature::of(output),
        }
    }
}

fn digest_value(hasher: &mut Xxh3, value: &Value) {
    match value {
        Value::Null => hasher.update(b"n"),
        Value::Bool(flag) => hasher.update(if *flag { b"t" } else { b"f" }),
        Value::Number(number) => {
            hasher.update(b"i");
            hasher.update(number.as_str().as_bytes());
            hasher.update(&[0]);
        }
        Value::String(text) => digest_text(hasher, text),
        Value::Array(items) => {
            hasher.update(b"[");
            for item in items {
                digest_value(hasher, item);
            }
            hasher.update(b"]");
        }
        Value::Object(map) => {
            hasher.update(b"{");
            for_each_sorted(map, |key, value| {
                if !is_volatile_key(key) {
                    hasher.update(b":");
                    hasher.update(&(key.len() as u64).to_le_bytes());
                    hasher.update(key.as_bytes());
                    digest_value(hasher, value);
                }
            });
            hasher.update(b"}");
        }
    }
}

/// Trims a key. Nearly every key starts and ends in a visible ASCII character, which is seen
/// at once; the general case has to decode characters from both ends.
fn trim_key(key: &str) -> &str {
    match key.as_bytes() {
        [first, .., last] if first.is_ascii_graphic() && last.is_ascii_graphic() => key,
        _ => key.trim(),
    }
}

/// Visits entries by trimmed key. The map is sorted already unless some crate of the build turned
/// on insertion order, or a key has stray whitespace.
fn for_each_sorted(map: &Map<String, Value>, mut visit: impl FnMut(&str, &Value)) {
    if map.keys().map(|key| trim_key(key)).is_sorted() {
        for (key, value) in map {
            visit(key, value);
        }
    } else {
        let mut entries: Vec<(&String, &Value)> = map.iter().collect();
        entries.sort_by_key(|(key, _)| (trim_key(key), key.len()));
        for (key, value) in entries {
            visit(key, value);
        }
    }
}

/// Hashes `text` in spans between volatile parts. Equal texts have equal spans, so the length
/// that closes each span keeps neighbouring strings apart without another pass.
fn digest_text(hasher: &mut Xxh3, text: &str) {
    let bytes = text.as_bytes();
    let mut kept = Kept::for_hasher(hasher);
    let mut runs = DigitRuns::of(bytes);
    let mut span = 0;
    kept.push(b"s");
    // Words are judged once, at their first digit.
    while let Some(run) = runs.next() {
        if let Some(part) = volatile_part(bytes, span, &run) {
            kept.push_span(&bytes[span..part.start]);
            span = part.end;
            runs.skip_to(span);
        }
    }
    kept.push_span(&bytes[span..]);
    kept.push(b"$");
    kept.flush();
}

/// Bytes that are hashed together at least, but for the last.
const STAGED_BYTES: usize = 1024;

/// What is hashed of a text. Short pieces are put together first: the hasher takes few large ones much
/// faster than many small ones, and what comes out is the same.
struct Kept<'h> {
    hasher: &'h mut Xxh3,
    staged: [u8; STAGED_BYTES],
    len: usize,
}

impl<'h> Kept<'h> {
    fn for_hasher(hasher: &'h mut Xxh3) -> Self {
        Self {
            hasher,
            staged: [0; STAGED_BYTES],
            len: 0,
        }
    }

    fn push_span(&mut self, span: &[u8]) {
        self.push(span);
        self.push(&(span.len() as u64).to_le_bytes());
    }

    fn push(&mut self, bytes: &[u8]) {
        if bytes.len() > STAGED_BYTES - self.len {
            self.flush();
        }
        if let Some(place) = self.staged.get_mut(self.len..self.len + bytes.len()) {
            place.copy_from_slice(bytes);
            self.len += bytes.len();
        } else {
            self.hasher.update(bytes);
        }
    }

    fn flush(&mut self) {
        self.hasher.update(&self.staged[..self.len]);
        self.len = 0;
    }
}

/// Fields that tools add about the call itself rather than about its result.
fn is_volatile_key(key: &str) -> bool {
    const KEYS: [&str; 24] = [
        "completedat",
        "duration",
        "durationms",
        "elapsed",
        "elapsedms",
        "elapsedseconds",
        "endedat",
        "executiontime",
        "executiontimems",
        "finishedat",
        "latency",
        "latencyms",
        "pid",
        "requestid",
        "startedat",
        "timestamp",
        "timestampms",
        "took",
        "tookms",
        "traceid",
        "traceparent",
        "toolcallid",
        "walltime",
        "ts",
    ];
    const KEY_BYTES_MAX: usize = 24;
    // Nearly no key starts like one of these and is short enough; the rest is decided at once.
    if key.len() > KEY_BYTES_MAX {
        return false;
    }
    let mut folded = [0_u8; KEY_BYTES_MAX];
    let mut len = 0;
    for byte in key
        .bytes()
        .filter(|byte| !matches!(byte, b'_' | b'-' | b' '))
    {
        folded[len] = byte.to_ascii_lowercase();
        len += 1;
    }
    KEYS.iter()
        .any(|volatile| volatile.as_bytes() == &folded[..len])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::guard::digits::digits;

    #[track_caller]
    fn same(a: &str, b: &str) {
        assert_eq!(
            OutputDigest::of_text(a),
            OutputDigest::of_text(b),
            "{a:?} and {b:?}"
        );
    }

    #[track_caller]
    fn differ(a: &str, b: &str) {
        assert_ne!(
            OutputDigest::of_text(a),
            OutputDigest::of_text(b),
            "{a:?} and {b:?}"
        );
    }

    #[test]
    fn times_and_ids_do_not_make_a_result_new() {
        same("ok. finished in 0.34s", "ok. finished in 12.1s");
        same("took 31 ms.", "took 7 ms.");
        same("real\t0m3.210s", "real\t1m0.002s");
        same("[2026-02-13T10:00:00.123Z] up", "[2026-02-13T10:00:07Z] up");
        same("2026-02-13 10:00:00 up", "2026-02-14 11:30:59 up");
        same("now 10:04:59", "now 23:00:01");
        same(
            "id=550e8400-e29b-41d4-a716-446655440000;",
            "id=abcdefab-e29b-41d4-a716-446655440001;",
        );
        same("Foo at 0x7ffd3c10", "Foo at 0x55aa0110");
    }

    #[test]
    fn progress_and_content_do() {
        differ("34 %", "35 %");
        differ("3 failed, 10 passed", "2 failed, 11 passed");
        differ("src/main.rs:10:25: error", "src/main.rs:11:25: error");
        differ("HEAD is 3f9a1c2", "HEAD is 77ab012");
        differ("v1.2.3", "v1.2.4");
        differ("5 shards", "6 shards");
        differ("a", "a ");
        differ("1", "2");
        differ("port 8080", "port 8081");
        differ("10.0.0.1", "10.0.0.2");
    }

    #[test]
    fn structure_is_kept_apart() {
        for (a, b) in [
            (json!(["a", "b"]), json!(["ab"])),
            (json!(["a", "b"]), json!(["a", ["b"]])),
            (json!({"a": "1"}), json!({"a": 1})),
            (json!({"a": 1}), json!({"a": 2})),
            (json!({"progress": 34}), json!({"progress": 35})),
            (json!(null), json!("")),
        ] {
            assert_ne!(OutputDigest::of(&a), OutputDigest::of(&b), "{a} and {b}");
        }
        assert_eq!(
            OutputDigest::of(&json!("x 1")),
            OutputDigest::of_text("x 1")
        );
        assert_eq!(
            OutputDigest::of(&json!({"a": 1, "started_at": 5, "durationMs": 3, "pid": 9})),
            OutputDigest::of(&json!({"a": 1, "started_at": 6, "durationMs": 4, "pid": 10})),
        );
    }

    /// The digest as it is defined: the spans in one piece, found from digit to digit.
    fn plainly(text: &str) -> OutputDigest {
        let bytes = text.as_bytes();
        let (mut kept, mut span, mut at) = (b"s".to_vec(), 0, 0);
        let mut keep = |part: &[u8]| {
            kept.extend_from_slice(part);
            kept.extend_from_slice(&(part.len() as u64).to_le_bytes());
        };
        while let Some(step) = bytes[at..].iter().position(u8::is_ascii_digit) {
            let run = at + step..at + step + digits(&bytes[at + step..]);
            if let Some(part) = volatile_part(bytes, span, &run) {
                keep(&bytes[span..part.start]);
                (span, at) = (part.end, part.end);
            } else {
                at = run.end;
            }
        }
        keep(&bytes[span..]);
        kept.push(b'$');
        OutputDigest(Hash64::of(&kept))
    }

    proptest::proptest! {
        #[test]
        fn a_digest_is_that_of_its_spans(
            parts in proptest::collection::vec(
                proptest::sample::select(vec![
                    "10:04:59", "2026-02-13T10:00:00Z", "31 ms", "0x7ffd3c10", "v1.2.3", " ", "\n", "é",
                    "550e8400-e29b-41d4-a716-446655440000", "1", "12345678", "-", "a", "src/main.rs:10:25",
                    "a line without any number in it, as most lines of most results are; ",
                ]),
                0..200,
            ),
            times in 1_usize..12,
        ) {
            let text = parts.concat().repeat(times);
            proptest::prop_assert_eq!(OutputDigest::of_text(&text), plainly(&text));
        }
    }

    #[test]
    fn a_digest_is_stable_across_versions() {
        // Stored in the state of a turn: a change here is a change of the state's version.
        let text = "served 3 pages in 31 ms at 10:04:59 (0x7ffd3c10)\n".repeat(100);
        insta::assert_snapshot!(OutputDigest::of_text(&text).0, @"6d959d974d8aab6c");
    }

    #[test]
    fn a_change_at_the_very_end_of_a_long_result_counts() {
        let long = "line\n".repeat(200_000);
        differ(&format!("{long}a"), &format!("{long}b"));
    }
}
