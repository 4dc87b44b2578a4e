//! A model that says sensible things, on servers that do not always say them on.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use holdfast_agent::model::{
    Hear, Model, ModelError, ModelReply, ModelRequest, Piece, read_error, read_reply,
};
use holdfast_testkit::SeededEntropy;
use parking_lot::Mutex;
use serde_json::{Value, json};

/// What can go wrong with an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    Late,
    Never,
    Status(u16),
    EmptyChoices,
    HalfABody,
    BrokenJson,
    WrongTypes,
    Huge,
    ClosedMidBody,
    TooLong,
}

pub(crate) const FAULTS: [Fault; 14] = [
    Fault::Late,
    Fault::Never,
    Fault::Status(500),
    Fault::Status(503),
    Fault::Status(429),
    Fault::Status(400),
    Fault::Status(408),
    Fault::EmptyChoices,
    Fault::HalfABody,
    Fault::BrokenJson,
    Fault::WrongTypes,
    Fault::Huge,
    Fault::ClosedMidBody,
    Fault::TooLong,
];

/// What the model has said that may come back as an answer, or as an effect.
#[derive(Default)]
pub(crate) struct Said {
    pub(crate) answers: Vec<String>,
    /// Everything else that it said or thought.
    pub(crate) texts: Vec<String>,
    calls: u64,
    /// How often a stream ended in its midst.
    pub(crate) broken_off: u64,
}

/// The body of a sensible answer.
pub(crate) fn sensible(chance: &SeededEntropy, said: &Mutex<Said>) -> Value {
    let mut said = said.lock();
    said.calls += 1;
    let number = said.calls;
    let text = match chance.below(12) {
        0..=4 => react("note", &json!({"text": format!("effect {number}")})),
        5 => react("look", &json!({"text": "x"})),
        6 => react("no_such_tool", &json!({})),
        7 => react("note", &json!({"text": [number]})),
        8 => "Action: note\nAction Input: {\"text\": \"cut o".to_owned(),
        9 => return native(number, chance.below(3) + 1),
        _ => {
            let answer = format!("The answer is {number}.");
            said.answers.push(answer.clone());
            let told = format!("Final Answer: {answer}");
            said.texts.extend([told.clone(), "That is all.".to_owned()]);
            let message = if chance.chance(50) {
                json!({"content": null, "reasoning_content": told})
            } else {
                json!({"content": told, "reasoning_content": "That is all."})
            };
            return reply(&message, chance);
        }
    };
    said.texts.push(text.clone());
    reply(&json!({"content": "", "reasoning": text}), chance)
}

fn react(tool: &str, arguments: &Value) -> String {
    format!("Thought: next\nAction: {tool}\nAction Input: {arguments}")
}

/// Several native calls, with ids that were used before.
fn native(number: u64, count: u64) -> Value {
    let calls: Vec<Value> = (0..count)
        .map(|at| {
            let arguments = json!({"text": format!("effect {number}-{at}")}).to_string();
            json!({"id": format!("call_{at}"), "type": "function",
                   "function": {"name": "note", "arguments": arguments}})
        })
        .collect();
    json!({"choices": [{"message": {"content": null, "tool_calls": calls}, "finish_reason": "tool_calls"}]})
}

fn reply(message: &Value, chance: &SeededEntropy) -> Value {
    let mut body = json!({"choices": [{"message": message, "finish_reason": "stop"}]});
    if chance.chance(70) {
        body["usage"] =
            json!({"prompt_tokens": chance.below(3000), "completion_tokens": chance.below(500)});
    }
    body
}

/// A body with something in it that is of another type.
pub(crate) fn wrong_types(mut body: Value, chance: &SeededEntropy) -> Value {
    let strange = [
        json!(5),
        json!("x"),
        json!([]),
        json!({}),
        json!(null),
        json!([[{}]]),
        json!(-1.5e300),
    ];
    let strange = &strange[usize::try_from(chance.below(strange.len() as u64)).expect("small")];
    let places = [
        "/choices",
        "/choices/0",
        "/choices/0/message",
        "/choices/0/message/content",
        "/choices/0/message/reasoning_content",
        "/choices/0/message/tool_calls",
        "/choices/0/message/tool_calls/0",
        "/choices/0/message/tool_calls/0/function",
        "/choices/0/message/tool_calls/0/function/arguments",
        "/choices/0/finish_reason",
        "/usage",
        "/usage/prompt_tokens",
    ];
    let place = places[usize::try_from(chance.below(places.len() as u64)).expect("small")];
    if let Some(value) = body.pointer_mut(place) {
        *value = strange.clone();
    }
    body
}

/// A model in memory.
pub(crate) struct Chaotic {
    pub(crate) chance: SeededEntropy,
    /// Shared by all servers of the model, so that nothing is said twice.
    pub(crate) said: Arc<Mutex<Said>>,
    /// How many answers of a hundred go wrong.
    pub(crate) faults_percent: u64,
}

impl Chaotic {
    pub(crate) fn new(seed: u64, faults_percent: u64, said: Arc<Mutex<Said>>) -> Self {
        let chance = SeededEntropy::new(seed);
        Self {
            chance,
            said,
            faults_percent,
        }
    }

    async fn wrong(&self, fault: Fault, timeout_ms: u64) -> Result<ModelReply, ModelError> {
        let body = || sensible(&self.chance, &self.said);
        let away = |why: &str| Err(ModelError::Unavailable(why.to_owned()));
        match fault {
            Fault::Late => {
                let after_ms = self.chance.below(timeout_ms * 2);
                tokio::time::sleep(Duration::from_millis(after_ms.min(timeout_ms))).await;
                if after_ms > timeout_ms {
                    return away("did not answer in time");
                }
                read_reply(body().to_string().as_bytes())
            }
            // A client that does not keep its own time: the run has to.
            Fault::Never => std::future::pending().await,
            Fault::Status(status) => Err(read_error(status, b"<html>no</html>")),
            Fault::EmptyChoices => read_reply(b"{\"choices\": []}"),
            Fault::HalfABody => {
                let whole = body().to_string().into_bytes();
                read_reply(&whole[..whole.len() / 2])
            }
            Fault::BrokenJson => read_reply(body().to_string().replace(':', "=").as_bytes()),
            Fault::WrongTypes => {
                // The one text among the strange values.
                self.said.lock().texts.push("x".to_owned());
                read_reply(wrong_types(body(), &self.chance).to_string().as_bytes())
            }
            Fault::Huge => {
                let content = format!("{}end", "word ".repeat(60_000));
                self.said.lock().answers.push(content.clone());
                read_reply(
                    json!({"choices": [{"message": {"content": content}}]})
                        .to_string()
                        .as_bytes(),
                )
            }
            Fault::ClosedMidBody => away("connection reset"),
            Fault::TooLong => {
                let window = 500 + self.chance.below(20_000);
                let said = format!(
                    "{{\"error\": {{\"message\": \"maximum context length is {window} tokens\"}}}}"
                );
                Err(read_error(400, said.as_bytes()))
            }
        }
    }
}

#[async_trait]
impl Model for Chaotic {
    async fn complete(&self, request: &ModelRequest) -> Result<ModelReply, ModelError> {
        if self.chance.chance(self.faults_percent) {
            let which = usize::try_from(self.chance.below(FAULTS.len() as u64)).expect("small");
            return self.wrong(FAULTS[which], request.timeout_ms).await;
        }
        tokio::time::sleep(Duration::from_millis(self.chance.below(3_000))).await;
        read_reply(sensible(&self.chance, &self.said).to_string().as_bytes())
    }

    /// The same in pieces, of which the last ones may never come.
    async fn stream(
        &self,
        request: &ModelRequest,
        hear: Hear<'_>,
    ) -> Result<ModelReply, ModelError> {
        let reply = self.complete(request).await?;
        let mut pieces: Vec<Piece<'_>> = cut(&reply.reasoning).map(Piece::Reasoning).collect();
        pieces.extend(cut(&reply.content).map(Piece::Content));
        if !reply.calls.is_null() {
            pieces.push(Piece::Call);
        }
        let breaks_off = self.chance.chance(self.faults_percent / 2);
        if breaks_off {
            let kept = self.chance.below(pieces.len() as u64 + 1);
            pieces.truncate(usize::try_from(kept).expect("small"));
        }
        for piece in pieces {
            tokio::time::sleep(Duration::from_millis(self.chance.below(20))).await;
            hear(piece);
        }
        if breaks_off {
            self.said.lock().broken_off += 1;
            return Err(ModelError::Unavailable("closed mid-stream".to_owned()));
        }
        Ok(reply)
    }
}

/// A text in at most a handful of pieces.
fn cut(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    let length = text.len() / 5 + 1;
    std::iter::from_fn(move || {
        let mut end = length.min(rest.len());
        while !rest.is_char_boundary(end) {
            end += 1;
        }
        let (piece, after) = rest.split_at(end);
        rest = after;
        (!piece.is_empty()).then_some(piece)
    })
}
