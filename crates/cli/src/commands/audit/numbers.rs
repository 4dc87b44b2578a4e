//! Numbers as people read them.

use holdfast_transcript::audit::Cost;

use crate::output::plural;

/// With separators: 1,234,567.
pub(super) fn whole(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// With what they are: 1 session, 1,234 sessions.
pub(super) fn counted(number: u64, one: &str) -> String {
    format!("{} {}", whole(number), plural(number, one))
}

/// In thousands and millions.
pub(super) fn tokens(count: f64) -> String {
    match count {
        count if count >= 999_500_000.0 => format!("{:.2} G", count / 1e9),
        count if count >= 999_500.0 => format!("{:.1} M", count / 1e6),
        count if count >= 9_999.5 => format!("{:.0} k", count / 1e3),
        count => format!("{count:.0}"),
    }
}

/// In the largest unit that fits.
pub(super) fn time(ms: f64) -> String {
    let seconds = ms / 1_000.0;
    match seconds {
        seconds if seconds >= 36_000.0 => format!("{:.0} h", seconds / 3_600.0),
        seconds if seconds >= 3_600.0 => format!("{:.1} h", seconds / 3_600.0),
        seconds if seconds >= 60.0 => format!("{:.0} min", seconds / 60.0),
        seconds => format!("{seconds:.1} s"),
    }
}

/// US dollars; a dash when nothing has a price.
pub(super) fn money(cost: &Cost) -> String {
    if cost.usd == 0.0 && cost.unpriced_tokens > 0.0 {
        return "–".to_owned();
    }
    if cost.usd > 0.0 && cost.usd < 0.01 {
        return "< $0.01".to_owned();
    }
    format!("${:.2}", cost.usd)
}

/// A share as a percentage.
pub(super) fn percent(part: f64, of: f64) -> String {
    if of <= 0.0 {
        return "0 %".to_owned();
    }
    format!("{:.1} %", 100.0 * part / of)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!(whole(0), "0");
        assert_eq!(whole(1_234_567), "1,234,567");
        assert_eq!(counted(1, "session"), "1 session");
        assert_eq!(counted(1_234, "session"), "1,234 sessions");
        assert_eq!(tokens(9_999.0), "9999");
        assert_eq!(tokens(12_400.0), "12 k");
        assert_eq!(tokens(3_400_000.0), "3.4 M");
        assert_eq!(time(1_500.0), "1.5 s");
        assert_eq!(time(5_400_000.0), "1.5 h");
        assert_eq!(percent(1.0, 3.0), "33.3 %");
        assert_eq!(money(&Cost::new(10, 0.0, Some(1.5))), "$1.50");
        assert_eq!(money(&Cost::new(10, 0.0, None)), "–");
    }
}
