//! A completion that comes in events (`data: {…}`), put together as it comes.

use holdfast_intent::ReplyPieces;
use serde_json::Value;

use super::{Hear, ModelError, ModelReply, Piece, wire};

/// A stream so far.
#[derive(Debug, Default)]
pub(super) struct Events {
    /// The line that is not whole yet.
    rest: Vec<u8>,
    pieces: ReplyPieces,
    usage: Value,
}

impl Events {
    /// Takes bytes as they come, and tells what they say.
    pub(super) fn feed(&mut self, bytes: &[u8], hear: Hear<'_>) -> Result<(), ModelError> {
        self.rest.extend_from_slice(bytes);
        while let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.rest.drain(..=end).collect();
            self.line(&line, hear)?;
        }
        Ok(())
    }

    fn line(&mut self, line: &[u8], hear: Hear<'_>) -> Result<(), ModelError> {
        let text = String::from_utf8_lossy(line);
        // Comments, names of events and empty lines say nothing.
        let Some(data) = text.trim().strip_prefix("data:").map(str::trim) else {
            return Ok(());
        };
        if data == "[DONE]" {
            self.pieces.end();
            return Ok(());
        }
        let event: Value = serde_json::from_str(data).map_err(|error| {
            ModelError::Unavailable(format!("an event of the answer is no JSON ({error})"))
        })?;
        if event.get("error").is_some_and(|error| !error.is_null()) {
            return Err(wire::read_error(200, data.as_bytes()));
        }
        if event["usage"].is_object() {
            self.usage = event["usage"].clone();
        }
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

    /// The whole answer.
    pub(super) fn finish(mut self, hear: Hear<'_>) -> Result<ModelReply, ModelError> {
        let last = std::mem::take(&mut self.rest);
        self.line(&last, hear)?;
        if !self.pieces.is_over() {
            let why = "the answer broke off before its end";
            return Err(ModelError::Unavailable(why.to_owned()));
        }
        let mut whole = self.pieces.whole();
        whole["usage"] = self.usage;
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

    proptest! {
        #[test]
        fn however_it_is_cut_a_stream_says_the_same(cuts in prop::collection::vec(0..STREAM.len(), 0..9)) {
            let mut cuts = cuts;
            cuts.sort_unstable();
            let mut parts = Vec::new();
            let mut from = 0;
            for cut in cuts {
                parts.push(&STREAM.as_bytes()[from..cut]);
                from = cut;
            }
            parts.push(&STREAM.as_bytes()[from..]);
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
        let (_, reply) = read(&[b"data: {\"error\": {\"message\": \"boom\"}}\n\n"]);
        assert!(reply.unwrap_err().to_string().contains("boom"));
    }
}
