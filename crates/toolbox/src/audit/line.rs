//! One line.

use holdfast_reliability::canonical::{CanonicalOptions, Digest, write_canonical};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// Length of a line; fields of a longer one are left out and said to be.
pub const AUDIT_LINE_BYTES_MAX: usize = 64 * 1024;
/// What stands in the place of a hash before the first line.
pub(super) const NO_HASH: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// One line of the log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AuditLine {
    /// From 1, without gaps.
    pub seq: u64,
    /// When.
    pub at_ms: u64,
    /// What happened, for example `approval.answered`.
    pub event: String,
    /// The particulars, without secrets.
    pub fields: Map<String, Value>,
    /// The hash of the line before.
    pub prev: String,
    /// Over all of the above.
    pub hash: String,
}

impl AuditLine {
    /// The line that follows `prev`.
    pub(super) fn new(
        seq: u64,
        at_ms: u64,
        event: &str,
        fields: Map<String, Value>,
        prev: &str,
    ) -> Self {
        let mut line = Self {
            seq,
            at_ms,
            event: event.to_owned(),
            fields,
            prev: prev.to_owned(),
            hash: String::new(),
        };
        line.hash = line.right_hash();
        if line.text().len() > AUDIT_LINE_BYTES_MAX {
            let bytes = Value::Object(std::mem::take(&mut line.fields)).to_string();
            let digest = Digest::of(bytes.as_bytes()).to_string();
            let left_out = json!({"bytes": bytes.len(), "sha256": digest});
            line.fields.insert("leftOut".to_owned(), left_out);
            line.hash = line.right_hash();
        }
        line
    }

    /// The hash this line should have.
    pub(super) fn right_hash(&self) -> String {
        let whole = json!([self.seq, self.at_ms, self.event, self.fields, self.prev]);
        let mut canonical = Vec::new();
        write_canonical(&whole, &CanonicalOptions::EXACT, &mut canonical);
        Digest::of(&canonical).to_string()
    }

    /// As it stands in the file, without the end of line.
    pub(super) fn text(&self) -> String {
        // Our own types always serialise.
        serde_json::to_string(self).unwrap_or_default()
    }
}
