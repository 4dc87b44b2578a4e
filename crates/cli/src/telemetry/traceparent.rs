//! The W3C `traceparent`: which span of which trace a call belongs to.

use opentelemetry::trace::{SpanContext, SpanId, TraceFlags, TraceId, TraceState};

/// The length of version 00, which is also the least of every later one.
const V00_BYTES: usize = 55;

/// Reads a `traceparent`; `None` when it is not valid, and then the call begins a trace of its own.
///
/// Later versions may append fields, which are ignored, as the specification asks. Digits are in
/// lower case and ids are not zero.
pub(super) fn parse(text: &str) -> Option<SpanContext> {
    let head = text.get(..V00_BYTES)?;
    let rest = &text[V00_BYTES..];
    let mut fields = head.split('-');
    let (version, trace, span, flags) = (
        hex(fields.next()?, 2)?,
        hex(fields.next()?, 32)?,
        hex(fields.next()?, 16)?,
        hex(fields.next()?, 2)?,
    );
    let is_open_ended = match version {
        0 => false,
        0xff => return None,
        _ => true,
    };
    if !(rest.is_empty() || is_open_ended && rest.starts_with('-')) {
        return None;
    }
    let context = SpanContext::new(
        TraceId::from(trace),
        SpanId::from(u64::try_from(span).ok()?),
        // The other flags of this and of later versions are not ours to pass on.
        TraceFlags::new(u8::try_from(flags).ok()? & TraceFlags::SAMPLED.to_u8()),
        true,
        TraceState::NONE,
    );
    context.is_valid().then_some(context)
}

/// A number of exactly so many hexadecimal digits.
fn hex(text: &str, digits: usize) -> Option<u128> {
    let is_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    if text.len() != digits || !text.bytes().all(is_hex) {
        return None;
    }
    u128::from_str_radix(text, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn a_valid_one_is_read() {
        let context = parse(GOOD).unwrap();
        assert_eq!(
            context.trace_id().to_string(),
            "0af7651916cd43dd8448eb211c80319c"
        );
        assert_eq!(context.span_id().to_string(), "b7ad6b7169203331");
        assert!(context.is_sampled() && context.is_remote());
        assert!(!parse(&GOOD.replace("-01", "-00")).unwrap().is_sampled());
        assert!(parse(&GOOD.replace("-01", "-03")).unwrap().is_sampled());
    }

    #[test]
    fn later_versions_may_say_more() {
        let later = GOOD.replacen("00", "01", 1);
        assert!(parse(&later).is_some());
        assert!(parse(&format!("{later}-more")).is_some());
        assert!(parse(&format!("{later}more")).is_none());
    }

    #[test]
    fn everything_else_is_refused() {
        for bad in [
            String::new(),
            "nonsense".to_owned(),
            "é".repeat(40),
            GOOD.to_uppercase(),
            GOOD[..54].to_owned(),
            format!("{GOOD}-more"),
            format!(" {GOOD}"),
            GOOD.replacen("00", "ff", 1),
            GOOD.replace('-', "_"),
            GOOD.replace("b7ad6b7169203331", "0000000000000000"),
            GOOD.replace(
                "0af7651916cd43dd8448eb211c80319c",
                "00000000000000000000000000000000",
            ),
            GOOD.replace("0af7", "+af7"),
            GOOD.replace("b7ad", "g7ad"),
        ] {
            assert!(parse(&bad).is_none(), "{bad:?}");
        }
    }
}
