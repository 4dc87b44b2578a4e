//! Puts a reading together: what the tree holds, what stands behind wrappers, what variables make of it.

use std::collections::{HashSet, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use crate::check::GRAMMAR;
use crate::limits::{
    COMMANDS_MAX, READING_BYTES_MAX, TEXT_BYTES_MAX, VALUES_MAX, WORDS_MAX, WRAPPED_MAX,
};
use crate::loose;
use crate::reading::{CouldBe, Reading, Simple, Unread};
use crate::tree;
use crate::variables::{Value, Variables};
use crate::word::{From, Piece, Word};
use crate::wrap::{self, Inner};

/// Reads what a shell (bash without aliases, startup files and history) starts from a text by itself.
///
/// What programs and scripts start is not read: only the commands that the shell itself starts, and
/// those in the arguments of a few wrappers such as `env`, `xargs` and `sh -c`.
///
/// ```
/// let reading = holdfast_judge::read("cd x && nice make -j4 $(nproc)");
/// let programs: Vec<_> = reading.commands.iter().filter_map(|it| it.program()).collect();
/// assert_eq!(programs, ["cd", "nice", "nproc", "make"]);
/// assert!(reading.unreadable.is_empty());
/// ```
pub fn read(text: &str) -> Reading {
    let mut reader = Reader::default();
    reader.text(text, &(0..text.len()), 0);
    reader.settle();
    reader.reading
}

/// The same for a text whose commands are given an input: a shell among them runs it.
///
/// ```
/// let reading = holdfast_judge::read_with_input("bash -s", "git push --force");
/// let programs: Vec<_> = reading.commands.iter().filter_map(|it| it.program()).collect();
/// assert_eq!(programs, ["bash", "git"]);
/// ```
pub fn read_with_input(text: &str, input: &str) -> Reading {
    let mut reader = Reader {
        input: Some(input.into()),
        ..Reader::default()
    };
    reader.text(text, &(0..text.len()), 0);
    reader.settle();
    reader.reading
}

/// Words behind which a text is read by a shell once more.
const READ_AGAIN: &[&str] = &[
    "eval", "trap", "source", "sh", "bash", "dash", "zsh", "ksh", "ash", "ssh", "su", "docker",
    "podman",
];

/// The text with signs in the place of every `\$` behind its first here-document's line: the grammar
/// takes some of them for expansions. None where such a text may be read again, and would expand then.
fn without_escaped_dollars(text: &str) -> Option<String> {
    let mut words = text.split(|sign: char| !sign.is_alphanumeric());
    let (before, _) = text.split_once("<<")?;
    if text.contains('`') || words.any(|it| READ_AGAIN.contains(&it)) {
        return None;
    }
    let body = before.len() + text.get(before.len()..)?.find('\n')?;
    let (before, body) = text.split_at_checked(body)?;
    let mut plain = before.to_owned();
    let mut signs = body.chars();
    while let Some(sign) = signs.next() {
        let next = if sign == '\\' { signs.next() } else { None };
        match next {
            Some('$') => plain.push_str("__"),
            next => {
                plain.push(sign);
                plain.extend(next);
            }
        }
    }
    (plain != text).then_some(plain)
}

#[derive(Default)]
struct Reader {
    /// The standard input of the text's commands.
    input: Option<Arc<str>>,
    /// The input was read as shell text. Further shells share it, so once is enough.
    input_read: bool,
    /// Bytes of the texts and commands that were taken in so far.
    bytes: usize,
    reading: Reading,
    variables: Variables,
    functions: HashSet<String>,
    /// Arguments that may become `$1`, `$2` …
    arguments: Vec<Vec<Word>>,
    queue: VecDeque<Simple>,
    full: bool,
}

impl Reader {
    fn text(&mut self, text: &str, place: &Range<usize>, level: usize) {
        if level > WRAPPED_MAX || !self.takes(text.len()) {
            return self.anything(text, place);
        }
        let walked = tree::walk(text).or_else(|unsure| {
            let plain = without_escaped_dollars(text).ok_or(unsure)?;
            tree::walk(&plain)
        });
        match walked {
            Err(tree::Unsure) => self.loosely(text, place, level),
            Ok(found) => {
                self.variables.merge(found.variables);
                self.functions.extend(found.functions);
                for mut simple in found.commands {
                    simple.level = level;
                    if level > 0 {
                        simple.place = place.clone();
                    }
                    // A command's own here-document goes before the input of the text.
                    if simple.fed.is_empty() {
                        simple.input.clone_from(&self.input);
                    }
                    self.enqueue(simple);
                }
                if found.reevaluates {
                    for text in found.sleeping {
                        self.loosely(&text, place, level + 1);
                    }
                }
            }
        }
    }

    /// The input as shell text, the first time that a shell could read it.
    fn input(&mut self, place: &Range<usize>, level: usize) {
        if let Some(input) = self.input.clone()
            && !std::mem::replace(&mut self.input_read, true)
        {
            self.text(&input, place, level);
        }
    }

    /// Whether there is room for so many more bytes.
    const fn takes(&mut self, bytes: usize) -> bool {
        self.bytes = self.bytes.saturating_add(bytes);
        self.bytes <= READING_BYTES_MAX
    }

    fn enqueue(&mut self, simple: Simple) {
        let count = self.reading.commands.len() + self.queue.len();
        let bytes = simple.words.iter().map(Word::weight).sum();
        if count < COMMANDS_MAX && self.takes(bytes) {
            self.queue.push_back(simple);
        } else {
            self.overflow(&simple.place);
        }
    }

    /// Says once that there are more commands than are kept.
    fn overflow(&mut self, place: &Range<usize>) {
        if !self.full {
            self.full = true;
            self.anything("", place);
        }
    }

    fn loosely(&mut self, text: &str, place: &Range<usize>, level: usize) {
        let (commands, unread) = loose::read(text, place);
        if self.reading.unreadable.len() < COMMANDS_MAX {
            self.reading.unreadable.push(unread);
        }
        for mut simple in commands {
            simple.level = level;
            simple.input.clone_from(&self.input);
            self.push(simple);
        }
        // Any word of the text may be a shell that reads the input.
        if let Some(input) = self.input.clone()
            && !std::mem::replace(&mut self.input_read, true)
        {
            self.loosely(&input, place, level);
        }
    }

    fn anything(&mut self, text: &str, place: &Range<usize>) {
        self.unread(text, place, CouldBe::Anything);
    }

    fn unread(&mut self, text: &str, place: &Range<usize>, could_be: CouldBe) {
        let unread = Unread {
            place: place.clone(),
            text: text.to_owned(),
            could_be,
        };
        if !self.reading.unreadable.contains(&unread)
            && self.reading.unreadable.len() < COMMANDS_MAX
        {
            self.reading.unreadable.push(unread);
        }
    }

    fn push(&mut self, simple: Simple) {
        if self.reading.commands.len() < COMMANDS_MAX {
            self.reading.commands.push(simple);
        } else {
            self.overflow(&simple.place);
        }
    }

    fn settle(&mut self) {
        let mut settled = 0;
        loop {
            while let Some(simple) = self.queue.pop_front() {
                self.unwrap(&simple);
                self.push(simple);
            }
            if self.full {
                return;
            }
            // Every text is read, so all that sets a variable is known.
            let Some(simple) = self.reading.commands.get(settled) else {
                return;
            };
            settled += 1;
            if !simple.loose {
                let simple = simple.clone();
                self.variants(&simple);
            }
        }
    }

    fn unwrap(&mut self, simple: &Simple) {
        let level = simple.level + 1;
        let tail = simple.words.get(1..).unwrap_or_default();
        let called = simple
            .program()
            .is_some_and(|it| it == "set" || self.functions.contains(it));
        if called && !tail.is_empty() {
            self.arguments.push(tail.to_vec());
        }
        for inner in wrap::inner(simple) {
            match inner {
                Inner::Words(words) if level <= WRAPPED_MAX => {
                    self.enqueue(simple.with_words(words));
                }
                Inner::Input if level <= WRAPPED_MAX => self.input(&simple.place, level),
                Inner::Text(text, arguments) if level <= WRAPPED_MAX => {
                    self.text(&text, &simple.place, level);
                    if !arguments.is_empty() {
                        self.arguments.push(arguments);
                    }
                }
                Inner::Unknown(pieces) if level <= WRAPPED_MAX => {
                    self.assembled(&pieces, &simple.place, level);
                }
                Inner::Words(_) | Inner::Text(..) | Inner::Unknown(_) | Inner::Input => {
                    self.anything(&simple.shown(), &simple.place);
                }
            }
        }
    }

    /// A text for a shell that is only known when it runs: with each value of its variables, where
    /// those are known.
    fn assembled(&mut self, pieces: &[Piece], place: &Range<usize>, level: usize) {
        let mut texts = vec![String::new(); VALUES_MAX];
        let mut count = 1;
        for piece in pieces {
            let values = match piece {
                Piece::Text(text) => vec![text.clone()],
                Piece::Unknown { from, .. } => match from {
                    From::Path | From::Initializer => vec!["_".to_owned()],
                    From::Variable(name) => match self.variables.value(name) {
                        Value::Environment => vec!["_".to_owned(), String::new()],
                        Value::OneOf(values) => values.to_vec(),
                        Value::Anything => Vec::new(),
                    },
                    _ => Vec::new(),
                },
            };
            count = count.max(values.len());
            for (at, text) in texts.iter_mut().enumerate() {
                let value = values.get(at).or(values.last());
                // A text of many variables grows beyond what is read.
                let fits = |it: &&String| text.len() + it.len() <= TEXT_BYTES_MAX;
                let Some(value) = value.filter(fits) else {
                    let raw = text_of(pieces);
                    self.variables.all_unknown();
                    self.loosely(&raw, place, level);
                    return self.anything(&raw, place);
                };
                text.push_str(value);
            }
        }
        for text in texts.into_iter().take(count) {
            self.text(&text, place, level);
        }
    }

    /// What a command may be, where words of it hold variables.
    fn variants(&mut self, simple: &Simple) {
        let Some(first) = simple.words.first() else {
            return;
        };
        if simple.level > WRAPPED_MAX {
            if first.basename().is_none() {
                self.anything(first.raw(), &simple.place);
            }
            return;
        }
        let tail = simple.words.get(1..).unwrap_or_default();
        if first.basename().is_some() {
            return self.arguments(simple);
        }
        if first.splits() && !tail.is_empty() {
            self.enqueue(simple.with_words(tail.to_vec()));
        }
        let mut heads: Vec<Vec<Word>> = Vec::new();
        match first.only_unknown() {
            Some(From::Which(name)) => heads.push(vec![Word::text(name.as_str())]),
            Some(From::Default(name, value)) => {
                self.value_of(name, first, simple, &mut heads);
                heads.push(vec![Word::text(value.as_str())]);
            }
            Some(From::Variable(name)) => self.value_of(name, first, simple, &mut heads),
            Some(From::Positional) => {
                if self.variables.splits_otherwise() {
                    self.anything(first.raw(), &simple.place);
                }
                // `$1` is one argument, and `$@` all that `shift` has left.
                let all = first.raw().contains(['@', '*']);
                let mut count = 0;
                'all: for arguments in &self.arguments {
                    for at in 0..arguments.len() {
                        let end = if all { arguments.len() } else { at + 1 };
                        count += end - at + tail.len();
                        if count > WORDS_MAX {
                            self.overflow(&simple.place);
                            break 'all;
                        }
                        let words = arguments.get(at..end).unwrap_or_default();
                        heads.push(words.to_vec());
                        if !first.raw().contains('"') {
                            let parts = |it: &Word| split(&it.shown(), first);
                            heads.push(words.iter().flat_map(parts).collect());
                        }
                    }
                }
            }
            Some(From::Other | From::Path | From::Initializer) | None
                if from_environment(first, &self.variables) =>
            {
                self.unread(first.raw(), &simple.place, CouldBe::Environment);
            }
            Some(From::Other | From::Path | From::Initializer) | None => {
                self.anything(first.raw(), &simple.place);
            }
        }
        for mut words in heads {
            let changes = words.first().and_then(Word::basename);
            if changes.is_some_and(|name| GRAMMAR.contains(&name)) {
                self.anything(first.raw(), &simple.place);
            }
            words.extend_from_slice(tail);
            if !words.is_empty() {
                self.enqueue(simple.with_words(words));
            }
        }
    }

    fn value_of(&mut self, name: &str, first: &Word, simple: &Simple, heads: &mut Vec<Vec<Word>>) {
        let splits = first.splits() && self.variables.splits_otherwise();
        match self.variables.value(name) {
            Value::Environment => {
                self.unread(first.raw(), &simple.place, CouldBe::Environment);
            }
            Value::OneOf(_) if splits => self.anything(first.raw(), &simple.place),
            Value::OneOf(values) => heads.extend(values.iter().map(|it| split(it, first))),
            Value::Anything => self.anything(first.raw(), &simple.place),
        }
    }

    /// The same command with the values of variables in its arguments.
    fn arguments(&mut self, simple: &Simple) {
        let values = |word: &Word| match word.only_unknown() {
            Some(From::Variable(name) | From::Default(name, _)) => match self.variables.value(name)
            {
                Value::OneOf(values) => values.iter().map(|it| split(it, word)).collect(),
                _ => Vec::new(),
            },
            _ => Vec::new(),
        };
        let mut choices: Vec<Vec<Vec<Word>>> = Vec::new();
        let mut count = 0;
        for word in &simple.words {
            let values = values(word);
            count += values.iter().map(Vec::len).sum::<usize>();
            if count > WORDS_MAX {
                return self.anything(&simple.shown(), &simple.place);
            }
            choices.push(values);
        }
        let most = choices.iter().map(Vec::len).max().unwrap_or_default();
        for at in 0..most {
            let mut words = Vec::new();
            for (word, choices) in simple.words.iter().zip(&choices) {
                match choices.get(at).or(choices.last()) {
                    Some(chosen) => words.extend_from_slice(chosen),
                    None => words.push(word.clone()),
                }
            }
            self.enqueue(simple.with_words(words));
        }
    }
}

/// The words that a variable's value becomes.
fn split(value: &str, word: &Word) -> Vec<Word> {
    if word.splits() {
        value.split_whitespace().map(Word::text).collect()
    } else {
        vec![Word::text(value)]
    }
}

/// A text with its unknown parts left as `$_`.
fn text_of(pieces: &[Piece]) -> String {
    let piece = |piece: &Piece| match piece {
        Piece::Text(text) => text.clone(),
        Piece::Unknown { .. } => "$_".to_owned(),
    };
    pieces.iter().map(piece).collect()
}

/// Whether all that is unknown of a word comes from variables that the text does not set.
fn from_environment(word: &Word, variables: &Variables) -> bool {
    word.pieces.iter().all(|piece| match piece {
        Piece::Text(_) => true,
        Piece::Unknown { from, .. } => match from {
            From::Variable(name) => variables.value(name) == Value::Environment,
            _ => false,
        },
    })
}
