//! What holds for every text.

use holdfast_intent::{FinishReason, Intent, Parser, RUN_MUTATING_MIN, Strategy, StreamParser};
use proptest::prelude::*;
use proptest::strategy::Strategy as _;

/// Pieces that open, close and break every form.
const PIECES: &[&str] = &[
    "<tool_call>",
    "</tool_call>",
    "{\"name\": \"read\", \"arguments\": {\"path\": \"a\"}}",
    "{\"name\": \"",
    "{",
    "}",
    "[",
    "]",
    "(",
    ")",
    "\"",
    "'",
    "`",
    "```json\n",
    "```\n",
    "\n",
    " ",
    "\\",
    "\\\"",
    "\\u12",
    ",",
    ":",
    "Action: read\n",
    "Action Input: ",
    "Observation:",
    "Final Answer:",
    "[TOOL:read|path=a]",
    "[TOOL:",
    "|",
    "=",
    "[DONE]",
    "<|channel|>",
    "<|message|>",
    "<|start|>assistant",
    "commentary to=functions.read ",
    "<|call|>",
    "<|end|>",
    "<invoke name=\"read\">",
    "<parameter name=\"path\">",
    "</parameter>",
    "</invoke>",
    "<function=read>",
    "<parameter=path>",
    "<｜tool▁call▁begin｜>",
    "<｜tool▁sep｜>",
    "<｜tool▁call▁end｜>",
    "<|tool_call_begin|>",
    "functions.read:0",
    "<|tool_call_argument_begin|>",
    "[TOOL_CALLS]",
    "[ARGS]",
    "<|python_tag|>",
    "read(path=\"a\")",
    "[read(",
    "<arg_key>",
    "</arg_key>",
    "<arg_value>",
    "read\n",
    "<|tool_call>call:",
    "I'll read a.txt",
    " and then ",
    "Search for ",
    "run `ls`",
    "don't ",
    "?",
    ".",
    "é",
    "\u{201c}",
    "\u{201d}",
    "🦀",
    "<think>",
    "</think>",
    "<thinking>",
    "</thinking>",
    "<reasoning>",
    "</reasoning>",
    "<seed:think>",
    "</seed:think>",
    "> ",
    "    ",
    "True",
    "None",
    "1e9",
    "//",
    "/*",
    "*/",
    "#",
    "\"\"\"",
    "<|\"|>",
    "1. ",
    "\t",
    "\u{a0}",
    "write ",
    "to=functions.",
    "functools[",
];

/// What a thought can hold without ending.
const THOUGHT_PIECES: &[&str] = &[
    "<think>",
    "<thinking>",
    "</thinking>",
    "<reasoning>",
    "</reasoning>",
    "<seed:think>",
    "</seed:think>",
    "Not yet.",
    "\n",
    "[TOOL:write|path=a|content=b]\n",
    "<tool_call>{\"name\": \"write\", \"arguments\": {\"path\": \"a\", \"content\": \"b\"}}</tool_call>",
];

fn text() -> impl proptest::strategy::Strategy<Value = String> {
    prop::collection::vec(
        prop_oneof![4 => prop::sample::select(PIECES).prop_map(str::to_owned), 1 => "\\PC{0,6}"],
        0..40,
    )
    .prop_map(|pieces| pieces.concat())
}

fn finish() -> impl proptest::strategy::Strategy<Value = FinishReason> {
    prop::sample::select(vec![
        FinishReason::Unknown,
        FinishReason::Stop,
        FinishReason::Length,
    ])
}

fn check(intent: &Intent, text: &str) {
    let [start, end] = intent.span;
    assert!(
        start <= end && text.get(start..end).is_some(),
        "span {start}..{end} in {text:?}"
    );
    assert!((0.0..=1.0).contains(&intent.confidence));
    if intent.strategy == Strategy::Fuzzy && intent.mutating {
        assert!(intent.confidence < RUN_MUTATING_MIN && !intent.is_runnable());
    }
    assert!(intent.complete || !intent.is_runnable());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn every_text_is_survived(text in text(), finish in finish()) {
        for strategy in Strategy::ALL {
            let parser = Parser::default().with_strategies(strategy, Some(Strategy::Fuzzy));
            let parsed = parser.parse(&text, finish);
            for intent in &parsed.intents {
                check(intent, &text);
            }
            let _message = parser.corrective_message(&parsed);
        }
    }

    #[test]
    fn chunks_change_nothing(text in text(), size in 1_usize..9) {
        let parser = Parser::default();
        let whole = parser.parse_any(&text, FinishReason::Unknown);
        let mut stream = StreamParser::new(&parser);
        text.as_bytes().chunks(size).for_each(|chunk| stream.feed(chunk));
        prop_assert_eq!(stream.finish(FinishReason::Unknown), whole);
    }

    #[test]
    fn nothing_in_a_thought_is_called(pieces in prop::collection::vec(prop::sample::select(THOUGHT_PIECES), 0..12)) {
        let text = format!("<think>{}</think>\nIt is a page.", pieces.concat());
        for strategy in Strategy::ALL {
            let parser = Parser::default().with_strategies(strategy, None);
            let parsed = parser.parse(&text, FinishReason::Stop);
            prop_assert!(parsed.intents.is_empty(), "{text:?} gave {:?}", parsed.intents);
        }
    }

    #[test]
    fn what_is_cut_inside_a_string_is_never_whole(form in 0_usize..9, content in "[a-zA-Z0-9 ,.:;(){}<>/_-]{8,60}", cut in 1_usize..8) {
        let json = serde_json::json!({"path": "a.txt", "content": format!("{content}#")});
        let args = json.to_string();
        let call = format!("{{\"name\": \"write\", \"arguments\": {}}}", serde_json::json!({"content": format!("{content}#"), "path": "a"}));
        let whole = match form {
            0 => format!("<tool_call>\n{call}"),
            1 => call,
            2 => format!("```json\n{call}"),
            3 => format!("Action: write\nAction Input: {args}"),
            4 => format!("<|channel|>commentary to=functions.write <|constrain|>json<|message|>{args}"),
            5 => format!("[TOOL_CALLS]write[ARGS]{args}"),
            6 => format!("<|tool_call_begin|>functions.write:0<|tool_call_argument_begin|>{args}"),
            7 => format!("<｜tool▁call▁begin｜>write<｜tool▁sep｜>{args}"),
            _ => format!("<invoke name=\"write\"><parameter name=\"content\">{content}#"),
        };
        let inside = whole.rfind('#').unwrap() - cut.min(content.len() - 1);
        let text = &whole[..inside];
        for reason in [FinishReason::Unknown, FinishReason::Stop, FinishReason::Length] {
            for intent in Parser::default().parse(text, reason).intents {
                prop_assert!(!intent.complete, "{text:?} gave {intent:?}");
            }
        }
    }
}
