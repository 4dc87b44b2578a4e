//! A call in a vendor's control tokens is a call, whatever prose stands before it.

use std::path::PathBuf;

use holdfast_intent::{FinishReason, Parsed, Parser, Problem};
use serde_json::{Value, json};

/// A form, and the call of `write` with [`arguments`] in it.
fn calls() -> Vec<(&'static str, String)> {
    let arguments = arguments().to_string();
    let call = json!({"name": "write", "arguments": self::arguments()}).to_string();
    vec![
        (
            "DeepSeek V3",
            format!(
                "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>write\n```json\n{arguments}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>"
            ),
        ),
        (
            "DeepSeek V3.1",
            format!(
                "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>write<｜tool▁sep｜>{arguments}<｜tool▁call▁end｜><｜tool▁calls▁end｜><｜end▁of▁sentence｜>"
            ),
        ),
        (
            "Kimi K2",
            format!(
                "<|tool_calls_section_begin|><|tool_call_begin|>functions.write:0<|tool_call_argument_begin|>{arguments}<|tool_call_end|><|tool_calls_section_end|>"
            ),
        ),
        ("Mistral", format!("[TOOL_CALLS][{call}]")),
        ("Mistral Small", format!("[TOOL_CALLS]write[ARGS]{arguments}")),
        ("Hermes", format!("<tool_call>\n{call}\n</tool_call>")),
        (
            "Hermes in one line",
            format!("<tool_call>{call}</tool_call><|im_end|>"),
        ),
        (
            "Qwen Coder",
            "<tool_call>\n<function=write>\n<parameter=path>\nnotes/a \"b\".md\n</parameter>\n<parameter=content>\nIt's `x`, *y* and \"z\".\n</parameter>\n</function>\n</tool_call>"
                .to_owned(),
        ),
        (
            "Kimi K3",
            "<|open|>tools<|sep|><|open|>call tool=\"write\" index=\"1\"<|sep|><|open|>argument key=\"path\" type=\"string\"<|sep|>notes/a \"b\".md<|close|>argument<|sep|><|open|>argument key=\"content\" type=\"string\"<|sep|>It's `x`, *y* and \"z\".<|close|>argument<|sep|><|close|>call<|sep|><|close|>tools<|sep|>"
                .to_owned(),
        ),
        (
            "MiniMax M3",
            "]<]minimax[>[<tool_call>\n]<]minimax[>[<invoke name=\"write\">]<]minimax[>[<path>notes/a \"b\".md]<]minimax[>[</path>]<]minimax[>[<content>It's `x`, *y* and \"z\".]<]minimax[>[</content>]<]minimax[>[</invoke>\n]<]minimax[>[</tool_call>"
                .to_owned(),
        ),
        (
            "Gemma 4",
            "<|tool_call>call:write{path:<|\"|>notes/a \"b\".md<|\"|>,content:<|\"|>It's `x`, *y* and \"z\".<|\"|>}<tool_call|>"
                .to_owned(),
        ),
    ]
}

fn arguments() -> Value {
    json!({"path": "notes/a \"b\".md", "content": "It's `x`, *y* and \"z\"."})
}

/// What models say before a call.
const PROSE: &[&str] = &[
    "",
    "I'll save the note now.",
    "Sure!",
    "You said \"write it down",
    "He wrote: \"Never again.\" I note it.",
    "The file's name is \u{201c}a.md",
    "It isn't there yet, so I won't read it first.",
    "Do not worry. I would not delete anything.",
    "I never call a tool without need, and I am not going to explain this one.",
    "For example",
    "For example:",
    "Here is an example of what the note could hold:",
    "An example call looks like this:",
    "You could use the following command:",
    "If the file does not exist, I create it:",
    "Should I save it? I think so",
    "Shall I go on?",
    "What does the note say?",
    "**Plan**",
    "**Example**\n\n1. Find the file.\n2. Write it.",
    "## Usage\n\nThe tool writes a file.",
    "### write\n\nIt writes a file.",
    "Steps:\n- read it\n- change it\n-",
    "1. First\n2. Then\n3.",
    "| a | b |\n|---|---|\n| 1 | 2 |",
    "> She asked for it.",
    "> She asked for it.\n> Twice.",
    "<think>\nI could call <tool_call> here. No, wait.\n</think>",
    "<think>For example: {\"name\": \"read\"}</think>\n\nI do it now.",
    "I think about it.\n</think>\n\nDone thinking.",
    "The tool `write` takes a path and a content.",
    "Tools are called with <tool_call> tags. I call one.",
    "Your template lacks the [TOOL_CALLS] token. I note that.",
    "The token `<｜tool▁call▁begin｜>` begins a call. I note that.",
    "The model should answer with:",
    "The assistant would write:",
    "The page says:",
    "Yesterday I wrote this:",
    "I have already sent it:",
    "Output:",
    "Observation: the file is empty",
    "Result:\n3 files",
    "Here is the code:\n```python\nprint(\"hello\")\n```",
    "Here is the code:\n```python\nprint(\"hello\")\n",
    "```json\n{\"a\": [1, 2\n",
    "```\nls -la\n",
    "~~~\nopen",
    "Run `ls -la and then",
    "The value is {\"a\": 1, \"b\": [",
    "f(x) = (1 + (2 * x",
    "Use write(path, content) for that.",
    "I pass [path, content",
    "<!-- a comment",
    "This is ~~wrong",
    "A <s>stroke",
    "/* I note it",
    "// a line of code",
    "Final Answer: the note is saved below.",
    "Thought: I should save it.",
    "Action: none",
    "[DONE]",
    "{\"name\": \"Ada\", \"role\": \"admin\"}",
    "That was wrong, ignore it. Now again",
    "Never mind the call above.",
    "Das ist zum Beispiel so:",
    "好的，我来保存。",
    "In the <code> element stands the name.",
    "<example>\nNot closed",
    "The line <details> opens it.",
    "It costs $5 & more <b>now</b>.",
];

/// What stands between prose and call.
const JOINTS: &[&str] = &["", " ", "\n", "\n\n"];

/// Whether the call was read, may run, and nothing is wrong with the reply.
fn is_read(parsed: &Parsed) -> bool {
    let [intent] = parsed.intents.as_slice() else {
        return false;
    };
    intent.name == "write"
        && Value::Object(intent.arguments.clone()) == arguments()
        && intent.is_runnable()
        && parsed.problems.is_empty()
}

/// Reads each call behind each text, and tells which were lost.
fn lost(texts: &[String]) -> Vec<String> {
    let parser = Parser::default();
    let mut lost = Vec::new();
    for text in texts {
        for (form, call) in calls() {
            for joint in JOINTS {
                let reply = format!("{text}{joint}{call}");
                let parsed = parser.parse(&reply, FinishReason::Stop);
                if !is_read(&parsed) {
                    let silent = parsed.completed && parsed.problems.is_empty();
                    let how = if silent { "silently" } else { "not runnable" };
                    let seen = serde_json::to_string(&parsed).expect("it serialises");
                    lost.push(format!("{form}, {how}: {text:?} {joint:?}\n    {seen}"));
                }
            }
        }
    }
    lost
}

fn demand_none(lost: &[String], all: usize) {
    println!("{all} replies, {} calls lost", lost.len());
    let shown: Vec<&str> = lost.iter().take(40).map(String::as_str).collect();
    assert!(
        lost.is_empty(),
        "{} lost:\n{}",
        lost.len(),
        shown.join("\n")
    );
}

#[test]
fn call_in_control_tokens_is_read_behind_any_prose() {
    let texts: Vec<String> = PROSE.iter().map(|text| (*text).to_owned()).collect();
    demand_none(&lost(&texts), texts.len() * calls().len() * JOINTS.len());
}

#[test]
fn call_in_control_tokens_is_read_behind_real_answers() {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../../shared/data/trajectories/gpt-4o-airline.json");
    let Ok(source) = std::fs::read_to_string(&file) else {
        println!("skipped: no answers in {}", file.display());
        return;
    };
    let talks: Vec<Value> = serde_json::from_str(&source).expect("a list");
    let mut texts: Vec<String> = Vec::new();
    for talk in &talks {
        for message in talk["traj"].as_array().into_iter().flatten() {
            if let ("assistant", Some(text)) = (
                message["role"].as_str().unwrap_or_default(),
                message["content"].as_str(),
            ) {
                texts.push(text.to_owned());
            }
        }
    }
    texts.sort();
    texts.dedup();
    assert!(!texts.is_empty(), "no answers");
    demand_none(&lost(&texts), texts.len() * calls().len() * JOINTS.len());
}

/// Pages hold tables, blocks of code, and tokens that are spoken of.
#[test]
fn call_in_control_tokens_is_read_behind_pages() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let mut texts = Vec::new();
    for file in std::fs::read_dir(folder).expect("a folder of pages") {
        let file = file.expect("a file").path();
        if file.extension().is_some_and(|kind| kind == "md") {
            let page = std::fs::read_to_string(&file).expect("a page");
            texts.extend(page.split("\n## ").map(str::to_owned));
        }
    }
    demand_none(&lost(&texts), texts.len() * calls().len() * JOINTS.len());
}

/// What is left of calls that nobody can read.
const LEFTOVERS: &[&str] = &[
    "<tool_call>",
    "</tool_call>",
    "<|tool_call_end|>",
    "<|tool_calls_section_begin|>",
    "<｜tool▁calls▁end｜>",
    "<｜tool▁call▁begin｜>",
    "[TOOL_CALLS]",
    "<|python_tag|>",
    "<start_function_call>",
    "]<]minimax[>[<tool_call>]<]minimax[>[</tool_call>",
    "<|open|>tools<|sep|><|close|>tools<|sep|>",
    "<tool_calls:opensource><tool_call:opensource>",
];

#[test]
fn control_tokens_left_in_an_answer_are_a_failed_call() {
    let parser = Parser::default();
    for leftover in LEFTOVERS {
        for answer in [
            "It is 4.",
            "Final Answer: It is 4.",
            "**Done:**\n- one\n- two",
            "",
        ] {
            for joint in JOINTS {
                let reply = format!("{answer}{joint}{leftover}");
                let parsed = parser.parse(&reply, FinishReason::Stop);
                assert!(parsed.intents.is_empty(), "{reply:?}: {parsed:?}");
                assert!(!parsed.completed, "{reply:?}: {parsed:?}");
                assert!(
                    parsed.problems.contains(&Problem::LooksLikeFailedCall),
                    "{reply:?}: {parsed:?}"
                );
            }
        }
    }
}

#[test]
fn control_tokens_in_shown_code_are_part_of_an_answer() {
    let parser = Parser::default();
    for leftover in LEFTOVERS {
        for reply in [
            format!("Its token is `{leftover}`."),
            format!("Its token:\n```rust\n// {leftover}\n```\nIt is special."),
            format!("<think>I write {leftover} or not.</think>It is 4."),
        ] {
            let parsed = parser.parse(&reply, FinishReason::Stop);
            assert!(parsed.completed, "{reply:?}: {parsed:?}");
        }
    }
}
