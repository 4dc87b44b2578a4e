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
    /// The result or the error, before anything was appended to it.
    pub text: String,
    /// The error alone, where `text` wraps it.
    pub error: Option<String>,
    /// The tool can change the world outside itself.
    pub mutating: Option<bool>,
    /// The tool is meant to be called again with the same result.
    pub polls: Option<bool>,
}

impl Outcome {
    /// The error's text.
    pub(crate) fn error(&self) -> &str {
        self.error.as_deref().unwrap_or(&self.text)
    }

    /// The error's text, kept.
    pub(crate) fn into_error(self) -> String {
        self.error.unwrap_or(self.text)
    }

    /// Why the call failed, when it did.
    pub(crate) fn failure(&self) -> Option<FailureKind> {
        (self.ending == Ending::Failed).then(|| classify_failure(self.error()))
    }

    /// What the guard counts; why the call failed is known by now.
    pub(crate) fn observation(&self, failure: Option<FailureKind>) -> Observation<'_> {
        let polls = self.polls.unwrap_or(false);
        match self.ending {
            Ending::Succeeded => Observation::Succeeded {
                mutating: self.mutating.unwrap_or(false),
                polls,
                output: OutputDigest::of_text(&self.text),
            },
            Ending::ExitedNonZero => Observation::NonZeroExit {
                polls,
                output: ExitDigest::of_text(&self.text),
            },
            Ending::Failed => Observation::Failed {
                kind: failure.unwrap_or(FailureKind::Deterministic),
                error: self.error(),
            },
            Ending::Blocked => Observation::Blocked,
            Ending::Neutral => Observation::Neutral,
        }
    }
}
