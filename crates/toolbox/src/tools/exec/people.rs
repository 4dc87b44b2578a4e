//! The parts of Holdfast that only people may call.

use holdfast_contract::Reason;
use holdfast_judge::{Reading, Simple, Word};

/// A part of the command line that is not for tools.
struct ForPeople {
    /// Its name there.
    part: &'static str,
    /// Why, for people.
    why: &'static str,
    /// What of it; all of it when this is empty.
    acts: &'static [&'static str],
}

const ANSWERS: &str = "approvals are answered by people, never by a tool";

const FOR_PEOPLE: &[ForPeople] = &[
    ForPeople {
        part: "approvals",
        why: ANSWERS,
        acts: &[],
    },
    ForPeople {
        part: "audit-log",
        why: ANSWERS,
        acts: &[],
    },
    ForPeople {
        part: "trust",
        why: ANSWERS,
        acts: &[],
    },
    ForPeople {
        part: "skills",
        why: ANSWERS,
        acts: &[],
    },
    ForPeople {
        part: "undo",
        why: "what calls have changed is taken back by people, never by a tool",
        acts: &[],
    },
    ForPeople {
        part: "git",
        why: "what git would run later is kept or dropped by people, never by a tool",
        acts: &["list", "keep", "drop"],
    },
    ForPeople {
        part: "memory",
        why: "what agents remember is changed on the command line by people, never by a tool; \
              memory_store is there for agents",
        acts: &["store", "import", "delete", "reindex"],
    },
    ForPeople {
        part: "sessions",
        why: "sessions are ended and opened again by people, never by a tool",
        acts: &["cancel", "reopen"],
    },
];

/// Why a command may not run that calls one of them.
///
/// A text can hide such a call. What really keeps a tool from answering is that it reaches no
/// approver's token; this says so before the command fails.
pub(super) fn answers_for_people(reading: &Reading) -> Option<Reason> {
    let calls = |part: &ForPeople| reading.commands.iter().any(|it| part.is_called_by(it));
    let found = FOR_PEOPLE.iter().find(|part| calls(part))?;
    let what = format!("holdfast {}", found.part);
    Some(Reason::new("answers_for_people", what, found.why))
}

impl ForPeople {
    fn is_called_by(&self, simple: &Simple) -> bool {
        let is = |word: &Word, text: &str| word.literal().is_some_and(|it| it == text);
        let words = simple.words.iter();
        let mut rest = words.skip_while(|word| word.basename() != Some("holdfast"));
        let has_part = rest.any(|word| is(word, self.part));
        has_part
            && (self.acts.is_empty() || rest.any(|word| self.acts.iter().any(|act| is(word, act))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_answer_no_command_does() {
        let is_refused = |text: &str| answers_for_people(&holdfast_judge::read(text)).is_some();
        for text in [
            "holdfast approvals approve 1",
            "holdfast undo clear",
            "cd x && ../bin/holdfast --json approvals deny 2",
            "env A=b holdfast sessions cancel s",
            "sh -c 'holdfast memory import x'",
            "echo 1 | xargs holdfast approvals approve",
            "holdfast git keep",
        ] {
            assert!(is_refused(text), "{text}");
        }
        for text in [
            "holdfast sessions list",
            "holdfast memory search x",
            "grep approvals docs/holdfast.md",
            "holdfast demo",
            "git clone https://example.com/holdfast git",
        ] {
            assert!(!is_refused(text), "{text}");
        }
    }
}
