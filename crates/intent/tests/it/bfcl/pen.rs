//! Writes values the way models do: well, or with seeded damage of the kinds that can be repaired.

use std::fmt::Write as _;

use holdfast_testkit::SeededEntropy;
use serde_json::Value;

use super::data::Call;

/// One kind of damage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Damage {
    Fences,
    SingleQuotes,
    PythonLiterals,
    Comments,
    TrailingCommas,
    UnquotedKeys,
    RawNewlines,
    RawQuotes,
    MissingClosers,
    Surrounded,
}

impl Damage {
    pub(crate) const ALL: [Self; 10] = [
        Self::Fences,
        Self::SingleQuotes,
        Self::PythonLiterals,
        Self::Comments,
        Self::TrailingCommas,
        Self::UnquotedKeys,
        Self::RawNewlines,
        Self::RawQuotes,
        Self::MissingClosers,
        Self::Surrounded,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Fences => "fences",
            Self::SingleQuotes => "single quotes",
            Self::PythonLiterals => "python literals",
            Self::Comments => "comments",
            Self::TrailingCommas => "trailing commas",
            Self::UnquotedKeys => "unquoted keys",
            Self::RawNewlines => "unescaped newlines",
            Self::RawQuotes => "unescaped quotes",
            Self::MissingClosers => "missing closers",
            Self::Surrounded => "surrounding text",
        }
    }
}

/// What stands around a call in a reply.
const BEFORE: &[&str] = &[
    "I'll do that now.\n",
    "Let me call the tool for this.\n\n",
    "Okay, calling it now:\n",
    "To answer this I need to use a tool.\n",
    "Sure! Here is the tool call:\n\n",
    "<think>\nThe user asks for one thing. I have the function for it.\n</think>\n\n",
];
const AFTER: &[&str] = &[
    "\n",
    "\n\nI'll report back when it is done.",
    "\nWaiting for the result.",
    "\n\nOnce I have the result, I will sum it up.",
];
const NOTES: &[&str] = &["the value", "as asked", "required", "see the question"];

/// A value whose members keep their order: models write the name first.
pub(crate) enum Node<'a> {
    Value(&'a Value),
    Text(String),
    Record(Vec<(&'a str, Node<'a>)>),
    List(Vec<Node<'a>>),
}

/// A pen with its faults and its dice.
pub(crate) struct Pen<'a> {
    pub(crate) damage: &'a [Damage],
    pub(crate) dice: &'a SeededEntropy,
}

impl Pen<'_> {
    pub(crate) fn has(&self, damage: Damage) -> bool {
        self.damage.contains(&damage)
    }

    fn pick<'s>(&self, from: &[&'s str]) -> &'s str {
        let bound = u64::try_from(from.len()).unwrap_or(1);
        from[usize::try_from(self.dice.below(bound)).unwrap_or(0)]
    }

    fn below(&self, bound: usize) -> usize {
        usize::try_from(self.dice.below(bound as u64)).unwrap_or(0)
    }

    /// Gives the calls' texts something to stumble over. None when there is no place for it.
    pub(crate) fn roughened(&self, calls: &[Call]) -> Option<Vec<Call>> {
        let mut calls = calls.to_vec();
        for damage in [Damage::RawNewlines, Damage::RawQuotes] {
            if !self.has(damage) {
                continue;
            }
            let mut changed = false;
            for text in calls
                .iter_mut()
                .flat_map(|call| call.arguments.values_mut())
            {
                if let Value::String(text) = text {
                    changed |= self.roughen(text, damage);
                }
            }
            if !changed {
                return None;
            }
        }
        Some(calls)
    }

    fn roughen(&self, text: &mut String, damage: Damage) -> bool {
        let words: Vec<&str> = text.split(' ').collect();
        if words.len() < 2 || words.iter().any(|word| word.is_empty()) {
            return false;
        }
        let at = self.below(words.len() - 1);
        let rough = if damage == Damage::RawNewlines {
            format!("{}\n{}", words[..=at].join(" "), words[at + 1..].join(" "))
        } else {
            // Not always the same place: at the start, in the middle, at the end.
            let at = self.below(words.len());
            let mut words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
            let comma = if at + 1 < words.len() && self.dice.chance(25) {
                ","
            } else {
                ""
            };
            words[at] = format!("\"{}\"{comma}", words[at]);
            words.join(" ")
        };
        *text = rough;
        true
    }

    /// JSON with this pen's faults, at the end of a call.
    pub(crate) fn json(&self, node: &Node<'_>) -> String {
        let mut out = self.json_inside(node);
        if self.has(Damage::MissingClosers) {
            self.lose_closers(&mut out);
        }
        out
    }

    /// JSON that keeps its closers, because more follows.
    pub(crate) fn json_inside(&self, node: &Node<'_>) -> String {
        let mut out = String::new();
        self.node(node, &mut out);
        out
    }

    fn lose_closers(&self, out: &mut String) {
        let kept = out.trim_end_matches(['}', ']', ' ', '\n']).len();
        let many = out[kept..].matches(['}', ']']).count();
        if kept < 2 || many == 0 || out[..kept].ends_with(['{', '[', ',']) {
            return;
        }
        for _ in 0..=self.below(many) {
            while !matches!(out.pop(), Some('}' | ']') | None) {}
        }
    }

    fn node(&self, node: &Node<'_>, out: &mut String) {
        match node {
            Node::Record(members) => {
                self.object(members.iter().map(|(key, node)| (*key, node)), out);
            }
            Node::List(items) => self.list(items.iter(), out),
            Node::Value(Value::Object(members)) => {
                let members: Vec<(&str, Node<'_>)> = members
                    .iter()
                    .map(|(key, member)| (key.as_str(), Node::Value(member)))
                    .collect();
                self.object(members.iter().map(|(key, node)| (*key, node)), out);
            }
            Node::Value(Value::Array(items)) => {
                let items: Vec<Node<'_>> = items.iter().map(Node::Value).collect();
                self.list(items.iter(), out);
            }
            Node::Value(Value::String(text)) | Node::Text(text) => self.string(text, out),
            Node::Value(other) => out.push_str(&self.literal(other)),
        }
    }

    fn list<'n>(&self, items: impl ExactSizeIterator<Item = &'n Node<'n>>, out: &mut String) {
        let many = items.len();
        out.push('[');
        for (place, item) in items.enumerate() {
            if place > 0 {
                out.push_str(", ");
            }
            self.node(item, out);
        }
        if self.has(Damage::TrailingCommas) && many > 0 {
            out.push(',');
        }
        out.push(']');
    }

    fn object<'n>(
        &self,
        members: impl ExactSizeIterator<Item = (&'n str, &'n Node<'n>)>,
        out: &mut String,
    ) {
        let many = members.len();
        out.push('{');
        for (place, (key, member)) in members.enumerate() {
            if place > 0 {
                out.push_str(", ");
            }
            if self.has(Damage::Comments) && self.dice.chance(60) {
                self.comment(out);
            }
            self.key(key, out);
            out.push_str(": ");
            self.node(member, out);
        }
        if self.has(Damage::TrailingCommas) && many > 0 {
            out.push(',');
        }
        out.push('}');
    }

    fn comment(&self, out: &mut String) {
        let note = self.pick(NOTES);
        let _ = match self.below(3) {
            0 => writeln!(out, "// {note}"),
            1 => write!(out, "/* {note} */ "),
            _ => writeln!(out, "# {note}"),
        };
    }

    fn key(&self, key: &str, out: &mut String) {
        let plain = !key.is_empty()
            && key
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        let mark = match self.has(Damage::SingleQuotes) {
            _ if self.has(Damage::UnquotedKeys) && plain => "",
            true => "'",
            false => "\"",
        };
        let _ = write!(out, "{mark}{key}{mark}");
    }

    /// As Python writes it where single quotes are used, else as JSON.
    fn string(&self, text: &str, out: &mut String) {
        let single = self.has(Damage::SingleQuotes) && (!text.contains('\'') || text.contains('"'));
        let mark = if single { '\'' } else { '"' };
        out.push(mark);
        for letter in text.chars() {
            match letter {
                '\n' if self.has(Damage::RawNewlines) => out.push('\n'),
                '\n' => out.push_str("\\n"),
                '\t' => out.push_str("\\t"),
                '\r' => out.push_str("\\r"),
                '\\' => out.push_str("\\\\"),
                '"' | '\'' if letter == mark && !self.has(Damage::RawQuotes) => {
                    out.push('\\');
                    out.push(letter);
                }
                other => out.push(other),
            }
        }
        out.push(mark);
    }

    fn literal(&self, value: &Value) -> String {
        match value {
            Value::Bool(true) if self.has(Damage::PythonLiterals) => "True".to_owned(),
            Value::Bool(false) if self.has(Damage::PythonLiterals) => "False".to_owned(),
            Value::Null if self.has(Damage::PythonLiterals) => "None".to_owned(),
            other => other.to_string(),
        }
    }

    /// A value as the text of an element.
    pub(crate) fn text(&self, value: &Value) -> String {
        match value {
            Value::String(text) => text.clone(),
            other => self.json_inside(&Node::Value(other)),
        }
    }

    /// A value in Python; JSON's own literals are the fault there.
    pub(crate) fn python(&self, value: &Value) -> String {
        let swapped: Vec<Damage> = self
            .damage
            .iter()
            .copied()
            .filter(|damage| *damage != Damage::PythonLiterals)
            .chain((!self.has(Damage::PythonLiterals)).then_some(Damage::PythonLiterals))
            .collect();
        Pen {
            damage: &swapped,
            dice: self.dice,
        }
        .json_inside(&Node::Value(value))
    }

    /// A closer that may be lost.
    pub(crate) fn closer(&self, closer: &'static str) -> &'static str {
        if self.has(Damage::MissingClosers) {
            ""
        } else {
            closer
        }
    }

    /// A block around a text.
    pub(crate) fn fenced(&self, text: &str, languages: &[&str]) -> String {
        format!("```{}\n{text}\n```", self.pick(languages))
    }

    /// Words around a text.
    pub(crate) fn surrounded(&self, text: &str) -> String {
        // Who forgets the closers has stopped there.
        let after = if self.has(Damage::MissingClosers) {
            ""
        } else {
            self.pick(AFTER)
        };
        format!("{}{text}{after}", self.pick(BEFORE))
    }
}
