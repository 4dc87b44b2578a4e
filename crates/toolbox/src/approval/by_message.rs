//! Answers that come as messages on a channel.
//!
//! A prompt that goes out on a channel holds a code, and the reply has to hold it too: whoever
//! replies has seen the prompt. The code is made of the approver's token, which no tool can read,
//! and of the request with the digest of its arguments, so it is good for that one request.
//!
//! A channel is read by more than those who may approve, so values that are known to be secret are
//! hidden on it. Who does not see all of a call does not answer for it: such a prompt has no code.
//!
//! Who may reply is configured, and without that nobody may: a channel is read by more than those
//! who may approve, and a tool of the agent's own may read it too.

use holdfast_contract::{Answer, Audience, Scope, Shown};
use subtle::ConstantTimeEq;

use super::error::AnswerError;
use super::model::Approval;
use super::reply;
use super::service::Approvals;
use crate::token::Token;

/// Hexadecimal digits of a code: 40 bits, for one request, for as long as it waits.
pub const CODE_DIGITS: usize = 10;

/// What becomes of a message.
#[derive(Debug)]
pub enum Heard {
    /// It is no answer.
    NoAnswer,
    /// It was taken.
    Answered(Box<Approval>),
}

impl Approvals {
    /// The same approvals, whose prompts on channels hold codes made of this token.
    #[must_use]
    pub fn with_codes(mut self, token: Token) -> Self {
        self.codes = Some(token);
        self
    }

    /// What a reply on a channel has to hold; nothing where nobody may reply, or where the channel
    /// does not show all of the request.
    pub fn code(&self, approval: &Approval) -> Option<String> {
        self.code_of(approval)
            .filter(|_| self.shown_to_readers(approval) == Shown::Whole)
    }

    fn shown_to_readers(&self, approval: &Approval) -> Shown {
        let redactor = &self.runtime.redactor;
        approval.prompt(Audience::Readers, redactor).shown
    }

    fn code_of(&self, approval: &Approval) -> Option<String> {
        if self.config.now().approvals.senders.is_empty() {
            return None;
        }
        let token = self.codes.as_ref()?;
        let request = format!("approval {} {}", approval.id, approval.request.digest);
        let mut code = token.derived(&request);
        code.truncate(CODE_DIGITS);
        Some(code)
    }

    /// Whether the configuration names this sender as a person who may answer.
    pub fn knows(&self, sender: &str) -> bool {
        let config = self.config.now();
        let senders = &config.approvals.senders;
        senders.iter().any(|known| known == sender)
    }

    /// Takes a person's message: `approve ID-CODE`, `approve ID-CODE session`, `deny ID-CODE why`.
    /// A rule that outlives its session is not made by message.
    pub async fn heard(&self, message: &str, sender: &str) -> Result<Heard, AnswerError> {
        let Some(reply) = reply::read(message) else {
            return Ok(Heard::NoAnswer);
        };
        // A message that names a request without its code is about it, and no answer to it.
        let Some(code) = reply.code else {
            return Ok(Heard::NoAnswer);
        };
        if self.config.now().approvals.senders.is_empty() {
            return Err(AnswerError::NoSenders);
        }
        if !self.knows(sender) {
            return Err(AnswerError::Sender(sender.to_owned()));
        }
        let found = self.get(&reply.id).await?;
        let found = found.ok_or_else(|| AnswerError::NotFound(reply.id.clone()))?;
        let right = self.code_of(&found).is_some_and(|expected| {
            let (expected, code) = (expected.as_bytes(), code.as_bytes());
            bool::from(expected.ct_eq(code))
        });
        if !right {
            // The same words as for a request there is not: a guess learns nothing.
            return Err(AnswerError::NotFound(reply.id));
        }
        if self.shown_to_readers(&found) != Shown::Whole {
            return Err(AnswerError::NotShownWhole(reply.id));
        }
        let policy = Answer::Approve {
            scope: Scope::Policy,
        };
        if reply.answer == policy {
            return Err(AnswerError::PolicyByMessage(reply.id));
        }
        let answered = self.answer(&reply.id, &reply.answer, sender).await?;
        Ok(Heard::Answered(Box::new(answered)))
    }
}
