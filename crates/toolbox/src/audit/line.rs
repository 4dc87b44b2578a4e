//! One line.

use holdfast_reliability::canonical::{CanonicalOptions, Digest, write_canonical};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// Length of a line; of a longer one the largest fields are left out, and their digests said.
pub const AUDIT_LINE_BYTES_MAX: usize = 64 * 1024;
/// A field that is no longer than this is not worth leaving out: what would stand there is as long.
const LEFT_OUT_BYTES: usize = 128;
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
        // The largest first, and no more than has to go: who, when, which call and its digest stay.
        while line.text().len() > AUDIT_LINE_BYTES_MAX {
            if !line.leave_out_the_largest() {
                break;
            }
            line.hash = line.right_hash();
        }
        line
    }

    /// Puts the size and the digest of the largest field in its place; says whether there is one
    /// that is larger than that.
    fn leave_out_the_largest(&mut self) -> bool {
        let sizes = self.fields.iter();
        let sizes = sizes.map(|(name, value)| (value.to_string().len(), name.clone()));
        let Some((bytes, name)) = sizes.max().filter(|(bytes, _)| *bytes > LEFT_OUT_BYTES) else {
            return false;
        };
        if let Some(value) = self.fields.get_mut(&name) {
            let digest = Digest::of(value.to_string().as_bytes()).to_string();
            *value = json!({"leftOut": {"bytes": bytes, "sha256": digest}});
        }
        true
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
