//! Numbers, which are only stepped over.

/// How many bytes at the start of a text are a JSON number; none when it does not begin with one.
#[inline]
pub(super) fn length(text: &[u8]) -> Option<usize> {
    let byte = |at: usize| text.get(at).copied().unwrap_or(0);
    let mut at = usize::from(byte(0) == b'-');
    match byte(at) {
        b'0' => at += 1,
        b'1'..=b'9' => at = digits(text, at + 1),
        _ => return None,
    }
    if byte(at) == b'.' {
        let fraction = at + 1;
        at = digits(text, fraction);
        if at == fraction {
            return None;
        }
    }
    if matches!(byte(at), b'e' | b'E') {
        at += 1;
        at += usize::from(matches!(byte(at), b'+' | b'-'));
        let exponent = at;
        at = digits(text, exponent);
        if at == exponent {
            return None;
        }
    }
    Some(at)
}

#[inline]
fn digits(text: &[u8], mut at: usize) -> usize {
    while text.get(at).is_some_and(u8::is_ascii_digit) {
        at += 1;
    }
    at
}
