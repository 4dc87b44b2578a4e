//! Times as agents write them.

/// Milliseconds since 1970 as `2026-02-05T21:20:00.000Z`.
pub(crate) fn iso(ms: u64) -> String {
    let (year, month, day) = date(ms / 86_400_000);
    let of_day = ms % 86_400_000;
    format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}.{:03}Z",
        of_day / 3_600_000,
        of_day / 60_000 % 60,
        of_day / 1000 % 60,
        of_day % 1000
    )
}

/// The same, fit for a file's name.
pub(crate) fn stamp(ms: u64) -> String {
    iso(ms).replace(['-', ':', '.'], "")
}

/// Days since 1970 as year, month and day: Howard Hinnant's `civil_from_days`.
const fn date(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let of_era = shifted % 146_097;
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    let year = year_of_era + era * 400 + (month <= 2) as u64;
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_times() {
        assert_eq!(iso(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(iso(1_770_326_400_000), "2026-02-05T21:20:00.000Z");
        assert_eq!(iso(951_782_399_999), "2000-02-28T23:59:59.999Z");
        assert_eq!(iso(951_868_800_000), "2000-03-01T00:00:00.000Z");
        assert_eq!(stamp(1_770_326_400_000), "20260205T212000000Z");
    }
}
