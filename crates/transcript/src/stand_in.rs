//! What stands in for a result that was lost, and how it is known again: when the real one comes
//! after all, the real one counts.

use std::sync::LazyLock;

use memchr::memmem::Finder;
use serde_json::Value;

/// What the model reads in place of a lost result. It must not take the call for undone.
pub(crate) const LOST: &str = "[holdfast] The result of this call was lost. Whether it had an effect is not known: look before you repeat it.";

/// A result that is so many times longer than the text holds something else as well.
const ENVELOPE_FACTOR: usize = 6;

/// The text as a whole string: a result that only quotes it has escaped quotation marks around it.
static NEEDLE: LazyLock<Finder<'static>> =
    LazyLock::new(|| Finder::new(&format!("\"{LOST}\"")).into_owned());

/// Whether a result, as it stands in a transcript, is one of ours.
#[inline]
pub(crate) fn is_one(result: &[u8]) -> bool {
    (LOST.len()..LOST.len() * ENVELOPE_FACTOR).contains(&result.len())
        && NEEDLE.find(result).is_some()
}

/// The same for a result in memory: its content, or the text of its only block.
pub(crate) fn is_value(content: Option<&Value>) -> bool {
    match content {
        Some(Value::String(text)) => text == LOST,
        Some(Value::Array(blocks)) => match blocks.as_slice() {
            [block] => says_so(block),
            _ => false,
        },
        Some(object @ Value::Object(_)) => says_so(object),
        _ => false,
    }
}

fn says_so(block: &Value) -> bool {
    let keys = ["text", "stderr", "error"];
    keys.iter()
        .any(|key| block.get(key).and_then(Value::as_str) == Some(LOST))
}
