//! Checked against `serde_json` on valid, broken and random texts.

use proptest::prelude::*;
use serde_json::Value;

use super::*;

fn is_valid(text: &[u8]) -> bool {
    let mut strings = Strings::default();
    strings.index(text).is_ok() && {
        let mut cursor = Cursor::new(text, &strings);
        cursor.skip().and_then(|()| cursor.end()).is_ok()
    }
}

/// What `serde_json` says, without the places where it is stricter than the grammar.
fn reference(text: &str) -> bool {
    serde_json::from_str::<&serde_json::value::RawValue>(text).is_ok()
}

#[test]
fn the_grammar_is_kept_to_the_letter() {
    for valid in [
        "null",
        " true ",
        "-0",
        "0.5e-7",
        "1E+2",
        "\"\"",
        "\"\\u00e9\\n\\\"\"",
        "[]",
        "{}",
        "[[[]]]",
        "{\"a\":{\"b\":[1,2,{\"c\":null}]}}",
        "[\"a\\\\\",\"b\"]",
        "\t[ 1 , 2 ]\r\n",
    ] {
        assert!(is_valid(valid.as_bytes()), "{valid}");
    }
    for broken in [
        "",
        " ",
        "nul",
        "01",
        "1.",
        ".5",
        "+1",
        "1e",
        "--1",
        "\"",
        "\"\\x\"",
        "\"\\u12g4\"",
        "\"\\u12\"",
        "\"a\nb\"",
        "[1,]",
        "[,1]",
        "[1 2]",
        "{\"a\"}",
        "{\"a\":}",
        "{a:1}",
        "{\"a\":1,}",
        "[}",
        "{]",
        "[",
        "{",
        "[1]]",
        "1 2",
        "\\",
        "\"a\" \"b\"",
        "\u{0}",
        "{\"a\":1 \"b\":2}",
    ] {
        assert!(!is_valid(broken.as_bytes()), "{broken:?}");
    }
}

#[test]
fn depth_costs_no_stack() {
    let depth = 2_000_000;
    let deep = [vec![b'['; depth], vec![b']'; depth]].concat();
    assert!(is_valid(&deep));
    assert!(!is_valid(&deep[..deep.len() - 1]));
}

#[test]
fn strings_are_the_same_however_escaped() {
    let text = br#"["\u0074ype","type","\ud83e\udd9e","\ud83e"]"#;
    let mut strings = Strings::default();
    strings.index(text).unwrap();
    let mut found = Vec::new();
    Cursor::new(text, &strings)
        .list(|cursor| {
            found.extend(cursor.string()?);
            Ok(())
        })
        .unwrap();
    assert!(found[0].is(b"type") && found[1].is(b"type"));
    assert_eq!(found[0].hash(), found[1].hash());
    assert_eq!(found[2].to_str(), "🦞");
    assert_eq!(found[3].to_str(), "\u{fffd}");
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".*".prop_map(Value::from),
        "[\"\\\\\n\u{1}é🦞a]{0,90}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 60, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((".{0,20}", inner), 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    #[test]
    fn what_is_json_is_accepted(value in value(), pretty in any::<bool>()) {
        let text = if pretty {
            serde_json::to_string_pretty(&value).unwrap()
        } else {
            value.to_string()
        };
        prop_assert!(is_valid(text.as_bytes()));
    }

    #[test]
    fn what_is_broken_is_judged_as_serde_json_judges_it(
        value in value(), at in any::<prop::sample::Index>(), with in prop::sample::select(vec!["", "\"", "\\", "{", "]", ",", "\n", "1", "\u{0}"]), drop in 0_usize..3
    ) {
        let text = value.to_string();
        let signs: Vec<char> = text.chars().collect();
        let at = at.index(signs.len() + 1);
        let mut broken: String = signs[..at].iter().collect();
        broken.push_str(with);
        broken.extend(signs.get(at + drop..).unwrap_or_default());
        prop_assert_eq!(is_valid(broken.as_bytes()), reference(&broken), "{}", broken);
    }

    #[test]
    fn strings_read_as_serde_json_reads_them(text in ".{0,200}") {
        let json = serde_json::to_string(&text).unwrap();
        let mut strings = Strings::default();
        strings.index(json.as_bytes()).unwrap();
        let read = Cursor::new(json.as_bytes(), &strings).string().unwrap().unwrap();
        prop_assert_eq!(read.to_str(), text);
    }

    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        is_valid(&bytes);
    }
}
