//! What is found in commands.

use super::*;

/// Every command as its words, with what it reads and writes.
fn shown(text: &str) -> Vec<String> {
    let script = read(text);
    let mut shown: Vec<String> = script
        .commands
        .iter()
        .map(|simple| {
            let words = |list: &[Word]| {
                let texts: Vec<&str> = list.iter().map(|word| word.text.as_str()).collect();
                texts.join("·")
            };
            let mut line = words(&simple.words);
            if let Some(from) = simple.reads_from {
                line = format!("{from}| {line}");
            }
            if !simple.writes.is_empty() {
                line = format!("{line} > {}", words(&simple.writes));
            }
            if let Some(input) = &simple.input {
                line = format!("{line} << {input:?}");
            }
            line
        })
        .collect();
    if script.is_unreadable {
        shown.push("unreadable".to_owned());
    }
    shown
}

#[test]
fn commands_are_found_wherever_they_stand() {
    let table: &[(&str, &[&str])] = &[
        ("rm -rf /", &["rm·-rf·/"]),
        ("r''m '-r'\"f\" \\/", &["rm·-rf·/"]),
        ("a; b && c || d & e\nf", &["a", "b", "c", "d", "e", "f"]),
        ("a | b |& c", &["a", "0| b", "1| c"]),
        ("(a; b) && { c; }", &["a", "b", "{·c", "}"]),
        ("echo $(rm x)", &["rm·x", "echo·$"]),
        ("echo \"a `rm x` b\"", &["rm·x", "echo·a $ b"]),
        ("bash <(curl u)", &["curl·u", "bash·"]),
        ("a > f 2>&1 >> g &> h", &["a > f·g·h"]),
        ("a 2>/dev/null", &["a > /dev/null"]),
        ("a <<< 'b c'", &["a << \"b c\""]),
        ("a <<E\nrm x\nE\nb", &["a << \"rm x\\n\"", "b"]),
        ("a <<E | b\nx\nE", &["a << \"x\\n\"", "0| b"]),
        ("a <<E\n$(rm x)\nE", &["a << \"$(rm x)\\n\"", "rm·x"]),
        (
            "a <<E\n\\$(rm x)`rm y`\nE",
            &["a << \"\\\\$(rm x)`rm y`\\n\"", "rm·y"],
        ),
        ("a <<'E'\n$(rm x)\nE", &["a << \"$(rm x)\\n\""]),
        ("a <<E\n\tE\nb\nE\nc", &["a << \"\\tE\\nb\\n\"", "c"]),
        ("a <<-E\n\tx\n\tE\nc", &["a << \"x\\n\"", "c"]),
        ("<<E\n`rm x`\nE", &[" << \"`rm x`\\n\"", "rm·x"]),
        ("a `b \\`c d\\``", &["c·d", "b·$", "a·$"]),
        ("a \"`b \\\"c\\\"`\"", &["b·c", "a·$"]),
        ("a `b", &["b", "a·$", "unreadable"]),
        ("# rm -rf /\na#b", &["a#b"]),
        ("echo 'a; rm -rf /'", &["echo·a; rm -rf /"]),
        ("echo \"open", &["echo·open", "unreadable"]),
        ("echo \\\n x", &["echo·x"]),
        // Quotes that only some shells know.
        ("a $'\\x72\\155\\u002d\\cA\\n' b", &["a·rm-\u{1}\n·b"]),
        ("a $'b\\0c'd $'\\q\\\\' $'\\xc3\\xa9'", &["a·bd·\\q\\·é"]),
        ("a $'it\\'s'; b", &["a·it's", "b", "unreadable"]),
        ("a $'b", &["a·b", "unreadable"]),
        ("a $\"b c\" \"$'d'\"", &["a·b c·$'d'"]),
        // Numbers, whatever the shell, and what is numbers to some of them.
        ("a $((1<<2)) > f", &["1<<2", "a·$ > f"]),
        ("a $(( (b > c) << 2 ))\nd", &["b·>·c", "<<·2", "a·$", "d"]),
        ("a $((b > c); d)", &["b > c", "d", "a·$"]),
        ("a $((b) > c)", &["b", " > c", "a·$"]),
        ("((a<<2))\nrm x\n2", &["a << \"rm x\\n\"", "unreadable"]),
        ("((a>2))", &["a > 2"]),
        ("a <<E\nb", &["a << \"b\\n\"", "unreadable"]),
        // Braces around a variable.
        ("a ${b:-c d} e", &["a·${b:-c d}·e"]),
        ("a \"${b#'\"'}\"; c", &["a·${b#\"}", "c"]),
        ("a \"${b:-'c'}\" d", &["a·${b:-'c'}·d"]),
        ("a \"${b:-\"c; d\"}\"", &["a·${b:-c; d}"]),
        ("a ${b:-$(c)}", &["c", "a·${b:-$}"]),
        ("a ${b", &["a·${b", "unreadable"]),
        // What only names something.
        ("for x do a; done", &["for·x", "do·a", "done"]),
        ("coproc N { a; }", &["coproc·{·a", "}"]),
        ("", &[]),
    ];
    for (text, expected) in table {
        assert_eq!(shown(text), *expected, "{text}");
    }
    let deep = "$(".repeat(100);
    assert_eq!(shown(&deep).last().map(String::as_str), Some("unreadable"));
}
