//! The end of a file that is too large to be counted through.

use std::io::{self, Read, Seek, SeekFrom};

use memchr::memrchr_iter;

/// How much is looked at in one go.
const STEP_BYTES: u64 = 64 * 1024;

/// Where the last lines begin: as many as asked for, and no more bytes than `bytes_max`.
///
/// It is read backwards, so that the end of a log costs the same however long it has grown.
pub(super) fn start(
    source: &mut (impl Read + Seek),
    lines_max: u64,
    bytes_max: u64,
) -> io::Result<u64> {
    let end = source.seek(SeekFrom::End(0))?;
    let floor = end.saturating_sub(bytes_max);
    let mut upper = end;
    let mut lines = 0;
    // The first whole line after what is too far away.
    let mut fits_from = end;
    let mut chunk = Vec::new();
    while upper > floor {
        let lower = upper.saturating_sub(STEP_BYTES).max(floor);
        source.seek(SeekFrom::Start(lower))?;
        chunk.clear();
        source
            .by_ref()
            .take(upper - lower)
            .read_to_end(&mut chunk)?;
        for at in memrchr_iter(b'\n', &chunk) {
            let after = lower + at as u64 + 1;
            // The end of the last line begins no other.
            if after == end {
                continue;
            }
            lines += 1;
            fits_from = after;
            if lines == lines_max {
                return Ok(after);
            }
        }
        upper = lower;
    }
    if floor == 0 {
        return Ok(0);
    }
    // A last line that is too long is shown from where there is room for it.
    Ok(if fits_from == end { floor } else { fits_from })
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    fn tail(text: &str, lines_max: u64, bytes_max: u64) -> &str {
        let from = start(&mut Cursor::new(text), lines_max, bytes_max).expect("reads");
        &text[usize::try_from(from).expect("small")..]
    }

    #[test]
    fn the_last_lines_and_no_more_than_fit() {
        for (text, lines_max, bytes_max, expected) in [
            ("", 2, 99, ""),
            ("one", 2, 99, "one"),
            ("one\ntwo\nthree", 2, 99, "two\nthree"),
            ("one\ntwo\nthree\n", 2, 99, "two\nthree\n"),
            ("one\ntwo\nthree\n", 9, 99, "one\ntwo\nthree\n"),
            ("one\ntwo\nthree\n", 9, 10, "three\n"),
            ("\n\n\n", 2, 99, "\n\n"),
            ("a very long line", 1, 4, "line"),
        ] {
            assert_eq!(tail(text, lines_max, bytes_max), expected, "{text:?}");
        }
    }

    #[test]
    fn it_is_what_counting_from_the_front_finds() {
        for line in ["", "x", "a longer line"] {
            for end in ["", "\n", "rest"] {
                for count in 0..12 {
                    let text = format!("{}{end}", format!("{line}\n").repeat(count));
                    let lines: Vec<&str> = text.split_inclusive('\n').collect();
                    for lines_max in 1..14 {
                        let kept = lines_max.min(lines.len());
                        let expected = lines[lines.len() - kept..].concat();
                        assert_eq!(tail(&text, lines_max as u64, 10_000), expected, "{text:?}");
                    }
                }
            }
        }
    }
}
