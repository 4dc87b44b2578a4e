//! One reply in, everything it means out.

use serde_json::Value;

use crate::doc::Doc;
use crate::forms;
use crate::fuzzy;
use crate::guide;
use crate::json;
use crate::limits::INTENTS_MAX;
use crate::model::{FinishReason, Intent, Parsed, Strategy};
use crate::native;
use crate::problem::Problem;
use crate::raw::RawCall;
use crate::signs;
use crate::thoughts::{answered, said_aloud, without_frames};
use crate::tools::ToolSet;
use crate::wire::{self, Wire};

/// A parser for one set of tools.
///
/// ```
/// use holdfast_intent::{FinishReason, Parser, Strategy};
/// let parser = Parser::default();
/// let parsed = parser.parse(
///     "Action: read\nAction Input: {'file_path': 'notes.txt'}",
///     FinishReason::Stop,
/// );
/// assert_eq!(parsed.intents[0].name, "read");
/// assert_eq!(parsed.intents[0].arguments["path"], "notes.txt");
/// assert_eq!(parsed.intents[0].strategy, Strategy::React);
/// ```
#[derive(Debug, Clone, Default)]
pub struct Parser {
    tools: ToolSet,
    primary: Strategy,
    fallback: Option<Strategy>,
}

impl Parser {
    /// A parser for these tools that reads whatever the text looks like.
    pub fn new(tools: ToolSet) -> Self {
        Self {
            tools,
            primary: Strategy::Auto,
            fallback: None,
        }
    }

    /// Reads by `primary` first, and by `fallback` when that finds nothing.
    #[must_use]
    pub fn with_strategies(mut self, primary: Strategy, fallback: Option<Strategy>) -> Self {
        self.primary = primary;
        self.fallback = fallback.filter(|fallback| *fallback != primary);
        self
    }

    /// The tools it knows.
    pub fn tools(&self) -> &ToolSet {
        &self.tools
    }

    /// What to send back when [`Problem::LooksLikeFailedCall`] was found.
    pub fn corrective_message(&self, parsed: &Parsed) -> Option<String> {
        crate::corrective::message(self.primary, &self.tools, parsed)
    }

    /// Whether a text in which no call could be read, though it looks like one, only speaks of calls:
    /// every sign of one stands in code that is shown or in a sentence that goes on behind it, and
    /// nothing else is laid out as one.
    ///
    /// ```
    /// use holdfast_intent::{FinishReason, Parser};
    /// let parser = Parser::default();
    /// let said = "The field \"tool_calls\" was empty, so the client stopped.";
    /// assert!(parser.only_speaks_of_calls(said, FinishReason::Stop));
    /// let call = "I look.\n<tool_call>{\"name\": \"read\", \"argum";
    /// assert!(!parser.only_speaks_of_calls(call, FinishReason::Stop));
    /// ```
    pub fn only_speaks_of_calls(&self, text: &str, finish: FinishReason) -> bool {
        let parsed = self.parse(text, finish);
        let doc = Doc::new(text, &self.tools, finish);
        // A call that could be made is one, wherever it stands.
        let is_shown = |intent: &Intent| {
            !intent.is_runnable() && !intent.is_refusable() && doc.is_in_shown_code(intent.span[0])
        };
        let is_of_a_form = |problem: &Problem| {
            matches!(
                problem,
                Problem::LooksLikeFailedCall | Problem::UnknownTool { .. }
            )
        };
        let has_failed =
            !parsed.intents.is_empty() || parsed.problems.contains(&Problem::LooksLikeFailedCall);
        has_failed
            && parsed.intents.iter().all(is_shown)
            && parsed.problems.iter().all(is_of_a_form)
            && signs::are_all_spoken_of(&doc)
    }

    /// Whether a text only announces what its model does next ("Let me look that up."), and answers
    /// nothing.
    ///
    /// ```
    /// use holdfast_intent::{FinishReason, Parser};
    /// let parser = Parser::default();
    /// assert!(parser.announces("I'll help with that...", FinishReason::Stop));
    /// assert!(!parser.announces("It is 4.", FinishReason::Stop));
    /// ```
    pub fn announces(&self, text: &str, finish: FinishReason) -> bool {
        let aloud = said_aloud(text);
        fuzzy::announces(&Doc::new(&aloud, &self.tools, finish))
    }

    /// Reads one reply. Never fails: what can not be read is said among the problems.
    pub fn parse(&self, text: &str, finish: FinishReason) -> Parsed {
        let doc = Doc::new(text, &self.tools, finish);
        let mut reply = read(&doc, self.primary);
        if reply.calls.is_empty()
            && !reply.done
            && let Some(fallback) = self.fallback
        {
            let second = read(&doc, fallback);
            reply = Reply {
                failed: reply.failed || second.failed,
                ..second
            };
        }
        if self.primary != Strategy::Auto && !reply.done {
            reply = with_other_forms(&doc, reply);
        }
        settle(&doc, reply)
    }

    /// Reads what a chat server returned: a whole completion, a choice, a message, or its list of
    /// `tool_calls`. Where there are none, the text beside them is read as [`Parser::parse`] does,
    /// and the spans are those of that text.
    ///
    /// What the reply says about its end counts unless `finish` says something else.
    ///
    /// ```
    /// use holdfast_intent::{FinishReason, Parser, Strategy};
    /// use serde_json::json;
    /// let message = json!({"role": "assistant", "content": null, "tool_calls": [
    ///     {"id": "call_1", "type": "function",
    ///      "function": {"name": "read_file", "arguments": "{'path': 'a.txt',}"}}]});
    /// let parsed = Parser::default().parse_reply(&message, FinishReason::Unknown);
    /// assert_eq!(parsed.intents[0].name, "read");
    /// assert_eq!(parsed.intents[0].strategy, Strategy::Native);
    /// assert_eq!(parsed.intents[0].call_id.as_deref(), Some("call_1"));
    /// ```
    pub fn parse_reply(&self, reply: &Value, finish: FinishReason) -> Parsed {
        self.parse_native(native::read(reply), finish)
    }

    fn parse_native(&self, read: native::NativeReply, finish: FinishReason) -> Parsed {
        let finish = if finish == FinishReason::Unknown {
            read.finish
        } else {
            finish
        };
        if let Some(message) = read.error {
            return Parsed {
                problems: vec![Problem::ServerError { message }],
                ..Parsed::default()
            };
        }
        let failed = read.failed;
        if read.calls.is_empty() {
            let mut parsed = self.parse_beside(&read, finish);
            if failed && parsed.intents.is_empty() {
                parsed.completed = false;
                parsed.final_text = None;
                parsed
                    .problems
                    .retain(|problem| *problem != Problem::EmptyReply);
                if !parsed.problems.contains(&Problem::LooksLikeFailedCall) {
                    parsed.problems.push(Problem::LooksLikeFailedCall);
                }
            }
            return parsed;
        }
        let doc = Doc::new("", &self.tools, finish);
        let mut calls = read.calls;
        if finish == FinishReason::Length {
            native::mark_cut(&mut calls);
        }
        let calls = Reply {
            calls,
            failed,
            ..Reply::default()
        };
        let mut parsed = settle(&doc, calls);
        if failed && !parsed.intents.is_empty() {
            // One of them is no call of anything, and the others do not make up for it.
            parsed.problems.push(Problem::LooksLikeFailedCall);
        }
        parsed
    }

    /// The text of a server's reply that has no calls.
    fn parse_beside(&self, read: &native::NativeReply, finish: FinishReason) -> Parsed {
        let text = if read.content.trim().is_empty() {
            &read.reasoning
        } else {
            &read.content
        };
        if let (true, Some(refusal)) = (text.trim().is_empty(), &read.refusal) {
            return Parsed {
                completed: true,
                final_text: Some(refusal.clone()),
                ..Parsed::default()
            };
        }
        if text.trim().is_empty() && !read.failed {
            let cut = (finish == FinishReason::Length).then_some(Problem::Truncated);
            return Parsed {
                problems: [Problem::EmptyReply].into_iter().chain(cut).collect(),
                ..Parsed::default()
            };
        }
        let primary = match self.primary {
            Strategy::Native => Strategy::Auto,
            other => other,
        };
        self.clone()
            .with_strategies(primary, self.fallback)
            .parse(text, finish)
    }

    /// Reads text, or JSON as a chat server returns it, whichever this is. A server's reply is
    /// known by its shape; with the strategy `native` a bare list of calls is one too. A raw stream
    /// of events, or of lines of JSON, is put together first.
    pub fn parse_any(&self, text: &str, finish: FinishReason) -> Parsed {
        let is_reply = match self.primary {
            Strategy::Native => native::is_reply,
            Strategy::Auto => native::is_completion,
            _ => |_: &Value| false,
        };
        let plain = text.trim().trim_start_matches('\u{feff}');
        if plain.starts_with(['{', '['])
            && let Ok(value) = serde_json::from_str::<Value>(plain)
            && is_reply(&value)
        {
            // A value that stood there twice is lost in what the strict reader gives.
            let doubled = json::read_at(plain, 0, plain.len()).is_some_and(|read| read.ambiguous);
            return self.parse_doubled(&value, doubled, finish);
        }
        match wire::read(plain) {
            Some(Wire::Reply { reply, doubled }) => self.parse_doubled(&reply, doubled, finish),
            Some(Wire::Unreadable) => Parsed {
                problems: vec![Problem::LooksLikeFailedCall],
                ..Parsed::default()
            },
            None => self.parse(text, finish),
        }
    }

    /// A server's reply of which the text is known to have something twice, or not.
    fn parse_doubled(&self, reply: &Value, doubled: bool, finish: FinishReason) -> Parsed {
        let mut read = native::read(reply);
        for call in &mut read.calls {
            call.ambiguous |= doubled;
        }
        self.parse_native(read, finish)
    }
}

/// What was read, before the schemas have their say.
#[derive(Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "facts that have nothing to do with each other"
)]
struct Reply {
    calls: Vec<RawCall>,
    done: bool,
    answer: Option<String>,
    failed: bool,
    /// One of several calls could not be read.
    lost: bool,
    /// The text was cut off in something that no call is left of.
    cut: bool,
    /// Why the end of the text was not read.
    stopped: Option<Problem>,
}

/// The calls in structured forms: in one of them, or in all.
fn scanned(doc: &Doc<'_>, only: Option<Strategy>) -> Reply {
    let scan = forms::scan(doc, only);
    Reply {
        calls: scan.calls,
        done: scan.done,
        answer: scan.answer,
        failed: scan.failed,
        lost: scan.lost,
        cut: scan.cut,
        stopped: scan.stopped,
    }
}

fn read(doc: &Doc<'_>, strategy: Strategy) -> Reply {
    // Whoever reads prose reads the calls in it, too, in whatever form they are.
    let is_free = matches!(strategy, Strategy::Auto | Strategy::Fuzzy);
    let only = (!is_free).then_some(strategy);
    let mut reply = scanned(doc, only);
    if is_recounted(doc, &reply) {
        reply.calls.drain(..).for_each(|call| doc.show(call.span));
        return reply;
    }
    // Words beside a call that could not be read say the same as the call: no guess from them.
    if is_free
        && reply.calls.is_empty()
        && !reply.done
        && !reply.failed
        && !signs::look_like_a_call(doc)
    {
        reply.calls = fuzzy::read(doc);
        if doc.gave_up.get() {
            reply.stopped.get_or_insert(Problem::ReadingGivenUp);
        }
    }
    reply
}

/// A model does not keep to the form that it was told. Where another form holds more calls, all forms are
/// read: the words of a call are nobody's answer.
fn with_other_forms(doc: &Doc<'_>, reply: Reply) -> Reply {
    let of_forms = |reply: &Reply| {
        let is_call = |call: &&RawCall| call.strategy != Strategy::Fuzzy;
        reply.calls.iter().filter(is_call).count()
    };
    let all = scanned(doc, None);
    if of_forms(&all) > of_forms(&reply) && !is_recounted(doc, &all) {
        all
    } else {
        reply
    }
}

/// Whether an action's result stands behind it, and then a thought that nothing follows: whoever thinks of what is
/// known already recounts what was done.
fn is_recounted(doc: &Doc<'_>, reply: &Reply) -> bool {
    let Some(last) = reply.calls.last().filter(|_| !reply.done) else {
        return false;
    };
    let rest = doc.text[last.span[1]..].trim_start();
    let Some(result) = rest
        .strip_prefix("Observation:")
        .filter(|_| last.strategy == Strategy::React)
    else {
        return false;
    };
    let Some((seen, thought)) = result.split_once("\nThought:") else {
        return false;
    };
    let labels = ["\nAction", "\nFinal Answer", "\nThought:"];
    !seen.trim().is_empty()
        && !thought.trim().is_empty()
        && !labels.iter().any(|label| thought.contains(label))
}

fn settle(doc: &Doc<'_>, mut reply: Reply) -> Parsed {
    let mut parsed = Parsed::default();
    let mut failed = reply.failed;
    for call in std::mem::take(&mut reply.calls) {
        let mut intent = match guide::intent_of(call, doc.tools, doc.finish, doc.text.len()) {
            Ok(intent) => intent,
            Err(mistake) => {
                failed |= mistake.is_some();
                let new = mistake.filter(|problem| !parsed.problems.contains(problem));
                if parsed.problems.len() < INTENTS_MAX {
                    parsed.problems.extend(new);
                } else if new.is_some() {
                    reply.stopped.get_or_insert(Problem::TooManyIntents);
                }
                continue;
            }
        };
        if doc.finish == FinishReason::Length
            && doc.open_thought.is_some_and(|open| intent.span[0] > open)
            && intent.complete
        {
            // The model was still thinking about it.
            intent.complete = false;
            intent.problems.push(Problem::Truncated);
        }
        let known = parsed.intents.iter().position(|known| {
            known.name == intent.name
                && known.arguments == intent.arguments
                && known.complete == intent.complete
                // A server wants a result for each of its calls.
                && (intent.call_id.is_none() || known.call_id == intent.call_id)
        });
        match known {
            // The same once more, written so that it can be run.
            Some(known) if intent.is_runnable() && !parsed.intents[known].is_runnable() => {
                parsed.intents.remove(known);
                parsed.intents.push(intent);
            }
            Some(known) => say_repeated(&mut parsed.intents[known]),
            None if parsed.intents.len() < INTENTS_MAX => parsed.intents.push(intent),
            None => {
                reply.stopped.get_or_insert(Problem::TooManyIntents);
            }
        }
    }
    failed |= reply.stopped.is_some() && parsed.intents.is_empty();
    parsed.problems.extend(reply.stopped);
    if parsed.intents.is_empty() {
        let left = signs::leave_control_tokens(doc);
        failed |= left || !reply.done && (reply.cut || signs::look_like_a_call(doc));
        if failed && (left || !reply.done) {
            parsed.problems.push(Problem::LooksLikeFailedCall);
        }
        // What holds such tokens is no answer.
        reply.done &= !left;
    } else if reply.lost {
        // The calls that were read do not make up for it.
        parsed.problems.push(Problem::LooksLikeFailedCall);
    }
    let cut = doc.finish == FinishReason::Length || reply.cut;
    if reply.cut || cut && parsed.intents.is_empty() {
        parsed.problems.push(Problem::Truncated);
    }
    let nothing_left = parsed.intents.is_empty() && (reply.done || !failed) && !cut;
    parsed.final_text = match reply.answer {
        Some(answer) => Some(answered(answer)),
        None if nothing_left => {
            let text = said_aloud(doc.text);
            let text = without_frames(without_end_of_stream(text.trim()));
            (!text.is_empty()).then(|| text.to_owned())
        }
        None => None,
    };
    let empty = nothing_left && !reply.done && parsed.final_text.is_none();
    if empty {
        parsed.problems.push(Problem::EmptyReply);
    }
    // An answer that was cut off is not the answer.
    parsed.signalled = reply.done && !cut;
    parsed.completed = (parsed.signalled || nothing_left) && !empty;
    parsed
}

/// One more of a call that is known already.
fn say_repeated(intent: &mut Intent) {
    for problem in &mut intent.problems {
        if let Problem::Repeated { times } = problem {
            *times += 1;
            return;
        }
    }
    intent.problems.push(Problem::Repeated { times: 2 });
}

/// The text without the `[DONE]` of a marker or of a stream of events.
fn without_end_of_stream(text: &str) -> &str {
    let Some(rest) = text.strip_suffix("[DONE]") else {
        return text;
    };
    let rest = rest.trim_end();
    rest.strip_suffix("data:").unwrap_or(rest).trim_end()
}
