//! Places where the grammar is known to read otherwise than bash. Such a text counts as unreadable.

use std::collections::HashSet;
use std::ops::Range;

use tree_sitter::Node;

use crate::limits::BRACKETS_MAX;
use crate::tree::Unsure;
use crate::word::Word;

/// Nodes whose text is not made of their children.
const WITH_TEXT: &[&str] = &[
    "string",
    "heredoc_body",
    "expansion",
    "translated_string",
    "simple_expansion",
    "arithmetic_expansion",
    "brace_expression",
    "extglob_pattern",
    "regex",
    "binary_expression",
    "unary_expression",
    "ternary_expression",
    "postfix_expression",
    "parenthesized_expression",
    "test_command",
    "subscript",
];
/// Nodes that a line's end would finish.
const ON_ONE_LINE: &[&str] = &[
    "command",
    "file_redirect",
    "herestring_redirect",
    "declaration_command",
    "unset_command",
];

fn ensure(holds: bool) -> Result<(), Unsure> {
    if holds { Ok(()) } else { Err(Unsure) }
}

/// Signs that the grammar skips and bash does not, and words that go on in the next line.
pub(crate) fn text(text: &str) -> Result<(), Unsure> {
    let foreign = |sign: char| {
        (sign.is_whitespace() || sign.is_control()) && !matches!(sign, ' ' | '\t' | '\n')
    };
    ensure(!text.contains(foreign))?;
    let mut open = 0_usize;
    for byte in text.bytes() {
        match byte {
            b'(' | b'[' | b'{' => open += 1,
            b')' | b']' | b'}' => open = open.saturating_sub(1),
            _ => {}
        }
        ensure(open <= BRACKETS_MAX)?;
    }
    for (at, _) in text.match_indices("\\\n") {
        let (before, after) = text.split_at_checked(at).ok_or(Unsure)?;
        let backslashes = before.len() - before.trim_end_matches('\\').len();
        if backslashes % 2 == 1 {
            continue;
        }
        let next = after.chars().nth(2);
        let mut back = before.chars().rev();
        let previous = back.next();
        let escaped = back.next() == Some('\\');
        let blank = |sign: Option<char>| sign.is_none_or(char::is_whitespace);
        let operator = previous.is_some_and(|it| "&|;".contains(it))
            && next.is_some_and(|it| it.is_alphanumeric() || "\"'-.".contains(it));
        ensure(!escaped && (blank(previous) || blank(next) || operator))?;
    }
    Ok(())
}

/// Between the parts of a node stands nothing but blanks, and no line ends within a command.
pub(crate) fn gaps(node: Node<'_>, text: &str) -> Result<(), Unsure> {
    let kind = node.kind();
    if node.child_count() == 0 || WITH_TEXT.contains(&kind) {
        return Ok(());
    }
    let glued = matches!(kind, "concatenation" | "variable_assignment");
    let one_line = ON_ONE_LINE.contains(&kind);
    let mut end = node.start_byte();
    let mut cursor = node.walk();
    let mut ends_apart = false;
    for child in node.children(&mut cursor) {
        // Behind an assignment or a redirection a word begins only after a blank.
        let word = !child.kind().ends_with("_redirect");
        let made_up = child.byte_range().is_empty();
        ensure(!(ends_apart && word && !made_up && child.start_byte() == end))?;
        let parts = [
            "variable_assignment",
            "file_redirect",
            "herestring_redirect",
        ];
        ends_apart = kind == "command" && parts.contains(&child.kind());
        let gap = text.get(end..child.start_byte()).ok_or(Unsure)?;
        let gap = gap.replace("\\\n", if glued { "\n" } else { " " });
        // The grammar drops the word `-` in front of a here-document: `python3 - <<E`.
        let gap = if kind == "redirected_statement" && gap.trim() == "-" {
            " "
        } else {
            &gap
        };
        ensure(gap.chars().all(|sign| matches!(sign, ' ' | '\t' | '\n')))?;
        ensure(!(glued && !gap.is_empty() || one_line && gap.contains('\n')))?;
        end = child.end_byte();
    }
    Ok(())
}

/// Every expansion that bash sees is one that the grammar has seen.
pub(crate) fn expansions(
    text: &str,
    known: &HashSet<usize>,
    quoted: &mut [Range<usize>],
) -> Result<(), Unsure> {
    quoted.sort_by_key(|range| range.start);
    let mut quoted = quoted.iter().peekable();
    let bytes = text.as_bytes();
    let mut escaped = false;
    for (at, byte) in bytes.iter().enumerate() {
        while quoted.next_if(|range| range.end <= at).is_some() {}
        if quoted.peek().is_some_and(|range| range.contains(&at)) {
            escaped = false;
            continue;
        }
        if escaped || *byte == b'\\' {
            escaped = !escaped;
            continue;
        }
        let opens = matches!(bytes.get(at + 1), Some(b'(' | b'{' | b'['));
        let expands = *byte == b'`' || *byte == b'$' && opens;
        ensure(!expands || known.contains(&at))?;
    }
    Ok(())
}

/// A comment begins where a word could begin.
pub(crate) fn comment(node: Node<'_>, text: &str) -> Result<(), Unsure> {
    let before = text.get(..node.start_byte()).ok_or(Unsure)?;
    let last = before.chars().next_back();
    ensure(last.is_none_or(|sign| " \t\n;&|()".contains(sign)) && !before.ends_with("\\ "))
}

/// A descriptor is a number of its own in front of a redirection.
pub(crate) fn apart(node: Node<'_>, text: &str) -> Result<(), Unsure> {
    comment(node, text)
}

/// `[` is a command: an operator in it ends it.
pub(crate) fn test(node: Node<'_>, text: &str) -> Result<(), Unsure> {
    let source = text.get(node.byte_range()).ok_or(Unsure)?;
    if source.starts_with("((") {
        return arithmetic(source);
    }
    if source.starts_with("[[") {
        return ensure(source.starts_with("[[ ") || source.starts_with("[[\t"));
    }
    ensure(source.starts_with("[ ") && source.ends_with(" ]") && !source.contains('\n'))?;
    let mut cursor = node.walk();
    loop {
        let here = cursor.node();
        let operators = ["&&", "||", "(", ")", "<", ">", "|", "&", ";"];
        ensure(!operators.contains(&here.kind()))?;
        let inside = here.kind().ends_with("_substitution") || here.kind().ends_with("expansion");
        if !inside && cursor.goto_first_child() {
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() || cursor.node() == node {
                return Ok(());
            }
        }
    }
}

/// Without balanced brackets bash takes `((` for two subshells.
pub(crate) fn arithmetic(source: &str) -> Result<(), Unsure> {
    let mut depth = 0_i64;
    for sign in source.chars() {
        match sign {
            '(' => depth += 1,
            ')' => depth -= 1,
            '\'' | '"' | '\\' | '#' | ';' => return Err(Unsure),
            _ => {}
        }
        ensure(depth >= 0)?;
    }
    ensure(depth == 0)?;
    // In arithmetic the last two brackets close the first two, not `((a) + (b))` alone.
    let inner = source.trim_start_matches('$');
    let Some(inner) = inner
        .strip_prefix("((")
        .and_then(|it| it.strip_suffix("))"))
    else {
        return Ok(());
    };
    let mut depth = 0_i64;
    for sign in inner.chars() {
        depth += i64::from(sign == '(') - i64::from(sign == ')');
        ensure(depth >= 0)?;
    }
    Ok(())
}

/// A here-document ends at the line that is its delimiter, which the grammar takes less strictly.
/// The answer is the body where nothing expands in it.
pub(crate) fn heredoc(node: Node<'_>, text: &str) -> Result<Option<Range<usize>>, Unsure> {
    let mut cursor = node.walk();
    let children: Vec<_> = node.children(&mut cursor).collect();
    let find = |kind: &str| children.iter().find(|child| child.kind() == kind);
    let start = find("heredoc_start").ok_or(Unsure)?;
    let end = find("heredoc_end").ok_or(Unsure)?;
    let raw = text.get(start.byte_range()).ok_or(Unsure)?;
    let quoted = |quote: char| raw.strip_prefix(quote)?.strip_suffix(quote);
    let bare = quoted('\'')
        .or_else(|| quoted('"'))
        .or_else(|| raw.strip_prefix('\\'));
    let tag = bare.unwrap_or(raw);
    let plain = |sign: char| sign.is_ascii_alphanumeric() || "_-.".contains(sign);
    ensure(!tag.is_empty() && tag.chars().all(plain))?;
    let strips = find("<<-").is_some();

    let rest = text.get(start.end_byte()..).ok_or(Unsure)?;
    let mut at = start.end_byte() + rest.find('\n').ok_or(Unsure)? + 1;
    // What stands on the first line has to end there, or the body begins elsewhere.
    for child in &children {
        let on_line = child.start_byte() < at;
        ensure(!on_line || child.end_byte() <= at)?;
    }
    let begin = at;
    let mut joined = false;
    loop {
        let line = text.get(at..).ok_or(Unsure)?;
        let line = line.split('\n').next().unwrap_or_default();
        let compared = if strips {
            line.trim_start_matches('\t')
        } else {
            line
        };
        if compared == tag && !joined {
            let found = text.get(end.byte_range()).ok_or(Unsure)?;
            let inside = end.start_byte() >= at && end.start_byte() <= at + line.len();
            ensure(inside && found.trim() == tag)?;
            return Ok(bare.is_some().then_some(begin..at));
        }
        ensure(at + line.len() < text.len() && at < end.end_byte())?;
        let backslashes = line.len() - line.trim_end_matches('\\').len();
        joined = bare.is_none() && backslashes % 2 == 1;
        at += line.len() + 1;
    }
}

/// The name in front of `=`, as bash takes it for an assignment.
pub(crate) fn assigned_name(source: &str) -> Option<&str> {
    let known = |sign: char| sign.is_ascii_alphanumeric() || sign == '_';
    let end = source.find(|sign| !known(sign))?;
    let (name, rest) = source.split_at_checked(end)?;
    let digit = name.starts_with(|sign: char| sign.is_ascii_digit());
    let assigns = rest.starts_with('=') || rest.starts_with("+=") || rest.starts_with('[');
    (!name.is_empty() && !digit && assigns).then_some(name)
}

/// Variables that make bash run or read something else later.
pub(crate) fn variable(name: &str, source: &str) -> Result<(), Unsure> {
    let changes = [
        "BASH_ALIASES",
        "BASH_CMDS",
        "POSIXLY_CORRECT",
        "SHELLOPTS",
        "BASHOPTS",
    ];
    let prompts = name == "PS4" && source.contains(['$', '`', '\\']);
    ensure(!changes.contains(&name) && !prompts)
}

/// Programs that change how bash reads what follows, or that run a text which they are given.
pub(crate) const GRAMMAR: &[&str] = &[
    "alias",
    "shopt",
    "set",
    "enable",
    "hash",
    ".",
    "source",
    "compgen",
    "complete",
    "mapfile",
    "readarray",
    "jobs",
    "bind",
    "fc",
];

/// Builtins that change how bash reads what follows.
pub(crate) fn changes_the_grammar(words: &[Word], text: &str) -> Result<(), Unsure> {
    let Some(name) = words.first().and_then(Word::literal) else {
        return Ok(());
    };
    let arguments = words.get(1..).unwrap_or_default();
    let any = |options: &[&str]| {
        let is_one = |word: &Word| options.iter().any(|it| word.shown().starts_with(it));
        arguments.iter().any(is_one)
    };
    let changes = match &*name {
        "alias" | "bind" | "fc" => true,
        "shopt" => any(&["expand_aliases", "extglob", "$"]) || any(&["\""]),
        "set" => {
            let cluster = |word: &Word| {
                let word = word.shown();
                word.starts_with(['-', '+']) && word.contains(['H', '$']) && !word.starts_with("--")
            };
            any(&["hist", "posix"]) || arguments.iter().any(cluster)
        }
        "enable" | "hash" => any(&["-"]),
        "compgen" | "complete" | "mapfile" | "readarray" => any(&["-C"]),
        "jobs" => any(&["-x"]),
        "." | "source" => {
            let odd = |word: &Word| {
                let raw = word.raw();
                raw.contains("<(") || raw.contains("/dev/") || raw.contains("/proc/")
            };
            let fed = text.contains("<<") && arguments.iter().any(|it| it.literal().is_none());
            arguments.iter().any(odd) || fed
        }
        _ => false,
    };
    ensure(!changes)
}
