//! The first step: where the strings of a text begin and end.
//!
//! Each block of 64 bytes becomes three 64-bit masks (quotation marks, backslashes, control
//! characters), and a handful of bit operations turn them into the marks that really delimit
//! strings. There is no branch per byte, so text full of escapes costs no more than text without.

use super::Invalid;

/// Bytes looked at together.
const BLOCK: usize = 64;

/// The delimiters of a text's strings, one bit a byte. Kept and used again for the next text.
#[derive(Debug, Default, Clone)]
pub struct Strings {
    quotes: Vec<u64>,
    /// Bytes that follow a backslash; empty when the text has none.
    escaped: Vec<u64>,
}

/// What a block holds, one bit a byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Masks {
    quotes: u64,
    backslashes: u64,
    controls: u64,
}

impl Strings {
    /// Finds the strings of a text, and checks what is inside them: no raw control characters, no
    /// unknown escapes. Whether the text is UTF-8 is not looked at.
    pub fn index(&mut self, text: &[u8]) -> Result<(), Invalid> {
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx2")
            && std::arch::is_x86_feature_detected!("pclmulqdq")
        {
            return wide::index(self, text);
        }
        self.index_with(text, plain_masks, prefix_xor)
    }

    #[expect(
        clippy::inline_always,
        reason = "only inlined does it use the instructions of the caller"
    )]
    #[inline(always)]
    fn index_with(
        &mut self,
        text: &[u8],
        masks: impl Fn(&[u8; BLOCK]) -> Masks,
        prefix_xor: impl Fn(u64) -> u64,
    ) -> Result<(), Invalid> {
        self.escaped.clear();
        self.quotes.clear();
        self.quotes.resize(text.len().div_ceil(BLOCK), 0);
        let Self { quotes, escaped } = self;
        let mut state = Running::default();
        let (blocks, rest) = text.as_chunks::<BLOCK>();
        for ((number, block), slot) in blocks.iter().enumerate().zip(quotes.iter_mut()) {
            let inside = state.step(masks(block), slot, &prefix_xor);
            state.check(text, number, inside, escaped)?;
        }
        if let (Some(slot), false) = (quotes.last_mut(), rest.is_empty()) {
            let mut last = [b' '; BLOCK];
            last[..rest.len()].copy_from_slice(rest);
            let inside = state.step(masks(&last), slot, &prefix_xor);
            state.check(text, blocks.len(), inside, escaped)?;
        }
        if state.in_string != 0 {
            return Err(Invalid::new(text.len(), "a string that does not end"));
        }
        Ok(())
    }

    /// The next delimiter at or after a byte.
    #[inline]
    pub(super) fn next_quote(&self, from: usize) -> Option<usize> {
        let mut word = from / BLOCK;
        let mut bits = self.quotes.get(word)? & (u64::MAX << (from % BLOCK));
        while bits == 0 {
            word += 1;
            bits = *self.quotes.get(word)?;
        }
        Some(word * BLOCK + bits.trailing_zeros() as usize)
    }

    /// Whether a string between these bytes holds an escape.
    #[inline]
    pub(super) fn has_escape(&self, from: usize, to: usize) -> bool {
        if self.escaped.is_empty() || from >= to {
            return false;
        }
        let (first, last) = (from / BLOCK, (to - 1) / BLOCK);
        let word = |at: usize| self.escaped.get(at).copied().unwrap_or(0);
        let from_first = u64::MAX << (from % BLOCK);
        let to_last = u64::MAX >> (BLOCK - 1 - (to - 1) % BLOCK);
        if first == last {
            // Names and ids, nearly always.
            return word(first) & from_first & to_last != 0;
        }
        word(first) & from_first != 0
            || (first + 1..last).any(|at| word(at) != 0)
            || word(last) & to_last != 0
    }
}

/// What a block has to know of the blocks before it, and what was found in it.
#[derive(Debug, Default)]
struct Running {
    /// All ones inside a string.
    in_string: u64,
    /// One when the first byte is escaped.
    escape: u64,
    /// The bytes of the last block that follow a backslash.
    escaped: u64,
    /// Its control characters.
    controls: u64,
}

impl Running {
    /// Takes the next block, and gives back which of its bytes are inside a string.
    #[expect(
        clippy::inline_always,
        reason = "only inlined does it use the instructions of the caller"
    )]
    #[inline(always)]
    fn step(&mut self, masks: Masks, slot: &mut u64, prefix_xor: &impl Fn(u64) -> u64) -> u64 {
        self.escaped = self.escaped(masks.backslashes);
        self.controls = masks.controls;
        let quotes = masks.quotes & !self.escaped;
        *slot = quotes;
        let inside = prefix_xor(quotes) ^ self.in_string;
        // The sign bit, spread: whether the next block begins inside a string.
        self.in_string = (inside.cast_signed() >> 63).cast_unsigned();
        inside
    }

    /// Checks what is inside the strings of the block.
    #[expect(
        clippy::inline_always,
        reason = "nearly always there is nothing to check"
    )]
    #[inline(always)]
    fn check(
        &self,
        text: &[u8],
        number: usize,
        inside: u64,
        escaped: &mut Vec<u64>,
    ) -> Result<(), Invalid> {
        let bad = self.controls & inside;
        if bad != 0 {
            let at = number * BLOCK + bad.trailing_zeros() as usize;
            return Err(Invalid::new(at, "a control character in a string"));
        }
        if self.escaped != 0 {
            // The vector stays empty for the many lines without escapes.
            escaped.resize(number, 0);
            escaped.push(self.escaped);
            check_escapes(text, number * BLOCK, self.escaped & inside)?;
        }
        Ok(())
    }

    /// The bytes that a backslash before them escapes.
    #[inline]
    fn escaped(&mut self, backslashes: u64) -> u64 {
        const ODD: u64 = 0xAAAA_AAAA_AAAA_AAAA;
        if backslashes == 0 {
            return std::mem::take(&mut self.escape);
        }
        // A run of backslashes escapes every second one and, if it is odd, what follows. Adding
        // to a run's first bit carries to its end; the parity of where it began does the rest.
        let potential = backslashes & !self.escape;
        let maybe = potential << 1;
        let codes = (maybe | ODD).wrapping_sub(potential);
        let both = codes ^ ODD;
        let escaped = both ^ (backslashes | self.escape);
        self.escape = (both & backslashes) >> 63;
        escaped
    }
}

/// Each bit: whether an odd number of bits at or below it is set.
#[inline]
const fn prefix_xor(mut bits: u64) -> u64 {
    bits ^= bits << 1;
    bits ^= bits << 2;
    bits ^= bits << 4;
    bits ^= bits << 8;
    bits ^= bits << 16;
    bits ^ (bits << 32)
}

#[inline]
fn check_escapes(text: &[u8], base: usize, mut escaped: u64) -> Result<(), Invalid> {
    while escaped != 0 {
        let at = base + escaped.trailing_zeros() as usize;
        escaped &= escaped - 1;
        let valid = match text.get(at) {
            Some(b'n' | b'"' | b'\\' | b't' | b'r' | b'/' | b'b' | b'f') => true,
            Some(b'u') => text
                .get(at + 1..at + 5)
                .is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)),
            _ => false,
        };
        if !valid {
            return Err(Invalid::new(at, "an unknown escape"));
        }
    }
    Ok(())
}

/// The masks of a block, 32 bytes at a time, on processors that can.
#[cfg(target_arch = "x86_64")]
mod wide {
    use std::arch::x86_64::{
        __m256i, _mm_clmulepi64_si128, _mm_cvtsi128_si64, _mm_set_epi64x, _mm_set1_epi8,
        _mm256_cmpeq_epi8, _mm256_min_epu8, _mm256_movemask_epi8, _mm256_set_epi64x,
        _mm256_set1_epi8,
    };

    use super::{BLOCK, Invalid, Masks, Strings};

    /// The caller has made sure of the instructions.
    #[expect(unsafe_code, reason = "says that the processor was asked")]
    pub(super) fn index(strings: &mut Strings, text: &[u8]) -> Result<(), Invalid> {
        // SAFETY: `Strings::index` comes here only when the processor has AVX2 and PCLMULQDQ, and
        // every processor with AVX2 has the others.
        unsafe { index_wide(strings, text) }
    }

    #[target_feature(enable = "avx2,pclmulqdq,bmi1,bmi2,lzcnt,popcnt")]
    fn index_wide(strings: &mut Strings, text: &[u8]) -> Result<(), Invalid> {
        strings.index_with(text, |block| masks(block), |bits| prefix_xor(bits))
    }

    /// Multiplying by all ones without carries is what the slow one does in six steps.
    #[target_feature(enable = "avx2,pclmulqdq")]
    #[inline]
    fn prefix_xor(bits: u64) -> u64 {
        let bits = _mm_set_epi64x(0, bits.cast_signed());
        let product = _mm_clmulepi64_si128::<0>(bits, _mm_set1_epi8(-1));
        _mm_cvtsi128_si64(product).cast_unsigned()
    }

    #[target_feature(enable = "avx2")]
    #[inline]
    pub(super) fn masks(block: &[u8; BLOCK]) -> Masks {
        let quote = _mm256_set1_epi8(b'"'.cast_signed());
        let backslash = _mm256_set1_epi8(b'\\'.cast_signed());
        let last_control = _mm256_set1_epi8(0x1f);
        let mut masks = Masks {
            quotes: 0,
            backslashes: 0,
            controls: 0,
        };
        for (number, bytes) in block.as_chunks::<32>().0.iter().enumerate() {
            let bytes = load(bytes);
            let shift = number * 32;
            masks.quotes |= bits(_mm256_cmpeq_epi8(bytes, quote)) << shift;
            masks.backslashes |= bits(_mm256_cmpeq_epi8(bytes, backslash)) << shift;
            let smaller = _mm256_min_epu8(bytes, last_control);
            masks.controls |= bits(_mm256_cmpeq_epi8(smaller, bytes)) << shift;
        }
        masks
    }

    /// Becomes one instruction.
    #[target_feature(enable = "avx2")]
    #[inline]
    fn load(bytes: &[u8; 32]) -> __m256i {
        let [a, b, c, d] = [0, 1, 2, 3].map(|part| {
            let mut eight = [0; 8];
            eight.copy_from_slice(&bytes[part * 8..part * 8 + 8]);
            i64::from_le_bytes(eight)
        });
        _mm256_set_epi64x(d, c, b, a)
    }

    #[target_feature(enable = "avx2")]
    #[inline]
    fn bits(equal: __m256i) -> u64 {
        u64::from(_mm256_movemask_epi8(equal).cast_unsigned())
    }
}

/// The same, byte by byte: the reference, and the way where there is no faster one.
#[inline]
fn plain_masks(block: &[u8; BLOCK]) -> Masks {
    let mask = |test: fn(u8) -> bool| {
        let mut bits = 0_u64;
        for (number, byte) in block.iter().enumerate() {
            bits |= u64::from(test(*byte)) << number;
        }
        bits
    };
    Masks {
        quotes: mask(|byte| byte == b'"'),
        backslashes: mask(|byte| byte == b'\\'),
        controls: mask(|byte| byte < 0x20),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4_000))]

        #[test]
        fn fast_and_plain_masks_find_the_same_strings(
            bytes in prop::collection::vec(
                prop_oneof![any::<u8>(), prop::sample::select(b"\"\\nu0a ".to_vec())], 0..300)
        ) {
            let (mut fast, mut plain) = (Strings::default(), Strings::default());
            prop_assert_eq!(fast.index(&bytes), plain.index_with(&bytes, plain_masks, prefix_xor));
            prop_assert_eq!(fast.quotes, plain.quotes);
            prop_assert_eq!(fast.escaped, plain.escaped);
        }

        #[test]
        fn escapes_are_found_as_a_slow_reader_finds_them(
            picks in prop::collection::vec(prop::sample::select(vec![b'\\', b'"', b'a']), 0..300)
        ) {
            let mut running = Running::default();
            let mut slow_escape = false;
            for block in picks.chunks(BLOCK) {
                let mut padded = [b' '; BLOCK];
                padded[..block.len()].copy_from_slice(block);
                let escaped = running.escaped(plain_masks(&padded).backslashes);
                for (number, byte) in padded.iter().enumerate() {
                    prop_assert_eq!(escaped >> number & 1 == 1, slow_escape, "byte {}", number);
                    slow_escape = *byte == b'\\' && !slow_escape;
                }
            }
        }
    }
}
