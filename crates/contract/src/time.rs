//! Wall time as text, without a calendar library on the hot path.

use std::fmt::Write as _;

/// `2026-11-15T09:15:30.123Z`.
///
/// ```
/// use holdfast_contract::time::rfc3339;
/// assert_eq!(rfc3339(0), "1970-01-01T00:00:00.000Z");
/// assert_eq!(rfc3339(1_772_270_130_123), "2026-02-28T09:15:30.123Z");
/// ```
pub fn rfc3339(unix_ms: u64) -> String {
    let mut text = String::with_capacity(24);
    push_rfc3339(&mut text, unix_ms);
    text
}

/// Appends the same; two of them go into the log lines of every call.
pub fn push_rfc3339(text: &mut String, unix_ms: u64) {
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

/// The Unix milliseconds of such a text, also with other fractions and with an offset.
///
/// ```
/// use holdfast_contract::time::parse_rfc3339;
/// assert_eq!(parse_rfc3339("1970-01-01T00:00:01.5Z"), Some(1_500));
/// assert_eq!(parse_rfc3339("1970-01-01T02:00:00+02:00"), Some(0));
/// assert_eq!(parse_rfc3339("yesterday"), None);
/// ```
pub fn parse_rfc3339(text: &str) -> Option<u64> {
    let (date, rest) = text.split_at_checked(10)?;
    let time = rest.strip_prefix(['T', 't', ' '])?;
    let mut parts = date.split('-');
    let (year, month, day) = (
        digits(parts.next()?, 4)?,
        digits(parts.next()?, 2)?,
        digits(parts.next()?, 2)?,
    );
    let days = days_from_civil(year, month, day)?;
    // A day that does not exist turns into another one on the way back.
    if civil_from_days(days) != (year, month, day) {
        return None;
    }
    let (clock, zone_and_fraction) = time.split_at_checked(8)?;
    let mut parts = clock.split(':');
    let (hour, minute, second) = (
        digits(parts.next()?, 2)?,
        digits(parts.next()?, 2)?,
        digits(parts.next()?, 2)?,
    );
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let (ms, zone) = fraction(zone_and_fraction)?;
    let local_ms = ((days * 24 + hour) * 60 + minute) * 60_000 + second * 1_000 + ms;
    local_ms.checked_add_signed(-offset_ms(zone)?)
}

/// Exactly `width` digits.
fn digits(text: &str, width: usize) -> Option<u64> {
    let all = text.len() == width && text.bytes().all(|byte| byte.is_ascii_digit());
    all.then(|| text.parse().ok())?
}

/// Milliseconds, and what follows them. Finer digits are cut off.
fn fraction(text: &str) -> Option<(u64, &str)> {
    let Some(rest) = text.strip_prefix('.') else {
        return Some((0, text));
    };
    let end = rest
        .find(|sign: char| !sign.is_ascii_digit())
        .unwrap_or(rest.len());
    let (number, zone) = rest.split_at(end);
    let mut ms = 0;
    for place in 0..3 {
        let digit = number.as_bytes().get(place).map_or(0, |byte| byte - b'0');
        ms = ms * 10 + u64::from(digit);
    }
    (end > 0).then_some((ms, zone))
}

fn offset_ms(zone: &str) -> Option<i64> {
    if matches!(zone, "Z" | "z") {
        return Some(0);
    }
    let sign = match zone.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let (hours, minutes) = zone[1..].split_once(':')?;
    let (hours, minutes) = (digits(hours, 2)?, digits(minutes, 2)?);
    let ms = i64::try_from((hours * 60 + minutes) * 60_000).ok()?;
    (hours < 24 && minutes < 60).then_some(sign * ms)
}

/// The day count since 1970 of a date, the inverse of [`civil_from_days`]; none before 1970.
fn days_from_civil(year: u64, month: u64, day: u64) -> Option<u64> {
    if !(1..=12).contains(&month) || day == 0 || year < 1970 {
        return None;
    }
    let year_from_march = year - u64::from(month <= 2);
    let (era, year_of_era) = (year_from_march / 400, year_from_march % 400);
    let month_from_march = (month + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    (era * 146_097 + day_of_era).checked_sub(719_468)
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_written_is_read(unix_ms in 0_u64..253_402_300_800_000) {
            prop_assert_eq!(parse_rfc3339(&rfc3339(unix_ms)), Some(unix_ms));
        }

        #[test]
        fn any_text_is_answered(text in "\\PC{0,40}") {
            let _ = parse_rfc3339(&text);
        }
    }

    #[test]
    fn other_notations_and_impossible_times() {
        let cases = [
            ("2026-02-28T09:15:30Z", Some(1_772_270_130_000)),
            ("2026-02-28 09:15:30.123456Z", Some(1_772_270_130_123)),
            ("2026-02-28T10:45:30.1+01:30", Some(1_772_270_130_100)),
            ("2026-02-28T04:15:30-05:00", Some(1_772_270_130_000)),
            ("2026-02-29T00:00:00Z", None),
            ("2026-13-01T00:00:00Z", None),
            ("2026-01-01T24:00:00Z", None),
            ("2026-01-01T00:00:00", None),
            ("2026-01-01T00:00:00.Z", None),
            ("1969-12-31T23:59:59Z", None),
            ("1970-01-01T00:00:00+01:00", None),
            ("", None),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_rfc3339(text), expected, "{text}");
        }
    }
}
