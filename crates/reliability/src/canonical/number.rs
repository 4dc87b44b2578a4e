//! Numbers in canonical form: the layout of ECMAScript, the digits of the source.
//!
//! RFC 8785 sends every number through a double first, which writes 9007199254740993 as …992 and
//! lets two different message ids share a key. Here the digits are taken from the literal instead
//! and only *laid out* the way ECMAScript does. Where a double holds the number, the two agree to
//! the byte: ECMAScript lays out the shortest decimal of the double, and that is the same decimal.
//! Where it does not, the text still spells exactly the number that was sent. Since the text always
//! denotes the exact value, equal values share it and different values never do.

use super::text;

/// ECMAScript writes integers of up to this many digits without an exponent.
const PLAIN_DIGITS_MAX: usize = 21;
/// ECMAScript writes up to this many zeros between the decimal point and the first digit.
const LEADING_ZEROS_MAX: usize = 5;
/// An exponent of at most this many digits fits an `i64` with room for the length of any text.
const SMALL_EXPONENT_DIGITS_MAX: usize = 17;

/// Appends the canonical form of a JSON number, given its literal text.
///
/// Text that is not a JSON number can only come from `Number::from_string_unchecked`. It is written
/// as `!"…"`, which is no JSON at all and so can not equal the form of any real value.
pub(super) fn write(literal: &str, out: &mut Vec<u8>) {
    let bytes = literal.as_bytes();
    if is_plain_integer(bytes) {
        out.extend_from_slice(bytes);
        return;
    }
    if let Some(decimal) = Decimal::parse(bytes) {
        decimal.write(out);
    } else {
        out.push(b'!');
        text::write_exact(literal, out);
    }
}

/// Whether the literal already is its own canonical form; true for nearly every number in practice.
fn is_plain_integer(literal: &[u8]) -> bool {
    let digits = literal.strip_prefix(b"-").unwrap_or(literal);
    match digits {
        [b'0'] => digits.len() == literal.len(),
        [b'1'..=b'9', rest @ ..] => {
            rest.len() < PLAIN_DIGITS_MAX && rest.iter().all(u8::is_ascii_digit)
        }
        _ => false,
    }
}

/// A decimal number `0.d₁d₂…dₙ × 10^point`, its digits still inside the literal.
struct Decimal<'a> {
    negative: bool,
    /// The digits before and after the point of the literal, without the zeros at either end.
    digits: [&'a [u8]; 2],
    point: Point<'a>,
}

/// Where the decimal point stands, counted from the first digit.
enum Point<'a> {
    Small(i64),
    /// An exponent too long for an `i64`: its sign, its digits, and what to add to it.
    Huge {
        negative: bool,
        digits: &'a [u8],
        add: i64,
    },
}

impl<'a> Decimal<'a> {
    /// Reads a literal of the JSON number grammar; `None` when it is not one.
    fn parse(literal: &'a [u8]) -> Option<Self> {
        let (negative, rest) = match literal.strip_prefix(b"-") {
            Some(rest) => (true, rest),
            None => (false, literal),
        };
        let (whole, rest) = split_digits(rest);
        if whole.is_empty() || (whole.len() > 1 && whole[0] == b'0') {
            return None;
        }
        let (fraction, rest) = match rest.strip_prefix(b".") {
            Some(rest) => {
                let (fraction, rest) = split_digits(rest);
                (!fraction.is_empty()).then_some((fraction, rest))?
            }
            None => (&rest[..0], rest),
        };
        let (exponent_negative, exponent) = parse_exponent(rest)?;

        let digits = strip_zeros(whole, fraction);
        // Digits in front of the point move it right; zeros dropped right behind it move it left.
        let moved = if digits[0].is_empty() {
            let leading_zeros = fraction.iter().take_while(|digit| **digit == b'0').count();
            -to_i64(leading_zeros)
        } else {
            to_i64(whole.len())
        };
        let point = if exponent.len() <= SMALL_EXPONENT_DIGITS_MAX {
            let magnitude = exponent
                .iter()
                .fold(0_i64, |sum, digit| sum * 10 + i64::from(digit - b'0'));
            Point::Small(
                moved
                    + if exponent_negative {
                        -magnitude
                    } else {
                        magnitude
                    },
            )
        } else {
            Point::Huge {
                negative: exponent_negative,
                digits: exponent,
                add: moved,
            }
        };
        Some(Self {
            negative,
            digits,
            point,
        })
    }

    /// Lays the digits out as ECMAScript's `Number::toString` does.
    fn write(&self, out: &mut Vec<u8>) {
        let count = self.digits[0].len() + self.digits[1].len();
        if count == 0 {
            // Zero has no sign and no exponent: -0, 0.0 and 0e5 are one value.
            out.push(b'0');
            return;
        }
        if self.negative {
            out.push(b'-');
        }
        let point = match &self.point {
            Point::Small(point) => *point,
            Point::Huge {
                negative,
                digits,
                add,
            } => {
                self.write_scientific(count, out);
                write_huge_exponent(*negative, digits, add - 1, out);
                return;
            }
        };
        if let Ok(before) = usize::try_from(point) {
            if count <= before && before <= PLAIN_DIGITS_MAX {
                self.write_digits(0, count, out);
                out.resize(out.len() + before - count, b'0');
                return;
            }
            if (1..=PLAIN_DIGITS_MAX).contains(&before) {
                self.write_digits(0, before, out);
                out.push(b'.');
                self.write_digits(before, count, out);
                return;
            }
        }
        if let Ok(zeros) = usize::try_from(point.saturating_neg())
            && zeros <= LEADING_ZEROS_MAX
        {
            out.extend_from_slice(b"0.");
            out.resize(out.len() + zeros, b'0');
            self.write_digits(0, count, out);
            return;
        }
        self.write_scientific(count, out);
        let exponent = point - 1;
        out.push(if exponent < 0 { b'-' } else { b'+' });
        write_u64(exponent.unsigned_abs(), out);
    }

    /// Appends `d.ddde`; the sign and the digits of the exponent are still to come.
    fn write_scientific(&self, count: usize, out: &mut Vec<u8>) {
        self.write_digits(0, 1, out);
        if count > 1 {
            out.push(b'.');
            self.write_digits(1, count, out);
        }
        out.push(b'e');
    }

    /// Appends the digits `from..to`, counted over both halves of the literal.
    fn write_digits(&self, from: usize, to: usize, out: &mut Vec<u8>) {
        let [head, tail] = self.digits;
        let split = head.len();
        out.extend_from_slice(&head[from.min(split)..to.min(split)]);
        out.extend_from_slice(&tail[from.max(split) - split..to.max(split) - split]);
    }
}

/// Splits off the leading ASCII digits.
fn split_digits(text: &[u8]) -> (&[u8], &[u8]) {
    let end = text
        .iter()
        .position(|byte| !byte.is_ascii_digit())
        .unwrap_or(text.len());
    text.split_at(end)
}

/// Reads `e±ddd` or nothing; gives the sign and the digits without leading zeros.
fn parse_exponent(text: &[u8]) -> Option<(bool, &[u8])> {
    let rest = match text {
        [] => return Some((false, text)),
        [b'e' | b'E', rest @ ..] => rest,
        _ => return None,
    };
    let (negative, digits) = match rest {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] | digits => (false, digits),
    };
    let valid = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    valid.then(|| (negative, trim_start_zeros(digits)))
}

/// Drops the zeros in front of the first and behind the last other digit.
fn strip_zeros<'a>(whole: &'a [u8], fraction: &'a [u8]) -> [&'a [u8]; 2] {
    let whole = trim_start_zeros(whole);
    let fraction = trim_end_zeros(fraction);
    if whole.is_empty() {
        [whole, trim_start_zeros(fraction)]
    } else if fraction.is_empty() {
        [trim_end_zeros(whole), fraction]
    } else {
        [whole, fraction]
    }
}

fn trim_start_zeros(digits: &[u8]) -> &[u8] {
    let zeros = digits.iter().take_while(|digit| **digit == b'0').count();
    &digits[zeros..]
}

fn trim_end_zeros(digits: &[u8]) -> &[u8] {
    let zeros = digits
        .iter()
        .rev()
        .take_while(|digit| **digit == b'0')
        .count();
    &digits[..digits.len() - zeros]
}

/// The length of a slice as a signed number; slices never exceed `isize::MAX` bytes.
fn to_i64(length: usize) -> i64 {
    i64::try_from(length).unwrap_or(i64::MAX)
}

fn write_u64(mut number: u64, out: &mut Vec<u8>) {
    let start = out.len();
    loop {
        out.push(b'0' + u8::try_from(number % 10).unwrap_or(0));
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out[start..].reverse();
}

/// Appends `±digits + add`, in decimal. The digits outweigh `add`, which is bounded by the length of
/// a text in memory, by orders of magnitude, so the sign never changes.
fn write_huge_exponent(negative: bool, digits: &[u8], add: i64, out: &mut Vec<u8>) {
    out.push(if negative { b'-' } else { b'+' });
    let start = out.len();
    let mut carry = if negative { -add } else { add };
    for digit in digits.iter().rev() {
        let sum = i64::from(digit - b'0') + carry;
        out.push(b'0' + u8::try_from(sum.rem_euclid(10)).unwrap_or(0));
        carry = sum.div_euclid(10);
    }
    if carry > 0 {
        // Only 999… + add gets here, and it carries less than one further digit's worth.
        out.push(b'0' + u8::try_from(carry).unwrap_or(0));
    }
    out[start..].reverse();
    let zeros = out[start..]
        .iter()
        .take_while(|digit| **digit == b'0')
        .count();
    out.drain(start..start + zeros);
}

#[cfg(test)]
mod tests {
    use super::write;

    fn canonical(literal: &str) -> String {
        let mut out = Vec::new();
        write(literal, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn spellings_of_one_value_agree() {
        let cases: &[(&[&str], &str)] = &[
            (
                &[
                    "0",
                    "-0",
                    "0.0",
                    "-0.000",
                    "0e5",
                    "-0E-99",
                    "0e99999999999999999999",
                ],
                "0",
            ),
            (&["1", "1.0", "1e0", "1E+0", "10e-1", "0.1e1", "1.000"], "1"),
            (&["-1", "-1.0", "-10e-1"], "-1"),
            (&["100", "1e2", "1.00E2", "0.001e5"], "100"),
            (&["12.5", "1.25e1", "125e-1", "0.0125e3"], "12.5"),
            (
                &[
                    "9007199254740993",
                    "9007199254740993.0",
                    "9007199254740.993e3",
                ],
                "9007199254740993",
            ),
            (&["1e21", "1000000000000000000000", "1000e18"], "1e+21"),
            (&["1e20", "100000000000000000000"], "100000000000000000000"),
            (&["1000000000000000000001"], "1.000000000000000000001e+21"),
            (&["123456789012345678901"], "123456789012345678901"),
            (&["1e-6", "0.000001", "0.0000010"], "0.000001"),
            (&["1e-7", "0.0000001"], "1e-7"),
            (&["1e400", "10e399", "0.01E+402"], "1e+400"),
            (&["1e-400", "0.1e-399"], "1e-400"),
            (
                &["0.1000000000000000055511151231257827"],
                "0.1000000000000000055511151231257827",
            ),
            (&["0.1", "1e-1"], "0.1"),
        ];
        for (spellings, expected) in cases {
            for spelling in *spellings {
                assert_eq!(canonical(spelling), *expected, "{spelling}");
            }
        }
    }

    #[test]
    fn exponents_beyond_any_machine_integer_keep_their_value() {
        let nines = "9".repeat(40);
        assert_eq!(canonical("1e999999999999"), "1e+999999999999");
        assert_eq!(canonical(&format!("1e{nines}")), format!("1e+{nines}"));
        assert_eq!(
            canonical(&format!("10e{nines}")),
            format!("1e+1{}", "0".repeat(40))
        );
        assert_eq!(
            canonical(&format!("0.1e1{}", "0".repeat(40))),
            format!("1e+{nines}")
        );
        assert_eq!(canonical(&format!("1.5e-{nines}")), format!("1.5e-{nines}"));
        assert_eq!(
            canonical(&format!("0.1e-{nines}")),
            format!("1e-1{}", "0".repeat(40))
        );
        assert_eq!(canonical(&format!("1e000{nines}")), format!("1e+{nines}"));
        // The border between the two representations of an exponent.
        assert_eq!(canonical("10e99999999999999999"), "1e+100000000000000000");
        assert_eq!(canonical("1e100000000000000000"), "1e+100000000000000000");
        assert_eq!(canonical("0.01e100000000000000001"), "1e+99999999999999999");
        assert_eq!(canonical("1e99999999999999999"), "1e+99999999999999999");
    }

    #[test]
    fn text_that_is_no_number_is_marked() {
        for text in [
            "", "-", "01", "1.", ".5", "1e", "1e+", "NaN", "1,2", "--1", "1 ", "+1",
        ] {
            assert!(canonical(text).starts_with("!\""), "{text}");
        }
    }

    /// The samples of RFC 8785, appendix B: the bits of a double and its text.
    #[test]
    fn rfc_8785_appendix_b() {
        let samples: &[(u64, &str)] = &[
            (0x0000_0000_0000_0000, "0"),
            (0x8000_0000_0000_0000, "0"),
            (0x0000_0000_0000_0001, "5e-324"),
            (0x8000_0000_0000_0001, "-5e-324"),
            (0x7fef_ffff_ffff_ffff, "1.7976931348623157e+308"),
            (0xffef_ffff_ffff_ffff, "-1.7976931348623157e+308"),
            (0x4340_0000_0000_0000, "9007199254740992"),
            (0xc340_0000_0000_0000, "-9007199254740992"),
            (0x4430_0000_0000_0000, "295147905179352830000"),
            (0x44b5_2d02_c7e1_4af5, "9.999999999999997e+22"),
            (0x44b5_2d02_c7e1_4af6, "1e+23"),
            (0x44b5_2d02_c7e1_4af7, "1.0000000000000001e+23"),
            (0x444b_1ae4_d6e2_ef4e, "999999999999999700000"),
            (0x444b_1ae4_d6e2_ef4f, "999999999999999900000"),
            (0x444b_1ae4_d6e2_ef50, "1e+21"),
            (0x3eb0_c6f7_a0b5_ed8c, "9.999999999999997e-7"),
            (0x3eb0_c6f7_a0b5_ed8d, "0.000001"),
            (0x41b3_de43_5555_5553, "333333333.3333332"),
            (0x41b3_de43_5555_5554, "333333333.33333325"),
            (0x41b3_de43_5555_5555, "333333333.3333333"),
            (0x41b3_de43_5555_5556, "333333333.3333334"),
            (0x41b3_de43_5555_5557, "333333333.33333343"),
            (0xbecb_f647_612f_3696, "-0.0000033333333333333333"),
            (0x4314_3ff3_c1cb_0959, "1424953923781206.2"),
        ];
        for (bits, expected) in samples {
            let number = serde_json::Number::from_f64(f64::from_bits(*bits)).unwrap();
            assert_eq!(canonical(number.as_str()), *expected);
        }
    }
}
