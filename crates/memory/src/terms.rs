//! From whatever a model writes to what the full-text index understands.
//!
//! A query is foreign text: it may hold quotes, operators (`NEAR`, `AND`, `col:`), or nothing at
//! all. None of it reaches the index as syntax. The text is cut into words, and each word is handed
//! over as a quoted string, so that it can only ever be looked for.

use std::collections::HashSet;

/// Words of one query that are looked for; more are left out.
pub const QUERY_WORDS_MAX: usize = 32;
/// A word shorter than this is not tried as the beginning of longer ones.
const BEGINNING_CHARS_MIN: usize = 3;

/// Words that say how a sentence is built and not what it is about. A question is full of them, and
/// half of all records have each: looking for them costs the most and tells the least.
const COMMON_WORDS: &[&str] = &[
    "a", "about", "am", "an", "and", "any", "are", "as", "at", "be", "been", "but", "by", "can",
    "could", "did", "do", "does", "for", "from", "had", "has", "have", "he", "her", "him", "his",
    "how", "i", "if", "in", "is", "it", "its", "me", "my", "of", "on", "or", "our", "she",
    "should", "so", "that", "the", "their", "them", "there", "they", "this", "to", "us", "was",
    "we", "were", "what", "when", "where", "which", "who", "whom", "whose", "why", "will", "with",
    "would", "you", "your",
];

/// The two looks at the full-text index, as match expressions. Without any word there is neither.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Terms {
    /// Records with any of the words.
    pub words: Option<String>,
    /// Records with a word that begins like one of them, for when whole words find too little.
    pub beginnings: Option<String>,
}

/// Cuts a query into terms.
///
/// ```
/// use holdfast_memory::terms::terms;
/// let found = terms("Who is the \"owner\" NEAR billing*?");
/// assert_eq!(found.words.as_deref(), Some(r#""owner" OR "NEAR" OR "billing"*"#));
/// assert_eq!(terms("?! \"").words, None);
/// ```
pub fn terms(query: &str) -> Terms {
    let words = telling(query);
    Terms {
        words: joined(words.iter().map(Word::whole)),
        beginnings: joined(words.iter().filter_map(Word::beginning)),
    }
}

/// All words are looked at, so that the ones kept are the telling ones; the size of a query is
/// bounded before it gets here.
fn telling(query: &str) -> Vec<Word> {
    let mut words = cut(query);
    let mut seen = HashSet::new();
    words.retain(|word| seen.insert(word.clone()));
    if words.iter().any(Word::is_telling) {
        words.retain(Word::is_telling);
    }
    words.truncate(QUERY_WORDS_MAX);
    words
}

fn joined(expressions: impl Iterator<Item = String>) -> Option<String> {
    let all: Vec<String> = expressions.collect();
    (!all.is_empty()).then(|| all.join(" OR "))
}

/// A word of a query, for an index with a query language of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueryWord {
    /// The word; of a script without blanks, one sign or two that stand next to each other.
    pub text: String,
    /// Whether a longer word that begins like it will do, because it was written with a star.
    pub has_star: bool,
    /// Whether it is long enough to be tried as a beginning.
    pub may_begin: bool,
}

/// The words that [`terms`] looks for.
///
/// ```
/// use holdfast_memory::terms::query_words;
/// let words: Vec<_> = query_words("who is in 東京都?").into_iter().map(|word| word.text).collect();
/// assert_eq!(words, ["東京", "京都"]);
/// ```
pub fn query_words(query: &str) -> Vec<QueryWord> {
    let telling = telling(query).into_iter();
    telling
        .map(|word| QueryWord {
            may_begin: word.beginning().is_some(),
            has_star: matches!(word, Word::Plain { star: true, .. }),
            text: match word {
                Word::Plain { text, .. } => text,
                Word::Signs(signs) => signs.replace(' ', ""),
            },
        })
        .collect()
}

/// All words of a text, so that [`query_words`] finds it: of scripts without blanks every sign and
/// every pair of neighbours is one.
///
/// ```
/// use holdfast_memory::terms::index_words;
/// assert_eq!(index_words("in 東京, ok"), ["in", "東京", "ok", "東", "京"]);
/// ```
pub fn index_words(content: &str) -> Vec<String> {
    let words = cut(content).into_iter().map(|word| match word {
        Word::Plain { text, .. } => text,
        Word::Signs(signs) => signs.replace(' ', ""),
    });
    let mut found: Vec<String> = words.collect();
    let alone = content.chars().filter(|sign| stands_alone(*sign));
    found.extend(alone.map(String::from));
    found
}

/// The text as it is put into the index: signs of scripts that put no blanks between words stand
/// alone, because the index takes what is between blanks for one word.
pub fn indexable(content: &str) -> String {
    let mut text = String::with_capacity(content.len());
    for sign in content.chars() {
        let alone = stands_alone(sign);
        if alone {
            text.push(' ');
        }
        // A NUL would end the text for SQLite.
        text.push(if sign == '\0' { ' ' } else { sign });
        if alone {
            text.push(' ');
        }
    }
    text
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Word {
    /// Between blanks or signs; with a star behind it, the beginning of a word.
    Plain { text: String, star: bool },
    /// One or two signs that stand alone, next to each other.
    Signs(String),
}

impl Word {
    fn is_telling(&self) -> bool {
        match self {
            Self::Plain { text, star } => {
                let lower = text.to_lowercase();
                let single_letter = text.len() == 1 && text.as_bytes()[0].is_ascii_alphabetic();
                *star || !(single_letter || COMMON_WORDS.contains(&lower.as_str()))
            }
            Self::Signs(_) => true,
        }
    }

    fn whole(&self) -> String {
        match self {
            Self::Plain { text, star } => quoted(text) + if *star { "*" } else { "" },
            Self::Signs(signs) => quoted(signs),
        }
    }

    fn beginning(&self) -> Option<String> {
        match self {
            Self::Plain { text, .. } if text.chars().count() >= BEGINNING_CHARS_MIN => {
                Some(quoted(text) + "*")
            }
            _ => None,
        }
    }
}

/// A string of the index's query language. Within quotes only the quote itself has a meaning.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\"\""))
}

/// Whether the sign belongs to a script that is written without blanks.
fn stands_alone(sign: char) -> bool {
    matches!(sign,
        '\u{3040}'..='\u{30ff}'      // Hiragana, Katakana
        | '\u{3400}'..='\u{4dbf}'    // Han
        | '\u{4e00}'..='\u{9fff}'
        | '\u{f900}'..='\u{faff}'
        | '\u{20000}'..='\u{323af}'
        | '\u{0e00}'..='\u{0e7f}'    // Thai
        | '\u{0e80}'..='\u{0eff}') // Lao
}

/// Whether the sign is part of a word: letters, digits, and marks that sit on letters.
fn in_word(sign: char) -> bool {
    sign.is_alphanumeric() || matches!(sign, '\u{300}'..='\u{36f}' | '\u{200d}')
}

fn cut(query: &str) -> Vec<Word> {
    let mut words = Vec::new();
    let mut plain = String::new();
    let mut signs = Vec::new();
    let mut rest = query.chars().peekable();
    while let Some(sign) = rest.next() {
        if stands_alone(sign) {
            end_plain(&mut words, &mut plain, false);
            signs.push(sign);
            continue;
        }
        end_signs(&mut words, &mut signs);
        if in_word(sign) {
            plain.push(sign);
        } else {
            // A star asks for a beginning when it ends a word, as people write it.
            let ends = rest.peek().is_none_or(|next| !in_word(*next));
            end_plain(&mut words, &mut plain, sign == '*' && ends);
        }
    }
    end_plain(&mut words, &mut plain, false);
    end_signs(&mut words, &mut signs);
    words
}

fn end_plain(words: &mut Vec<Word>, plain: &mut String, star: bool) {
    let text = std::mem::take(plain);
    // Marks without a letter are no word.
    if text.chars().any(char::is_alphanumeric) {
        words.push(Word::Plain { text, star });
    }
}

/// A run of signs is looked for by its pairs: the run itself may be longer than any word.
fn end_signs(words: &mut Vec<Word>, signs: &mut Vec<char>) {
    match signs.as_slice() {
        [] => {}
        [only] => words.push(Word::Signs(only.to_string())),
        several => {
            for pair in several.windows(2) {
                words.push(Word::Signs(format!("{} {}", pair[0], pair[1])));
            }
        }
    }
    signs.clear();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(query: &str, expected: &str) {
        assert_eq!(
            terms(query).words.unwrap_or_default(),
            expected,
            "{query:?}"
        );
    }

    #[test]
    fn words_are_quoted_and_joined() {
        check("", "");
        check(" \t\n", "");
        check("\"\"\"", "");
        check("deploy", "\"deploy\"");
        check("deploy deploy rollback", "\"deploy\" OR \"rollback\"");
        check("content:secret", "\"content\" OR \"secret\"");
        check("a AND (b OR c) NOT d", "\"NOT\"");
        check("x", "\"x\"");
        check("the", "\"the\"");
        check("what is the deadline", "\"deadline\"");
        check("user's", "\"user\"");
        check("deploy*", "\"deploy\"*");
        check("de*ploy", "\"de\" OR \"ploy\"");
        check("* ** *x", "\"x\"");
        check("re\u{301}sume\u{301}", "\"re\u{301}sume\u{301}\"");
        check("\u{301}", "");
        check("東京都 office", "\"東 京\" OR \"京 都\" OR \"office\"");
        check("水", "\"水\"");
    }

    #[test]
    fn beginnings_are_tried_for_words_that_are_long_enough() {
        let found = terms("auth in eu");
        assert_eq!(found.words.as_deref(), Some("\"auth\" OR \"eu\""));
        assert_eq!(found.beginnings.as_deref(), Some("\"auth\"*"));
        assert_eq!(terms("eu").beginnings, None);
    }

    #[test]
    fn a_long_query_is_cut() {
        let query: Vec<String> = (0..100).map(|number| format!("w{number}")).collect();
        let found = terms(&query.join(" ")).words.unwrap();
        assert_eq!(found.matches(" OR ").count(), QUERY_WORDS_MAX - 1);
    }

    #[test]
    fn scripts_without_blanks_are_spread_out() {
        assert_eq!(indexable("在东京 ok"), " 在  东  京  ok");
        assert_eq!(indexable("a\0b"), "a b");
    }
}
