//! The tools that a reply can mean: their names, other names, schemas.

use std::sync::{Arc, OnceLock};

use serde_json::Value;

use crate::limits::{NAME_BYTES_MAX, SIMILAR_NAMES_MAX};
use crate::word_bits::{Key, WordBits};

/// One tool, as far as the parser needs to know it.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    /// The name a call is made by.
    pub name: String,
    /// JSON Schema of the arguments; anything that is not an object schema means "unknown".
    pub schema: Arc<Value>,
    /// Other names that models use for it.
    pub aliases: Vec<String>,
    /// Whether a call changes anything. Assumed when nobody says.
    pub mutating: bool,
}

impl ToolSpec {
    /// A tool without other names, assumed to change things.
    pub fn new(name: impl Into<String>, schema: impl Into<Arc<Value>>) -> Self {
        Self {
            name: name.into(),
            schema: schema.into(),
            aliases: Vec::new(),
            mutating: true,
        }
    }

    /// Reads one tool from JSON: our own form, `OpenAI`'s (with or without `function` around it),
    /// Anthropic's (`input_schema`) or MCP's (`inputSchema`).
    ///
    /// ```
    /// use holdfast_intent::ToolSpec;
    /// use serde_json::json;
    /// let tool = ToolSpec::from_json(&json!({"type": "function", "function":
    ///     {"name": "add", "parameters": {"type": "object"}}})).unwrap();
    /// assert_eq!(tool.name, "add");
    /// ```
    pub fn from_json(value: &Value) -> Option<Self> {
        let value = match value.get("function") {
            Some(inner) if inner.is_object() => inner,
            _ => value,
        };
        let name = value.get("name")?.as_str()?;
        let schema = ["schema", "parameters", "input_schema", "inputSchema"]
            .iter()
            .find_map(|key| value.get(*key))
            .cloned()
            .unwrap_or(Value::Null)
            .into();
        let aliases = value
            .get("aliases")
            .and_then(Value::as_array)
            .map(|names| {
                names
                    .iter()
                    .filter_map(Value::as_str)
                    .map(str::to_owned)
                    .collect()
            })
            .unwrap_or_default();
        let read_only = value
            .get("annotations")
            .and_then(|notes| notes.get("readOnlyHint"))
            .and_then(Value::as_bool);
        let mutating = value
            .get("mutating")
            .and_then(Value::as_bool)
            .or(read_only.map(|hint| !hint))
            .unwrap_or(true);
        Some(Self {
            name: name.to_owned(),
            schema,
            aliases,
            mutating,
        })
    }

    /// The schema's properties: name and sub-schema.
    pub(crate) fn properties(&self) -> impl Iterator<Item = (&String, &Value)> {
        self.schema
            .get("properties")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
    }

    pub(crate) fn property(&self, name: &str) -> Option<&Value> {
        self.schema.get("properties")?.get(name)
    }

    /// Whether the schema names its arguments and does not say that there may be others.
    pub(crate) fn is_closed(&self) -> bool {
        match self.schema.get("additionalProperties") {
            Some(others) => *others == Value::Bool(false),
            None => self.properties().next().is_some(),
        }
    }

    pub(crate) fn required(&self) -> impl Iterator<Item = &str> {
        self.schema
            .get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
    }

    /// The argument that an unnamed text is meant for.
    pub(crate) fn main_argument(&self) -> Option<&str> {
        self.required()
            .next()
            .or_else(|| self.properties().next().map(|(name, _)| name.as_str()))
    }
}

/// How a written name was matched to a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NameMatch {
    /// Its own name or a listed alias, whatever its case and separators.
    Known,
    /// The closest name.
    Close,
}

/// All tools of one conversation.
///
/// ```
/// use holdfast_intent::ToolSet;
/// let tools = ToolSet::built_in();
/// assert_eq!(tools.find("Read_File").unwrap().name, "read");
/// assert!(tools.find("teleport").is_none());
/// ```
#[derive(Debug, Clone)]
pub struct ToolSet {
    tools: Vec<ToolSpec>,
    /// Folded names and aliases, sorted, with the tool's place.
    index: Vec<(String, usize)>,
    /// How those names begin: a bit for each three letters.
    beginnings: Vec<u64>,
    /// The length of the longest.
    longest: usize,
    /// The words that those names are spelled with.
    spellings: OnceLock<Spellings>,
}

impl Default for ToolSet {
    fn default() -> Self {
        Self::built_in()
    }
}

impl ToolSet {
    /// A set of these tools.
    pub fn new(tools: Vec<ToolSpec>) -> Self {
        let mut index: Vec<(String, usize)> = Vec::new();
        for (place, tool) in tools.iter().enumerate() {
            index.push((fold(&tool.name), place));
        }
        // A tool's own name wins over another tool's alias.
        for (place, tool) in tools.iter().enumerate() {
            for alias in &tool.aliases {
                let alias = fold(alias);
                if !index.iter().any(|(known, _)| *known == alias) {
                    index.push((alias, place));
                }
            }
        }
        index.sort();
        let mut beginnings = vec![0; BEGINNINGS.div_ceil(64)];
        for (name, _) in &index {
            // A name can be written as several words, so a part of its beginning counts as well.
            for letters in 1..=3 {
                let place = beginning(name.bytes().take(letters));
                beginnings[place / 64] |= 1 << (place % 64);
            }
        }
        let longest = index.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        Self {
            tools,
            index,
            beginnings,
            longest,
            spellings: OnceLock::new(),
        }
    }

    /// The tools of the gpt-oss executor, with the names that models give them.
    pub fn built_in() -> Self {
        Self::new(crate::built_in::tools())
    }

    /// Reads a list of tools, or an object that holds one under `tools` or `functions`.
    pub fn from_json(value: &Value) -> Option<Self> {
        let list = value
            .as_array()
            .or_else(|| value.get("tools").and_then(Value::as_array))
            .or_else(|| value.get("functions").and_then(Value::as_array))?;
        Some(Self::new(
            list.iter().filter_map(ToolSpec::from_json).collect(),
        ))
    }

    /// All tools.
    pub fn tools(&self) -> &[ToolSpec] {
        &self.tools
    }

    /// The tool of this name, alias, or spelling of one.
    pub fn find(&self, written: &str) -> Option<&ToolSpec> {
        // A tool may really be called `functions.area`, so the name as written comes first.
        self.find_folded(&fold(written.trim()))
            .or_else(|| self.find_folded(&fold(clean_name(written))))
    }

    /// Whether a word can be a tool's name: a cheap look before the real one.
    pub(crate) fn may_name(&self, word: &str) -> bool {
        if !(2..=self.longest * 2).contains(&word.len()) {
            return false;
        }
        let letters = word
            .bytes()
            .filter(|byte| !matches!(byte, b'_' | b'-' | b'.'));
        let place = beginning(letters.take(3));
        self.beginnings[place / 64] & 1 << (place % 64) != 0
    }

    /// How the names can be written, for a look at many words.
    pub(crate) fn spellings(&self) -> &Spellings {
        self.spellings.get_or_init(|| Spellings::new(&self.index))
    }

    fn find_folded(&self, folded: &str) -> Option<&ToolSpec> {
        self.index
            .binary_search_by(|(known, _)| known.as_str().cmp(folded))
            .ok()
            .map(|at| &self.tools[self.index[at].1])
    }

    /// The tool of this name, or the one whose name is closest, if only one is close.
    pub(crate) fn find_close(&self, written: &str) -> Option<(&ToolSpec, NameMatch)> {
        if let Some(tool) = self.find(written) {
            return Some((tool, NameMatch::Known));
        }
        let name = clean_name(written);
        // Muse writes the name twice: `read.read`, `files.read.files.read`.
        let half = name.len() / 2;
        if let (Some(first), Some(second)) = (name.get(..half), name.get(half..))
            && second.strip_prefix('.') == Some(first)
            && let Some(tool) = self.find(first)
        {
            return Some((tool, NameMatch::Known));
        }
        // `my_server.read` and `mcp__files__read` name the tool last.
        let tails = [
            name.rsplit('.').next(),
            name.rsplit("__").next(),
            name.rsplit('/').next(),
        ];
        for tail in tails.into_iter().flatten() {
            if tail.len() < name.len()
                && let Some(tool) = self.find(tail)
            {
                return Some((tool, NameMatch::Known));
            }
        }
        let folded = fold(name);
        if folded.len() > NAME_BYTES_MAX {
            return None;
        }
        let allowed = match folded.len() {
            0..=3 => return None,
            4..=7 => 1,
            _ => 2,
        };
        let mut best: Option<(usize, usize)> = None;
        let mut tied = false;
        for (known, place) in &self.index {
            if known.len().abs_diff(folded.len()) > allowed {
                continue;
            }
            let distance = strsim::damerau_levenshtein(known, &folded);
            if distance > allowed {
                continue;
            }
            match best {
                Some((least, _)) if distance > least => {}
                Some((least, other)) if distance == least => tied |= other != *place,
                _ => {
                    best = Some((distance, *place));
                    tied = false;
                }
            }
        }
        best.filter(|_| !tied)
            .map(|(_, place)| (&self.tools[place], NameMatch::Close))
    }
}

/// The letters of all names and of their beginnings: `web_search` can be written as two words.
#[derive(Debug, Clone)]
pub(crate) struct Spellings {
    words: WordBits,
    /// Whether a name has no letters, so that no word tells whether it is there.
    everywhere: bool,
}

/// A whole name.
const WHOLE: u32 = 1;
/// The beginning of one.
const BEGINNING: u32 = 2;

impl Spellings {
    fn new(index: &[(String, usize)]) -> Self {
        let mut words = Vec::new();
        let mut everywhere = false;
        for (name, _) in index {
            let mut key = Key::default();
            for letter in name.bytes().filter(u8::is_ascii_alphabetic) {
                words.push((key, BEGINNING));
                key = key.and(letter);
            }
            words.push((key, WHOLE));
            everywhere |= key.is_empty();
        }
        Self {
            words: WordBits::new(&words),
            everywhere,
        }
    }

    pub(crate) fn everywhere(&self) -> bool {
        self.everywhere
    }

    /// Whether a word can end a name, alone or behind the word before it, which begins one; and
    /// whether it begins one.
    #[inline]
    pub(crate) fn spell(&self, word: Key, before: Key, letters: &str) -> (bool, bool) {
        let alone = self.words.of(word);
        let is_joined = !before.is_empty() && self.words.of(before.and_letters(letters)) != 0;
        (alone & WHOLE != 0 || is_joined, alone & BEGINNING != 0)
    }
}

/// From here on two names are alike.
const SIMILAR_MIN: f64 = 0.8;
/// Words of a name that are shorter say nothing about what it does.
const WORD_BYTES_MIN: usize = 4;

impl ToolSet {
    /// Tools whose names are like this one, or share a word with it; the most similar first.
    pub(crate) fn similar(&self, written: &str) -> Vec<String> {
        let folded = fold(written);
        if folded.is_empty() || folded.len() > NAME_BYTES_MAX {
            return Vec::new();
        }
        let words = words_of(written);
        let mut scored: Vec<(f64, &str)> = self
            .tools
            .iter()
            .filter_map(|tool| {
                let likeness = strsim::jaro_winkler(&fold(&tool.name), &folded);
                let shared = words_of(&tool.name).iter().any(|word| words.contains(word));
                (shared || likeness >= SIMILAR_MIN).then_some((likeness, tool.name.as_str()))
            })
            .collect();
        scored.sort_by(|one, other| other.0.total_cmp(&one.0).then(one.1.cmp(other.1)));
        let names = scored.into_iter().map(|(_, name)| name.to_owned());
        names.take(SIMILAR_NAMES_MAX).collect()
    }
}

/// The longer words of a name, in lower case: `getWeather_now` has `weather`.
fn words_of(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    for letter in name.chars() {
        if !letter.is_alphanumeric() || letter.is_uppercase() {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| letter.is_alphanumeric()) {
            word.extend(letter.to_lowercase());
        }
    }
    words.retain(|word| word.len() >= WORD_BYTES_MIN);
    words
}

/// How many beginnings of three letters there are, one sign standing for all that are none.
const BEGINNINGS: usize = 27 * 27 * 27;

/// Which of them the first letters of a name make.
fn beginning(letters: impl Iterator<Item = u8>) -> usize {
    let number = |byte: u8| match byte.to_ascii_lowercase() {
        letter @ b'a'..=b'z' => usize::from(letter - b'a') + 1,
        _ => 0,
    };
    let mut letters = letters.map(number).chain(std::iter::repeat(0));
    (0..3).fold(0, |place, _| place * 27 + letters.next().unwrap_or(0))
}

/// The name without what formats put around it: `functions.`, `:0`, quotation marks, parentheses.
pub(crate) fn clean_name(written: &str) -> &str {
    let mut name = written.trim().trim_matches(|letter: char| {
        matches!(
            letter,
            '"' | '\'' | '`' | '*' | '<' | '>' | '(' | ')' | ':' | ','
        ) || letter.is_whitespace()
    });
    for prefix in [
        "functions.",
        "function.",
        "tools.",
        "tool.",
        "functions/",
        "default_api.",
        "functions:",
    ] {
        name = name.strip_prefix(prefix).unwrap_or(name);
    }
    // Tokens of the format that leaked into the name, and marks that no name has.
    if let Some(end) = name
        .find(['<', '|', '!', '{', '(', '[', '\n'])
        .filter(|end| *end > 0)
    {
        name = name[..end].trim_end();
    }
    if let Some((head, tail)) = name.rsplit_once(':')
        && !head.is_empty()
        && tail.bytes().all(|byte| byte.is_ascii_digit())
    {
        name = head;
    }
    name
}

/// Lower case, without separators.
pub(crate) fn fold(name: &str) -> String {
    name.chars()
        .filter(|letter| !matches!(letter, '_' | '-' | ' ' | '.'))
        .flat_map(char::to_lowercase)
        .collect()
}
