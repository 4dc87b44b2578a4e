//! The members of an object in canonical order.

use std::vec;

use serde_json::{Map, Value, map};

use super::Empty;

/// A member under the name it is written with.
pub(super) struct Member<'a> {
    pub(super) name: &'a str,
    pub(super) value: &'a Value,
}

/// Yields members in the order of the UTF-16 units of their names.
pub(super) enum Members<'a> {
    /// The map already iterates in this order.
    InOrder(map::Iter<'a>),
    Sorted(vec::IntoIter<(&'a str, &'a Value)>, Empty),
}

impl<'a> Members<'a> {
    /// Looks at the names first, since sorting is hardly ever needed: `serde_json` keeps members
    /// sorted by bytes, which is the wanted order for ASCII. It would not with its `preserve_order`
    /// feature, which any crate in a build can switch on, so nothing is taken for granted.
    pub(super) fn of(map: &'a Map<String, Value>, empty: Empty) -> Self {
        let mut previous: &[u8] = &[];
        let in_order = map.keys().all(|name| {
            let bytes = name.as_bytes();
            // The first byte usually decides, and is cheaper than a comparison of slices.
            let ascending = previous.first() < bytes.first() || previous <= bytes;
            previous = bytes;
            ascending && bytes.is_ascii() && name_of(name, empty).len() == name.len()
        });
        if in_order {
            return Self::InOrder(map.iter());
        }
        let mut members: Vec<(&str, &Value)> = map
            .iter()
            .map(|(name, value)| (name.as_str(), value))
            .collect();
        members.sort_unstable_by(|(a, _), (b, _)| {
            // Names that are equal once trimmed fall back to the whole ones, which never are.
            let trimmed = name_of(a, empty)
                .encode_utf16()
                .cmp(name_of(b, empty).encode_utf16());
            trimmed.then_with(|| a.cmp(b))
        });
        Self::Sorted(members.into_iter(), empty)
    }
}

impl<'a> Iterator for Members<'a> {
    type Item = Member<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Self::InOrder(members) => members.next().map(|(name, value)| Member { name, value }),
            Self::Sorted(members, empty) => members.next().map(|(name, value)| Member {
                name: name_of(name, *empty),
                value,
            }),
        }
    }
}

fn name_of(name: &str, empty: Empty) -> &str {
    match empty {
        Empty::Keep => name,
        Empty::Drop => name.trim(),
    }
}
