use serde_json::{Value, json};

use super::{
    CanonicalOptions, Empty, FieldNames, Whitespace, canonical_string, digest, write_canonical,
};

fn canonical(value: &Value, options: &CanonicalOptions<'_>) -> String {
    let mut out = Vec::new();
    write_canonical(value, options, &mut out);
    String::from_utf8(out).unwrap()
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// The sample of RFC 8785, section 3.2.3, with the order it prescribes.
#[test]
fn rfc_8785_sorting_sample() {
    let value = json!({
        "\u{20ac}": "Euro Sign",
        "\r": "Carriage Return",
        "\u{fb33}": "Hebrew Letter Dalet With Dagesh",
        "1": "One",
        "\u{1f600}": "Emoji: Grinning Face",
        "\u{80}": "Control",
        "\u{f6}": "Latin Small Letter O With Diaeresis",
    });
    let expected = "{\"\\r\":\"Carriage Return\",\"1\":\"One\",\"\u{80}\":\"Control\",\
        \"\u{f6}\":\"Latin Small Letter O With Diaeresis\",\"\u{20ac}\":\"Euro Sign\",\
        \"\u{1f600}\":\"Emoji: Grinning Face\",\"\u{fb33}\":\"Hebrew Letter Dalet With Dagesh\"}";
    assert_eq!(canonical_string(&value), expected);
}

/// The sample of RFC 8785, section 3.2.2. Its first number is longer than a double can hold, so it
/// keeps its digits here; RFC 8785 would write 333333333.3333333.
#[test]
fn rfc_8785_serialization_sample() {
    let value = parsed(
        r#"{
          "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
          "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
          "literals": [null, true, false]
        }"#,
    );
    let expected = "{\"literals\":[null,true,false],\
        \"numbers\":[333333333.33333329,1e+30,4.5,0.002,1e-27],\
        \"string\":\"\u{20ac}$\\u000f\\nA'B\\\"\\\\\\\\\\\"/\"}";
    assert_eq!(canonical_string(&value), expected);
}

#[test]
fn containers_nest_and_may_be_empty() {
    for text in [
        "{}",
        "[]",
        "[[],[{}],{}]",
        r#"{"a":[],"b":{"c":{}}}"#,
        "[1,[2,[3],4],5]",
    ] {
        assert_eq!(canonical_string(&parsed(text)), text);
    }
}

#[test]
fn volatile_fields_go_at_any_depth() {
    let names = FieldNames::VOLATILE.with(["nonce"]);
    let value = json!({
        "clientTs": 1, "a": [{"retryCount": {"x": 1}, "b": 2}], "nonce": "n", "traceparent": null,
    });
    assert_eq!(
        canonical(&value, &CanonicalOptions::params(&names)),
        r#"{"a":[{"b":2}]}"#
    );
    assert_ne!(canonical_string(&value), r#"{"a":[{"b":2}]}"#);
}

#[test]
fn whitespace_overrides_hold_below_their_member() {
    let exact = FieldNames::EMPTY.with(["content"]);
    let collapse = FieldNames::EMPTY.with(["query", "content"]);
    let options = CanonicalOptions {
        exact_fields: &exact,
        collapse_fields: &collapse,
        ..CanonicalOptions::EXACT
    };
    let value = json!({"content": [" a "], "query": {"q": " a  b ", "content": " c "}, "z": " d "});
    assert_eq!(
        canonical(&value, &options),
        r#"{"content":[" a "],"query":{"content":" c ","q":"a b"},"z":" d "}"#
    );
    let options = CanonicalOptions {
        whitespace: Whitespace::Collapse,
        ..options
    };
    assert_eq!(
        canonical(&value, &options),
        r#"{"content":[" a "],"query":{"content":" c ","q":"a b"},"z":"d"}"#
    );
}

#[test]
fn the_loop_guard_sees_through_empty_members() {
    let same = [
        json!(null),
        json!({}),
        json!({"a": null}),
        json!({"a": {}}),
        json!({"a": {"b": {"c": null}}, "z": null}),
        json!({"retryCount": 2}),
    ];
    for value in &same {
        assert_eq!(
            canonical(value, &CanonicalOptions::LOOP_GUARD),
            "{}",
            "{value}"
        );
    }
    let value = json!({"a": {}, "b": 1, "c": {"d": null}, "e": [null, {}], "f": ""});
    assert_eq!(
        canonical(&value, &CanonicalOptions::LOOP_GUARD),
        r#"{"b":1,"e":[null,{}],"f":""}"#
    );
    // What ends like an empty member inside a string is none.
    let value = json!({"a": ["x:{}"], "b": [{"c": ":{}"}]});
    assert_eq!(
        canonical(&value, &CanonicalOptions::LOOP_GUARD),
        r#"{"a":["x:{}"],"b":[{"c":":{}"}]}"#
    );
}

#[test]
fn trimmed_names_that_collide_are_both_kept_in_a_fixed_order() {
    let guard = CanonicalOptions::LOOP_GUARD;
    let value = json!({" a": 1, "a": 2, "A ": 3, " retryCount ": 4});
    assert_eq!(canonical(&value, &guard), r#"{"A":3,"a":1,"a":2}"#);
    assert_ne!(
        digest(&json!({" a": 1, "a": 2}), &guard),
        digest(&json!({" a": 2, "a": 1}), &guard)
    );
}

#[test]
fn ids_beyond_two_to_the_53_stay_apart() {
    let [a, b] = ["9007199254740993", "9007199254740992"].map(parsed);
    assert_ne!(canonical_string(&a), canonical_string(&b));
    assert_eq!(
        canonical_string(&parsed("9007199254740993.0")),
        canonical_string(&a)
    );
}

#[test]
fn depth_costs_no_stack() {
    const DEPTH: usize = 200_000;
    let mut value = json!(null);
    for level in 0..DEPTH {
        value = if level % 2 == 0 {
            Value::Array(vec![value])
        } else {
            Value::Object([("k".to_owned(), value)].into_iter().collect())
        };
    }
    let options = CanonicalOptions {
        empty: Empty::Drop,
        ..CanonicalOptions::EXACT
    };
    assert!(canonical(&value, &options).len() > DEPTH);
    // Dropping a value recurses, which is serde_json's business and not under test here.
    std::mem::forget(value);
}
