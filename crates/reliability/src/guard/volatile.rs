//! Finds times, durations, UUIDs and memory addresses in a text, by hand: this runs over every
//! result of every tool, and a regular expression would be its most expensive part.

use std::ops::Range;

use super::byte_classes::byte_classes;
use super::digits::digits;

const UUID_BYTES: usize = 36;
const UUID_DASHES: [usize; 4] = [8, 13, 18, 23];
/// Shorter hexadecimal literals are constants of a program rather than addresses.
const ADDRESS_DIGITS_MIN: usize = 5;

/// The volatile part of `bytes` around a run of digits. Nothing before `floor` is looked at: it belongs to an
/// earlier part.
#[inline]
pub(super) fn volatile_part(
    bytes: &[u8],
    floor: usize,
    run: &Range<usize>,
) -> Option<Range<usize>> {
    if is_plain(bytes, floor, run) {
        return None;
    }
    uuid(bytes, floor, run.start).or_else(|| time_or_address(bytes, floor, run.start))
}

/// A byte next to a number: part of a UUID.
const ID: u8 = 1;
/// A number after it is the middle of something: a version, a position, a name.
const JOINS: u8 = 2;
/// A number before it may be a time, a duration or an address.
const GOES_ON: u8 = 4;
/// It begins a unit of time, or the minutes in `0m3.2s`.
const UNIT: u8 = 8;

/// What each byte is next to a number.
static BESIDE: [u8; 256] = byte_classes!(class);

const fn class(byte: u8) -> u8 {
    let mut class = 0;
    if is_id_part(byte) {
        class |= ID;
    }
    if byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b':' | b'-' | b'/') {
        class |= JOINS;
    }
    if matches!(byte, b'-' | b'/' | b':' | b'.' | b'x' | b'X') {
        class |= GOES_ON;
    }
    if matches!(byte, b'n' | b'u' | b'm' | b's') || !byte.is_ascii() {
        class |= GOES_ON | UNIT;
    }
    class
}

const fn is_id_part(byte: u8) -> bool {
    byte.is_ascii_hexdigit() || byte == b'-'
}

/// Whether what is beside a number shows that it is no part of any of these: nearly always so, and seen at
/// once.
#[inline]
fn is_plain(bytes: &[u8], floor: usize, run: &Range<usize>) -> bool {
    let class = |byte: Option<&u8>| byte.map_or(0, |byte| BESIDE[usize::from(*byte)]);
    let before = class(bytes[floor..run.start].last());
    let next = bytes.get(run.end);
    let mut after = class(next);
    if next == Some(&b' ') && class(bytes.get(run.end + 1)) & UNIT != 0 {
        after |= GOES_ON;
    }
    (before | after) & ID == 0 && (before & JOINS != 0 || after & GOES_ON == 0)
}

fn time_or_address(bytes: &[u8], floor: usize, digit: usize) -> Option<Range<usize>> {
    let before = bytes[floor..digit].last();
    if before.is_some_and(|byte| class(*byte) & JOINS != 0) {
        return None;
    }
    let rest = &bytes[digit..];
    let len = date(rest)
        .map(|day| day + after_date(&rest[day..]))
        .or_else(|| clock(rest))
        .or_else(|| address(rest))
        .or_else(|| duration(rest))?;
    // "10:00:00x" or "5 shards" is something else.
    let ends = rest
        .get(len)
        .is_none_or(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_');
    ends.then_some(digit..digit + len)
}

fn uuid(bytes: &[u8], floor: usize, digit: usize) -> Option<Range<usize>> {
    let back = bytes[floor..digit]
        .iter()
        .rev()
        .take(UUID_BYTES)
        .take_while(|byte| is_id_part(**byte))
        .count();
    let rest = &bytes[digit - back..];
    // The first dash decides nearly always.
    if !is_at(rest, UUID_DASHES[0], b"-") {
        return None;
    }
    let run = rest
        .iter()
        .take(UUID_BYTES + 1)
        .take_while(|byte| is_id_part(**byte))
        .count();
    if run != UUID_BYTES {
        return None;
    }
    let shaped = rest[..UUID_BYTES]
        .iter()
        .enumerate()
        .all(|(at, byte)| (*byte == b'-') == UUID_DASHES.contains(&at));
    shaped.then_some(digit - back..digit - back + UUID_BYTES)
}

fn is_at(bytes: &[u8], at: usize, wanted: &[u8]) -> bool {
    bytes.get(at).is_some_and(|byte| wanted.contains(byte))
}

/// `2026-02-13`, `2026/02/13`.
fn date(bytes: &[u8]) -> Option<usize> {
    let shaped = digits(bytes) == 4
        && is_at(bytes, 4, b"-/")
        && digits(&bytes[5..]) == 2
        && is_at(bytes, 7, &bytes[4..5])
        && digits(&bytes[8..]) == 2;
    shaped.then_some(10)
}

/// The time of day and zone that may follow a date.
fn after_date(bytes: &[u8]) -> usize {
    if !is_at(bytes, 0, b"T t") {
        return 0;
    }
    let Some(time) = clock(&bytes[1..]) else {
        return 0;
    };
    let end = 1 + time;
    let zone = &bytes[end..];
    if is_at(zone, 0, b"Zz") {
        return end + 1;
    }
    if is_at(zone, 0, b"+-") && digits(&zone[1..]) == 2 {
        let minutes = if is_at(zone, 3, b":") && digits(&zone[4..]) == 2 {
            6
        } else {
            3
        };
        return end + minutes;
    }
    end
}

/// `10:04:59`, with a fraction. Without seconds it could be a ratio or a position.
fn clock(bytes: &[u8]) -> Option<usize> {
    let hours = digits(bytes);
    let shaped = (1..=2).contains(&hours)
        && is_at(bytes, hours, b":")
        && digits(&bytes[hours + 1..]) == 2
        && is_at(bytes, hours + 3, b":")
        && digits(&bytes[hours + 4..]) == 2;
    if !shaped {
        return None;
    }
    let end = hours + 6;
    let fraction = if is_at(bytes, end, b".,") {
        digits(&bytes[end + 1..])
    } else {
        0
    };
    Some(if fraction > 0 {
        end + 1 + fraction
    } else {
        end
    })
}

/// `0x7ffd3c10`.
fn address(bytes: &[u8]) -> Option<usize> {
    let prefixed = bytes.first() == Some(&b'0') && is_at(bytes, 1, b"xX");
    let len = bytes
        .iter()
        .skip(2)
        .take_while(|byte| byte.is_ascii_hexdigit())
        .count();
    (prefixed && len >= ADDRESS_DIGITS_MIN).then_some(2 + len)
}

/// `31 ms`, `1.2s`, `0m3.210s`.
fn duration(bytes: &[u8]) -> Option<usize> {
    const UNITS: [&[u8]; 9] = [
        b"ns",
        b"us",
        "µs".as_bytes(),
        b"ms",
        b"seconds",
        b"second",
        b"secs",
        b"sec",
        b"s",
    ];
    let mut at = decimal(bytes);
    if is_at(bytes, at, b"m") && digits(&bytes[at + 1..]) > 0 {
        at += 1 + decimal(&bytes[at + 1..]);
        return is_at(bytes, at, b"s").then_some(at + 1);
    }
    if is_at(bytes, at, b" ") {
        at += 1;
    }
    let rest = &bytes[at..];
    UNITS
        .iter()
        .find(|unit| rest.starts_with(unit))
        .map(|unit| at + unit.len())
}

fn decimal(bytes: &[u8]) -> usize {
    let whole = digits(bytes);
    let fraction = if is_at(bytes, whole, b".") {
        digits(&bytes[whole + 1..])
    } else {
        0
    };
    if fraction > 0 {
        whole + 1 + fraction
    } else {
        whole
    }
}

#[cfg(test)]
mod tests {
    use super::super::digits::DigitRuns;
    use super::*;

    /// The first volatile part of a text, looked for at its first digit only.
    fn part(text: &str) -> Option<&str> {
        let run = DigitRuns::of(text.as_bytes()).next()?;
        volatile_part(text.as_bytes(), 0, &run).map(|part| &text[part])
    }

    proptest::proptest! {
        #[test]
        fn what_is_plain_at_once_is_nothing_else(
            text in "[-a-f0-9 .x_µ]{0,40}[0-9]{1,5}[-/:.xXTZ nums\u{b5}%a]{0,3}[-0-9a-fnmsx:/]{0,36}",
            floor in 0_usize..40,
        ) {
            let bytes = text.as_bytes();
            for run in DigitRuns::of(bytes) {
                let floor = floor.min(run.start);
                let found = uuid(bytes, floor, run.start).or_else(|| time_or_address(bytes, floor, run.start));
                proptest::prop_assert!(found.is_none() || !is_plain(bytes, floor, &run), "{text:?} at {run:?}");
            }
        }
    }

    #[test]
    fn volatile_parts_are_found_whole() {
        for (text, wanted) in [
            (
                "at 2026-02-13T10:00:00.5+01:00, ok",
                "2026-02-13T10:00:00.5+01:00",
            ),
            ("at 2026-02-13T10:00:00+0100", "2026-02-13T10:00:00"),
            ("on 2026/02/13!", "2026/02/13"),
            ("(9:05:00)", "9:05:00"),
            ("10:04:59,123 INFO", "10:04:59,123"),
            ("in 1.25 seconds", "1.25 seconds"),
            ("in 40µs", "40µs"),
            ("0m3.21s user", "0m3.21s"),
            ("p=0xdeadbeef", "0xdeadbeef"),
        ] {
            assert_eq!(part(text), Some(wanted), "{text}");
        }
    }

    #[test]
    fn everything_else_is_left_alone() {
        for text in [
            "34 %",
            "v10:04:59",
            "a.rs:10:25",
            "10:25",
            "5 shards",
            "3 msgs",
            "0x10",
            "2026-2-3",
            "20260213",
            "12345678901234567890",
            "1.2.3",
            "x5s",
            "7",
            "7 ",
            "3m",
            "10:00:00x",
        ] {
            assert_eq!(part(text), None, "{text}");
        }
    }
}
