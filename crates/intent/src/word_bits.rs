//! Words in lower case, each with a set of bits: what a first pass over a text asks about every word of it.

/// A word as a number: five bits a letter. Of a long word only the last twelve letters count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Key(u64);

impl Key {
    /// The word with one more letter, in lower case.
    #[inline]
    pub(crate) fn and(self, letter: u8) -> Self {
        Self(self.0 << 5 | u64::from(letter & 31))
    }

    /// The word with the letters of a text behind it, whatever their case.
    pub(crate) fn and_letters(self, text: &str) -> Self {
        let letters = text.bytes().filter(u8::is_ascii_alphabetic);
        letters.fold(self, Self::and)
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// Words and their bits, in a table with open addressing.
#[derive(Debug, Clone)]
pub(crate) struct WordBits {
    slots: Vec<(Key, u32)>,
    shift: u32,
}

impl WordBits {
    pub(crate) fn new(words: &[(Key, u32)]) -> Self {
        // Three of four slots stay empty, so that most words that are none of them are told at once.
        let size = (words.len() * 4).next_power_of_two().max(8);
        let mut table = Self {
            slots: vec![(Key::default(), 0); size],
            shift: u64::BITS - size.trailing_zeros(),
        };
        for (key, bits) in words.iter().filter(|(key, _)| !key.is_empty()) {
            let at = table.place(*key);
            table.slots[at] = (*key, table.slots[at].1 | bits);
        }
        table
    }

    /// The bits of a word, none where it is not known.
    #[inline]
    pub(crate) fn of(&self, key: Key) -> u32 {
        self.slots[self.place(key)].1
    }

    /// Where a word stands, or the empty slot where it would.
    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the shift leaves as many bits as the table needs"
    )]
    fn place(&self, key: Key) -> usize {
        let mut at = (key.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> self.shift) as usize;
        while self.slots[at].0 != key && !self.slots[at].0.is_empty() {
            at = (at + 1) & (self.slots.len() - 1);
        }
        at
    }
}

#[cfg(test)]
mod tests {
    use super::{Key, WordBits};

    #[test]
    fn words_keep_their_bits_apart() {
        let key = |word| Key::default().and_letters(word);
        let words: Vec<(Key, u32)> = (b'a'..=b'z')
            .map(|letter| (Key::default().and(letter), u32::from(letter)))
            .chain([(key("Read"), 1), (key("read"), 2)])
            .collect();
        let table = WordBits::new(&words);
        assert_eq!(table.of(key("read")), 3);
        assert_eq!(table.of(key("x")), u32::from(b'x'));
        assert_eq!(table.of(key("reads")), 0);
        assert_eq!(table.of(Key::default()), 0);
    }
}
