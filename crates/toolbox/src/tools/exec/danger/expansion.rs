//! What stands in a word for something else: `$a`, `${a}`, `${a[@]}`, `${a:-b}`.

/// A part of a word.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Part<'t> {
    Text(&'t str),
    Variable(Variable<'t>),
    /// What a command prints, or an expansion that is not read.
    Unread,
}

/// A variable in a word.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Variable<'t> {
    pub(super) name: &'t str,
    pub(super) form: Form<'t>,
}

/// What becomes of what the variable holds.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Form<'t> {
    AsItIs,
    /// All that a list holds, each a word of its own: `$@`, `${a[@]}`, `${@:2}`. What is behind its
    /// name says which of them.
    List(&'t str),
    /// This, where it holds nothing.
    Or(&'t str),
    /// The same, and from then on it holds that: `${a:=b}`.
    Set(&'t str),
    /// A number: `${#a}`.
    Length,
    /// Something else is made of it by what is behind its name: `${a%x}`.
    Changed(&'t str),
}

/// The parts of a word. A `$` that was quoted is taken for one that was not.
pub(super) fn parts(text: &str) -> Vec<Part<'_>> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('$') {
        if !before.is_empty() {
            found.push(Part::Text(before));
        }
        let (part, left) = variable(behind);
        found.push(part);
        rest = left;
    }
    if !rest.is_empty() {
        found.push(Part::Text(rest));
    }
    found
}

/// The variable behind a `$`, and what is left of the word.
fn variable(text: &str) -> (Part<'_>, &str) {
    if let Some(braced) = text.strip_prefix('{') {
        return match end_of_brace(braced) {
            Some(at) => {
                let (inner, left) = braced.split_at(at);
                (within_braces(inner), left.strip_prefix('}').unwrap_or(left))
            }
            // It goes on in the next word.
            None => (Part::Unread, ""),
        };
    }
    let (name, left) = named(text);
    if name.is_empty() {
        return (Part::Unread, text);
    }
    let form = match name {
        "@" | "*" => Form::List(""),
        "#" | "?" | "$" | "!" => Form::Length,
        _ => Form::AsItIs,
    };
    (Part::Variable(Variable { name, form }), left)
}

fn within_braces(inner: &str) -> Part<'_> {
    let counted = inner.strip_prefix('#').filter(|name| !name.is_empty());
    let (name, behind) = whole_name(counted.unwrap_or(inner));
    if name.is_empty() {
        return Part::Unread;
    }
    let form = match behind {
        _ if counted.is_some() => Form::Length,
        "" if matches!(name, "@" | "*") => Form::List(""),
        "" => Form::AsItIs,
        _ => form(name, behind),
    };
    Part::Variable(Variable { name, form })
}

/// What stands behind the name in braces.
fn form<'t>(name: &str, behind: &'t str) -> Form<'t> {
    // Of anything but the arguments it is a part of the text.
    let is_slice = |text: &str| {
        matches!(name, "@" | "*")
            && text.strip_prefix(':').is_some_and(|it| {
                it.trim_start()
                    .starts_with(|sign: char| sign.is_ascii_digit())
            })
    };
    if behind.starts_with('[') && behind.ends_with(']') || is_slice(behind) {
        return Form::List(behind);
    }
    let instead = behind.strip_prefix(':').unwrap_or(behind);
    match instead.split_at_checked(1) {
        Some(("-" | "+", text)) => Form::Or(text),
        Some(("=", text)) => Form::Set(text),
        // Where it holds nothing, nothing goes on.
        Some(("?", _)) => Form::AsItIs,
        _ => Form::Changed(behind),
    }
}

/// As much of the text as is a name, and the rest: after a bare `$`, where a number has one digit.
fn named(text: &str) -> (&str, &str) {
    let is_single = |sign: char| sign.is_ascii_digit() || "@*#?$!".contains(sign);
    match text.chars().next() {
        Some(first) if is_single(first) => text.split_at(1),
        _ => whole_name(text),
    }
}

fn whole_name(text: &str) -> (&str, &str) {
    if text.starts_with(['@', '*']) {
        return text.split_at(1);
    }
    let is_sign = |sign: char| sign == '_' || sign.is_ascii_alphanumeric();
    let end = text.find(|sign| !is_sign(sign)).unwrap_or(text.len());
    text.split_at(end)
}

/// Where the brace ends that is open.
fn end_of_brace(text: &str) -> Option<usize> {
    let mut open = 1_usize;
    for (at, sign) in text.char_indices() {
        match sign {
            '{' => open += 1,
            '}' => open -= 1,
            _ => {}
        }
        if open == 0 {
            return Some(at);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_taken_apart() {
        let variable = |name, form| Part::Variable(Variable { name, form });
        let table = [
            ("", vec![]),
            ("plain", vec![Part::Text("plain")]),
            ("$a", vec![variable("a", Form::AsItIs)]),
            (
                "x${a}y$b",
                vec![
                    Part::Text("x"),
                    variable("a", Form::AsItIs),
                    Part::Text("y"),
                    variable("b", Form::AsItIs),
                ],
            ),
            ("$10", vec![variable("1", Form::AsItIs), Part::Text("0")]),
            ("$@", vec![variable("@", Form::List(""))]),
            ("${@:2}", vec![variable("@", Form::List(":2"))]),
            ("${a:2}", vec![variable("a", Form::Changed(":2"))]),
            ("${a[@]}", vec![variable("a", Form::List("[@]"))]),
            ("${#a[@]}", vec![variable("a", Form::Length)]),
            ("$#", vec![variable("#", Form::Length)]),
            ("${a:-b}", vec![variable("a", Form::Or("b"))]),
            ("${a-${b}}", vec![variable("a", Form::Or("${b}"))]),
            ("${a:=b}", vec![variable("a", Form::Set("b"))]),
            ("${a:?}", vec![variable("a", Form::AsItIs)]),
            ("${a?not set}", vec![variable("a", Form::AsItIs)]),
            ("${a%x}", vec![variable("a", Form::Changed("%x"))]),
            ("${!a}", vec![Part::Unread]),
            ("$", vec![Part::Unread]),
            ("${a:-b", vec![Part::Unread]),
        ];
        for (text, expected) in table {
            assert_eq!(parts(text), expected, "{text}");
        }
    }
}
