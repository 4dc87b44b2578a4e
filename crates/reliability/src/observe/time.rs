//! Wall time as text, without a calendar library on the hot path.

use std::fmt::Write as _;

/// `2026-11-15T09:15:30.123Z`.
///
/// ```
/// use holdfast_reliability::observe::time::rfc3339;
/// assert_eq!(rfc3339(0), "1970-01-01T00:00:00.000Z");
/// assert_eq!(rfc3339(1_772_270_130_123), "2026-02-28T09:15:30.123Z");
/// ```
pub fn rfc3339(unix_ms: u64) -> String {
    let mut text = String::with_capacity(24);
    push_rfc3339(&mut text, unix_ms);
    text
}

/// Appends the same; two of them go into the log lines of every call.
pub(crate) fn push_rfc3339(text: &mut String, unix_ms: u64) {
    let (days, ms_of_day) = (unix_ms / 86_400_000, unix_ms % 86_400_000);
    let (year, month, day) = civil_from_days(days);
    let (seconds, ms) = (ms_of_day / 1000, ms_of_day % 1000);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    if year > 9999 {
        // Writing to a string can not fail.
        let _ = write!(
            text,
            "{year}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z"
        );
        return;
    }
    let mut out = *b"0000-00-00T00:00:00.000Z";
    put_digits(&mut out[..4], year);
    put_digits(&mut out[5..7], month);
    put_digits(&mut out[8..10], day);
    put_digits(&mut out[11..13], hour);
    put_digits(&mut out[14..16], minute);
    put_digits(&mut out[17..19], second);
    put_digits(&mut out[20..23], ms);
    text.push_str(std::str::from_utf8(&out).unwrap_or_default());
}

/// Writes the last digits of a number over the zeros that are there.
fn put_digits(out: &mut [u8], mut number: u64) {
    for digit in out.iter_mut().rev() {
        *digit += u8::try_from(number % 10).unwrap_or(0);
        number /= 10;
    }
}

/// Year, month and day of a day count since 1970, by counting in 400-year eras that begin on
/// the first of March (so that the leap day comes last).
fn civil_from_days(days_since_1970: u64) -> (u64, u64, u64) {
    let days = days_since_1970 + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    (year, month, day)
}
