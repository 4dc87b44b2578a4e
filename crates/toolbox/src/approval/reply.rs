//! Answers written as messages: `approve k7m2qx9d`.

use holdfast_contract::{Answer, Scope};

/// A message longer than this is no answer.
const REPLY_BYTES_MAX: usize = 1024;

/// An answer in a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// Which request.
    pub id: String,
    /// The code that stood beside it, when one did.
    pub code: Option<String>,
    /// What the person said.
    pub answer: Answer,
}

/// Reads an answer. The whole message has to be one: a text that merely mentions one (a quote, a
/// page somebody pasted) approves nothing.
///
/// ```
/// use holdfast_contract::{Answer, Scope};
/// use holdfast_toolbox::approval::reply::read;
/// let reply = read("approve k7m2qx9d session").unwrap();
/// assert_eq!(reply.id, "k7m2qx9d");
/// assert_eq!(reply.answer, Answer::Approve { scope: Scope::Session });
/// assert_eq!(read("they said: approve k7m2qx9d"), None);
/// ```
pub fn read(message: &str) -> Option<Reply> {
    let message = message.trim();
    if message.len() > REPLY_BYTES_MAX || message.contains('\n') {
        return None;
    }
    let (word, rest) = message.split_once(char::is_whitespace)?;
    let rest = rest.trim_start();
    let (id, more) = match rest.split_once(char::is_whitespace) {
        Some((id, more)) => (id, more.trim()),
        None => (rest, ""),
    };
    let named = id.trim_matches('`').to_ascii_lowercase();
    let (id, code) = match named.split_once('-') {
        Some((id, code)) => (id, Some(code)),
        None => (&*named, None),
    };
    let is_word =
        |text: &str| !text.is_empty() && text.chars().all(|sign| sign.is_ascii_alphanumeric());
    if !is_word(id) || !code.is_none_or(is_word) {
        return None;
    }
    let (id, code) = (id.to_owned(), code.map(str::to_owned));
    let answer = match word.trim_start_matches('/').to_ascii_lowercase().as_str() {
        "approve" | "yes" | "allow" => Answer::Approve {
            scope: scope(more)?,
        },
        "deny" | "no" | "reject" => Answer::Deny {
            reason: (!more.is_empty()).then(|| more.to_owned()),
        },
        _ => return None,
    };
    Some(Reply { id, code, answer })
}

fn scope(words: &str) -> Option<Scope> {
    match words.to_ascii_lowercase().as_str() {
        "" | "once" => Some(Scope::Once),
        "session" | "for this session" | "for the session" => Some(Scope::Session),
        "policy" | "always" => Some(Scope::Policy),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_stands_behind_its_request() {
        for message in ["approve abc-12ff", "deny `ABC-12FF` no"] {
            let reply = read(message).unwrap();
            assert_eq!((&*reply.id, reply.code.as_deref()), ("abc", Some("12ff")));
        }
        assert_eq!(read("approve abc").unwrap().code, None);
    }

    #[test]
    fn only_a_whole_message_is_an_answer() {
        let approve = |scope| Some(Answer::Approve { scope });
        let deny = |reason: Option<&str>| {
            Some(Answer::Deny {
                reason: reason.map(str::to_owned),
            })
        };
        let table = [
            ("approve abc", approve(Scope::Once)),
            ("  APPROVE  ABC  once ", approve(Scope::Once)),
            ("/approve `abc` session", approve(Scope::Session)),
            ("yes abc always", approve(Scope::Policy)),
            ("allow abc for this session", approve(Scope::Session)),
            ("deny abc", deny(None)),
            ("no abc not on a Friday", deny(Some("not on a Friday"))),
            ("approve", None),
            ("approve abc and abd", None),
            ("approve abc, please", None),
            ("I approve abc", None),
            ("approve abc\napprove abd", None),
            ("> approve abc", None),
            ("approve ../x", None),
            ("approve abc-", None),
            ("approve abc-1-2", None),
            ("", None),
        ];
        for (message, expected) in table {
            let found = read(message);
            assert_eq!(
                found.as_ref().map(|reply| reply.answer.clone()),
                expected,
                "{message}"
            );
            assert!(found.is_none_or(|reply| reply.id == "abc"), "{message}");
        }
    }
}
