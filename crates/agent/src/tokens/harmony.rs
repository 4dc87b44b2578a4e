//! What a conversation costs beside its words: the frame that gpt-oss's format puts around them.
//!
//! A server writes `<|start|>ROLE<|message|>TEXT<|end|>` for a message, `<|channel|>NAME` for what
//! the model said, and a recipient for calls and their results; in front of all that stands a
//! message that is always the same. Other models have other frames of about the same size.

use serde_json::Value;

use super::count;
use crate::chat::{Message, Role};

/// `<|start|>`, the role, `<|message|>` and `<|end|>`.
const MESSAGE_TOKENS: u64 = 4;
/// `<|channel|>` and its name.
const CHANNEL_TOKENS: u64 = 2;
/// Around the name and arguments of a call: a message of its own, its channel (`commentary` is two
/// tokens), ` to=functions.`, and `<|constrain|>json`.
const CALL_TOKENS: u64 = MESSAGE_TOKENS + CHANNEL_TOKENS + 1 + 5 + 2;
/// Around a result: its channel, `functions.NAME to=assistant` without the name.
const RESULT_TOKENS: u64 = CHANNEL_TOKENS + 1 + 5;
/// The heading of the developer's message, which carries the client's rules.
const RULES_TOKENS: u64 = 4;
/// `<|start|>assistant`, with which the model is made to begin.
const BEGIN_TOKENS: u64 = 2;
/// Around one tool's declaration, and around all of them.
const TOOL_TOKENS: u64 = 16;
/// The message that every conversation begins with.
const PREAMBLE: &str = "You are ChatGPT, a large language model trained by OpenAI.\n\
    Knowledge cutoff: 2024-06\nCurrent date: 2026-11-15\n\nReasoning: medium\n\n\
    # Valid channels: analysis, commentary, final. Channel must be included for every message.\n\
    Calls to these tools must go to the commentary channel: 'functions'.";

/// What every request costs before a word is said.
pub fn preamble_tokens() -> u64 {
    count(PREAMBLE) + MESSAGE_TOKENS + BEGIN_TOKENS
}

/// What a server adds for tools that are declared to it.
pub fn tools(declared: &Value) -> u64 {
    match declared.as_array() {
        None => 0,
        // A schema is written as a type, which is shorter than its JSON.
        Some(list) => list
            .iter()
            .map(|tool| count(&tool.to_string()) + TOOL_TOKENS)
            .fold(TOOL_TOKENS, u64::saturating_add),
    }
}

/// The tokens of each message, frame included.
pub fn messages(messages: &[Message]) -> Vec<u64> {
    messages.iter().map(message).collect()
}

fn message(message: &Message) -> u64 {
    let frame = match message.role {
        Role::System => MESSAGE_TOKENS + RULES_TOKENS,
        Role::User => MESSAGE_TOKENS,
        Role::Assistant => MESSAGE_TOKENS + CHANNEL_TOKENS,
        Role::Tool => MESSAGE_TOKENS + RESULT_TOKENS,
    };
    let answers = message.answers.as_deref().map_or(0, count);
    let calls = message.calls.iter().map(|call| {
        let arguments = Value::Object(call.arguments.clone()).to_string();
        CALL_TOKENS + count(&call.name) + count(&arguments)
    });
    calls.fold(
        frame + count(&message.content) + answers,
        u64::saturating_add,
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::chat::NativeCall;

    /// What the vocabulary says of a conversation as gpt-oss's own template writes it.
    fn rendered(text: &str) -> u64 {
        tiktoken::get_encoding("o200k_harmony")
            .unwrap()
            .count_with_special_tokens(text) as u64
    }

    #[test]
    fn a_conversation_costs_what_its_rendering_costs() {
        let text = format!(
            "<|start|>system<|message|>{PREAMBLE}<|end|>\
             <|start|>developer<|message|># Instructions\n\nBe short.<|end|>\
             <|start|>user<|message|>What is in a.txt?<|end|>\
             <|start|>assistant<|channel|>commentary to=functions.read <|constrain|>json\
             <|message|>{{\"path\":\"a.txt\"}}<|call|>\
             <|start|>functions.read to=assistant<|channel|>commentary<|message|>milk<|end|>\
             <|start|>assistant<|channel|>final<|message|>Milk.<|end|><|start|>assistant"
        );
        let call = NativeCall {
            id: "c1".to_owned(),
            name: "read".to_owned(),
            arguments: serde_json::from_value(json!({"path": "a.txt"})).unwrap(),
        };
        let history = [
            Message::text(Role::System, "Be short."),
            Message::text(Role::User, "What is in a.txt?"),
            Message {
                calls: vec![call],
                ..Message::text(Role::Assistant, "")
            },
            Message {
                answers: Some("c1".to_owned()),
                ..Message::text(Role::Tool, "milk")
            },
            Message::text(Role::Assistant, "Milk."),
        ];
        let counted = preamble_tokens() + messages(&history).iter().sum::<u64>();
        let exact = rendered(&text);
        // An assistant message with a call has a frame for the call and one for its empty text.
        assert!(
            counted >= exact && counted <= exact + 12,
            "{counted} for {exact}"
        );
    }

    #[test]
    fn plain_messages_are_exact() {
        let text = "<|start|>user<|message|>Hello there.<|end|>";
        assert_eq!(
            messages(&[Message::text(Role::User, "Hello there.")]),
            [rendered(text)]
        );
        let text = "<|start|>assistant<|channel|>final<|message|>Hi.<|end|>";
        assert_eq!(
            messages(&[Message::text(Role::Assistant, "Hi.")]),
            [rendered(text)]
        );
    }
}
