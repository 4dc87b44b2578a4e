//! The reader of configuration files, on its own.

use proptest::prelude::*;

use super::config::{Config, insert, parse, replace};
use super::names::runs_something;

/// Names and values, as `git config --list` prints them.
fn listed(text: &str) -> Option<Vec<String>> {
    let shown = |config: Config| {
        let settings = config.settings.into_iter();
        let shown = settings.map(|it| match it.value {
            Some(value) => format!("{}={}", it.name, String::from_utf8_lossy(&value)),
            None => it.name.to_string(),
        });
        shown.collect()
    };
    parse(text.as_bytes()).map(shown)
}

#[test]
fn files_are_read_as_git_reads_them() {
    for (text, expected) in [
        ("", Some(vec![])),
        ("# only\n; comments", Some(vec![])),
        ("[a]\nb = c\n", Some(vec!["a.b=c"])),
        ("[A]\n\tB-2=c", Some(vec!["a.b-2=c"])),
        ("\u{feff}[a] b = c", Some(vec!["a.b=c"])),
        ("[a \"B.c\\\"d\\\\\"]e=f", Some(vec!["a.B.c\"d\\.e=f"])),
        ("[a.B]c=d", Some(vec!["a.b.c=d"])),
        ("[a]\nb\nc\n", Some(vec!["a.b", "a.c"])),
        ("[a]b = c # d\n", Some(vec!["a.b=c"])),
        ("[a]b = \"c # d\" ; e\n", Some(vec!["a.b=c # d"])),
        ("[a]b = \" c \"\t\n", Some(vec!["a.b= c "])),
        (
            "[a]b = c\\\n  d\\te\\\\\\\"\n",
            Some(vec!["a.b=c  d\te\\\""]),
        ),
        ("[a]b = c # d\\\ne = f\n", Some(vec!["a.b=c", "a.e=f"])),
        ("[a]\r\nb = c\r\nd = e\r\n", Some(vec!["a.b=c", "a.d=e"])),
        ("[a] [b] c = d", Some(vec!["b.c=d"])),
        ("[a]b = ", Some(vec!["a.b="])),
        ("b = c", None),
        ("[a", None),
        ("[a\nb]", None),
        ("[a \"b\n\"]", None),
        ("[a \"b\" ]", None),
        ("[a b]", None),
        ("[]", None),
        ("[a]\nb = \"c\n", None),
        ("[a]\nb = \\x\n", None),
        ("[a]\nb # c\n", None),
        ("[a]\n1b = c\n", None),
        ("[a]\nb = c\0\n", None),
    ] {
        let expected = expected.map(|it: Vec<&str>| it.iter().map(ToString::to_string).collect());
        assert_eq!(listed(text), expected, "{text:?}");
    }
}

#[test]
fn only_the_lines_of_a_setting_go_and_its_place_is_kept() {
    let text = "[a] b = c ; d\n[e]\n  f = g\\\n h\n\ti = j\n";
    let config = parse(text.as_bytes()).unwrap();
    let without = |at: usize, instead: &str| {
        let edit = (
            config.settings[at].span.clone(),
            instead.as_bytes().to_vec(),
        );
        String::from_utf8(replace(text.as_bytes(), &[edit])).unwrap()
    };
    assert_eq!(without(0, ""), "[a] \n[e]\n  f = g\\\n h\n\ti = j\n");
    assert_eq!(without(1, ""), "[a] b = c ; d\n[e]\n\ti = j\n");
    assert_eq!(
        without(2, "\tk = l"),
        "[a] b = c ; d\n[e]\n  f = g\\\n h\n\tk = l\n"
    );
    let name = &config.settings[1].name;
    let inserted = |text: &str| {
        let made = insert(text.as_bytes(), name, b"\tf = x\n").unwrap();
        String::from_utf8(made).unwrap()
    };
    assert_eq!(inserted("[e] # f\n[g]\n"), "[e] # f\n\tf = x\n[g]\n");
    assert_eq!(inserted("[e]"), "[e]\n\tf = x\n");
    assert_eq!(inserted("[a] b = c"), "[a] b = c\n[e]\n\tf = x\n");
    assert_eq!(inserted("[e] [g] h = i\n"), "[e] [g] h = i\n[e]\n\tf = x\n");
    assert_eq!(
        inserted("[e] [g]\nh = i\n"),
        "[e] [g]\nh = i\n[e]\n\tf = x\n"
    );
}

fn config_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("[core]\n".to_owned()),
        Just("[Alias] ".to_owned()),
        "\\[[a-c]{1,3}( \"[a-zA-Z. ]{0,4}\")?\\]\n?",
        "[ \t]{0,2}[a-z][a-z0-9-]{0,4}[ \t]?=[ ]?[ -~]{0,12}\n",
        "[ \t]{0,2}[a-z]{1,4} = \"?[a-z #;]{0,6}\"?( ; [a-z]{0,3})?\r?\n",
        "\ta = b\\\\\n  c\n",
        "[#;][ -~]{0,10}\n",
        "\n",
        "[ -~\n\r\t]{0,6}",
    ];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    /// Whatever a file holds, a setting that is taken out and put back is there again, and nothing else
    /// has changed.
    #[test]
    fn any_setting_can_be_taken_out_and_put_back(text in config_text(), at in any::<prop::sample::Index>()) {
        let bytes = text.as_bytes();
        let Some(config) = parse(bytes) else { return Ok(()) };
        if config.settings.is_empty() {
            prop_assert_eq!(replace(bytes, &[]), bytes);
            return Ok(());
        }
        let at = at.index(config.settings.len());
        let setting = &config.settings[at];
        let line = setting.line(bytes);
        let without = replace(bytes, &[(setting.span.clone(), Vec::new())]);
        let rest = parse(&without).expect("still a configuration");
        let values = |config: &Config| -> Vec<_> {
            config.settings.iter().map(|it| (it.name.clone(), it.value.clone())).collect()
        };
        let mut expected = values(&config);
        let taken = expected.remove(at);
        prop_assert_eq!(values(&rest), expected.clone());
        // The same bytes in its place are the same file, but for an end of line that was missing.
        let mut same = replace(bytes, &[(setting.span.clone(), line.clone())]);
        same.truncate(bytes.len());
        prop_assert_eq!(same, bytes);
        let back = insert(&without, &setting.name, &line).expect("put back");
        let mut now = values(&parse(&back).expect("still a configuration"));
        let found = now.iter().rposition(|it| *it == taken).expect("is there");
        now.remove(found);
        prop_assert_eq!(now, expected);
    }

    /// Bytes from anywhere are read or refused, and every setting's bytes are within the file.
    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        for setting in parse(&bytes).unwrap_or_default().settings {
            prop_assert!(setting.span.end <= bytes.len());
            runs_something(&setting.name, setting.value.as_deref());
        }
    }
}
