//! Whether a program in another language that stands in arguments runs what it reads, or what it is given.

use super::code::inline_program;
use super::program;
use super::tables::STDIN_NAMES;
use crate::tools::exec::shell::Word;

/// Modules of Python that only print what they make of what they read.
const READING_MODULES: &[&str] = &["ast", "base64", "gzip", "json", "json.tool", "tokenize"];
/// All names that a line of Python may use for what it reads to be data: with no others it can neither run
/// nor write anything. A list of what is dangerous would never be whole.
const PLAIN_NAMES: &[&str] = &[
    "False",
    "None",
    "True",
    "all",
    "and",
    "any",
    "append",
    "argv",
    "bool",
    "body",
    "content",
    "count",
    "csv",
    "data",
    "dict",
    "doc",
    "dumps",
    "elif",
    "else",
    "endswith",
    "enumerate",
    "ensure_ascii",
    "filter",
    "float",
    "for",
    "get",
    "id",
    "if",
    "import",
    "in",
    "indent",
    "int",
    "is",
    "item",
    "items",
    "join",
    "json",
    "key",
    "keys",
    "lambda",
    "len",
    "line",
    "lines",
    "list",
    "load",
    "loads",
    "lower",
    "lstrip",
    "map",
    "max",
    "message",
    "min",
    "name",
    "names",
    "not",
    "obj",
    "or",
    "out",
    "print",
    "range",
    "re",
    "read",
    "reader",
    "readline",
    "readlines",
    "replace",
    "res",
    "resp",
    "result",
    "results",
    "reverse",
    "round",
    "row",
    "rows",
    "rstrip",
    "sep",
    "separators",
    "set",
    "sort_keys",
    "sorted",
    "split",
    "splitlines",
    "startswith",
    "status",
    "stdin",
    "str",
    "strip",
    "sum",
    "sys",
    "tag",
    "tags",
    "text",
    "total",
    "tuple",
    "upper",
    "url",
    "value",
    "values",
    "version",
    "zip",
];
/// Ways in which a program names what it reads.
const READING: &[&str] = &[
    "stdin",
    "STDIN",
    "input(",
    "readFileSync(0",
    "<>",
    "$<",
    "gets",
    "ARGF",
    "$_",
    "/dev/",
];

/// Programs in which a text in backquotes is a command.
const BACKQUOTING: &[&str] = &["perl", "ruby", "php"];

/// Ways to get at what has a name that is only known when a program runs: what it compares names to is
/// what it may look for.
const LOOKUPS: &[&str] = &[
    "getattr",
    "__",
    "globals",
    "locals",
    "vars(",
    "send",
    "method",
    "call_user_func",
    "Reflect",
];
/// What stands before a text that is compared, and what behind it.
const COMPARED_BEFORE: &[&str] = &[
    "==",
    "!=",
    "=~",
    " eq",
    " ne",
    ".includes(",
    ".include?(",
    "startswith(",
    "startsWith(",
    "endswith(",
    "endsWith(",
];
const COMPARED_BEHIND: &[&str] = &["in ", "not in ", "==", "!=", "=~"];
/// What runs a text in Lua, by names that are harmless elsewhere.
const LUA_RUNS: &[&str] = &["dofile", "execute", "load", "loadstring"];
/// What may stand behind `require` for it to be nothing that runs a text.
const FILES: &[&str] = &["(\"fs\")", "('fs')", "(\"node:fs\")", "('node:fs')"];

/// Whether an interpreter has all of its program in its arguments, and what it reads is surely data to that.
/// `words` are those of the whole command: a variable before it may change what it does.
pub(super) fn only_reads_data(words: &[Word]) -> bool {
    let is_plain = |word: &Word| !word.has_variable && !word.has_substitution;
    let Some((first, args)) = words.split_first() else {
        return false;
    };
    let is_python = program(first)
        .strip_prefix("python")
        .is_some_and(|version| version.chars().all(|it| it == '.' || it.is_ascii_digit()));
    let texts: Vec<&str> = args.iter().map(|word| word.text.as_str()).collect();
    let is_data = match texts.as_slice() {
        ["-m", module, ..] => READING_MODULES.contains(module),
        ["-c", code, ..] => has_plain_names(code),
        _ => false,
    };
    is_python
        && is_data
        && words.iter().all(is_plain)
        && !texts.iter().any(|it| STDIN_NAMES.contains(it))
}

/// Whether Python text uses no names but plain ones, and no signs that hide others.
pub(super) fn has_plain_names(code: &str) -> bool {
    let mut signs = code.chars().peekable();
    while let Some(sign) = signs.next() {
        match sign {
            '\'' | '"' => {
                let mut is_escaped = false;
                let mut ends = |it: &char| {
                    let is_end = *it == sign && !is_escaped;
                    is_escaped = *it == '\\' && !is_escaped;
                    is_end
                };
                let is_closed = signs.by_ref().any(|it| ends(&it));
                // Another one right behind it may make one long text of both: `'''…'''`.
                if !is_closed || matches!(signs.peek(), Some('\'' | '"')) {
                    return false;
                }
            }
            _ if sign == '_' || sign.is_ascii_alphabetic() => {
                let mut name = String::from(sign);
                let is_part = |it: &char| *it == '_' || it.is_ascii_alphanumeric();
                while let Some(part) = signs.next_if(is_part) {
                    name.push(part);
                }
                // A letter before a quote makes another string of it, which may hold code: `f"{…}"`.
                let is_prefix = matches!(signs.peek(), Some('\'' | '"'));
                let is_short = name.len() == 1;
                if is_prefix || !(is_short || PLAIN_NAMES.contains(&&*name)) {
                    return false;
                }
            }
            '\\' | '#' | '@' | '`' => return false,
            _ if !sign.is_ascii() => return false,
            _ => {}
        }
    }
    true
}

/// Whether the program in the arguments of an interpreter runs what it reads.
pub(super) fn runs_what_it_reads(name: &str, args: &[Word]) -> bool {
    let text = inline_program(args).unwrap_or_default();
    READING.iter().any(|it| text.contains(it)) && may_run(name, text)
}

/// Whether a program has a name in it of what runs a text.
pub(super) fn may_run(name: &str, code: &str) -> bool {
    let is_quoting =
        BACKQUOTING.contains(&name) && ["`", "qx", "%x"].iter().any(|it| code.contains(it));
    is_quoting
        || ["/ee", "Function("].iter().any(|it| code.contains(it))
        || has_running_name(name, code)
}

fn has_running_name(name: &str, code: &str) -> bool {
    let is_part = |sign: char| sign == '_' || sign.is_alphanumeric();
    // These look through all of it, so they are asked once.
    let looks_names_up = LOOKUPS.iter().any(|it| code.contains(it)) || calls_variable(code);
    let is_script = matches!(name, "node" | "deno" | "bun");
    let needs_files_only = is_script && needs_files_only(code);
    let mut end = 0;
    for piece in code.split_inclusive(|sign| !is_part(sign)) {
        let named = piece.trim_end_matches(|sign| !is_part(sign));
        let before = code.get(..end).unwrap_or_default();
        let behind = code.get(end + named.len()..).unwrap_or_default();
        let is_matching = || {
            let is_method = is_script && named == "exec" && before.ends_with('.');
            is_method && (needs_files_only || is_behind_pattern(before))
        };
        let is_compared = || !looks_names_up && is_compared(before, behind);
        let may_run = is_running(named) || (name == "lua" && LUA_RUNS.contains(&named));
        if may_run && !is_compared() && !is_matching() {
            return true;
        }
        end += piece.len();
    }
    false
}

/// `exec`, `execSync`, `instance_eval`; but neither `execute` nor `systemd`.
fn is_running(named: &str) -> bool {
    let named = named.to_ascii_lowercase();
    let is_begun = |it: &str, unlike: &str| named.starts_with(it) && !named.starts_with(unlike);
    is_begun("exec", "execut")
        || is_begun("eval", "evalu")
        || named.starts_with("spawn")
        || named.contains("popen")
        || ["_exec", "_eval"].iter().any(|it| named.ends_with(it))
        || matches!(&*named, "system" | "subprocess" | "proc_open" | "passthru")
}

/// Whether a name is nothing but a text that something is compared to: `'system' in line`. All other texts
/// may be what something is looked up by: `getattr(os, 'system')`, `$f = "system"; $f(…)`.
fn is_compared(before: &str, behind: &str) -> bool {
    let quote = before
        .chars()
        .next_back()
        .filter(|it| matches!(it, '\'' | '"'));
    let around = quote.and_then(|quote| {
        let before = before.strip_suffix(quote)?;
        Some((before.trim_end(), behind.strip_prefix(quote)?.trim_start()))
    });
    around.is_some_and(|(before, behind)| {
        COMPARED_BEFORE.iter().any(|it| before.ends_with(it))
            || COMPARED_BEHIND.iter().any(|it| behind.starts_with(it))
    })
}

/// `$f(…)`: what a variable names is called in PHP.
fn calls_variable(code: &str) -> bool {
    let is_part = |sign: char| sign == '_' || sign.is_alphanumeric();
    let mut named = code.split('$').skip(1);
    named.any(|it| it.trim_start_matches(is_part).trim_start().starts_with('('))
}

/// Whether a program in JavaScript has nothing at hand but what the language and `fs` have.
fn needs_files_only(code: &str) -> bool {
    let mut required = code.split("require").skip(1);
    let is_files = |behind: &str| FILES.iter().any(|it| behind.starts_with(it));
    let has_more = ["child", "shell", "import", "Module", "binding"]
        .iter()
        .any(|it| code.contains(it));
    !has_more && required.all(is_files)
}

/// `/a(.)/g.exec(line)`: whether a pattern stands before the dot, and no division.
fn is_behind_pattern(before: &str) -> bool {
    let flags = |sign: char| "dgimsuvy".contains(sign);
    let closed = before
        .strip_suffix('.')
        .and_then(|it| it.trim_end_matches(flags).strip_suffix('/'));
    let opened = closed.and_then(|it| it.rsplit_once('/'));
    opened.is_some_and(|(before, pattern)| {
        let before = before.trim_end();
        let is_value = before.is_empty()
            || before.ends_with(['(', '=', ',', ':', ';', '[', '!', '&', '|', '?']);
        // What looks like a pattern may be all that is between two texts.
        is_value && !pattern.is_empty() && !pattern.contains(['\'', '"', '`', '\n'])
    })
}

#[cfg(test)]
mod tests {
    use super::super::evasions::{asked, not_asked};
    use super::has_plain_names;

    /// What is read is run.
    const RUN: &[&str] = &[
        "cat x | python3 -c 'import sys; exec(sys.stdin.read())'",
        "cat x | python3 -c 'import sys; exec (sys.stdin.read())'",
        "cat x | python3 -c 'import os,sys; os.system(sys.stdin.read())'",
        "cat x | python3 -c 'import os,sys; getattr(os, \"system\")(sys.stdin.read())'",
        "cat x | python3 -c 'import os,sys; os.popen(sys.stdin.read())'",
        "cat x | python3 -c 'import subprocess as s,sys; s.run(sys.stdin.read(), shell=True)'",
        "cat x | node -e 'eval(require(\"fs\").readFileSync(0)+\"\")'",
        "cat x | node -e 'require(\"child_process\").exec(require(\"fs\").readFileSync(0)+\"\")'",
        "cat x | node -e 'require(\"child_process\").execSync(require(\"fs\").readFileSync(0)+\"\")'",
        "cat x | perl -ne 'eval $_'",
        "cat x | perl -ne '`$_`'",
        "cat x | ruby -e 'instance_eval STDIN.read'",
        "cat x | php -r 'shell_exec(fgets(STDIN));'",
        "cat x | php -r '$f=\"system\"; $f(fgets(STDIN));'",
        "cat x | php -r 'foreach (f() as $f) if ($f == \"system\") $f(fgets(STDIN));'",
        "cat x | ruby -e \"Kernel.send 'system', STDIN.read\"",
        "cat x | python3 -c \"import os,sys; o='system'; getattr(os,o)(sys.stdin.read())\"",
        "cat x | python3 -c \"import os,sys; [getattr(os,n)(sys.stdin.read()) for n in dir(os) if n == 'system']\"",
        "cat x | node -e 'const c=new (require(\"ssh2\").Client)(); c.exec(require(\"fs\").readFileSync(0)+\"\")'",
        "cat x | node -e 'const g=new (require(\"ssh2\").Client)(); 2/1/g.exec(require(\"fs\").readFileSync(0)+\"\")'",
        "cat x | node -e 'const g=new (require(\"ssh2\").Client)(), s=\"=/\"; 1/g.exec(require(\"fs\").readFileSync(0)+\"\")'",
        "cat x | node -e 'const r=require; r(\"ssh2\").c.exec(require(\"fs\").readFileSync(0)+\"\")'",
    ];
    const ONLY_READ: &[&str] = &[
        "ps aux | python3 -c \"import sys; [print(l) for l in sys.stdin if 'systemd' in l]\"",
        "ps aux | python3 -c \"import sys; [print(l) for l in sys.stdin if 'system' in l]\"",
        "cat f | node -e 'const s=require(\"fs\").readFileSync(0,\"utf8\"); console.log(/a(.)/.exec(s)[1])'",
        "cat f | node -e 'const m=require(\"moment\"), s=require(\"fs\").readFileSync(0,\"utf8\"); m(/a(.)/g.exec(s)[1])'",
        "cat f | node -e 'const s=require(\"node:fs\").readFileSync(0,\"utf8\"), r=/a/g; console.log(r.exec(s))'",
        "ps aux | python3 -c \"import sys; [print(l) for l in sys.stdin if 'system' not in l]\"",
        "ps aux | python3 -c \"import sys; [print(l) for l in sys.stdin if l.startswith('system')]\"",
        "ps aux | ruby -ne 'puts $_ if $_.split[0] == \"system\"'",
        "cat q.sql | python3 -c 'import sys,sqlite3; sqlite3.connect(\"x\").execute(sys.stdin.read())'",
        "cat f | python3 -c 'import sys; from concurrent.futures import Executor; print(sys.stdin.read())'",
        "cat f | python3 -c 'import sys; print(evaluate(sys.stdin.read()))'",
        "cat f | node -e 'const s=require(\"fs\").readFileSync(0,\"utf8\"); console.log(`${s}`)'",
        "cat f | perl -ne 'print if /systemctl/'",
    ];

    #[test]
    fn names_that_run_a_text_are_told_from_their_likes() {
        let wrong = not_asked(&[("unreadable_command", RUN)]);
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        let wrong = asked(ONLY_READ);
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn a_text_in_quotes_ends_where_python_says() {
        for code in [
            "import json, sys; print(json.load(sys.stdin)['a'])",
            "print('a', \"b\" + 'c')",
        ] {
            assert!(has_plain_names(code), "{code}");
        }
        for code in [
            "'''a' ''';breakpoint();\"'\";\"\"\"1\" \"\"\"",
            "\"\"\"a\"\"\"",
            "''''''",
            "'a''b'",
            "'a",
            "f'{exec(1)}'",
            "breakpoint()",
        ] {
            assert!(!has_plain_names(code), "{code}");
        }
    }
}
