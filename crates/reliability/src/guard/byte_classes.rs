//! Tables that say at once what each byte is. Texts are judged byte by byte, and a look into a table is the
//! cheapest way to do that.

/// A table of what `$class`, a `const fn(u8) -> u8`, says of each byte. A macro, because a `const fn`
/// can not be handed another one.
macro_rules! byte_classes {
    ($class:path) => {{
        let mut classes = [0_u8; 256];
        let mut byte = 0_u8;
        loop {
            classes[byte as usize] = $class(byte);
            if byte == u8::MAX {
                break classes;
            }
            byte += 1;
        }
    }};
}

pub(super) use byte_classes;

#[cfg(test)]
mod tests {
    const fn rest(byte: u8) -> u8 {
        byte % 7
    }

    #[test]
    fn every_byte_has_its_class() {
        static TABLE: [u8; 256] = super::byte_classes!(rest);
        for byte in 0..=u8::MAX {
            assert_eq!(TABLE[usize::from(byte)], rest(byte), "{byte}");
        }
    }
}
