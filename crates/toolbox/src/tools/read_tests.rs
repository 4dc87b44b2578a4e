use super::*;

fn found(text: &[u8], first_line: u64, lines_max: u64) -> Found {
    let wanted = Wanted {
        first_line,
        first_column: 1,
        lines_max,
    };
    // A tiny buffer, so that lines arrive in pieces.
    collect(&mut BufReader::with_capacity(3, text), wanted).expect("reads")
}

#[test]
fn ranges_of_lines() {
    for (text, first, max, content, lines, more) in [
        ("", 1, u64::MAX, "", 0, false),
        ("one", 1, u64::MAX, "one", 1, false),
        ("one\n", 1, u64::MAX, "one\n", 1, false),
        ("one\ntwo\nthree", 2, 1, "two\n", 1, true),
        ("one\ntwo\nthree", 2, 2, "two\nthree", 2, false),
        ("one\ntwo\nthree", 9, 2, "", 0, false),
        ("one\r\ntwo\r\n", 1, 1, "one\r\n", 1, true),
        ("\n\n\n", 2, 1, "\n", 1, true),
        ("\n\n\n", 3, u64::MAX, "\n", 1, false),
    ] {
        let found = found(text.as_bytes(), first, max);
        assert_eq!(found.text(), Ok(content), "{text:?} from {first}");
        assert_eq!(
            (found.lines, found.more),
            (lines, more),
            "{text:?} from {first}"
        );
    }
}

#[test]
fn lines_are_skipped_and_counted_in_bulk_as_one_by_one() {
    assert_eq!(skip(b"a\nb\nc", 1), (2, 1));
    assert_eq!(skip(b"a\nb\nc", 2), (4, 2));
    assert_eq!(skip(b"a\nb\nc", 9), (5, 2));
    let text = "x\n".repeat(1_000);
    for first in [1, 2, 500, 1_000, 1_001] {
        let found = found(text.as_bytes(), first, 1);
        assert_eq!(found.lines_seen, 1_000, "{first}");
        assert_eq!(found.lines, u64::from(first <= 1_000), "{first}");
        let starts = (first <= 1_000).then_some(2 * (first - 1));
        assert_eq!(found.starts_at_byte, starts, "{first}");
    }
}

#[test]
fn all_lines_are_counted() {
    assert_eq!(found(b"a\nb\nc", 1, 1).lines_seen, 3);
    assert_eq!(found(b"a\nb\nc\n", 1, 1).lines_seen, 3);
    assert_eq!(found(b"", 1, 1).lines_seen, 0);
}

#[test]
fn a_long_file_is_cut_between_lines() {
    let text = "0123456789\n".repeat(READ_BYTES_MAX / 11 + 10);
    let found = found(text.as_bytes(), 1, u64::MAX);
    assert!(found.more && !found.line_cut);
    assert_eq!(found.lines, (READ_BYTES_MAX / 11) as u64);
    assert_eq!(found.content.len() as u64, found.lines * 11);
}

#[test]
fn a_long_line_is_cut_between_characters() {
    let text = "ä".repeat(READ_BYTES_MAX);
    let odd = format!("x{text}");
    let found = found(odd.as_bytes(), 1, u64::MAX);
    assert!(found.more && found.line_cut);
    assert_eq!(found.lines, 1);
    assert_eq!(found.text().map(str::len), Ok(READ_BYTES_MAX - 1));
}

#[test]
fn a_long_line_after_short_ones_is_left_for_the_next_call() {
    let text = format!("a\nb\n{}", "x".repeat(READ_BYTES_MAX));
    let found = found(text.as_bytes(), 1, u64::MAX);
    assert_eq!(found.text(), Ok("a\nb\n"));
    assert_eq!((found.lines, found.more, found.line_cut), (2, true, false));
}

#[test]
fn invalid_text_is_told_by_its_place() {
    assert_eq!(found(b"ok\n\xff\n", 1, u64::MAX).text(), Err(3));
    assert_eq!(found(b"ok\n\xff\n", 1, 1).text(), Ok("ok\n"));
    assert_eq!(found(b"ends within \xc3", 1, u64::MAX).text(), Err(12));
}

/// Read on from column to column, a long line is whole, wherever pieces and characters begin.
#[test]
fn a_line_is_gone_on_with_by_its_characters() {
    let line = "aä€😀".repeat(5);
    let text = format!("first\n{line}\nlast\n");
    for column in 1..=30_u64 {
        let wanted = Wanted {
            first_line: 2,
            first_column: column,
            lines_max: 1,
        };
        for room in [1, 2, 3, 7, 64] {
            let mut reader = BufReader::with_capacity(room, text.as_bytes());
            let found = collect(&mut reader, wanted).expect("reads");
            let rest: String = line
                .chars()
                .skip(usize::try_from(column).expect("small") - 1)
                .collect();
            assert_eq!(
                found.text(),
                Ok(format!("{rest}\n").as_str()),
                "{column} {room}"
            );
            assert_eq!((found.lines, found.more), (1, true), "{column} {room}");
        }
    }
}

#[test]
fn a_column_behind_the_end_of_its_line_is_known_as_that() {
    for (text, first_line, first_column, expected) in [
        ("abc\ndéf", 1, 9, Some(3)),
        ("abc\ndéf", 2, 9, Some(3)),
        ("abc\ndéf", 2, 4, Some(3)),
        ("abc\ndéf\n", 2, 9, Some(3)),
        ("abc\n\nd", 2, 2, Some(0)),
        ("abc\ndéf", 1, 4, None),
        ("abc\ndéf", 2, 3, None),
        ("abc\ndéf", 1, 1, None),
        ("abc\ndéf", 3, 9, None),
        ("abc\n", 2, 9, None),
    ] {
        let wanted = Wanted {
            first_line,
            first_column,
            lines_max: 1,
        };
        let text = text.as_bytes();
        let found = collect(&mut BufReader::with_capacity(3, text), wanted).expect("reads");
        let what = format!("{first_line}:{first_column}");
        assert_eq!(found.ends_at_column, expected, "{what}");
    }
}
