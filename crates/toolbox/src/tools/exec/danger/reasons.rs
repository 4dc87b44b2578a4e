//! What a person is told, and what a later command has to share for the same answer to cover it.

use holdfast_contract::Reason;
use holdfast_reliability::canonical::Digest;
use serde_json::json;

use super::{Binding, Judge, Judged, REASONS_MAX, SUBJECT_CHARS_MAX};
use crate::tools::exec::confined::LETS_OUT;
use crate::tools::text::one_line;

impl Judge<'_> {
    pub(super) fn raise(&mut self, code: &str, subject: &str, what: &str) {
        if self.found.len() > REASONS_MAX || !self.may_raise(subject) {
            return;
        }
        if self.found.len() == REASONS_MAX {
            // Covers what is left out, for this very command only.
            self.binding = Binding::ToAll;
            self.push("unreadable_command", "…", "and more of the kind");
            return;
        }
        self.push(code, subject, what);
    }

    pub(super) fn push(&mut self, code: &str, subject: &str, what: &str) {
        let is_new = self.said.insert((code.to_owned(), what.to_owned()));
        if self.ways > 0 && !is_new {
            // Another way of the same command gave the same reason.
            return;
        }
        let mut bound = json!([subject, self.places]);
        // Approved, these let the whole command line out: nothing else may ride along later.
        let lets_out = LETS_OUT.contains(&code);
        if lets_out || self.binding == Binding::ToAll || self.places.contains(&None) {
            let Judged { command, stdin, .. } = self.judged;
            let whole = self.whole.get_or_insert_with(|| {
                Digest::of(json!([command, stdin]).to_string().as_bytes()).to_string()
            });
            bound = json!([bound, whole]);
        }
        let digest = Digest::of(bound.to_string().as_bytes()).to_string();
        let subject = one_line(subject, SUBJECT_CHARS_MAX);
        let text = format!("`{subject}` {what}");
        let reason = Reason::new(code, subject, text).bound_to(digest);
        // A command may be judged in several ways that come to the same.
        if !self.found.contains(&reason) {
            self.found.push(reason);
        }
    }
}
