//! Signs that all openers have. Most texts have few of them, and whole lines are passed over at once.

use aho_corasick::Match;

/// Every opener has one of these signs, at most this far behind its beginning.
pub(super) const SIGN_BYTES_MAX: usize = 16;
/// No opener is longer.
const OPENER_BYTES_MAX: usize = 32;

/// The walk over those signs: most texts have few of them.
#[derive(Default)]
pub(super) struct Signs {
    from: usize,
    /// The next bracket, and the next of the others, where they are known.
    next: [Option<usize>; 2],
}

impl Signs {
    /// The next sign.
    pub(super) fn next(&mut self, text: &[u8], from: usize) -> Option<usize> {
        self.from = self.from.max(from);
        for (group, next) in [b"<{[", b"(:="].into_iter().zip(&mut self.next) {
            if next.is_none_or(|at| at < self.from) {
                let [one, two, three] = *group;
                let found = memchr::memchr3(one, two, three, &text[self.from..]);
                *next = Some(found.map_or(text.len(), |at| self.from + at));
            }
        }
        let at = self.next.into_iter().flatten().min();
        at.filter(|at| *at < text.len())
    }

    /// No opener has this sign.
    pub(super) fn pass(&mut self, at: usize) {
        self.from = at + 1;
    }

    /// The first opener that can have this sign: up to where it is looked for is told to `find`.
    pub(super) fn find(
        text: &[u8],
        at: usize,
        find: impl Fn(usize) -> Option<Match>,
    ) -> Option<Match> {
        let before = at.checked_sub(1).map(|at| text[at].to_ascii_lowercase());
        let may_open = match text[at] {
            b':' => matches!(before, Some(b'n' | b'r' | b'*' | b'1'..=b'5')),
            b'=' => before == Some(b'o'),
            _ => return find(text.len()),
        };
        let near = text.len().min(at + OPENER_BYTES_MAX);
        may_open
            .then(|| find(near))
            .flatten()
            .and_then(|_| find(text.len()))
    }
}

#[cfg(test)]
mod tests {
    use aho_corasick::Input;

    use super::{SIGN_BYTES_MAX, Signs};
    use crate::forms::scan::{FINDER, OPENERS};

    #[test]
    fn every_opener_is_found_by_its_first_sign() {
        let finder = FINDER.as_ref().unwrap();
        for (opener, form) in OPENERS {
            for opener in [opener.to_ascii_lowercase(), opener.to_ascii_uppercase()] {
                let text = format!("{}{opener} x", "a b ".repeat(20));
                let at = Signs::default().next(text.as_bytes(), 0).unwrap();
                let from = at - SIGN_BYTES_MAX;
                let find = |to: usize| finder.find(Input::new(&text).span(from..to));
                let hit = Signs::find(text.as_bytes(), at, find).unwrap();
                let found = OPENERS[hit.pattern().as_usize()].1;
                assert_eq!((hit.start(), found), (80, *form), "{opener}");
            }
        }
    }
}
