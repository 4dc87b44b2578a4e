//! When a reply that is still on its way is looked through again.
//!
//! A look reads all of it, so one for every piece would read a long reply as often as it has pieces.
//! Of looks that found nothing only some are followed by another at once; after those the reply has to
//! grow by a part of itself first, and all of them together read it a fixed number of times.

/// Looks that are made as soon as there is a reason for one.
const LOOKS_AT_ONCE: u32 = 16;
/// The part of itself that a reply has to grow by before it is looked through again.
const PART: usize = 16;

/// What a look has found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Look {
    /// The answer begins here.
    Begins(usize),
    /// The next sign says whether it does.
    Soon,
    /// It does not begin in what is there.
    Later,
    /// It can be told only of the whole.
    Never,
}

/// The looks at one reply.
#[derive(Debug)]
pub(super) struct Looks {
    /// Those that are left to be made at once.
    at_once: u32,
    /// The length from which on there is to be one, whatever is new.
    due: usize,
}

impl Default for Looks {
    fn default() -> Self {
        Self {
            at_once: LOOKS_AT_ONCE,
            due: usize::MAX,
        }
    }
}

impl Looks {
    /// Whether a reply of this length is to be looked through, in which there may be something new.
    pub(super) fn is_due(&mut self, length: usize, is_new: bool) -> bool {
        if is_new && self.at_once > 0 {
            self.at_once -= 1;
            return true;
        }
        length >= self.due
    }

    /// A look at a reply of this length did not find the beginning of an answer.
    pub(super) fn found(&mut self, look: Look, length: usize) {
        let next = if look == Look::Soon && self.at_once > 0 {
            self.at_once -= 1;
            1
        } else {
            (length / PART).max(1)
        };
        self.due = length.saturating_add(next);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is read of a reply that comes sign by sign, each of which gives a reason to look.
    fn read(length: usize, found: Look) -> usize {
        let mut looks = Looks::default();
        let mut read = 0;
        for so_far in 1..=length {
            if looks.is_due(so_far, true) {
                read += so_far;
                looks.found(found, so_far);
            }
        }
        read
    }

    #[test]
    fn however_often_there_is_a_reason_a_reply_is_read_a_few_times() {
        for found in [Look::Soon, Look::Later] {
            for length in [1_000, 10_000, 1_000_000] {
                let times = read(length, found) / length;
                assert!(times <= 2 * PART, "{found:?}: {length} signs {times} times");
            }
        }
    }

    #[test]
    fn what_is_new_is_looked_at_at_once_for_a_while() {
        let mut looks = Looks::default();
        assert!(!looks.is_due(100_000, false), "there is no reason yet");
        for length in 100_000..100_000 + LOOKS_AT_ONCE as usize {
            assert!(looks.is_due(length, true));
            looks.found(Look::Later, length);
        }
        assert!(!looks.is_due(100_100, true));
        assert!(looks.is_due(120_000, false));
    }
}
