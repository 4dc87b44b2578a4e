//! What secrets look like and what they are called, in text.

use std::ops::Range;
use std::sync::LazyLock;

use regex::{Captures, Regex};

use super::extent::{self, Reach};
use super::names::{self, FieldNames};
use super::{REDACTED, REDACTED_EMAIL};

/// One expression, so that clean text is read once. Where two parts match at the same place the
/// first wins. No part may need a second look that could decline a long match: what a match has
/// covered is not searched again, and rescanning it would not be linear.
const PATTERN: &str = r#"(?x)
  (?<whole>
    -----BEGIN[\x20A-Z0-9]*PRIVATE\x20KEY(?:\x20BLOCK)?-----
      (?s:.*?) (?: -----END[\x20A-Z0-9]*PRIVATE\x20KEY(?:\x20BLOCK)?----- | \z )
  | (?-u:\b)(?:sk|rk|pk)[-_] (?:
      [a-z_-]*[A-Z0-9][A-Za-z0-9_-]{12,}
    | [A-Za-z0-9_-]{6,}[A-Z0-9][A-Za-z0-9_-]{6,}
    | [A-Za-z0-9_-]{12,}[A-Z0-9][A-Za-z0-9_-]* )
  | whsec_[A-Za-z0-9+/]{16,}
  | gh[pousr]_[A-Za-z0-9]{16,}
  | github_pat_[A-Za-z0-9_]{16,}
  | glpat-[A-Za-z0-9_-]{16,}
  | xox[a-z]-[A-Za-z0-9-]{10,}
  | xapp-[A-Za-z0-9-]{10,}
  | (?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}
  | AIza[A-Za-z0-9_-]{30,}
  | ya29\.[A-Za-z0-9_-]{20,}
  | (?:npm|hf)_[A-Za-z0-9]{30,}
  | pypi-[A-Za-z0-9_-]{30,}
  | dop_v1_[a-f0-9]{40,}
  | eyJ[A-Za-z0-9_-]{6,}\.[A-Za-z0-9_-]{6,}(?:\.[A-Za-z0-9_-]*)*
  | (?-u:\b)[0-9]{8,10}:[A-Za-z0-9_-]{35,}
  )
| hooks\.slack\.com/services/(?<path>[A-Za-z0-9/]+)
| ://(?<user>[^\s/:@"'<>`]*:
    (?: [^\s/"'<>`]* | [0-9]*[^0-9\s/@"'<>`?\#][^\s@"'<>`]* ) )@
| (?-u:\b)(?i:bearer|basic)[\x20\t]+
    (?<credential>
      [A-Za-z0-9._~+/-][a-z._~+/-]*[A-Z0-9=][A-Za-z0-9._~+/=-]{5,}
    | [A-Za-z0-9._~+/=-]{24,} )
| (?<email>
    (?<local>[A-Za-z0-9._%+\x{C0}-\x{24F}-]+)@(?:[A-Za-z0-9-]+\.)+[A-Za-z]{2,} )
| (?<name>(?i:
    pass(?:words?|wd|phrase|code) | pwd | secrets? | token | jwt
  | (?:api|access|secret|private|signing|encryption|account|auth)[-_.\x20]?keys?(?:[-_]?id)?
  | authorization | cookies? | credentials? | (?:amz|goog)-signature ))
  (?: (?<pair> \\*["'`]? \s* (?: => | := | ={1,2} | : ) \s* )
    | (?<argument> \\*["'],\s* | [\x20\t]+ ) )
| (?:^|[\s"'])(?<short>-p|-u|--user)(?:[\x20\t]+|=|(?<attached>[^\s"'-]))
"#;

/// Any name with a value: only looked for when there are configured names.
const FIELD_PATTERN: &str = r#"(?x)
  (?<name>[\p{Alphabetic}\p{Nd}_.-]+) (?<pair> \\*["'`]? \s* (?: => | := | ={1,2} | : ) \s* )
"#;

#[expect(
    clippy::expect_used,
    reason = "a constant pattern, compiled by every test of this module"
)]
fn compiled(pattern: &str) -> Regex {
    Regex::new(pattern).expect("the pattern is valid")
}

static REGEX: LazyLock<Regex> = LazyLock::new(|| compiled(PATTERN));
static FIELD_REGEX: LazyLock<Regex> = LazyLock::new(|| compiled(FIELD_PATTERN));

/// How much of a line is searched for the command that a short flag belongs to.
const COMMAND_BYTES_MAX: usize = 256;

/// What a match turned out to be.
enum Finding {
    Secret(Range<usize>, &'static str),
    /// Nothing to hide; go on at this position.
    Nothing(usize),
}

/// Replaces everything the pattern knows; `None` when nothing changed.
pub(super) fn redact(text: &str) -> Option<String> {
    rewrite(&REGEX, text, |found| judge(text, found))
}

/// Replaces the values of configured fields; `None` when nothing changed.
pub(super) fn redact_fields(text: &str, fields: &FieldNames) -> Option<String> {
    rewrite(&FIELD_REGEX, text, |found| {
        let (name, pair) = (found.name("name")?, found.name("pair")?);
        if !fields.contains(name.as_str()) {
            return Some(Finding::Nothing(pair.end()));
        }
        Some(judge_pair(text, name.end(), pair.range(), Reach::Word))
    })
}

fn rewrite(
    regex: &Regex,
    text: &str,
    judge: impl Fn(&Captures<'_>) -> Option<Finding>,
) -> Option<String> {
    let mut out = String::new();
    let mut copied = 0;
    let mut at = 0;
    while let Some(found) = regex.captures_at(text, at) {
        let whole = found.get_match();
        match judge(&found).unwrap_or(Finding::Nothing(whole.end())) {
            Finding::Secret(range, replacement) => {
                out.push_str(&text[copied..range.start]);
                out.push_str(replacement);
                copied = range.end;
                at = range.end;
            }
            Finding::Nothing(next) => at = next,
        }
        debug_assert!(at > whole.start(), "every step goes forward");
    }
    if copied == 0 {
        return None;
    }
    out.push_str(&text[copied..]);
    Some(out)
}

fn judge(text: &str, found: &Captures<'_>) -> Option<Finding> {
    for group in ["whole", "path", "user", "credential"] {
        if let Some(secret) = found.name(group) {
            return Some(Finding::Secret(secret.range(), REDACTED));
        }
    }
    if let Some(email) = found.name("email") {
        let local = found.name("local")?;
        // `git@github.com` is how repositories are addressed.
        if local.as_str() == "git" {
            return Some(Finding::Nothing(local.end()));
        }
        return Some(Finding::Secret(email.range(), REDACTED_EMAIL));
    }
    if let Some(flag) = found.name("short") {
        let value = found
            .name("attached")
            .map_or(found.get_match().end(), |m| m.start());
        return Some(judge_short_flag(text, flag.range(), value));
    }
    let name = found.name("name")?;
    if let Some(pair) = found.name("pair") {
        let is_header = ["authorization", "cookie"]
            .iter()
            .any(|header| name.as_str().to_ascii_lowercase().starts_with(header));
        let is_colon = pair.as_str().contains(':');
        let reach = if is_header && is_colon {
            Reach::Line
        } else {
            Reach::Word
        };
        return Some(judge_pair(text, name.end(), pair.range(), reach));
    }
    let argument = found.name("argument")?;
    Some(judge_flag(text, name.end(), argument.range()))
}

/// `name = value`, `name: value`, `"name": "value"`.
fn judge_pair(text: &str, name_end: usize, pair: Range<usize>, reach: Reach) -> Finding {
    let nothing = Finding::Nothing(pair.end);
    let name = extent::name_before(text, name_end);
    let separator = &text[pair.clone()];
    if name.quote.is_none() && separator.contains('\n') {
        // The value of a bare name stands on its line; what comes next is another one.
        return nothing;
    }
    let Some(secret) = extent::secret_at(text, pair.end, reach, &name) else {
        return nothing;
    };
    let value = &text[secret.clone()];
    if names::is_working_directory(name.text, value)
        || extent::is_said_of_a_file(text, name_end, pair.clone())
    {
        return nothing;
    }
    // "unexpected token: identifier" is a parser speaking, not somebody's token.
    let is_spoken = name.quote.is_none()
        && separator.ends_with([' ', '\t'])
        && name.text.eq_ignore_ascii_case("token");
    if is_spoken
        && !value
            .bytes()
            .any(|b| b.is_ascii_digit() || b.is_ascii_uppercase())
    {
        return nothing;
    }
    Finding::Secret(secret, REDACTED)
}

/// `--name value`, and the same in a quoted list of arguments.
fn judge_flag(text: &str, name_end: usize, argument: Range<usize>) -> Finding {
    let nothing = Finding::Nothing(argument.end);
    let name = extent::name_before(text, name_end);
    // In prose the words behind a flag explain it.
    let rest = &text[argument.end..];
    let is_prose = ["flag", "option", "argument", "is ", "and ", "or ", "to "]
        .iter()
        .any(|word| rest.starts_with(word));
    if !name.text.starts_with('-') || is_prose || rest.starts_with('-') {
        return nothing;
    }
    match extent::secret_at(text, argument.end, Reach::Word, &name) {
        Some(secret) => Finding::Secret(secret, REDACTED),
        None => nothing,
    }
}

/// `-p` and `-u` mean a password only behind some commands.
fn judge_short_flag(text: &str, flag: Range<usize>, value: usize) -> Finding {
    let nothing = Finding::Nothing(flag.end);
    let mut from = flag.start.saturating_sub(COMMAND_BYTES_MAX);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    let before = &text[from..flag.start];
    let line = before.rsplit('\n').next().unwrap_or(before);
    let behind = |commands: &[&str]| commands.iter().any(|command| line.contains(command));
    let is_attached = value == flag.end;
    let applies = match &text[flag.clone()] {
        "-p" if is_attached => behind(&["mysql", "mariadb", "sshpass"]),
        "-p" => behind(&["sshpass", "docker login", "podman login", "registry login"]),
        _ => behind(&["curl"]),
    };
    let name = extent::name_before(text, flag.end);
    let Some(secret) = extent::secret_at(text, value, Reach::Word, &name) else {
        return nothing;
    };
    let is_password = &text[flag] == "-p";
    let after_user = text[secret.clone()]
        .find(':')
        .map(|colon| secret.start + colon + 1);
    match after_user {
        _ if !applies => nothing,
        _ if is_password => Finding::Secret(secret, REDACTED),
        Some(start) if start < secret.end && !text[start..].starts_with(REDACTED) => {
            Finding::Secret(start..secret.end, REDACTED)
        }
        _ => nothing,
    }
}
