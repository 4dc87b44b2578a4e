//! How a name stands in its sentence: as a word, as an order, planned or called.

use std::sync::LazyLock;

use super::fill::Takes;
use super::lists;

/// Words with which somebody decides, right before a name.
static DECIDES: LazyLock<&[&str]> = LazyLock::new(|| lists::list("decides"));

/// Words right before a name that make an instrument of it.
static CALLS: LazyLock<&[&str]> = LazyLock::new(|| lists::list("calls"));

static CALLS_UNSPACED: LazyLock<&[&str]> = LazyLock::new(|| lists::list("calls unspaced"));

/// The same where the name comes first.
static CALL_STEMS: LazyLock<&[&str]> = LazyLock::new(|| lists::list("call stems"));

static PRONOUNS: LazyLock<&[&str]> = LazyLock::new(|| lists::list("pronouns"));

static OUTPUT_LABELS: LazyLock<&[&str]> = LazyLock::new(|| lists::list("output labels"));

static CALLED_BEHIND: LazyLock<&[&str]> = LazyLock::new(|| lists::list("called behind"));

static PLANS: LazyLock<&[&str]> = LazyLock::new(|| lists::list("plans"));

/// How a name stands in its sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stand {
    /// As any word does.
    Word,
    /// Where an order begins.
    Order,
    /// Behind words that make a plan of it.
    Planned,
    /// Behind a word that calls it, or with a mark of a call.
    Called,
}

pub(super) fn stand(before: &str, after: &str) -> Stand {
    let said = before.trim_end_matches(|letter: char| {
        letter.is_whitespace() || matches!(letter, '"' | '*' | '`' | '(')
    });
    let bare = said
        .trim_end_matches([
            ',', ':', '-', '–', '—', '.', '>', '→', '!', '，', '：', '；', ')',
        ])
        .trim_end();
    let behind = after.trim_start_matches(['*', '`', '"', ' ', '-']);
    if CALLED_BEHIND.iter().any(|word| behind.starts_with(word)) {
        return Stand::Called;
    }
    let without_article = without_article(said);
    let last = |text: &'_ str| {
        text.rsplit(|letter: char| letter.is_whitespace() || letter == '(')
            .next()
            .unwrap_or_default()
            .to_owned()
    };
    let pronoun = last(without_article);
    let without_pronoun = if PRONOUNS.contains(&pronoun.as_str()) {
        without_article[..without_article.len() - pronoun.len()].trim_end()
    } else {
        without_article
    };
    let word = last(without_pronoun);
    let word = word.rsplit('\'').next().unwrap_or_default().to_owned();
    if CALL_STEMS.iter().any(|stem| word.starts_with(stem)) {
        return Stand::Called;
    }
    if CALLS.contains(&word.as_str()) || CALLS_UNSPACED.iter().any(|word| said.ends_with(word)) {
        return Stand::Called;
    }
    if is_passed(without_article) {
        return Stand::Called;
    }
    let ends_with = |text: &str, words: &&str| {
        text.strip_suffix(*words).is_some_and(|head| {
            head.is_empty() || !head.ends_with(|letter: char| letter.is_ascii_alphanumeric())
        })
    };
    let adverb = [
        "now", "just", "then", "first", "also", "quickly", "simply", "next",
    ]
    .iter()
    .find_map(|adverb| bare.strip_suffix(adverb))
    .map_or(bare, str::trim_end);
    if !is_of_a_thing(adverb)
        && PLANS
            .iter()
            .any(|plan| ends_with(bare, plan) || ends_with(adverb, plan))
    {
        return Stand::Planned;
    }
    // "so we message …": what "I" did can as well be past.
    let we = ["we", "wir", "nous", "vi"]
        .iter()
        .find_map(|word| bare.strip_suffix(word).filter(|head| head.ends_with(' ')));
    if we.is_some_and(|head| DECIDES.contains(&last(head.trim_end()).as_str())) {
        return Stand::Planned;
    }
    let unspaced = lists::list("decides unspaced")
        .iter()
        .any(|word| bare.ends_with(word));
    let closed = bare.len() < said.len() && !said.ends_with(',') && !said.ends_with('，');
    let number = bare
        .trim_end_matches(|letter: char| letter.is_ascii_digit())
        .trim_end();
    if bare.is_empty()
        || unspaced
        || number.is_empty()
        || number.len() < bare.len() && number.ends_with([':', ',', ';'])
        || closed
        || DECIDES.contains(&last(bare).as_str())
        || last(bare) == "tool"
        || last(number) == "step"
    {
        return Stand::Order;
    }
    Stand::Word
}

fn without_article(said: &str) -> &str {
    const ARTICLES: &[&str] = &[
        "the",
        "a",
        "our",
        "my",
        "le",
        "la",
        "l'outil",
        "el",
        "den",
        "das",
        "die",
        "o",
        "tool",
        "outil",
        "verktøyet",
    ];
    let head = ARTICLES.iter().find_map(|article| {
        said.strip_suffix(article)
            .filter(|head| head.ends_with(' '))
    });
    head.map_or(said, str::trim_end)
}

/// "the target should run …": what a thing should do is no plan.
fn is_of_a_thing(before: &str) -> bool {
    let Some(head) = ["should", "must"]
        .iter()
        .find_map(|word| before.strip_suffix(word).filter(|head| head.ends_with(' ')))
    else {
        return false;
    };
    let subject = head.trim_end().rsplit(' ').next().unwrap_or_default();
    let owns = [
        "i",
        "we",
        "so",
        "and",
        "then",
        "also",
        "probably",
        "now",
        "first",
        "but",
        "thus",
        "therefore",
        "still",
        "just",
        "maybe",
        "perhaps",
        "hence",
        "really",
        "definitely",
        "next",
    ];
    subject.ends_with(|letter: char| letter.is_ascii_alphabetic()) && !owns.contains(&subject)
}

/// "x goes to search".
fn is_passed(before: &str) -> bool {
    static PASSED: LazyLock<&[&str]> = LazyLock::new(|| lists::list("passed to"));
    let is_arrow = ["->", "→"].iter().any(|sign| before.ends_with(sign));
    is_arrow
        || PASSED.iter().any(|words| {
            before
                .strip_suffix(*words)
                .is_some_and(|head| head.is_empty() || head.ends_with([' ', '"', '`']))
        })
}

/// "in the shell": where commands are run.
pub(super) fn is_place(before: &str) -> bool {
    let said = before.trim_end();
    [
        "in the", "in a", "in", "on the", "in der", "dans le", "en la", "på",
    ]
    .iter()
    .any(|words| {
        said.strip_suffix(words)
            .is_some_and(|head| head.ends_with(' '))
    })
}

/// "List the files (exec `ls`).": the call of an order or a plan, in brackets behind it.
pub(super) fn is_in_brackets(before: &str, after: &str) -> bool {
    let given = after.trim_start_matches([':', ' ']);
    let behind = given.trim_start_matches('"');
    let Some(said) = before.strip_suffix('(') else {
        return false;
    };
    let said = super::lead::without_fillers(said);
    let plans = ["i'll ", "let me ", "let's ", "we need to ", "i need to "];
    let plan = plans.iter().find_map(|plan| said.strip_prefix(plan));
    let said = plan.unwrap_or(said);
    behind.len() < given.len()
        && behind.starts_with(')')
        && (super::table::starts_with_verb(said) || said.starts_with("list "))
}

/// Whether a sentence is labelled as somebody else's words: "Tool result: …".
pub(super) fn is_labelled_foreign(sentence: &str) -> bool {
    let label = sentence
        .find([':', '：'])
        .filter(|at| *at <= 40)
        .map(|at| &sentence[..at]);
    label.is_some_and(|label| {
        let label =
            label.trim_matches(|letter: char| !letter.is_alphabetic() && !letter.is_alphanumeric());
        let bare = label.trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == ' ');
        OUTPUT_LABELS.contains(&bare)
    })
}

/// Whether the words behind a verb name what it needs and do not give it: "read it first", "read the file".
pub(super) fn points_at(after: &str, takes: Takes) -> bool {
    if takes == Takes::Query {
        let said = after.trim_start();
        return ["the web", "the internet", "online"]
            .iter()
            .any(|place| said.starts_with(place));
    }
    let nouns: &[&str] = match takes {
        Takes::Path => &["file", "files", "document", "config", "log"],
        Takes::Url => &[
            "url", "page", "link", "site", "website", "article", "it", "them",
        ],
        Takes::Command => &[
            "command", "commands", "script", "tests", "test", "build", "suite", "linter",
        ],
        Takes::Recipient => &[],
        _ => return false,
    };
    let word = |word: &str| {
        word.trim_matches(|letter: char| !letter.is_alphanumeric())
            .to_owned()
    };
    let mut words = after.split_whitespace().map(word);
    let first = words.next().unwrap_or_default();
    let second = words.next().unwrap_or_default();
    if takes == Takes::Recipient {
        return matches!(first.as_str(), "her" | "him" | "them");
    }
    let it = matches!(first.as_str(), "it" | "them")
        && matches!(
            second.as_str(),
            "" | "first" | "now" | "then" | "before" | "again"
        );
    it || matches!(
        first.as_str(),
        "the" | "that" | "their" | "his" | "her" | "this"
    ) && (nouns.contains(&second.as_str())
        || words.take(3).any(|word| nouns.contains(&word.as_str())))
}

/// Whether the name behind these words is what is called or used, and not what something is done with.
pub(super) fn is_called_by_name(before: &str) -> bool {
    static BY_NAME: LazyLock<&[&str]> = LazyLock::new(|| lists::list("by name"));
    let said = before.trim_end();
    let said = ["the", "a", "an"]
        .iter()
        .find_map(|article| {
            said.strip_suffix(article)
                .filter(|head| head.ends_with(' '))
        })
        .map_or(said, str::trim_end);
    let last = said.rsplit(char::is_whitespace).next().unwrap_or_default();
    BY_NAME.contains(&last)
        || CALL_STEMS.iter().any(|stem| last.starts_with(stem))
        || CALLS_UNSPACED.iter().any(|word| said.ends_with(word))
}
