//! Which calls are the same call.

use serde_json::Value;

use super::answers::RecordMark;
use super::hash::{Hash64, Hash128};
use super::rounds::Sent;
use super::text::NAME_CHARS_MAX;
use crate::arguments::CanonicalArguments;
use crate::canonical::{CanonicalOptions, Empty, FieldNames, write_canonical};
use crate::scratch::Buffer;

/// A call as the guard compares it: tool name and arguments, canonically.
///
/// ```
/// use holdfast_reliability::guard::CallIdentity;
/// use serde_json::{Value, json};
///
/// let plain = CallIdentity::of("read", &json!({}));
/// assert!(plain.same_call(&CallIdentity::of(" read", &Value::Null)));
/// assert!(plain.same_call(&CallIdentity::of("read", &json!({ "path": null }))));
/// assert!(!plain.same_call(&CallIdentity::of("read", &json!({ "path": "" }))));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct CallIdentity<'a> {
    name: &'a str,
    pub(super) tool: Hash64,
    pub(super) call: Hash128,
    /// How this call was spelled; equal for two calls whose JSON is equal. A model that was told
    /// "`limit` must not be null" and then leaves `limit` out has made a different attempt, and may
    /// not be refused for the old one.
    pub(super) form: Hash64,
    pub(super) sent: Sent,
    /// The record that would answer for it, where its id may come again for another call.
    pub(super) record: Option<RecordMark>,
}

impl<'a> CallIdentity<'a> {
    /// The identity of calling `tool_name` with `args`. Absent arguments are [`Value::Null`].
    ///
    /// The name is trimmed and compared without ASCII case.
    pub fn of(tool_name: &'a str, args: &Value) -> Self {
        let canonical = CanonicalArguments::of(args, &FieldNames::EMPTY);
        Self::with_canonical(tool_name, args, &canonical)
    }

    /// As [`Self::of`], for arguments whose canonical form is known.
    pub(crate) fn with_canonical(
        tool_name: &'a str,
        args: &Value,
        canonical: &CanonicalArguments,
    ) -> Self {
        let name = tool_name.trim();
        let tool = tool_hash(name);
        let as_written = name.len() == tool_name.len() && !has_ascii_uppercase(name);
        let (call, args_form) = match canonical.whole() {
            _ if is_nothing(args) => (Hash128::of(b"{}", tool), Hash64(0)),
            Some(form) => (Hash128::of(form, tool), Hash64(0)),
            // What was left out is remembered by the arguments as they were written.
            None => (Hash128::of(&without_empty(args), tool), spelling(args)),
        };
        let form = if as_written {
            args_form
        } else {
            Hash64(args_form.0 ^ Hash64::of(tool_name.as_bytes()).0)
        };
        Self {
            name,
            tool,
            call,
            form,
            sent: Sent::default(),
            record: None,
        }
    }

    /// The same call, with the record that it has made.
    #[must_use]
    pub(super) fn recorded(mut self, record: Option<RecordMark>) -> Self {
        self.record = record;
        self
    }

    /// The same call, with what its host knows of the response it came in.
    #[must_use]
    pub fn sent(mut self, sent: Sent) -> Self {
        self.sent = sent;
        self
    }

    /// Whether both are the same tool with the same arguments.
    pub fn same_call(&self, other: &CallIdentity<'_>) -> bool {
        self.call == other.call
    }

    /// The tool's name as the model wrote it, trimmed.
    pub fn name(&self) -> &'a str {
        self.name
    }

    /// The stored form of the identity, to join records of one call in logs.
    pub fn fingerprint(&self) -> String {
        self.call.to_string()
    }
}

/// An identity with a name of its own, for hosts that hear of a call more than once: its arguments are
/// read and compared once.
///
/// ```
/// use holdfast_reliability::guard::{CallIdentity, KeptIdentity};
/// use serde_json::json;
///
/// let kept = KeptIdentity::from(CallIdentity::of("read", &json!({"path": "a"})));
/// assert!(kept.identity().same_call(&CallIdentity::of("read", &json!({"path": "a"}))));
/// assert_eq!(kept.identity().name(), "read");
/// ```
#[derive(Clone, Debug)]
pub struct KeptIdentity {
    name: String,
    tool: Hash64,
    call: Hash128,
    form: Hash64,
    sent: Sent,
}

impl KeptIdentity {
    /// What its host knows of the response it came in.
    pub fn set_sent(&mut self, sent: Sent) {
        self.sent = sent;
    }

    /// The identity.
    pub fn identity(&self) -> CallIdentity<'_> {
        CallIdentity {
            name: &self.name,
            tool: self.tool,
            call: self.call,
            form: self.form,
            sent: self.sent,
            record: None,
        }
    }
}

impl From<CallIdentity<'_>> for KeptIdentity {
    fn from(identity: CallIdentity<'_>) -> Self {
        Self {
            // All that a text shows of it: a name that a model invented may be of any length.
            name: identity.name.chars().take(NAME_CHARS_MAX).collect(),
            tool: identity.tool,
            call: identity.call,
            form: identity.form,
            sent: identity.sent,
        }
    }
}

fn has_ascii_uppercase(name: &str) -> bool {
    name.bytes().any(|byte| byte.is_ascii_uppercase())
}

/// Spelled in lower case, on the way: names are short.
fn tool_hash(name: &str) -> Hash64 {
    if has_ascii_uppercase(name) {
        Hash64::of(name.to_ascii_lowercase().as_bytes())
    } else {
        Hash64::of(name.as_bytes())
    }
}

/// The arguments as the guard compares them: key order, nulls, empty objects, stray whitespace in
/// keys and the spelling of a number hide nothing.
fn without_empty(args: &Value) -> Buffer {
    const GUARD: CanonicalOptions<'static> = CanonicalOptions {
        empty: Empty::Drop,
        ..CanonicalOptions::EXACT
    };
    let mut form = Buffer::borrow();
    write_canonical(args, &GUARD, &mut form);
    form
}

/// The arguments as they were written, but for the order of keys.
fn spelling(args: &Value) -> Hash64 {
    // Writing a value can not fail: its keys are strings.
    Hash64::of(&serde_json::to_vec(args).unwrap_or_default())
}

/// `{}`, null, absent and an empty arguments string are one and the same call without arguments, in
/// every host, so they do not even differ in form.
fn is_nothing(args: &Value) -> bool {
    match args {
        Value::Null => true,
        Value::Object(map) => map.is_empty(),
        Value::String(text) => text.trim().is_empty(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parse(text: &str) -> Value {
        serde_json::from_str(text).unwrap()
    }

    fn same(a: &str, b: &str) -> bool {
        CallIdentity::of("t", &parse(a)).same_call(&CallIdentity::of("t", &parse(b)))
    }

    #[test]
    fn spelling_hides_nothing() {
        for (a, b) in [
            ("{}", "null"),
            ("{}", "\"\""),
            ("{}", r#"{"a":null}"#),
            ("{}", r#"{"a":{"b":null}}"#),
            (r#"{"a":1,"b":2}"#, r#"{"b":2,"a":1}"#),
            (
                r#"{"a":{"x":1,"y":[{"p":1,"q":2}]}}"#,
                r#"{"a":{"y":[{"q":2,"p":1}],"x":1}}"#,
            ),
            (r#"{"a":1,"o":{}}"#, r#"{"a":1}"#),
            (r#"{" a ":1,"b":2}"#, r#"{"a":1,"b":2}"#),
            (r#"{"b ":1," a":2}"#, r#"{"a":2,"b":1}"#),
            (r#"{"n":1.0}"#, r#"{"n":1}"#),
            (r#"{"n":1e2}"#, r#"{"n":100}"#),
            (r#"{"n":-0.0}"#, r#"{"n":0}"#),
            (r#"{"n":1.50}"#, r#"{"n":1.5}"#),
        ] {
            assert!(same(a, b), "{a} and {b}");
        }
    }

    #[test]
    fn meaning_is_kept() {
        for (a, b) in [
            ("{}", "[]"),
            (r#"{"a":""}"#, "{}"),
            (r#"{"a":[]}"#, "{}"),
            (r#"{"a":"1"}"#, r#"{"a":1}"#),
            (r#"{"a":" x"}"#, r#"{"a":"x"}"#),
            (r#"{"a":[null,1]}"#, r#"{"a":[1]}"#),
            (r#"{"a":[null]}"#, r#"{"a":[{}]}"#),
            (r#"{"a":["b","c"]}"#, r#"{"a":["c","b"]}"#),
            (r#"{"a":{"b":1},"c":2}"#, r#"{"a":{"b":1,"c":2}}"#),
            (r#"{"id":9007199254740993}"#, r#"{"id":9007199254740992}"#),
            (
                r#"{"id":18446744073709551616}"#,
                r#"{"id":18446744073709551617}"#,
            ),
            (
                r#"{"n":0.1000000000000000001}"#,
                r#"{"n":0.1000000000000000002}"#,
            ),
            (r#"{"a":true}"#, r#"{"a":"true"}"#),
        ] {
            assert!(!same(a, b), "{a} and {b}");
        }
        let args = json!({"a": 1});
        assert!(!CallIdentity::of("x", &args).same_call(&CallIdentity::of("y", &args)));
    }

    #[test]
    fn a_corrected_spelling_is_another_form_of_the_same_call() {
        for (wrong, right) in [
            (r#"{"a":1,"limit":null}"#, r#"{"a":1}"#),
            (r#"{"a ":1}"#, r#"{"a":1}"#),
            (r#"{"a":1.0}"#, r#"{"a":1}"#),
            (r#"{"a":1,"o":{}}"#, r#"{"a":1,"o":null}"#),
        ] {
            let (wrong, right) = (parse(wrong), parse(right));
            let (wrong, right) = (CallIdentity::of("t", &wrong), CallIdentity::of("t", &right));
            assert!(wrong.same_call(&right));
            assert_ne!(wrong.form, right.form);
        }
        let args = json!({});
        let (odd, plain) = (
            CallIdentity::of("Read ", &args),
            CallIdentity::of("read", &args),
        );
        assert!(odd.same_call(&plain));
        assert_ne!(odd.form, plain.form);
        assert_eq!(plain.form, CallIdentity::of("read", &Value::Null).form);
    }

    #[test]
    fn the_identity_is_stable_across_versions() {
        // Stored in the state of a turn: a change here is a change of the state's version.
        let args = json!({"path": "src/lib.rs", "range": [1, 2.5, true, null]});
        insta::assert_snapshot!(CallIdentity::of("Read", &args).fingerprint(), @"b68864d70ac53146674b08b31cddb332");
    }
}
