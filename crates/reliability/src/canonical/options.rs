//! What counts as the same value: the settings of the canonical form.

use std::borrow::Cow;

/// A set of member names, built once per tool and asked for every member of every call.
///
/// ```
/// use holdfast_reliability::canonical::FieldNames;
///
/// let names = FieldNames::VOLATILE.with(["requestedAt"]);
/// assert!(names.contains("retryCount") && names.contains("requestedAt"));
/// assert!(!names.contains("RetryCount"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldNames {
    names: Cow<'static, [Cow<'static, str>]>,
    /// The marks of all names, so that most others are ruled out without a comparison.
    marks: u64,
}

impl FieldNames {
    /// No names at all.
    pub const EMPTY: Self = Self::from_static(&[]);
    /// Fields that change from one delivery of a call to the next without changing its meaning.
    pub const VOLATILE: Self = Self::from_static(&[
        Cow::Borrowed("clientTs"),
        Cow::Borrowed("retryCount"),
        Cow::Borrowed("traceparent"),
    ]);

    const fn from_static(names: &'static [Cow<'static, str>]) -> Self {
        let mut marks = 0;
        let mut index = 0;
        while index < names.len() {
            if let Cow::Borrowed(name) = names[index] {
                marks |= mark(name);
            }
            index += 1;
        }
        Self {
            names: Cow::Borrowed(names),
            marks,
        }
    }

    /// The same set with further names in it.
    #[must_use]
    pub fn with<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        for name in names {
            let name = name.into();
            if !self.contains(&name) {
                self.marks |= mark(&name);
                self.names.to_mut().push(Cow::Owned(name));
            }
        }
        self
    }

    /// Whether the set holds this name, letter for letter.
    pub fn contains(&self, name: &str) -> bool {
        self.marks & mark(name) != 0 && self.names.iter().any(|known| known == name)
    }
}

impl Default for FieldNames {
    fn default() -> Self {
        Self::EMPTY
    }
}

/// One bit out of 64 for a name, by its length and its first byte.
const fn mark(name: &str) -> u64 {
    let first = match name.as_bytes().first() {
        Some(first) => *first as usize,
        None => 0,
    };
    1 << (name.len().wrapping_add(first.wrapping_mul(7)) % 64)
}

/// What whitespace inside string values means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Whitespace {
    /// Every byte counts: file content, shell commands, anything that mutates.
    #[default]
    Exact,
    /// A run of whitespace is one space, and none counts at the ends: the query of a read-only tool.
    Collapse,
}

/// What members without content mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Empty {
    /// `null`, `{}` and absent are three different things.
    #[default]
    Keep,
    /// `null`, `{}` and absent are one and the same, and so are `"path"` and `" path "` as names:
    /// the loop guard's view, in which a model can not hide a repetition behind them.
    Drop,
}

/// Which values are to have the same canonical form. The default is the exact form, in which only
/// the order of members and the spelling of numbers do not count.
#[derive(Debug, Clone, Copy)]
pub struct CanonicalOptions<'a> {
    /// Members with these names are left out, at any depth.
    pub volatile_fields: &'a FieldNames,
    /// How strings are taken where no override says otherwise.
    pub whitespace: Whitespace,
    /// Members whose strings are exact whatever `whitespace` says. An override holds for everything
    /// below its member, until a nearer one; a name in both sets is exact, which is the safe side.
    pub exact_fields: &'a FieldNames,
    /// Members whose strings are collapsed whatever `whitespace` says.
    pub collapse_fields: &'a FieldNames,
    /// Whether members without content count.
    pub empty: Empty,
}

impl CanonicalOptions<'_> {
    /// Every value counts as it is.
    pub const EXACT: CanonicalOptions<'static> = CanonicalOptions {
        volatile_fields: &FieldNames::EMPTY,
        whitespace: Whitespace::Exact,
        exact_fields: &FieldNames::EMPTY,
        collapse_fields: &FieldNames::EMPTY,
        empty: Empty::Keep,
    };

    /// The loop guard's view: nothing that a model could vary without meaning it counts.
    pub const LOOP_GUARD: CanonicalOptions<'static> = CanonicalOptions {
        volatile_fields: &FieldNames::VOLATILE,
        empty: Empty::Drop,
        ..Self::EXACT
    };

    /// How strings below the member `name` are taken, given how they are taken around it.
    pub(super) fn whitespace_below(&self, name: &str, around: Whitespace) -> Whitespace {
        if self.exact_fields.contains(name) {
            Whitespace::Exact
        } else if self.collapse_fields.contains(name) {
            Whitespace::Collapse
        } else {
            around
        }
    }
}

impl<'a> CanonicalOptions<'a> {
    /// The exact form without the volatile members: what `paramsDigest` is taken over.
    ///
    /// A repeated delivery may differ in them, and would otherwise be refused as a conflict.
    pub fn params(volatile_fields: &'a FieldNames) -> Self {
        Self {
            volatile_fields,
            ..Self::EXACT
        }
    }
}

impl Default for CanonicalOptions<'_> {
    fn default() -> Self {
        Self::EXACT
    }
}

#[cfg(test)]
mod tests {
    use super::FieldNames;

    #[test]
    fn names_are_matched_letter_for_letter() {
        let names = FieldNames::EMPTY
            .with(["a", "", "a"])
            .with([String::from("é")]);
        assert!(names.contains("a") && names.contains("") && names.contains("é"));
        assert!(!names.contains("b") && !names.contains("e"));
        assert!(!FieldNames::EMPTY.contains(""));
        assert_eq!(names, FieldNames::EMPTY.with(["a", "", "é"]));
    }
}
