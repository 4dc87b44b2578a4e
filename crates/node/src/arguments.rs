//! A call's arguments, put together from what crosses from JavaScript.
//!
//! Inside JSON a long text is escaped on one side and read character by character on the other. So long ones
//! cross by themselves, and in the JSON a NUL and a number stand for each. They cross as bytes, in memory that
//! JavaScript uses again and again: a string would be measured, and then copied into memory that is new and
//! cleared first.

use std::borrow::Cow;
use std::sync::atomic::{AtomicUsize, Ordering};

use napi::Result;
use serde_json::Value;

use crate::safely::failed;

/// What the arguments of calls under way may hold together; of more the log only says how long they are.
const KEPT_BYTES_MAX: usize = 16 * 1024 * 1024;
/// What they hold now: V8 does not know of this memory, and would let it pile up.
static KEPT_BYTES: AtomicUsize = AtomicUsize::new(0);

/// What begins a text that stands for another one. A text of the arguments that begins so crosses by itself.
const APART: char = '\0';

/// Arguments that crossed as one JSON text; what is no JSON counts as a string.
pub(crate) fn whole(json: &str) -> Value {
    serde_json::from_str(json).unwrap_or_else(|_| Value::String(json.to_owned()))
}

/// Arguments of which some texts crossed by themselves.
pub(crate) fn with_texts(json: &str, texts: Vec<String>) -> Value {
    if texts.is_empty() {
        return whole(json);
    }
    match serde_json::from_str(json) {
        Ok(mut value) => {
            put_back(&mut value, texts);
            value
        }
        // What can not be read still differs wherever one of its texts does.
        Err(_) => std::iter::once(json.to_owned()).chain(texts).collect(),
    }
}

/// Puts every text into its place. `serde_json` reads no value that is too deep for this.
fn put_back(value: &mut Value, mut texts: Vec<String>) {
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        match value {
            Value::String(text) => {
                let place = text.strip_prefix(APART).and_then(|at| at.parse().ok());
                if let Some(apart) = place.and_then(|at: usize| texts.get_mut(at)) {
                    *text = std::mem::take(apart);
                }
            }
            Value::Array(items) => open.extend(items),
            Value::Object(members) => open.extend(members.values_mut()),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

/// Arguments that wait for the end of their call.
pub(crate) struct KeptArguments {
    /// Without the value where there was no room.
    value: Option<Value>,
    bytes: usize,
}

impl KeptArguments {
    /// Keeps arguments whose texts have about `bytes`.
    pub(crate) fn of(value: Value, bytes: usize) -> Self {
        let held = KEPT_BYTES.fetch_add(bytes, Ordering::Relaxed);
        let fits = held.saturating_add(bytes) <= KEPT_BYTES_MAX;
        if !fits {
            KEPT_BYTES.fetch_sub(bytes, Ordering::Relaxed);
        }
        Self {
            value: fits.then_some(value),
            bytes,
        }
    }

    /// What they hold.
    pub(crate) fn bytes(&self) -> usize {
        if self.value.is_some() { self.bytes } else { 0 }
    }

    /// The arguments, or what is known of them.
    pub(crate) fn into_value(mut self) -> Value {
        self.take()
            .unwrap_or_else(|| Value::String(format!("({} bytes, not kept)", self.bytes)))
    }

    fn take(&mut self) -> Option<Value> {
        let value = self.value.take();
        if value.is_some() {
            KEPT_BYTES.fetch_sub(self.bytes, Ordering::Relaxed);
        }
        value
    }
}

impl Drop for KeptArguments {
    fn drop(&mut self) {
        self.take();
    }
}

/// Texts that crossed one after the other, each up to its end.
pub(crate) fn apart(texts: &[u8], ends: &[u32]) -> Result<Vec<String>> {
    let mut start = 0;
    let text = |end: &u32| {
        let text = texts.get(start..*end as usize).ok_or_else(beyond)?;
        start = *end as usize;
        Ok(read(text).into_owned())
    };
    ends.iter().map(text).collect()
}

/// The text in the first bytes of what crossed.
pub(crate) fn first(bytes: &[u8], length: u32) -> Result<Cow<'_, str>> {
    let text = bytes.get(..length as usize).ok_or_else(beyond)?;
    Ok(read(text))
}

/// JavaScript wrote it, so it is UTF-8: asked first, because reading what may not be takes many times as long.
fn read(text: &[u8]) -> Cow<'_, str> {
    str::from_utf8(text).map_or_else(|_| String::from_utf8_lossy(text), Cow::Borrowed)
}

fn beyond() -> napi::Error {
    failed("a text ends beyond what crossed")
}
