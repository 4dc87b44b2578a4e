//! Lists of failure codes in a tool's configuration.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Failure codes, as a tool's `retryOn` and `neverRetryOn` name them.
///
/// People write a status as `503` and an errno in either case; both are understood, because a
/// deny list that silently matches nothing is dangerous.
///
/// ```
/// use holdfast_reliability::retry::CodeList;
///
/// let list = CodeList::from_iter(["503", "econnreset"]);
/// assert!(list.contains("http_503"));
/// assert!(list.contains("ECONNRESET"));
/// assert!(!list.contains("timeout"));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct CodeList(Vec<Code>);

/// One entry; a number stands for an HTTP status.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
enum Code {
    Status(u16),
    Name(String),
}

impl CodeList {
    /// Whether a failure with this code is meant.
    pub fn contains(&self, code: &str) -> bool {
        let status = code.strip_prefix("http_");
        self.0.iter().any(|entry| match entry {
            Code::Status(number) => status.is_some_and(|text| text.parse() == Ok(*number)),
            Code::Name(name) => {
                let name = name.trim();
                name.eq_ignore_ascii_case(code)
                    || status.is_some_and(|text| name.eq_ignore_ascii_case(text))
            }
        })
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether an entry is blank and could never match.
    pub(super) fn has_blank(&self) -> bool {
        self.0
            .iter()
            .any(|entry| matches!(entry, Code::Name(name) if name.trim().is_empty()))
    }
}

impl<S: Into<String>> FromIterator<S> for CodeList {
    fn from_iter<I: IntoIterator<Item = S>>(codes: I) -> Self {
        Self(
            codes
                .into_iter()
                .map(|code| Code::Name(code.into()))
                .collect(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_match_however_people_write_them() {
        let list: CodeList =
            serde_json::from_str(r#"[429, "504", "HTTP_500", " etimedout ", "rate_limited"]"#)
                .unwrap();
        for code in [
            "http_429",
            "http_504",
            "http_500",
            "ETIMEDOUT",
            "rate_limited",
        ] {
            assert!(list.contains(code), "{code}");
        }
        for code in ["http_503", "429", "ETIMEDOUT2", "", "http_"] {
            assert!(!list.contains(code), "{code}");
        }
    }
}
