//! A completion that comes in events (`data: {…}`), put together as it comes.

use holdfast_intent::ReplyPieces;
use serde_json::Value;

use super::{Hear, ModelError, ModelReply, Piece, wire};

/// What is said of an answer of which the end is missing.
pub(super) const BROKE_OFF: &str = "the answer broke off before its end";

/// A stream so far.
#[derive(Debug, Default)]
pub(super) struct Events {
    /// The line that is not whole yet.
    rest: Vec<u8>,
    /// The last line ended with a carriage return, to which the next line feed belongs.
    after_return: bool,
    /// The event that is not whole yet: its data may be written in several lines.
    data: String,
    /// The server has said that this was all.
    is_done: bool,
    /// Events that have come, whatever they say.
    count: u64,
    /// Something of an answer has come, be it nothing but its beginning.
    has_choice: bool,
    pieces: ReplyPieces,
    usage: Value,
}

impl Events {
    /// Takes bytes as they come, and tells what they say.
    pub(super) fn feed(&mut self, bytes: &[u8], hear: Hear<'_>) -> Result<(), ModelError> {
        for line in bytes.split_inclusive(|byte| matches!(byte, b'\n' | b'\r')) {
            if self.is_done {
                return Ok(());
            }
            let starts_anew = std::mem::take(&mut self.after_return) && line == b"\n";
            if starts_anew {
                continue;
            }
            self.rest.extend_from_slice(line);
            if let Some(end @ (b'\n' | b'\r')) = line.last() {
                self.after_return = *end == b'\r';
                let whole = std::mem::take(&mut self.rest);
                self.line(&whole, hear)?;
            }
        }
        Ok(())
    }

    /// Whether the server has said that this was all; what else it sends says nothing.
    pub(super) fn is_done(&self) -> bool {
        self.is_done
    }

    /// How many events have come.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Whether the answer is whole, also when its stream breaks off now.
    pub(super) fn is_whole(&self) -> bool {
        self.is_done || self.pieces.is_over()
    }

    fn line(&mut self, line: &[u8], hear: Hear<'_>) -> Result<(), ModelError> {
        let text = String::from_utf8_lossy(line);
        let text = text.trim();
        let Some(data) = text.strip_prefix("data:").map(str::trim) else {
            // An empty line ends an event. Comments and names of events say nothing.
            return match text {
                "" if !self.data.is_empty() => self.no_event(),
                _ => Ok(()),
            };
        };
        if data == "[DONE]" {
            self.pieces.end();
            self.is_done = true;
            return Ok(());
        }
        if !self.data.is_empty() {
            self.data.push('\n');
        }
        self.data.push_str(data);
        // Servers that leave out the empty line write an event in one line.
        let Ok(event) = serde_json::from_str::<Value>(&self.data) else {
            return Ok(());
        };
        let data = std::mem::take(&mut self.data);
        self.count += 1;
        if event.get("error").is_some_and(|error| !error.is_null()) {
            return Err(wire::read_error(200, data.as_bytes()));
        }
        if event["usage"].is_object() {
            self.usage = event["usage"].clone();
        }
        let choices = event["choices"].as_array();
        self.has_choice |= choices.is_some_and(|choices| !choices.is_empty());
        let (said, thought) = (self.pieces.content().len(), self.pieces.reasoning().len());
        self.pieces.add(&event);
        if self.pieces.has_calls() {
            hear(Piece::Call);
        }
        for piece in [
            Piece::Reasoning(&self.pieces.reasoning()[thought..]),
            Piece::Content(&self.pieces.content()[said..]),
        ] {
            if !matches!(piece, Piece::Reasoning("") | Piece::Content("")) {
                hear(piece);
            }
        }
        Ok(())
    }

    fn no_event(&self) -> Result<(), ModelError> {
        let why = serde_json::from_str::<Value>(&self.data)
            .err()
            .map_or_else(String::new, |error| format!(" ({error})"));
        Err(ModelError::Unavailable(format!(
            "an event of the answer is no JSON{why}"
        )))
    }

    /// The whole answer.
    pub(super) fn finish(mut self, hear: Hear<'_>) -> Result<ModelReply, ModelError> {
        let last = std::mem::take(&mut self.rest);
        self.line(&last, hear)?;
        if !self.data.is_empty() && !self.is_whole() {
            self.no_event()?;
        }
        if !self.pieces.is_over() {
            return Err(ModelError::Unavailable(BROKE_OFF.to_owned()));
        }
        let mut whole = self.pieces.whole();
        whole["usage"] = self.usage;
        if !self.has_choice {
            // As it is said of a whole answer without any.
            whole["choices"] = Value::Array(Vec::new());
        }
        wire::read_completion(&whole)
    }
}

#[cfg(test)]
mod tests {
    use holdfast_intent::FinishReason;
    use proptest::prelude::*;

    use super::*;

    const STREAM: &str = ": hello\n\ndata: {\"choices\": [{\"index\": 0, \"delta\": {\"role\": \"assistant\", \"content\": \"\"}}]}\n\n\
        data: {\"choices\": [{\"index\": 0, \"delta\": {\"reasoning_content\": \"Hm. \"}}]}\r\n\r\n\
        data: {\"choices\": [{\"index\": 0, \"delta\": {\"content\": \"Grü\"}}]}\n\n\
        data: {\"choices\": [{\"index\": 0, \"delta\": {\"content\": \"ezi\"}, \"finish_reason\": \"stop\"}]}\n\n\
        data: {\"choices\": [], \"usage\": {\"prompt_tokens\": 7, \"completion_tokens\": 2}}\n\ndata: [DONE]\n\n";

    #[test]
    fn a_stream_without_any_choice_is_no_answer() {
        for stream in [
            "data: [DONE]\n\n",
            "data: {\"choices\": []}\n\ndata: [DONE]\n\n",
        ] {
            let (_, reply) = read(&[stream.as_bytes()]);
            let Err(ModelError::Unavailable(why)) = &reply else {
                panic!("{stream}: {reply:?}")
            };
            assert!(why.contains("no choices"), "{why}");
        }
    }

    fn read(parts: &[&[u8]]) -> (Vec<String>, Result<ModelReply, ModelError>) {
        let mut heard = Vec::new();
        let mut hear = |piece: Piece<'_>| heard.push(format!("{piece:?}"));
        let mut events = Events::default();
        for part in parts {
            if let Err(error) = events.feed(part, &mut hear) {
                return (heard, Err(error));
            }
        }
        let reply = events.finish(&mut hear);
        (heard, reply)
    }

    /// The same stream as other servers would write it.
    fn written(how: usize) -> String {
        match how {
            0 => STREAM.to_owned(),
            1 => STREAM.replace("\r\n", "\n").replace('\n', "\r"),
            2 => STREAM.replace("\r\n", "\n").replace('\n', "\r\n"),
            // One event in several lines.
            3 => STREAM.replace("{\"choices\"", "{\ndata: \"choices\""),
            4 => STREAM
                .replace("{\"choices\"", "{\ndata:\ndata: \"choices\"")
                .replace("\r\n", "\n")
                .replace('\n', "\r\n"),
            // No empty lines.
            _ => STREAM.replace("\r\n", "\n").replace("\n\n", "\n"),
        }
    }

    proptest! {
        #[test]
        fn however_it_is_cut_a_stream_says_the_same(
            how in 0..6_usize, cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..9),
        ) {
            let stream = written(how);
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(stream.len())).collect();
            cuts.sort_unstable();
            let mut parts = Vec::new();
            let mut from = 0;
            for cut in cuts {
                parts.push(&stream.as_bytes()[from..cut]);
                from = cut;
            }
            parts.push(&stream.as_bytes()[from..]);
            let (heard, reply) = read(&parts);
            let reply = reply.unwrap();
            prop_assert_eq!((reply.content.as_str(), reply.reasoning.as_str()), ("Grüezi", "Hm. "));
            prop_assert_eq!((reply.finish, reply.tokens.total()), (FinishReason::Stop, 9));
            prop_assert_eq!(heard, ["Reasoning(\"Hm. \")", "Content(\"Grü\")", "Content(\"ezi\")"]);
        }
    }

    #[test]
    fn a_stream_that_breaks_off_is_no_answer() {
        let half = &STREAM.as_bytes()[..STREAM.find("ezi").unwrap()];
        let (_, reply) = read(&[half]);
        assert!(
            matches!(reply, Err(ModelError::Unavailable(_))),
            "{reply:?}"
        );
        let (_, reply) = read(&[b"data: {\"choices\": [\n\ndata: [DONE]\n\n"]);
        assert!(reply.unwrap_err().to_string().contains("no JSON"));
        let (_, reply) = read(&[b"data: {\"error\": {\"message\": \"boom\"}}\n\n"]);
        assert!(reply.unwrap_err().to_string().contains("boom"));
    }
}
