//! Text that is there and not said: comments, what was struck out, and what is marked up as code,
//! a quotation or an example.

use memchr::memmem;

use crate::steps::visit;

/// What hides, from its opener to its closer.
const HIDING: &[(&str, &str)] = &[
    ("<!--", "-->"),
    ("<del>", "</del>"),
    ("<s>", "</s>"),
    ("<strike>", "</strike>"),
    ("<blockquote>", "</blockquote>"),
    ("<code>", "</code>"),
    ("<example>", "</example>"),
    ("<examples>", "</examples>"),
    ("<tool_result>", "</tool_result>"),
    ("<tool_results>", "</tool_results>"),
    ("<tool_response>", "</tool_response>"),
    ("<tool_output>", "</tool_output>"),
    ("<function_result>", "</function_result>"),
    ("<function_results>", "</function_results>"),
    ("<result>", "</result>"),
    ("<output>", "</output>"),
    ("<observation>", "</observation>"),
    ("<document>", "</document>"),
    ("<webpage>", "</webpage>"),
    ("<page>", "</page>"),
    ("<file>", "</file>"),
    ("<email>", "</email>"),
    ("<quote>", "</quote>"),
    ("<user>", "</user>"),
    ("/*", "*/"),
];

/// The hidden places, sorted and apart. What nobody closes hides nothing.
pub(crate) fn regions(text: &str) -> Vec<[usize; 2]> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    visit(text.len());
    // What has no closer once has none later either.
    let mut closes = [true; HIDING.len()];
    let mut at = 0;
    while let Some(next) = memchr::memchr3(b'<', b'~', b'/', &bytes[at..]) {
        let start = at + next;
        at = start + 1;
        if bytes[start] == b'~' {
            if let Some(end) = struck_out(text, start) {
                found.push([start, end]);
                at = end;
            }
            continue;
        }
        let kind = HIDING.iter().position(|(open, _)| {
            bytes[start..]
                .get(..open.len())
                .is_some_and(|head| head.eq_ignore_ascii_case(open.as_bytes()))
        });
        let Some(kind) = kind.filter(|kind| closes[*kind]) else {
            continue;
        };
        let (open, close) = HIDING[kind];
        // In a path the same two marks are no comment.
        if open == "/*" && start > 0 && !bytes[start - 1].is_ascii_whitespace() {
            continue;
        }
        let from = start + open.len();
        if let Some(end) = memmem::find(&bytes[from..], close.as_bytes()) {
            visit(end);
            at = from + end + close.len();
            found.push([start, at]);
        } else {
            visit(bytes.len() - from);
            closes[kind] = false;
        }
    }
    let quoted = quotations(text, &found);
    found.extend(quoted);
    found.sort_unstable();
    found
}

/// Lines of a quotation, at most.
const QUOTED_LINES_MAX: usize = 12;

/// Quotations of several lines, each from a mark that begins a line below words that introduce it to a mark that
/// ends a line. `found` are the places, sorted and apart, that are hidden already: no quotation reaches
/// into one of them.
fn quotations(text: &str, found: &[[usize; 2]]) -> Vec<[usize; 2]> {
    let is_apart = |start: usize, end: usize| {
        let next = found.partition_point(|[_, to]| *to <= start);
        found.get(next).is_none_or(|[from, _]| *from >= end)
    };
    let mut quoted = Vec::new();
    let mut from = 0;
    while let Some(next) = memmem::find(&text.as_bytes()[from..], b":\n\"") {
        let start = from + next + 2;
        visit(next);
        from = start + 1;
        let mut end = start;
        for (number, line) in text[start..]
            .split_inclusive('\n')
            .take(QUOTED_LINES_MAX)
            .enumerate()
        {
            visit(line.len());
            end += line.len();
            if line.trim().is_empty() {
                break;
            }
            let closed = line.trim_end().ends_with('"');
            if closed && number > 0 && is_apart(start, end) {
                quoted.push([start, end]);
                from = end;
            }
            if closed {
                break;
            }
        }
    }
    quoted
}

/// The end of `~~…~~` on one line that opens at `at`; three of them are a block.
fn struck_out(text: &str, at: usize) -> Option<usize> {
    let rest = text[at..].strip_prefix("~~")?;
    if rest.starts_with('~') || rest.starts_with(char::is_whitespace) {
        return None;
    }
    // The next pair ends the look, so that no byte is looked at more than twice.
    let close = memmem::find(rest.as_bytes(), b"~~")?;
    visit(2 * close);
    (!rest[..close].contains('\n')).then_some(at + 2 + close + 2)
}

#[cfg(test)]
mod tests {
    use super::regions;

    #[test]
    fn what_is_closed_hides() {
        let text = "a <!-- b --> c ~~d~~ ~~~ <DEL>e</del> <s>open <!-- open";
        let shown: Vec<&str> = regions(text)
            .iter()
            .map(|[from, to]| &text[*from..*to])
            .collect();
        assert_eq!(shown, ["<!-- b -->", "~~d~~", "<DEL>e</del>"]);
    }
}
