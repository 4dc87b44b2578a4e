//! What became of a call, in words of JavaScript.

use holdfast_reliability::guard::{
    ExitDigest, FailureKind, Observation, OutputDigest, classify_failure,
};
use napi_derive::napi;

/// How a call ended.
#[napi(string_enum = "camelCase")]
#[derive(Debug, PartialEq, Eq)]
pub enum Ending {
    /// The tool did what it was asked to.
    Succeeded,
    /// A command ran and returned non-zero.
    ExitedNonZero,
    /// The call failed; its text says why.
    Failed,
    /// This guard refused it.
    Blocked,
    /// It was neither run nor judged.
    Neutral,
}

/// What became of a call.
#[napi(object, object_to_js = false)]
pub struct Outcome {
    /// How it ended.
    pub ending: Ending,
    /// The error alone, where the result's text wraps it.
    pub error: Option<String>,
    /// The tool can change the world outside itself.
    pub mutating: Option<bool>,
    /// The tool is meant to be called again with the same result.
    pub polls: Option<bool>,
}

impl Outcome {
    /// The error's text, of a result with this text.
    pub(crate) fn error<'a>(&'a self, text: &'a str) -> &'a str {
        self.error.as_deref().unwrap_or(text)
    }

    /// Why the call failed, when it did.
    pub(crate) fn failure(&self, text: &str) -> Option<FailureKind> {
        (self.ending == Ending::Failed).then(|| classify_failure(self.error(text)))
    }

    /// What the guard counts of a result with this text; why the call failed is known by now.
    pub(crate) fn observation<'a>(
        &'a self,
        text: &'a str,
        failure: Option<FailureKind>,
    ) -> Observation<'a> {
        let polls = self.polls.unwrap_or(false);
        match self.ending {
            Ending::Succeeded => Observation::Succeeded {
                mutating: self.mutating.unwrap_or(false),
                polls,
                output: OutputDigest::of_text(text),
            },
            Ending::ExitedNonZero => Observation::NonZeroExit {
                polls,
                output: ExitDigest::of_text(text),
            },
            Ending::Failed => Observation::Failed {
                kind: failure.unwrap_or(FailureKind::Deterministic),
                error: self.error(text),
            },
            Ending::Blocked => Observation::Blocked,
            Ending::Neutral => Observation::Neutral,
        }
    }
}
