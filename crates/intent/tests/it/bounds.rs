//! What a text does to a parser that is longer, or has more of something, than anybody means.

use std::fmt::Write as _;

use holdfast_intent::limits::{ARGUMENTS_MAX, INTENTS_MAX};
use holdfast_intent::{FinishReason, Parser, Problem};

fn parse(text: &str) -> holdfast_intent::Parsed {
    Parser::default().parse(text, FinishReason::Stop)
}

/// The look back for a verb can begin in the verb, whose tail is another one.
#[test]
fn a_verb_far_before_what_it_is_given_is_one_verb() {
    let plans = [
        ("Je vais rechercher", "maintenant."),
        ("Je vais relire", "maintenant."),
        ("Ich besuche", "jetzt."),
        ("Ich möchte das gern recherchieren und suche", "jetzt."),
        ("Ich werde besuche", "jetzt."),
        ("Я сейчас прочитать", "сейчас."),
        ("Я прочитаю", "сейчас."),
        ("Poszukam", "teraz."),
    ];
    let given = [
        ["\"abc def\"", "\"ghi jkl\""],
        ["`a.txt`", "`b.txt`"],
        ["https://a.example/x", "https://b.example/y"],
        ["/tmp/a.txt", "/tmp/b.txt"],
    ];
    for (plan, end) in plans {
        for [first, second] in given {
            for padding in 0..80 {
                for letter in ["x", "é", "x "] {
                    let padding = letter.repeat(padding);
                    parse(&format!("{plan} {first} {padding} {second} {end}"));
                }
            }
        }
    }
}

/// A word that the look back begins in is none of its own.
#[test]
fn the_tail_of_a_word_is_no_verb() {
    for padding in 0..80 {
        let padding = "x".repeat(padding);
        let parsed = parse(&format!(
            "Je vais xxcherche {padding} \"abc def\" maintenant."
        ));
        assert_eq!(parsed.intents, [], "{padding}");
    }
}

#[test]
fn examples_at_the_end_are_as_many_as_other_calls() {
    let mut text = "For example: ".to_owned();
    for number in 0..2 * INTENTS_MAX {
        write!(text, "[TOOL_CALLS]read{{\"path\":\"a{number}\"}}").unwrap();
    }
    let parsed = parse(&text);
    assert_eq!(parsed.intents.len(), INTENTS_MAX);
    assert_eq!(parsed.intents[7].arguments["path"], "a7");
    assert!(parsed.problems.contains(&Problem::TooManyIntents));
    // Words behind them say that they are examples, however many.
    let parsed = parse(&format!("{text}\nThat is how a call is written."));
    assert_eq!(parsed.intents, []);
    assert!(!parsed.problems.contains(&Problem::TooManyIntents));
}

#[test]
fn unknown_tools_are_said_so_often() {
    let mut text = "For example: ".to_owned();
    for number in 0..2 * INTENTS_MAX {
        write!(text, "[TOOL_CALLS]f{number}{{\"a\":1}}").unwrap();
    }
    let parsed = parse(&text);
    assert!(parsed.problems.len() <= INTENTS_MAX + 3);
    assert!(parsed.problems.contains(&Problem::TooManyIntents));
}

#[test]
fn a_servers_calls_are_counted_too() {
    let call = |number: usize| {
        let arguments = format!("{{\"path\": \"a{number}\"}}");
        serde_json::json!({"function": {"name": "read", "arguments": arguments}})
    };
    let calls: Vec<_> = (0..2 * INTENTS_MAX).map(call).collect();
    let reply = serde_json::json!({"role": "assistant", "tool_calls": calls});
    let parsed = Parser::default().parse_reply(&reply, FinishReason::Stop);
    assert_eq!(parsed.intents.len(), INTENTS_MAX);
    assert!(parsed.problems.contains(&Problem::TooManyIntents));
}

#[test]
fn an_argument_that_is_repeated_is_a_list_of_all() {
    let items = "<tag>1</tag>".repeat(3 * ARGUMENTS_MAX);
    let parsed = parse(&format!(
        "<invoke name=\"write\"><path>a</path>{items}</invoke>"
    ));
    let tags = parsed.intents[0].arguments["tag"].as_array().map(Vec::len);
    assert_eq!(tags, Some(3 * ARGUMENTS_MAX));
}

#[test]
fn a_call_with_too_many_arguments_is_not_run() {
    let arguments =
        |count: usize, piece: &dyn Fn(usize) -> String| (0..count).map(piece).collect::<String>();
    let many = 2 * ARGUMENTS_MAX;
    let elements = arguments(many, &|number| format!("<a{number}>1</a{number}>"));
    let members = arguments(many, &|number| format!(", \"a{number}\": 1"));
    let python = arguments(many, &|number| format!(", a{number}=1"));
    for text in [
        format!("<invoke name=\"read\"><path>a</path>{elements}</invoke>"),
        format!("{{\"name\": \"read\", \"arguments\": {{\"path\": \"a\"{members}}}}}"),
        format!("[read(path=\"a\"{python})]"),
    ] {
        let parsed = parse(&text);
        let call = &parsed.intents[0];
        assert!(
            call.problems.contains(&Problem::UnreadableArguments),
            "{text}"
        );
        assert!(!call.is_runnable());
        assert!(call.arguments.len() <= ARGUMENTS_MAX);
    }
}

#[test]
fn a_call_of_no_tool_takes_nothing_from_those_before_it() {
    let paths = |text: &str| {
        let parsed = parse(text);
        let path = |intent: &holdfast_intent::Intent| intent.arguments["path"].clone();
        let paths: Vec<_> = parsed.intents.iter().map(path).collect();
        (
            paths,
            parsed.problems.contains(&Problem::LooksLikeFailedCall),
        )
    };
    for text in [
        "read(path=\"a\"), read(path=\"b\"), nosuch(x=1)",
        "read(path=\"a\"), nosuch(x=1), read(path=\"b\")",
        "read(path=\"a\"), nosuch(x=1), read(path=\"b\"), other(y=2)",
    ] {
        let (read, lost) = paths(text);
        assert_eq!(read, ["a", "b"], "{text}");
        assert!(lost, "{text}");
    }
    let (read, lost) = paths("read(path=\"a\"), read(path=\"b\")");
    assert_eq!(read, ["a", "b"]);
    assert!(!lost);
}
