//! A text in the form that a channel's surface can show, as pure functions.

use holdfast_contract::{Shows, Surface};

/// The text, adapted and split. Empty for a text of blanks.
pub(super) fn adapt(text: &str, surface: Surface) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut table: Vec<Vec<String>> = Vec::new();
    let mut in_code = false;
    for line in text.lines() {
        let is_fence = line.trim_start().starts_with("```");
        in_code ^= is_fence;
        let is_plain = in_code || is_fence;
        if !is_plain && surface.tables == Shows::No && is_row(line) {
            table.push(cells(line));
            continue;
        }
        flush(&mut table, &mut lines);
        lines.push(if !is_plain && surface.headings == Shows::No {
            without_heading(line)
        } else {
            line.to_owned()
        });
    }
    flush(&mut table, &mut lines);
    split(&lines.join("\n"), surface.message_chars_max.max(1))
}

fn is_row(line: &str) -> bool {
    let line = line.trim();
    line.len() > 1 && line.starts_with('|') && line.ends_with('|')
}

fn cells(line: &str) -> Vec<String> {
    let inner = line.trim().trim_start_matches('|').trim_end_matches('|');
    inner
        .split('|')
        .map(|cell| cell.trim().to_owned())
        .collect()
}

fn is_rule(row: &[String]) -> bool {
    row.iter()
        .all(|cell| !cell.is_empty() && cell.chars().all(|sign| matches!(sign, '-' | ':')))
}

/// Writes a table as bullets, each row one, with the names of its columns.
fn flush(table: &mut Vec<Vec<String>>, lines: &mut Vec<String>) {
    let rows = std::mem::take(table);
    let names = match rows.get(1) {
        Some(rule) if is_rule(rule) => rows.first().cloned().unwrap_or_default(),
        _ => Vec::new(),
    };
    let skip = if names.is_empty() { 0 } else { 2 };
    for row in rows.iter().skip(skip) {
        let shown: Vec<String> = row
            .iter()
            .enumerate()
            .filter(|(_, cell)| !cell.is_empty())
            .map(
                |(at, cell)| match names.get(at).filter(|name| !name.is_empty()) {
                    Some(name) => format!("{name}: {cell}"),
                    None => cell.clone(),
                },
            )
            .collect();
        lines.push(format!("- {}", shown.join("; ")));
    }
}

/// `## Heading` as `**Heading**`.
fn without_heading(line: &str) -> String {
    let bare = line.trim_start_matches('#');
    let depth = line.len() - bare.len();
    match bare.strip_prefix(' ') {
        Some(title) if (1..=6).contains(&depth) => {
            format!("**{}**", title.trim().trim_end_matches('#').trim())
        }
        _ => line.to_owned(),
    }
}

/// Splits at paragraphs, else at lines, else anywhere.
fn split(text: &str, chars_max: usize) -> Vec<String> {
    let mut pieces = vec![String::new()];
    for (between, paragraph) in parts(text, "\n\n") {
        if paragraph.chars().count() <= chars_max {
            push(&mut pieces, between, paragraph, chars_max);
            continue;
        }
        for (between, line) in parts(paragraph, "\n") {
            let mut rest = line;
            while rest.chars().count() > chars_max {
                let at = rest
                    .char_indices()
                    .nth(chars_max)
                    .map_or(rest.len(), |(at, _)| at);
                let (head, tail) = rest.split_at(at);
                push(&mut pieces, between, head, chars_max);
                rest = tail;
            }
            push(&mut pieces, between, rest, chars_max);
        }
    }
    pieces.retain(|piece| !piece.trim().is_empty());
    pieces
}

fn parts<'t>(
    text: &'t str,
    between: &'static str,
) -> impl Iterator<Item = (&'static str, &'t str)> {
    text.split(between).map(move |part| (between, part))
}

fn push(pieces: &mut Vec<String>, between: &str, part: &str, chars_max: usize) {
    let Some(last) = pieces.last_mut() else {
        return;
    };
    let length = last.chars().count() + between.len() + part.chars().count();
    if last.is_empty() {
        last.push_str(part);
    } else if length <= chars_max {
        last.push_str(between);
        last.push_str(part);
    } else {
        pieces.push(part.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(message_chars_max: usize) -> Surface {
        Surface {
            tables: Shows::No,
            headings: Shows::No,
            message_chars_max,
        }
    }

    #[test]
    fn tables_become_bullets_and_headings_bold() {
        let text = "# Title\n\n| name | age |\n|---|:-:|\n| ann | 7 |\n| ben | |\n\n#tag stays\n```\n# code\n| x |\n```";
        let expected =
            "**Title**\n\n- name: ann; age: 7\n- name: ben\n\n#tag stays\n```\n# code\n| x |\n```";
        assert_eq!(adapt(text, plain(1000)), [expected]);
        let all = Surface {
            tables: Shows::Yes,
            headings: Shows::Yes,
            message_chars_max: 1000,
        };
        assert_eq!(adapt(text, all), [text]);
    }

    #[test]
    fn long_texts_are_split_at_paragraphs_and_nothing_is_lost() {
        assert_eq!(
            adapt("one\n\ntwo\n\nthree", plain(8)),
            ["one\n\ntwo", "three"]
        );
        assert_eq!(adapt("aaaa\nbbbb\ncccc", plain(9)), ["aaaa\nbbbb", "cccc"]);
        assert_eq!(adapt("äöüäöü", plain(4)), ["äöüä", "öü"]);
        assert_eq!(adapt(" \n\n ", plain(4)), Vec::<String>::new());
        for width in 1..40 {
            let text = "some words here\n\nand there, äöü\nand a last line that is long";
            let pieces = adapt(text, plain(width));
            assert!(
                pieces.iter().all(|piece| piece.chars().count() <= width),
                "{pieces:?}"
            );
            let bare = |text: &str| text.split_whitespace().collect::<String>();
            assert_eq!(bare(&pieces.concat()), bare(text));
        }
    }
}
