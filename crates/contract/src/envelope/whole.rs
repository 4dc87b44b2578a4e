//! Whole numbers of an envelope.

use serde_json::Value;

/// Digits of the largest number that is held.
const DIGITS_HELD: usize = 20;

/// A whole number that is not negative.
pub(super) enum Whole {
    /// This one.
    Held(u64),
    /// More than 64 bits hold.
    Beyond,
}

/// A JavaScript caller may write 5.0 or 1e3, and JSON has no largest number. Read by its digits: a float
/// would take neighbours for one.
pub(super) fn whole_number(value: &Value) -> Option<Whole> {
    let text = value.as_number()?.to_string();
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((&text, "0"));
    let (before, after) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{}{after}", before.trim_start_matches('-'));
    let significant = digits.trim_start_matches('0').trim_end_matches('0');
    if significant.is_empty() {
        return Some(Whole::Held(0));
    }
    if before.starts_with('-') {
        return None;
    }
    let Ok(exponent) = exponent.parse::<i32>() else {
        return (!exponent.starts_with('-')).then_some(Whole::Beyond);
    };
    let trailing = digits.len() - digits.trim_end_matches('0').len();
    let zeros = i64::try_from(trailing).ok()? - i64::try_from(after.len()).ok()?;
    let zeros = usize::try_from(zeros + i64::from(exponent)).ok()?;
    if significant.len().saturating_add(zeros) > DIGITS_HELD {
        return Some(Whole::Beyond);
    }
    let number = format!("{significant}{}", "0".repeat(zeros)).parse();
    Some(number.map_or(Whole::Beyond, Whole::Held))
}
