//! All mistakes of a configuration file, and not only the first one.
//!
//! Who reads a file stops at its first mistake. The entries of a file that is written line by line can
//! be read one at a time, though, with the lines of all others left empty: then each is found by itself,
//! and its line is that of the file.

use std::cell::Cell;
use std::ops::Range;

/// Mistakes that are told at most.
const MISTAKES: usize = 20;
/// Entries that are read one at a time at most, in all: each of them is read with the whole file.
const READINGS: usize = 500;

/// How each entry is wrong, in their order; `reads` says what is wrong with a text. Where the entries
/// can not be told apart, there is nothing to say beside the first mistake.
pub(crate) fn all(
    text: &str,
    first: String,
    reads: impl Fn(&str) -> Option<String>,
) -> Vec<String> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    let readings = Cell::new(0);
    for section in entries(&lines, 0..lines.len()) {
        if found.len() >= MISTAKES || readings.get() >= READINGS {
            break;
        }
        let alone = |kept: &Range<usize>| {
            readings.set(readings.get() + 1);
            reads(&only(&lines, section.start, kept))
        };
        let Some(whole) = alone(&section) else {
            continue;
        };
        let inner = entries(&lines, section.start + 1..section.end);
        let left = READINGS.saturating_sub(readings.get());
        let each = inner.iter().take(left).filter_map(alone);
        // Without the others an entry may lack what belongs to it.
        let each = each.filter(|why| !why.contains("missing field"));
        let each: Vec<String> = each.take(MISTAKES).collect();
        found.extend(if each.is_empty() { vec![whole] } else { each });
    }
    // What only the whole file says is not found in a part of it, and a part that refers to another
    // is not wrong.
    let is_known = found.iter().any(|why| headline(why) == headline(&first));
    if found.len() < 2 || !is_known || lines.iter().any(|line| refers(line)) {
        return vec![first];
    }
    found.truncate(MISTAKES);
    found.iter().map(|why| without_gaps(why)).collect()
}

/// What is wrong and where, without the lines around it.
fn headline(why: &str) -> &str {
    why.lines().next().unwrap_or_default()
}

/// Whether a line may take its value from another.
fn refers(line: &str) -> bool {
    let mut behind = line.split('*').skip(1);
    behind.any(|text| text.starts_with(|sign: char| sign.is_alphanumeric() || sign == '_'))
}

/// An error without the lines around it that were left empty.
fn without_gaps(why: &str) -> String {
    let is_gap = |line: &str| {
        let number = line.trim().strip_suffix('|').map(str::trim_end);
        number.is_some_and(|it| !it.is_empty() && it.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let lines: Vec<&str> = why.lines().filter(|line| !is_gap(line)).collect();
    lines.join("\n")
}

/// The text with nothing but the head of a section and these lines of it.
fn only(lines: &[&str], head: usize, kept: &Range<usize>) -> String {
    let line = |(at, line): (usize, &&str)| {
        let is_kept = at == head || kept.contains(&at);
        if is_kept { *line } else { "" }.to_owned() + "\n"
    };
    lines.iter().enumerate().map(line).collect()
}

/// The lines of each entry among these, where all of them are written as `key: value` lines.
fn entries(lines: &[&str], among: Range<usize>) -> Vec<Range<usize>> {
    let is_written = |line: &str| {
        let line = line.trim_start();
        !line.is_empty() && !line.starts_with('#')
    };
    let indent = |line: &str| line.len() - line.trim_start_matches(' ').len();
    let written = || among.clone().filter(|at| is_written(lines[*at]));
    let Some(first) = written().next() else {
        return Vec::new();
    };
    let depth = indent(lines[first]);
    // The items of a list stand below their key also where they are not indented.
    let is_item = |line: &str| line.trim_start().starts_with("- ");
    let starts = written().filter(|at| indent(lines[*at]) <= depth);
    let starts: Vec<usize> = starts.filter(|at| !is_item(lines[*at])).collect();
    let are_keys = starts
        .iter()
        .all(|at| indent(lines[*at]) == depth && is_key(lines[*at]));
    if !are_keys {
        return Vec::new();
    }
    let ends = starts.iter().skip(1).copied().chain([among.end]);
    let ranges = starts.iter().zip(ends).map(|(start, end)| *start..end);
    ranges.collect()
}

fn is_key(line: &str) -> bool {
    let Some((key, rest)) = line.trim_start().split_once(':') else {
        return false;
    };
    let is_name = |sign: char| sign.is_alphanumeric() || "_-.\"'".contains(sign);
    !key.is_empty()
        && !key.starts_with('-')
        && key.chars().all(is_name)
        && (rest.is_empty() || rest.starts_with(' '))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Says of each line with `bad` that it is wrong, as a reader does: of the first one only.
    fn reads(text: &str) -> Option<String> {
        let mut lines = text.lines().enumerate();
        lines.find_map(|(at, line)| line.contains("bad").then(|| format!("line {}", at + 1)))
    }

    fn told(text: &str) -> Vec<String> {
        all(text, reads(text).expect("a mistake"), reads)
    }

    #[test]
    fn each_entry_is_read_by_itself() {
        let text = "# a\na:\n  b: bad\n\n  c:\n    d: bad\n    e: bad\n  f: 1\ng: bad\nh: 1\n";
        assert_eq!(told(text), ["line 3", "line 6", "line 9"]);
    }

    #[test]
    fn lists_need_no_indent() {
        let text = "a:\n  b:\n  - x\n  - bad\n  c: bad\n";
        assert_eq!(told(text), ["line 4", "line 5"]);
    }

    #[test]
    fn a_large_file_is_not_read_without_end() {
        let section = |at: usize| format!("s{at}:\n{}", "  k: bad\n".repeat(400));
        let text: String = (0..400).map(section).collect();
        let readings = Cell::new(0_usize);
        let counted = |text: &str| {
            readings.set(readings.get() + 1);
            reads(text)
        };
        assert_eq!(all(&text, "line 2".to_owned(), counted).len(), MISTAKES);
        assert!(readings.get() <= READINGS);
    }

    #[test]
    fn what_is_written_otherwise_has_its_first_mistake() {
        for text in [
            "{a: bad,\n b: bad\n}\n",
            "- bad\n- bad\n",
            "  a: bad\nb: bad\n",
        ] {
            assert_eq!(told(text), ["line 1"], "{text}");
        }
    }

    #[test]
    fn what_only_the_whole_says_is_told_as_ever() {
        let whole = |text: &str| (text.matches('b').count() > 1).then(|| "twice".to_owned());
        assert_eq!(all("a: b\nc: b\n", "twice".to_owned(), whole), ["twice"]);
        for text in [
            "a: &x bad\nc: *x\nd: bad\n",
            "a: [&x bad]\nc: [*x]\nd: bad\n",
            "a: &x bad\nc:   *x\nd: bad\n",
        ] {
            assert_eq!(told(text), ["line 1"]);
        }
    }

    #[test]
    fn lines_that_were_left_empty_are_not_shown() {
        let why = "line 3: no\n 2 |\n 3 | b: bad\n   |    ^\n";
        assert_eq!(without_gaps(why), "line 3: no\n 3 | b: bad\n   |    ^");
    }
}
