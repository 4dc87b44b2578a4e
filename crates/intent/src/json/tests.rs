use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Ending, read_at, read_text};

fn check(text: &str, expected: &Value) {
    let read = read_text(text).unwrap();
    assert_eq!(&read.value, expected, "{text}");
    assert!(
        read.ending <= Ending::MissingClosers,
        "{text}: {:?}",
        read.ending
    );
}

fn check_cut(text: &str, ending: Ending) {
    assert_eq!(read_text(text).unwrap().ending, ending, "{text}");
}

#[test]
fn damage_is_repaired() {
    check("{'a': 'b'}", &json!({"a": "b"}));
    check("{'a': 'it's'}", &json!({"a": "it's"}));
    check(r#"{"a": "b",}"#, &json!({"a": "b"}));
    check(r#"{"a": [1, 2,],}"#, &json!({"a": [1, 2]}));
    check(r#"{a: "b", c_d: 1}"#, &json!({"a": "b", "c_d": 1}));
    check(
        r#"{"a": True, "b": None, "c": False}"#,
        &json!({"a": true, "b": null, "c": false}),
    );
    check(
        "{\"a\": 1, // one\n \"b\": 2 /* two */}",
        &json!({"a": 1, "b": 2}),
    );
    check("{\"a\": 1 # one\n, \"b\": 2}", &json!({"a": 1, "b": 2}));
    check("{\"a\": \"x\ny\"}", &json!({"a": "x\ny"}));
    check(
        r#"{"a": "say "hi" now", "b": 1}"#,
        &json!({"a": "say \"hi\" now", "b": 1}),
    );
    check(
        r#"{"a": "say "hi", then go", "b": 1}"#,
        &json!({"a": "say \"hi\", then go", "b": 1}),
    );
    check(r#"{"a": "x" "b": "y"}"#, &json!({"a": "x", "b": "y"}));
    check(r#"{"a": {"b": "c"}"#, &json!({"a": {"b": "c"}}));
    check(r#"{"a": ["b", "c"}"#, &json!({"a": ["b", "c"]}));
    check(r#"{"a": "\d+"}"#, &json!({"a": "\\d+"}));
    check(r#"{\"a\": \"b\"}"#, &json!({"a": "b"}));
    check(r"{“a”: “b”}", &json!({"a": "b"}));
    check("{\"a\": \"\"\"x \"y\" z\"\"\"}", &json!({"a": "x \"y\" z"}));
    check(
        r#"{"a": hello world, "b": .5, "c": +3}"#,
        &json!({"a": "hello world", "b": 0.5, "c": 3}),
    );
    check(
        r#"{"code": "print("a")\nd["k"] = 1"}"#,
        &json!({"code": "print(\"a\")\nd[\"k\"] = 1"}),
    );
    check(r#"{"id": 007}"#, &json!({"id": "007"}));
}

#[test]
fn what_was_cut_off_is_said() {
    check_cut(r#"{"a": "b"#, Ending::OpenString);
    check_cut(r#"{"a": "b""#, Ending::MissingClosers);
    check_cut(r#"{"a": "b","#, Ending::OpenValue);
    check_cut(r#"{"a": "b", "c"#, Ending::OpenString);
    check_cut(r#"{"a": 12"#, Ending::OpenValue);
    check_cut(r#"{"a":"#, Ending::OpenValue);
    check_cut(r#"{"a": [1, {"b": 2}"#, Ending::MissingClosers);
    check_cut("{", Ending::OpenValue);
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::from),
        "\\PC{0,12}".prop_map(Value::String),
        "[\"',:{}\\[\\]\\\\ a\n]{0,8}".prop_map(Value::String),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::Array),
            prop::collection::btree_map("[a-z\"', :]{0,6}", inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

#[test]
fn of_two_members_the_first_is_kept_and_the_doubt_is_said() {
    let read = |text: &str| read_at(text, 0, text.len()).unwrap();
    let same = read(r#"{"a": 1, "a": 1}"#);
    assert!(same.repaired && !same.ambiguous);
    for damaged in [
        r#"{"a": 1, "a": 2}"#,
        r#"{"a": 1, "b": "x "y" z", "a": 2}"#,
        r#"{"a": 1, "a": 2, "b": "x "y" z"}"#,
        r#"{"a": 1, "a": 2"#,
    ] {
        let read = read(damaged);
        assert_eq!(read.value["a"], json!(1), "{damaged}");
        assert!(read.ambiguous, "{damaged}");
    }
    let nested = read(r#"{"a": "{"a": "b", "c": ["d"]}"}"#);
    assert_eq!(nested.value, json!({"a": r#"{"a": "b", "c": ["d"]}"#}));
    assert!(nested.repaired && !nested.ambiguous);
    assert!(read(r#"{"a": "{"b": "c", d: "e"}"}"#).ambiguous);
}

proptest! {
    #[test]
    fn valid_json_is_read_as_it_is(value in any_json(), pretty in any::<bool>()) {
        prop_assume!(value.is_object() || value.is_array());
        let text = if pretty { serde_json::to_string_pretty(&value).unwrap() } else { value.to_string() };
        let read = read_at(&text, 0, text.len()).unwrap();
        prop_assert!(read.is_strict(), "{text}");
        prop_assert_eq!(read.value, value);
        prop_assert_eq!(read.end, text.len());
    }

    #[test]
    fn a_prefix_is_never_whole(value in any_json(), cut in any::<prop::sample::Index>()) {
        prop_assume!(value.is_object() || value.is_array());
        let text = value.to_string();
        let mut at = cut.index(text.len());
        while !text.is_char_boundary(at) { at -= 1; }
        if let Some(read) = read_at(&text, 0, at) {
            prop_assert!(read.ending != Ending::Whole, "{}", &text[..at]);
        }
    }

    #[test]
    fn anything_is_survived(text in "[{\\[]([\"'`\\\\{}\\[\\](),:/*#a1 \n\u{201c}<|>]|\\PC){0,60}") {
        if let Some(read) = read_at(&text, 0, text.len()) {
            prop_assert!(read.end <= text.len());
            prop_assert!(text.is_char_boundary(read.end));
        }
    }
}
