//! The one redactor: takes secrets and e-mail addresses out of everything that is shown or logged.
//!
//! Two kinds of evidence give a secret away: what it looks like (a token's prefix, a private key, a
//! long random string) and what it is called (`password=…`, `"apiKey": …`, `--token …`, a user and
//! password in a URL). Both are used on text; in a [`Value`] the names of members count as well.
//! A name is believed: whatever stands beside `password` goes, and when it is unclear where a secret
//! ends, more is taken rather than less.
//!
//! What is kept on purpose, since records and outputs are useless without it: UUIDs, and strings of
//! hexadecimal digits that have exactly the length of a common hash. A commit or the digest of a
//! call's arguments looks like that; so does the odd secret, which is then known by its name only.
//!
//! Guessing hides too much from whoever has to judge what is about to happen: a command can be
//! written so that its worst part looks like a secret. For people who answer, [`Redactor::hide_known`]
//! hides nothing but the exact values that are known to be secret, and says whether it did.
//!
//! Redacting twice is the same as redacting once, and takes time linear in the length of the text.

mod entropy;
mod extent;
mod known;
mod names;
mod patterns;
mod plain;

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::{Map, Value};

pub use self::known::KNOWN_SECRET_BYTES_MIN;
use self::known::Known;
use self::names::FieldNames;

/// Stands in for a secret.
pub const REDACTED: &str = "[redacted]";
/// Stands in for an e-mail address.
pub const REDACTED_EMAIL: &str = "[redacted email]";

/// Taking something out can bring something else to light, rarely and never deeper than this.
const PASSES_MAX: usize = 4;

/// What a [`Redactor`] looks for beyond what it always does.
#[derive(Debug, Clone, Default)]
pub struct RedactorOptions {
    /// Further names of secret fields. Case and separators do not count: `taxId` is `TAX_ID`.
    pub extra_fields: Vec<String>,
}

/// Takes secrets out of texts and values. Cheap to clone.
///
/// ```
/// use holdfast_contract::redact::Redactor;
/// use serde_json::json;
///
/// let redactor = Redactor::default();
/// assert_eq!(redactor.redact_text("login --password hunter2"), "login --password [redacted]");
/// assert_eq!(
///     redactor.redact_value(&json!({"apiKey": "k", "note": "ask ann@example.com"})),
///     json!({"apiKey": "[redacted]", "note": "ask [redacted email]"}),
/// );
/// ```
#[derive(Debug, Clone, Default)]
pub struct Redactor {
    extra: Arc<FieldNames>,
    known: Arc<Known>,
}

/// Whether something was hidden.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hidden {
    /// All of it is there.
    Nothing,
    /// Something is missing.
    Something,
}

impl Hidden {
    /// Something, if either is.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        match self {
            Self::Nothing => other,
            Self::Something => self,
        }
    }
}

impl Redactor {
    /// Builds a redactor.
    pub fn new(options: &RedactorOptions) -> Self {
        Self {
            extra: Arc::new(FieldNames::new(&options.extra_fields)),
            known: Arc::default(),
        }
    }

    /// The same redactor, which knows these secrets by their values besides. Values of less than
    /// [`KNOWN_SECRET_BYTES_MIN`] bytes are left out: they are words.
    #[must_use]
    pub fn knowing(mut self, values: impl IntoIterator<Item = String>) -> Self {
        self.known = Arc::new(self.known.with(values));
        self
    }

    /// The text without the secrets that are known by their values, and nothing else missing.
    ///
    /// ```
    /// # use holdfast_contract::redact::Redactor;
    /// let redactor = Redactor::default().knowing(["correct-horse".to_owned()]);
    /// assert_eq!(redactor.hide_known("login correct-horse"), "login [redacted]");
    /// assert_eq!(redactor.hide_known("PASSWORD=$(rm -rf x)"), "PASSWORD=$(rm -rf x)");
    /// ```
    pub fn hide_known<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.known.hide(text)
    }

    /// Takes the secrets that are known by their values out of the names, texts and numbers of a
    /// value, and says whether there were any. Depth costs memory, not stack.
    pub fn hide_known_in(&self, value: &mut Value) -> Hidden {
        let mut hidden = Hidden::Nothing;
        let mut open = vec![value];
        while let Some(value) = open.pop() {
            match value {
                Value::Null | Value::Bool(_) => {}
                Value::Number(number) => {
                    if let Cow::Owned(text) = self.hide_known(&number.to_string()) {
                        *value = Value::from(text);
                        hidden = Hidden::Something;
                    }
                }
                Value::String(text) => {
                    if let Cow::Owned(without) = self.hide_known(text) {
                        *text = without;
                        hidden = Hidden::Something;
                    }
                }
                Value::Array(items) => open.extend(items),
                Value::Object(members) => {
                    hidden = hidden.or(rename(members, |name| self.hide_known(name)));
                    open.extend(members.values_mut());
                }
            }
        }
        hidden
    }

    /// The text without its secrets; borrowed when there are none.
    ///
    /// ```
    /// # use holdfast_contract::redact::Redactor;
    /// let redactor = Redactor::default();
    /// assert_eq!(
    ///     redactor.redact_text("GET https://bob:pw@example.org/?api_key=k17&page=2"),
    ///     "GET https://[redacted]@example.org/?api_key=[redacted]&page=2",
    /// );
    /// ```
    pub fn redact_text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut redacted = Cow::Borrowed(text);
        for _ in 0..PASSES_MAX {
            let Some(next) = self.redact_once(&redacted) else {
                break;
            };
            redacted = Cow::Owned(next);
        }
        redacted
    }

    /// One pass of every kind; `None` when nothing changed.
    fn redact_once(&self, text: &str) -> Option<String> {
        if self.extra.is_empty() && plain::is_clean(text) {
            return entropy::redact(text);
        }
        let mut redacted = patterns::redact(text);
        if !self.extra.is_empty() {
            let extra = patterns::redact_fields(redacted.as_deref().unwrap_or(text), &self.extra);
            redacted = extra.or(redacted);
        }
        entropy::redact(redacted.as_deref().unwrap_or(text)).or(redacted)
    }

    /// A copy of the value without its secrets.
    ///
    /// Secret are: the values of members with a secret name, the item behind a secret flag in a list
    /// of arguments, the second of a pair such as `["Authorization", "…"]` or
    /// `{"name": "TOKEN", "value": "…"}`, and whatever [`Self::redact_text`] finds in any string.
    pub fn redact_value(&self, value: &Value) -> Value {
        let mut value = value.clone();
        self.redact_value_in_place(&mut value);
        value
    }

    /// Like [`Self::redact_value`], without the copy. Depth costs memory, not stack.
    pub fn redact_value_in_place(&self, value: &mut Value) {
        let mut open = vec![value];
        while let Some(value) = open.pop() {
            match value {
                Value::Null | Value::Bool(_) | Value::Number(_) => {}
                Value::String(text) => self.redact_string(text),
                Value::Array(items) => {
                    self.redact_named_items(items);
                    open.extend(items);
                }
                Value::Object(members) => {
                    self.redact_names(members);
                    self.redact_named_members(members);
                    open.extend(members.values_mut());
                }
            }
        }
    }

    /// Whether a field of this name is secret, whatever it holds.
    pub fn is_secret_field(&self, name: &str) -> bool {
        names::is_secret(name) || self.extra.contains(name)
    }

    fn redact_string(&self, text: &mut String) {
        if let Cow::Owned(redacted) = self.redact_text(text) {
            *text = redacted;
        }
    }

    /// Items that are secret because of the item in front of them.
    fn redact_named_items(&self, items: &mut [Value]) {
        // Two files are no name and its value, whatever the first is called.
        let is_path = |item: &Value| item.as_str().is_some_and(|text| text.contains('/'));
        let is_pair = items.len() == 2 && !items.iter().all(is_path);
        let mut named: Option<String> = None;
        for item in items {
            if let Some(name) = named.take()
                && !item.as_str().is_some_and(|text| text.starts_with('-'))
            {
                hide(&name, item);
                continue;
            }
            if let Value::String(text) = item
                && (is_pair || text.starts_with('-'))
                && self.is_secret_field(text)
            {
                named = Some(text.clone());
            }
        }
    }

    /// Members that are secret because of their name, or of a name in another member.
    fn redact_named_members(&self, members: &mut Map<String, Value>) {
        for (name, value) in members.iter_mut() {
            if self.is_secret_field(name) {
                hide(name, value);
            }
        }
        let named = ["name", "key", "header"]
            .iter()
            .filter_map(|member| members.get(*member)?.as_str())
            .find(|name| self.is_secret_field(name))
            .map(str::to_owned);
        if let (Some(name), Some(value)) = (named, members.get_mut("value")) {
            hide(&name, value);
        }
    }

    /// Names can hold secrets too, as in a map from e-mail address to role.
    fn redact_names(&self, members: &mut Map<String, Value>) {
        rename(members, |name| self.redact_text(name));
    }
}

/// Changes the names of members. Names that become equal are numbered, so that no member is lost.
fn rename(
    members: &mut Map<String, Value>,
    change: impl for<'t> Fn(&'t str) -> Cow<'t, str>,
) -> Hidden {
    let stays = |name: &String| matches!(change(name), Cow::Borrowed(_));
    if members.keys().all(stays) {
        return Hidden::Nothing;
    }
    let mut renamed = Map::new();
    for (name, value) in std::mem::take(members) {
        let base = change(&name).into_owned();
        let mut unique = base.clone();
        let mut number = 1_usize;
        while renamed.contains_key(&unique) {
            number += 1;
            unique = format!("{base} ({number})");
        }
        renamed.insert(unique, value);
    }
    *members = renamed;
    Hidden::Something
}

/// Replaces a value whose name says that it is secret, unless there is nothing in it to hide.
fn hide(name: &str, value: &mut Value) {
    let harmless = match &*value {
        Value::Null | Value::Bool(_) => true,
        Value::String(text) => text.is_empty() || names::is_working_directory(name, text),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::Number(_) => false,
    };
    if !harmless {
        *value = Value::from(REDACTED);
    }
}

#[cfg(test)]
mod tests;
