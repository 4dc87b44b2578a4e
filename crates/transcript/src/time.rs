//! Times as agents write them.

use holdfast_contract::time::rfc3339;

/// Milliseconds since 1970, fit for a file's name.
pub(crate) fn stamp(ms: u64) -> String {
    rfc3339(ms).replace(['-', ':', '.'], "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_times() {
        assert_eq!(stamp(1_770_326_400_000), "20260205T212000000Z");
    }
}
