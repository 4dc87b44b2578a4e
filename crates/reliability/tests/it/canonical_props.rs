//! Properties of the canonical form and of keys, checked against slow independent definitions.

use std::cmp::Ordering;
use std::str::FromStr as _;

use holdfast_reliability::canonical::{CanonicalOptions, Digest, canonical_string, digest};
use holdfast_reliability::idempotency::key::{
    Access, Identity, KeyParts, KeySource, Origin, Place, Scope, StoredKey, ToolStep, content_key,
    stored_key,
};
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Number, Value};

/// The value of a number literal by long-hand arithmetic: sign, digits, power of ten of the last.
///
/// Shares nothing with the code under test: it works on one string and a wide integer.
fn decimal(literal: &str) -> (bool, String, i128) {
    let (negative, literal) = match literal.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, literal),
    };
    let literal = literal.to_ascii_lowercase();
    let (mantissa, exponent) = literal.split_once('e').unwrap_or((&literal, "0"));
    let mut exponent = i128::from_str(exponent).expect("a test exponent fits");
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let mut digits = format!("{whole}{fraction}");
    exponent -= i128::try_from(fraction.len()).expect("a short literal");
    while digits.ends_with('0') {
        digits.pop();
        exponent += 1;
    }
    let digits = digits.trim_start_matches('0').to_owned();
    if digits.is_empty() {
        return (false, digits, 0);
    }
    (negative, digits, exponent)
}

/// The definition of "the same value" that the canonical form has to agree with.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => decimal(a.as_str()) == decimal(b.as_str()),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            let found = |(name, a): (&String, &Value)| b.get(name).is_some_and(|b| same(a, b));
            a.len() == b.len() && a.iter().all(found)
        }
        (Value::String(a), Value::String(b)) => a == b,
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::Null, Value::Null) => true,
        _ => false,
    }
}

/// Number literals that crowd around the places where doubles, layouts and exponents change.
fn literal() -> impl Strategy<Value = String> {
    let whole = prop_oneof![
        Just("0".to_owned()),
        "[1-9][0-9]{0,3}",
        "[1-9][0-9]{0,3}0{1,22}",
        (0_u64..4).prop_map(|n| (9_007_199_254_740_991 + n).to_string()),
        "[1-9][0-9]{18,24}",
    ];
    let fraction = prop_oneof![
        3 => Just(String::new()),
        1 => Just(".0".to_owned()),
        1 => "\\.[0-9]{1,3}",
        1 => "\\.0{0,8}[0-9]{1,2}0{0,3}",
        1 => Just(".1000000000000000055511151231257827".to_owned()),
    ];
    let exponent = prop_oneof![
        3 => Just(String::new()),
        2 => "[eE][+-]?[0-9]{1,2}",
        1 => "[eE][+-]?0{0,2}[34][0-9]{2}",
        1 => "[eE][+-]?[1-9][0-9]{14,22}",
        1 => "[eE][+-]?(9{17}|10{17}|9{18}|10{18})",
    ];
    ("-?", whole, fraction, exponent)
        .prop_map(|(sign, whole, fraction, exponent)| format!("{sign}{whole}{fraction}{exponent}"))
}

/// The same value, spelled another way: the point moved, zeros added, the case of `e` changed.
fn respelled(literal: &str, shift: i8, zeros: usize) -> String {
    let (negative, digits, exponent) = decimal(literal);
    let sign = if negative { "-" } else { "" };
    if digits.is_empty() {
        return format!("-0.{}e{shift}", "0".repeat(zeros + 1));
    }
    let padding = "0".repeat(zeros);
    let places = i128::try_from(zeros).expect("few zeros");
    match shift.cmp(&0) {
        Ordering::Less => {
            let exponent = exponent - places;
            format!("{sign}{digits}{padding}E{exponent}")
        }
        Ordering::Equal => {
            let moved = exponent + i128::try_from(digits.len()).expect("few digits") + places;
            format!("{sign}0.{padding}{digits}{padding}e{moved}")
        }
        Ordering::Greater => format!("{sign}{digits}.0{padding}e{exponent}"),
    }
}

fn number(literal: String) -> Value {
    Value::Number(Number::from_string_unchecked(literal))
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => select(&["a", "b", "aa", "retryCount", "", " a", "\u{e000}", "\u{1f600}", "é"][..])
            .prop_map(str::to_owned),
        1 => any::<String>(),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        literal().prop_map(number),
        select(&["", "1", "null", "a b", "a  b", "\u{0}", "\"", "\\"][..]).prop_map(Value::from),
        any::<String>().prop_map(Value::String),
    ];
    leaf.prop_recursive(4, 32, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            prop::collection::vec((name(), inner), 0..5)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// The same value with its members inserted in reverse and its numbers respelled.
fn rewritten(value: &Value, shift: i8, zeros: usize) -> Value {
    match value {
        Value::Number(text) => number(respelled(text.as_str(), shift, zeros)),
        Value::Array(items) => items
            .iter()
            .map(|item| rewritten(item, shift, zeros))
            .collect(),
        Value::Object(members) => {
            let mut reversed = Map::new();
            for (name, value) in members.iter().collect::<Vec<_>>().into_iter().rev() {
                reversed.insert(name.clone(), rewritten(value, shift, zeros));
            }
            Value::Object(reversed)
        }
        other => other.clone(),
    }
}

/// A small change somewhere in a value, or none.
fn mutated(value: &Value, path: &[u8], leaf: &Value) -> Value {
    let Some((first, rest)) = path.split_first() else {
        return leaf.clone();
    };
    let mut value = value.clone();
    match &mut value {
        Value::Array(items) if !items.is_empty() => {
            let at = usize::from(*first) % items.len();
            items[at] = mutated(&items[at], rest, leaf);
        }
        Value::Object(members) if !members.is_empty() => {
            let at = usize::from(*first) % members.len();
            if let Some((_, member)) = members.iter_mut().nth(at) {
                *member = mutated(member, rest, leaf);
            }
        }
        other => *other = leaf.clone(),
    }
    value
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1024, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn order_of_members_and_spelling_of_numbers_do_not_count(
        value in value(), shift in -1_i8..=1, zeros in 0_usize..4,
    ) {
        let other = rewritten(&value, shift, zeros);
        prop_assert!(same(&value, &other), "the test's own rewriting keeps the value");
        prop_assert_eq!(canonical_string(&value), canonical_string(&other));
        let exact = CanonicalOptions::EXACT;
        prop_assert_eq!(digest(&value, &exact), digest(&other, &exact));
    }

    #[test]
    fn the_form_is_json_of_the_same_value_and_its_own_form(value in value()) {
        let form = canonical_string(&value);
        let back: Value = serde_json::from_str(&form).expect("canonical JSON is JSON");
        prop_assert!(same(&value, &back));
        prop_assert_eq!(canonical_string(&back), form);
    }

    #[test]
    fn forms_are_equal_exactly_when_values_are(
        a in value(), b in value(), path in prop::collection::vec(any::<u8>(), 0..4),
    ) {
        let near = mutated(&a, &path, &b);
        for other in [&b, &near] {
            let forms_equal = canonical_string(&a) == canonical_string(other);
            prop_assert_eq!(forms_equal, same(&a, other), "{} / {}", a, other);
        }
    }

    #[test]
    fn numbers_are_equal_exactly_when_their_decimals_are(a in literal(), b in literal(), last in 0_u8..=9) {
        let near = format!("{}{last}", a.trim_end_matches(|c: char| c.is_ascii_digit()));
        for other in [b, near] {
            if serde_json::from_str::<Value>(&other).is_err() {
                continue;
            }
            let forms_equal = canonical_string(&number(a.clone())) == canonical_string(&number(other.clone()));
            prop_assert_eq!(forms_equal, decimal(&a) == decimal(&other), "{} / {}", a, other);
        }
    }

    /// Where a double holds the number, the form is that of RFC 8785. The standard library says how
    /// many digits are the fewest; which of two equally near ones is taken, it decides differently.
    #[test]
    fn doubles_are_laid_out_as_ecmascript_does(bits in any::<u64>()) {
        let double = f64::from_bits(bits);
        prop_assume!(double.is_finite());
        let form = canonical_string(&Value::from(double));
        prop_assert_eq!(form.parse::<f64>().expect("a number").to_bits(), (double + 0.0).to_bits());
        let (negative, digits, exponent) = decimal(&form);
        let fewest = decimal(&format!("{double:e}")).1.len();
        prop_assert_eq!(digits.len(), fewest);
        prop_assert_eq!(form, ecmascript(negative, &digits, exponent));
    }

    #[test]
    fn different_parts_give_different_keys(a in owned_key(), b in owned_key()) {
        prop_assert_eq!(a == b, a.stored() == b.stored(), "{:?} / {:?}", a, b);
        prop_assert_eq!(a.stored(), a.clone().stored());
    }
}

/// ECMAScript's `Number::toString`, from the digits and the power of ten of the last one.
fn ecmascript(negative: bool, digits: &str, exponent: i128) -> String {
    if digits.is_empty() {
        return "0".to_owned();
    }
    let count = i128::try_from(digits.len()).expect("few digits");
    let point = count + exponent;
    let zeros = |n: i128| "0".repeat(usize::try_from(n).expect("not negative"));
    let body = if count <= point && point <= 21 {
        format!("{digits}{}", zeros(exponent))
    } else if 0 < point && point <= 21 {
        let (whole, fraction) = digits.split_at(usize::try_from(point).expect("positive"));
        format!("{whole}.{fraction}")
    } else if -6 < point && point <= 0 {
        format!("0.{}{digits}", zeros(-point))
    } else {
        let (first, rest) = digits.split_at(1);
        let dot = if rest.is_empty() { "" } else { "." };
        format!("{first}{dot}{rest}e{:+}", point - 1)
    };
    if negative { format!("-{body}") } else { body }
}

/// Everything that makes a key, owned, so that it can be generated and compared.
#[derive(Debug, Clone, PartialEq)]
struct OwnedKey {
    global: bool,
    optional: [Option<String>; 2],
    names: [String; 2],
    /// Empty under global scope, which leaves them out.
    people: [String; 2],
    source: OwnedSource,
}

#[derive(Debug, Clone, PartialEq)]
enum OwnedSource {
    Caller(String),
    Hook(String),
    Content(String),
    Request(String),
    Step(bool, String, u64, u64, String),
    ToolCall(bool, String, String, String),
}

impl OwnedKey {
    fn stored(&self) -> StoredKey {
        let scope = if self.global {
            Scope::global(Access::ReadOnly).expect("read-only")
        } else {
            Scope::SESSION
        };
        let parts = KeyParts {
            scope,
            tenant: self.optional[0].as_deref(),
            workspace: self.optional[1].as_deref(),
            namespace: &self.names[0],
            tool: &self.names[1],
            session: &self.people[0],
            actor: &self.people[1],
        };
        let origin = |is_run: bool, id| {
            if is_run {
                Origin::Run(id)
            } else {
                Origin::Turn(id)
            }
        };
        let (identity, params) = match &self.source {
            OwnedSource::Caller(key) => return stored_key(&parts, &KeySource::Caller(key)),
            OwnedSource::Hook(key) => return stored_key(&parts, &KeySource::Hook(key)),
            OwnedSource::Content(params) => {
                return content_key(&parts, Digest::of(params.as_bytes()));
            }
            OwnedSource::Request(id) => (Identity::Request(id), id),
            OwnedSource::Step(is_run, id, iteration, index, params) => {
                let step = ToolStep {
                    iteration: *iteration,
                    index: *index,
                };
                (
                    Identity::Step(origin(*is_run, id.as_str()), Place::Step(step)),
                    params,
                )
            }
            OwnedSource::ToolCall(is_run, id, call, params) => (
                Identity::Step(origin(*is_run, id.as_str()), Place::ToolCall(call)),
                params,
            ),
        };
        let source = KeySource::Computed {
            identity,
            params: Digest::of(params.as_bytes()),
        };
        stored_key(&parts, &source)
    }
}

/// Few and short parts, so that equal keys and moved borders both come up.
fn owned_key() -> impl Strategy<Value = OwnedKey> {
    let part = || select(&["", "a", "aa", "\0", "run"][..]).prop_map(str::to_owned);
    let optional = || prop::option::of(part());
    let source = prop_oneof![
        part().prop_map(OwnedSource::Caller),
        part().prop_map(OwnedSource::Hook),
        part().prop_map(OwnedSource::Content),
        part().prop_map(OwnedSource::Request),
        (any::<bool>(), part(), 0_u64..2, 0_u64..2, part()).prop_map(
            |(run, id, iteration, index, params)| {
                OwnedSource::Step(run, id, iteration, index, params)
            }
        ),
        (any::<bool>(), part(), part(), part())
            .prop_map(|(run, id, call, params)| OwnedSource::ToolCall(run, id, call, params)),
    ];
    let people = [part(), part()];
    (
        any::<bool>(),
        [optional(), optional()],
        [part(), part()],
        people,
        source,
    )
        .prop_map(|(global, optional, names, people, source)| OwnedKey {
            global,
            optional,
            names,
            people: if global {
                [String::new(), String::new()]
            } else {
                people
            },
            source,
        })
}
