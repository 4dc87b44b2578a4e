//! Secrets that are known by their value.

use std::borrow::Cow;
use std::fmt;

use super::REDACTED;

/// A shorter value is a word that stands in many texts.
pub const KNOWN_SECRET_BYTES_MIN: usize = 8;

/// The values. They are not printed.
#[derive(Clone, Default)]
pub(super) struct Known(Vec<String>);

impl fmt::Debug for Known {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Known({} values)", self.0.len())
    }
}

impl Known {
    pub(super) fn with(&self, values: impl IntoIterator<Item = String>) -> Self {
        let mut all = self.0.clone();
        for value in values {
            let value = value.trim();
            if value.len() >= KNOWN_SECRET_BYTES_MIN && !all.iter().any(|known| known == value) {
                all.push(value.to_owned());
            }
        }
        // The longest first: what begins with another goes as a whole.
        all.sort_by_key(|value| std::cmp::Reverse(value.len()));
        Self(all)
    }

    pub(super) fn hide<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut hidden = Cow::Borrowed(text);
        for value in &self.0 {
            if hidden.contains(value.as_str()) {
                hidden = Cow::Owned(hidden.replace(value.as_str(), REDACTED));
            }
        }
        hidden
    }
}
