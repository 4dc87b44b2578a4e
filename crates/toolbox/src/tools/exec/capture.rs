//! The beginning and the end of an output of any length.

use std::collections::VecDeque;

use super::OUTPUT_BYTES_MAX;

const HEAD_BYTES: usize = OUTPUT_BYTES_MAX / 2;
const TAIL_BYTES: usize = OUTPUT_BYTES_MAX - HEAD_BYTES;

/// Keeps the first and the last bytes that were pushed. A build prints what it does first and
/// what went wrong last; what lies between is what can be missed.
#[derive(Debug, Default)]
pub(super) struct Capture {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    bytes_seen: u64,
}

impl Capture {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.bytes_seen += bytes.len() as u64;
        let (first, rest) = bytes.split_at(bytes.len().min(HEAD_BYTES - self.head.len()));
        self.head.extend_from_slice(first);
        let rest = &rest[rest.len().saturating_sub(TAIL_BYTES)..];
        let excess = (self.tail.len() + rest.len()).saturating_sub(TAIL_BYTES);
        self.tail.drain(..excess);
        self.tail.extend(rest);
    }

    /// The text, and whether something was cut from it.
    pub(super) fn into_text(self) -> (String, bool) {
        let kept = (self.head.len() + self.tail.len()) as u64;
        let mut bytes = self.head;
        if kept == self.bytes_seen {
            bytes.extend(self.tail);
            return (String::from_utf8_lossy(&bytes).into_owned(), false);
        }
        // A character that the cut went through is dropped on both sides.
        let head_end = whole_characters(&bytes);
        let tail_start = self
            .tail
            .iter()
            .take(3)
            .take_while(|byte| is_continuation(**byte))
            .count();
        let tail: Vec<u8> = self.tail.into_iter().skip(tail_start).collect();
        let cut = self.bytes_seen - (head_end + tail.len()) as u64;
        let text = format!(
            "{}\n[… {cut} bytes cut …]\n{}",
            String::from_utf8_lossy(&bytes[..head_end]),
            String::from_utf8_lossy(&tail)
        );
        (text, true)
    }
}

/// The length of `bytes` without a character that was begun and not ended.
fn whole_characters(bytes: &[u8]) -> usize {
    let Some(start) = bytes
        .iter()
        .rposition(|byte| !is_continuation(*byte))
        .filter(|start| bytes.len() - start < 4)
    else {
        return bytes.len();
    };
    match std::str::from_utf8(&bytes[start..]) {
        Err(error) if error.error_len().is_none() => start,
        _ => bytes.len(),
    }
}

fn is_continuation(byte: u8) -> bool {
    byte & 0b1100_0000 == 0b1000_0000
}

#[cfg(test)]
mod tests {
    use super::*;

    fn captured(pieces: &[&[u8]]) -> (String, bool) {
        let mut capture = Capture::default();
        for piece in pieces {
            capture.push(piece);
        }
        capture.into_text()
    }

    #[test]
    fn short_output_is_whole() {
        assert_eq!(captured(&[]), (String::new(), false));
        assert_eq!(captured(&[b"a", b"", b"b\n"]), ("ab\n".into(), false));
        let full = vec![b'x'; OUTPUT_BYTES_MAX];
        let (text, cut) = captured(&[&full[..10], &full[10..]]);
        assert_eq!((text.len(), cut), (OUTPUT_BYTES_MAX, false));
        assert_eq!(captured(&[b"\xff"]), ("\u{fffd}".into(), false));
    }

    #[test]
    fn long_output_keeps_both_ends() {
        let mut whole = vec![b'a'; HEAD_BYTES];
        whole.extend(vec![b'b'; 1000]);
        whole.extend(vec![b'c'; TAIL_BYTES]);
        for size in [1, 7, 4096, whole.len()] {
            let pieces: Vec<&[u8]> = whole.chunks(size).collect();
            let (text, cut) = captured(&pieces);
            assert!(cut);
            let (head, tail) = text.split_once("\n[… 1000 bytes cut …]\n").expect("a mark");
            assert!(head.len() == HEAD_BYTES && head.bytes().all(|byte| byte == b'a'));
            assert!(tail.len() == TAIL_BYTES && tail.bytes().all(|byte| byte == b'c'));
        }
    }

    #[test]
    fn a_cut_does_not_go_through_a_character() {
        let whole = format!("x{}", "ä".repeat(OUTPUT_BYTES_MAX));
        let (text, _) = captured(&[whole.as_bytes()]);
        assert!(!text.contains('\u{fffd}'));
    }
}
