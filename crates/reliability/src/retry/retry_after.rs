//! The `Retry-After` header.

use std::time::UNIX_EPOCH;

/// Longest wait that is believed. It is longer than any retry deadline that can be configured,
/// so that the cut never turns "not within your time" into "in time".
pub const RETRY_AFTER_MS_MAX: u64 = 24 * 60 * 60 * 1_000;

/// Reads a `Retry-After` value, seconds or an HTTP date, as a wait from `now_ms` on.
///
/// A date that has passed is no wait. Anything else that the header's grammar does not know
/// (fractions, signs, units) is ignored, because a misread wait is worse than our own backoff.
///
/// ```
/// use holdfast_reliability::retry::parse_retry_after;
///
/// assert_eq!(parse_retry_after("7", 0), Some(7_000));
/// // 784111777 s is the date in this example of the HTTP specification.
/// let now_ms = 784_111_770_000;
/// assert_eq!(parse_retry_after("Sun, 06 Nov 1994 08:49:37 GMT", now_ms), Some(7_000));
/// assert_eq!(parse_retry_after("soon", now_ms), None);
/// ```
pub fn parse_retry_after(value: &str, now_ms: u64) -> Option<u64> {
    let value = value.trim_matches([' ', '\t']);
    let wait_ms = if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) {
        // A number too large for the type is still a number, and a very long wait.
        value
            .parse::<u64>()
            .unwrap_or(u64::MAX)
            .saturating_mul(1_000)
    } else {
        let date = httpdate::parse_http_date(value).ok()?;
        let since_epoch = date.duration_since(UNIX_EPOCH).ok()?;
        let at_ms = u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX);
        at_ms.saturating_sub(now_ms)
    };
    Some(wait_ms.min(RETRY_AFTER_MS_MAX))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::retry::policy::ELAPSED_MS_MAX;

    /// Sun, 06 Nov 1994 08:49:37 GMT.
    const DATE_MS: u64 = 784_111_777_000;

    // The cut must not make an unacceptable wait acceptable.
    const _: () = assert!(RETRY_AFTER_MS_MAX > ELAPSED_MS_MAX);

    #[test]
    fn values_are_read_as_the_header_defines_them() {
        #[track_caller]
        fn check(value: &str, expected: Option<u64>) {
            assert_eq!(
                parse_retry_after(value, DATE_MS - 500),
                expected,
                "{value:?}"
            );
        }
        check("0", Some(0));
        check("120", Some(120_000));
        check(" 2\t", Some(2_000));
        check("007", Some(7_000));
        check("86400", Some(RETRY_AFTER_MS_MAX));
        check("86401", Some(RETRY_AFTER_MS_MAX));
        check("18446744073709551616", Some(RETRY_AFTER_MS_MAX));
        check(&"9".repeat(400), Some(RETRY_AFTER_MS_MAX));
        check("Sun, 06 Nov 1994 08:49:37 GMT", Some(500));
        check("Sunday, 06-Nov-94 08:49:37 GMT", Some(500));
        check("Sun Nov  6 08:49:37 1994", Some(500));
        check("Sun, 06 Nov 1994 08:49:36 GMT", Some(0));
        check("Fri, 31 Dec 9999 23:59:59 GMT", Some(RETRY_AFTER_MS_MAX));
        for bad in [
            "",
            " ",
            "-1",
            "+1",
            "1.5",
            "1s",
            "1e3",
            "soon",
            "NaN",
            "٣",
            "1 2",
            "1,2",
            "Sun, 06 Nov 1994 08:49:37 CET",
            "Sun, 32 Nov 1994 08:49:37 GMT",
            "1994-11-06",
        ] {
            check(bad, None);
        }
    }

    proptest! {
        #[test]
        fn nothing_panics_and_the_cap_holds(value in "\\PC*", now_ms: u64) {
            prop_assert!(parse_retry_after(&value, now_ms).is_none_or(|ms| ms <= RETRY_AFTER_MS_MAX));
        }

        #[test]
        fn text_that_looks_like_a_date_never_panics(
            value in "[A-Z][a-z]{2}, [0-9]{2} [A-Z][a-z]{2} [0-9]{4} [0-9]{2}:[0-9]{2}:[0-9]{2} GMT",
            month in "Jan|Feb|Dec", now_ms: u64,
        ) {
            let _ = parse_retry_after(&value, now_ms);
            let dated = format!("Sun, {} {month} {}", &value[5..7], &value[12..]);
            prop_assert!(parse_retry_after(&dated, now_ms).is_none_or(|ms| ms <= RETRY_AFTER_MS_MAX));
        }
    }
}
