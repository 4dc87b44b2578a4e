//! The parts of Holdfast that only people may call.

use super::program;
use crate::tools::exec::shell;

/// A part of the command line that is not for tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::tools::exec) struct ForPeople {
    /// Its name there.
    pub(in crate::tools::exec) part: &'static str,
    /// Why, for people.
    pub(in crate::tools::exec) why: &'static str,
    /// What of it; all of it when this is empty.
    acts: &'static [&'static str],
    /// What of it is looked for inside strings that another interpreter gets, where a word alone says
    /// little.
    in_strings: &'static [&'static str],
}

const ANSWERS: &str = "approvals are answered by people, never by a tool";

const FOR_PEOPLE: &[ForPeople] = &[
    ForPeople {
        part: "approvals",
        why: ANSWERS,
        acts: &[],
        in_strings: &["approvals"],
    },
    ForPeople {
        part: "audit-log",
        why: ANSWERS,
        acts: &[],
        in_strings: &[],
    },
    ForPeople {
        part: "trust",
        why: ANSWERS,
        acts: &[],
        in_strings: &["trust message", "trust clear"],
    },
    ForPeople {
        part: "skills",
        why: ANSWERS,
        acts: &[],
        in_strings: &["skills pin"],
    },
    ForPeople {
        part: "memory",
        why: "what agents remember is changed on the command line by people, never by a tool; \
              memory_store is there for agents",
        acts: &["store", "import", "delete", "reindex"],
        in_strings: &[
            "memory store",
            "memory import",
            "memory delete",
            "memory reindex",
        ],
    },
    ForPeople {
        part: "sessions",
        why: "sessions are ended and opened again by people, never by a tool",
        acts: &["cancel", "reopen"],
        in_strings: &["sessions cancel", "sessions reopen"],
    },
];

/// What of it a command calls, if it does.
pub(in crate::tools::exec) fn answers_for_people(command: &str) -> Option<&'static ForPeople> {
    let script = shell::read(command);
    let by_word = |it: &&ForPeople| {
        script.commands.iter().any(|simple| {
            let words = simple.words.iter();
            let mut rest = words.skip_while(|word| program(word) != "holdfast");
            let has_part = rest.any(|word| &*word.text == it.part);
            has_part && (it.acts.is_empty() || rest.any(|word| it.acts.contains(&&*word.text)))
        })
    };
    let in_strings = |it: &&ForPeople| it.in_strings.iter().any(|said| command.contains(said));
    let is_named = command.contains("holdfast");
    let mut all = FOR_PEOPLE.iter();
    all.find(|it| by_word(it) || (is_named && in_strings(it)))
}
