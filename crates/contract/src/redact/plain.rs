//! Short plain names and ids, which make up most of a log line, told apart without the pattern.
//!
//! The pattern looks at each of them for about a microsecond. Most can not match it for reasons that
//! are seen in one pass: nearly all of its parts need a blank, a quote, `@`, `=` or `/`, and the
//! others need one of a few beginnings, or a secret's name in front of a colon.

/// Longer texts go to the pattern. Below the shortest token that only digits and a colon begin.
const PLAIN_BYTES_MAX: usize = 43;

/// How the tokens begin that the pattern knows by their looks. Shorter than there, where a shorter
/// beginning says enough.
const TOKEN_STARTS: [&[u8]; 24] = [
    b"sk-", b"sk_", b"rk-", b"rk_", b"pk-", b"pk_", b"whsec_", b"gh", b"glpat-", b"github_",
    b"xox", b"xapp-", b"AKIA", b"ASIA", b"ABIA", b"ACCA", b"AIza", b"ya29", b"npm_", b"hf_",
    b"pypi-", b"dop_", b"eyJ", b"-----",
];

/// How the names end whose values are secret, in lower case.
const NAME_ENDS: [&[u8]; 17] = [
    b"word",
    b"words",
    b"wd",
    b"phrase",
    b"code",
    b"secret",
    b"secrets",
    b"token",
    b"jwt",
    b"key",
    b"keys",
    b"id",
    b"authorization",
    b"cookie",
    b"cookies",
    b"credential",
    b"signature",
];

/// Whether the pattern certainly finds nothing in the text. `false` says nothing.
pub(super) fn is_clean(text: &str) -> bool {
    let bytes = text.as_bytes();
    if bytes.len() > PLAIN_BYTES_MAX {
        return false;
    }
    bytes.iter().enumerate().all(|(at, byte)| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'-' => !starts_token(&bytes[at..]),
        b'0'..=b'9' | b'.' | b'_' => true,
        b':' => !ends_secret_name(&bytes[..at]),
        _ => false,
    })
}

fn starts_token(rest: &[u8]) -> bool {
    // One look at the first byte spares most positions the list.
    matches!(
        rest[0],
        b's' | b'r' | b'p' | b'w' | b'g' | b'x' | b'A' | b'y' | b'n' | b'h' | b'd' | b'e' | b'-'
    ) && TOKEN_STARTS.iter().any(|start| rest.starts_with(start))
}

fn ends_secret_name(before: &[u8]) -> bool {
    NAME_ENDS.iter().any(|end| {
        before
            .len()
            .checked_sub(end.len())
            .is_some_and(|at| before[at..].eq_ignore_ascii_case(end))
    }) || ends_plural_credential(before)
}

fn ends_plural_credential(before: &[u8]) -> bool {
    before
        .last()
        .is_some_and(|last| last.eq_ignore_ascii_case(&b's'))
        && before.len() > 1
        && ends_secret_name(&before[..before.len() - 1])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::*;
    use crate::redact::patterns;

    #[test]
    fn names_and_ids_need_no_pattern() {
        for text in [
            "send_message",
            "0198c0de-0000-7000-8000-000000000042",
            "01J9ZK3V5QX8W2B4N6M7P0R1ST",
            "agent:main:session-0042",
            "user-17",
            "",
        ] {
            assert!(is_clean(text), "{text}");
        }
    }

    #[test]
    fn what_looks_or_is_called_like_a_secret_goes_to_the_pattern() {
        for text in [
            "sk-abcdef1234567890",
            "main:sk_live_4242424242424242",
            "agent:token:abc123",
            "API-KEY:k17",
            "ghp_abcdefghijklmnop1234",
            "ann@example.com",
            "password=hunter2",
            "Bearer abcdef123456",
        ] {
            assert!(!is_clean(text), "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_clean_text_is_one_that_the_pattern_leaves_alone(
            parts in prop::collection::vec(
                prop_oneof![
                    "[A-Za-z0-9._:-]{0,12}",
                    "[A-Z0-9]{16,20}",
                    "[a-z0-9]{16,20}",
                    select(&[
                        "sk-", "sk_", "rk-", "pk_", "whsec_", "ghp_", "gho_", "github_pat_", "glpat-",
                        "xoxb-", "xapp-", "AKIA", "ASIA", "ABIA", "ACCA", "AIza", "ya29.", "npm_",
                        "hf_", "pypi-", "dop_v1_", "eyJ", "12345678:", "-p", "-u", "--user", ":",
                        "password", "passwords", "Passwd", "passphrase", "passcode", "pwd", "secret",
                        "secrets", "TOKEN", "jwt", "api-key", "access_keys", "secret.key-id",
                        "private_key_id", "auth-keys", "authorization", "cookie", "cookies",
                        "credential", "credentials", "amz-signature", "goog-signature", "://",
                        "bearer ", "git@github.com", "=", " ",
                    ][..]).prop_map(str::to_owned),
                ],
                0..5,
            ),
        ) {
            let text = parts.concat();
            if is_clean(&text) {
                prop_assert_eq!(patterns::redact(&text), None);
            }
        }
    }
}
