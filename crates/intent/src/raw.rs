//! A call as it was written, before the tool's schema has its say.

use serde_json::{Map, Value};

use crate::json::{self, Ending};
use crate::model::Strategy;

/// One argument's value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Given {
    /// Written as JSON, so its type is meant.
    Json(Value),
    /// Written as bare text: only the schema knows its type.
    Text(String),
}

/// The arguments of a call.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Args {
    pub(crate) named: Vec<(String, Given)>,
    pub(crate) positional: Vec<Given>,
}

impl Args {
    pub(crate) fn from_map(map: Map<String, Value>) -> Self {
        Self {
            named: map
                .into_iter()
                .map(|(key, value)| (key, Given::Json(value)))
                .collect(),
            positional: Vec::new(),
        }
    }

    pub(crate) fn bare(value: Value) -> Self {
        Self {
            named: Vec::new(),
            positional: vec![Given::Json(value)],
        }
    }

    pub(crate) fn text(text: &str) -> Self {
        Self {
            named: Vec::new(),
            positional: vec![Given::Text(text.to_owned())],
        }
    }
}

/// What stands in the place of a call's arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Shape {
    /// An object, or what a form has in its place.
    #[default]
    Named,
    /// A bare value where an object belongs: which argument it is, is a guess.
    Bare,
    /// A list of values: whoever writes one knows another order of the arguments than the schema has.
    List,
}

/// What a call is whose name no tool has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unknown {
    /// Still a call: it stands in a format's own tags.
    Call,
    /// No call, but it has the shape of one, and the reply is no answer.
    Mistake,
    /// No call: words, or data.
    Nothing,
}

/// A call as it was written.
#[derive(Debug, Clone, PartialEq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "facts that have nothing to do with each other"
)]
pub(crate) struct RawCall {
    pub(crate) name: String,
    pub(crate) args: Args,
    pub(crate) shape: Shape,
    pub(crate) span: [usize; 2],
    pub(crate) strategy: Strategy,
    pub(crate) confidence: f64,
    /// Whether strict JSON would have refused the arguments.
    pub(crate) repaired: bool,
    pub(crate) ending: Ending,
    /// Whether arguments were left out with `...`.
    pub(crate) elided: bool,
    /// Whether it can be read in more than one way.
    pub(crate) ambiguous: bool,
    /// Whether something was written among the arguments that could not be read.
    pub(crate) lost: bool,
    /// Whether the words before it leave open who means it.
    pub(crate) doubtful: bool,
    /// What it is when no tool has its name.
    pub(crate) unknown: Unknown,
    /// Whether a server wrote the arguments as an object, so that it shut what the model left open.
    pub(crate) closed_by_server: bool,
    /// The server's name of this call.
    pub(crate) call_id: Option<String>,
    /// What an argument refers to when it is named, not given ("the first result").
    pub(crate) open: Vec<(String, String)>,
}

impl RawCall {
    pub(crate) fn new(name: &str, args: Args, span: [usize; 2], strategy: Strategy) -> Self {
        Self {
            name: name.to_owned(),
            args,
            shape: Shape::default(),
            span,
            strategy,
            confidence: 1.0,
            repaired: false,
            ending: Ending::Whole,
            elided: false,
            ambiguous: false,
            lost: false,
            doubtful: false,
            unknown: Unknown::Call,
            closed_by_server: false,
            call_id: None,
            open: Vec::new(),
        }
    }

    pub(crate) fn confidence(mut self, confidence: f64) -> Self {
        self.confidence = confidence;
        self
    }

    pub(crate) fn ending(mut self, ending: Ending) -> Self {
        self.ending = self.ending.max(ending);
        self
    }

    pub(crate) fn elided(mut self, elided: bool) -> Self {
        self.elided |= elided;
        self
    }

    pub(crate) fn ambiguous(mut self, ambiguous: bool) -> Self {
        self.ambiguous |= ambiguous;
        self
    }

    pub(crate) fn lost(mut self, lost: bool) -> Self {
        self.lost |= lost;
        self
    }

    pub(crate) fn doubtful(mut self, doubtful: bool) -> Self {
        self.doubtful |= doubtful;
        self
    }

    /// The call with arguments that were read on their own.
    pub(crate) fn with_args(mut self, read: ReadArgs) -> Self {
        self.args = read.args;
        self.shape = read.shape;
        self.repaired(read.repaired)
            .ending(read.ending)
            .elided(read.elided)
            .ambiguous(read.ambiguous)
            .lost(read.lost)
    }

    /// The call of a form in which a bare text is one of the ways to write arguments.
    pub(crate) fn may_be_bare(mut self) -> Self {
        if self.shape == Shape::Bare {
            self.shape = Shape::Named;
        }
        self
    }

    pub(crate) fn repaired(mut self, repaired: bool) -> Self {
        self.repaired |= repaired;
        self
    }
}

/// Arguments that should be one JSON object, written in `text[start..end]`.
#[expect(
    clippy::struct_excessive_bools,
    reason = "facts that have nothing to do with each other"
)]
pub(crate) struct ReadArgs {
    pub(crate) args: Args,
    pub(crate) shape: Shape,
    pub(crate) end: usize,
    pub(crate) repaired: bool,
    pub(crate) ending: Ending,
    pub(crate) elided: bool,
    pub(crate) ambiguous: bool,
    pub(crate) lost: bool,
}

impl ReadArgs {
    fn whole(args: Args, end: usize) -> Self {
        Self {
            args,
            shape: Shape::default(),
            end,
            repaired: false,
            ending: Ending::Whole,
            elided: false,
            ambiguous: false,
            lost: false,
        }
    }
}

/// Reads arguments: an object, else a bare text.
pub(crate) fn read_args(text: &str, start: usize, end: usize) -> ReadArgs {
    let end = start + without_fence_end(&text[start..end]).len();
    let body = &text[start..end];
    let lead = body.len() - body.trim_start().len();
    let trimmed = body.trim();
    let at = start + lead;
    if trimmed.is_empty() {
        return ReadArgs::whole(Args::default(), end);
    }
    if let Some(inner) = encoded(trimmed) {
        let read = read_args(&inner, 0, inner.len());
        return ReadArgs { end, ..read };
    }
    // A fence or a label may stand before the object.
    let at = if trimmed.starts_with(['{', '[']) {
        Some(at)
    } else if trimmed.starts_with("```") || trimmed.starts_with("json") {
        memchr::memchr(b'{', body.as_bytes()).map(|found| start + found)
    } else {
        None
    };
    if let Some(read) = at.and_then(|at| json::read_at(text, at, end)) {
        let (args, shape) = match read.value {
            Value::Object(map) => (Args::from_map(map), Shape::Named),
            Value::Array(items) => of_list(items),
            other => (Args::bare(other), Shape::Bare),
        };
        return ReadArgs {
            args,
            shape,
            end: read.end,
            repaired: read.repaired,
            ending: read.ending,
            elided: read.elided,
            ambiguous: read.ambiguous,
            lost: read.lost,
        };
    }
    if trimmed.starts_with('`') && !trimmed.trim_matches('`').contains(['`', '\n', ' ']) {
        // A fence, and what it should hold is not there.
        return ReadArgs {
            ending: Ending::OpenValue,
            ..ReadArgs::whole(Args::default(), end)
        };
    }
    ReadArgs {
        shape: Shape::Bare,
        ..ReadArgs::whole(Args::text(trimmed.trim_matches(['"', '\'', '`'])), end)
    }
}

/// Reads arguments of which it is known that they end at `end`: what else stands there is lost, and
/// that is said.
pub(crate) fn read_all_args(text: &str, start: usize, end: usize) -> ReadArgs {
    let mut read = read_args(text, start, end);
    let rest = text.get(read.end..end).unwrap_or_default();
    // Closers that are one too many hold nothing.
    let is_frame = |letter: char| letter.is_whitespace() || "`]});,\\\"'".contains(letter);
    read.lost |= read.ending == Ending::Whole && !rest.trim_matches(is_frame).is_empty();
    read
}

/// An object that was encoded as a JSON string once more. Each layer is shorter than the one
/// around it by its marks and its escapes.
fn encoded(text: &str) -> Option<String> {
    if !text.starts_with("\"{") && !text.starts_with("\"[") && !text.starts_with("\"\\\"") {
        return None;
    }
    serde_json::from_str(text).ok()
}

/// Arguments given as a JSON value: an object, JSON in a string, or nothing.
pub(crate) fn args_of_value(value: Value) -> ReadArgs {
    let of = |(args, shape)| ReadArgs {
        shape,
        ..ReadArgs::whole(args, 0)
    };
    match value {
        Value::Object(map) => of((Args::from_map(map), Shape::Named)),
        Value::Null => of((Args::default(), Shape::Named)),
        // Some servers write it so for a tool without arguments.
        Value::String(text) if matches!(text.trim(), "null" | "None") => {
            of((Args::default(), Shape::Named))
        }
        Value::String(text) => read_all_args(&text, 0, text.len()),
        Value::Array(items) => of(of_list(items)),
        other => of((Args::bare(other), Shape::Bare)),
    }
}

/// Some write a list of one object, or of name and value pairs. What has no name is left out: its place
/// in the list says nothing of which argument it is.
fn of_list(items: Vec<Value>) -> (Args, Shape) {
    let (mut args, mut shape) = (Args::default(), Shape::Named);
    for item in items {
        match item {
            Value::Object(map)
                if map.len() == 2 && map.contains_key("name") && map.contains_key("value") =>
            {
                let key = map["name"].as_str().unwrap_or_default().to_owned();
                args.named.push((key, Given::Json(map["value"].clone())));
            }
            Value::Object(map) => args.named.extend(Args::from_map(map).named),
            _ => shape = Shape::List,
        }
    }
    (args, shape)
}

/// A text that opens with a fence, without the fence that closes it.
pub(crate) fn without_fence_end(text: &str) -> &str {
    if !text.trim_start().starts_with("```") {
        return text;
    }
    match text.rfind("```") {
        Some(at) if !text[..at].trim().is_empty() => &text[..at],
        _ => text,
    }
}
