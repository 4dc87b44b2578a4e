//! Whether words around a tool's name make a wish of it: the languages differ, the tables say how.

use std::sync::LazyLock;

use super::fill::Takes;
use super::lists;
use crate::cues::WordSet;

static DENIED: LazyLock<WordSet> = LazyLock::new(|| lists::word_set("denied"));
static PAST: LazyLock<WordSet> = LazyLock::new(|| lists::word_set("past"));
/// What puts off or puts to choice, wherever it stands before the name.
static IS_AGO: LazyLock<WordSet> = LazyLock::new(|| lists::word_set("ago"));
static IS_UNREAL: LazyLock<WordSet> = LazyLock::new(|| lists::word_set("unreal"));
static UNREAL_BEHIND: LazyLock<WordSet> = LazyLock::new(|| lists::word_set("unreal behind"));
static TALK: LazyLock<WordSet> = LazyLock::new(|| lists::word_set("talk"));
static REPORTS: LazyLock<WordSet> = LazyLock::new(|| lists::word_set("reports"));
static OTHERS: LazyLock<WordSet> = LazyLock::new(|| lists::word_set("others"));
static OWN: LazyLock<WordSet> = LazyLock::new(|| lists::word_set("own"));
static OWN_SUBJECT: LazyLock<WordSet> = LazyLock::new(|| lists::word_set("own subject"));
static PLANNED: LazyLock<WordSet> = LazyLock::new(|| lists::word_set("planned"));

/// What stands around one name: in lower case, without what is in marks.
pub(super) struct Around<'a> {
    /// The clause before the name.
    pub(super) clause: &'a str,
    /// The whole sentence before the name.
    pub(super) before: &'a str,
    /// The sentence behind the name.
    pub(super) after: &'a str,
    /// What follows the last literal of the name.
    pub(super) behind: &'a str,
    /// Whether the name can be nothing but a tool's.
    pub(super) distinct: bool,
}

/// What speaks against a wish, when something does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Against {
    Denied,
    Past,
    Unreal,
    Talk,
    Foreign,
    Told,
}

pub(super) fn against(around: &Around<'_>) -> Option<Against> {
    let Around {
        clause,
        before,
        after,
        behind,
        distinct,
    } = *around;
    // A word at either end has blanks around it as any other has.
    let clause = format!(" {clause} ");
    let clause = clause.as_str();
    if is_denied(clause) || is_denied_behind(after) {
        return Some(Against::Denied);
    }
    let head = first_words(after, 4);
    if IS_AGO.is_in(after) {
        return Some(Against::Past);
    }
    if tells_outcome(behind)
        || tells_outcome(after)
        || is_settled(after)
        || OUTCOME_PARTS.iter().any(|part| head.contains(part))
    {
        return Some(Against::Told);
    }
    if is_unreal(before, after) {
        return Some(Against::Unreal);
    }
    let own = OWN.is_in(clause);
    let plans = PLANNED.is_in(clause) && (!OTHERS.is_in(clause) || OWN_SUBJECT.is_in(clause));
    if PAST.is_in(&without_have_to(clause)) && !(plans && distinct) || clause_says_past(clause) {
        return Some(Against::Past);
    }
    if !own && (TALK.is_in(clause) || TALK.is_in(before) && !plans) || TALK.is_in(after) && !plans {
        return Some(Against::Talk);
    }
    let turned = own || clause.len() < before.len() && distinct && plans;
    if !turned && (REPORTS.is_in(before) || OTHERS.is_in(clause) && !distinct) {
        return Some(Against::Foreign);
    }
    None
}

/// "have to" is no past.
fn without_have_to(clause: &str) -> String {
    clause
        .replace("have to", "must")
        .replace("had better", "must")
        .replace("has to", "must")
        .replace("have the", "the")
        .replace("have a", "a")
        .replace("have both", "both")
        .replace("after that", "then")
        .replace("after this", "then")
}

fn clause_says_past(clause: &str) -> bool {
    // "my web_search": whose it is, it was made.
    const OWNED: &[&str] = &["my", "our", "previous", "last", "earlier"];
    let owned = clause.split_whitespace().next_back();
    if owned.is_some_and(|word| OWNED.contains(&word)) && !PLANNED.is_in(clause) {
        return true;
    }
    let words: Vec<&str> = clause.split_whitespace().rev().take(3).collect();
    // "I read …", "I first read …": who plans says so.
    matches!(
        words.as_slice(),
        ["i", ..] | ["first" | "then" | "also" | "just" | "already", "i", ..]
    ) || matches!(words.first(), Some(&("was" | "were" | "been")))
}

fn is_denied(clause: &str) -> bool {
    let words = clause.split(|letter: char| !letter.is_alphanumeric() && letter != '\'');
    let mut last = words.filter(|word| !word.is_empty()).rev();
    // "no web_search", "no need for".
    let no = last
        .by_ref()
        .take(3)
        .any(|word| matches!(word, "no" | "nein" | "nei" | "kein"));
    // "no voy a usar".
    let no = no || clause.trim_start_matches([' ', ',']).starts_with("no ");
    no || clause.contains("n't ") || clause.contains("n’t ") || DENIED.is_in(clause)
}

/// "web_search is not needed", "web_search、不要".
fn is_denied_behind(after: &str) -> bool {
    let head = first_words(after, 5);
    [
        "isn't",
        "is not",
        "not needed",
        "won't",
        "can't",
        "cannot",
        "unnecessary",
        "overkill",
        "ist nicht",
        "nicht nötig",
        "n'est pas",
        "no es",
        "não é",
        "er ikke",
        "不需要",
        "不用",
        "不必",
        "没必要",
        "没有必要",
        "は不要",
        "は使わ",
        "не нуж",
        "isnt",
        "wouldn't",
        "doesn't",
    ]
    .iter()
    .any(|word| head.contains(word))
}

/// Verbs that tell what a call gave, right behind it.
static OUTCOMES: LazyLock<&[&str]> = LazyLock::new(|| lists::list("outcomes"));
/// The same where words have no blanks between them.
static OUTCOME_PARTS: LazyLock<&[&str]> = LazyLock::new(|| lists::list("outcome parts"));
/// Small words before such a verb.
static BEFORE_OUTCOME: LazyLock<&[&str]> = LazyLock::new(|| lists::list("before outcome"));

/// Whether what follows a call tells how it went.
pub(super) fn tells_outcome(behind: &str) -> bool {
    static FINISHED: LazyLock<&[&str]> = LazyLock::new(|| lists::list("finished"));
    let rest = behind.trim_start_matches(|letter: char| {
        letter.is_whitespace() || matches!(letter, ')' | '"' | '*' | '`')
    });
    if rest.starts_with(['✓', '✔', '✅']) || rest.starts_with("=>") {
        return true;
    }
    let said = rest.trim_start_matches(['(', ',', ':', '-', '–', '—', ' ', '>', '→', '=']);
    let arrow = rest[..rest.len() - said.len()].contains(['>', '→']);
    let joined = said.len() == rest.len();
    let mut words = said
        .split(|letter: char| !letter.is_alphanumeric() && letter != '\'')
        .filter(|word| !word.is_empty());
    let mut first = words.next().unwrap_or_default();
    if !joined
        && (FINISHED.contains(&first)
            || arrow && first.starts_with(|letter: char| letter.is_ascii_digit()))
    {
        return true;
    }
    let subject = matches!(
        first,
        "it" | "this" | "that" | "which" | "we" | "nothing" | "no"
    );
    if subject && !joined {
        let verb = words.clone().next().unwrap_or_default();
        return first == "nothing"
            || OUTCOMES.contains(&verb)
            || FINISHED.contains(&verb)
            || verb == "got";
    }
    for _ in 0..3 {
        if !BEFORE_OUTCOME.contains(&first) {
            break;
        }
        first = words.next().unwrap_or_default();
    }
    let parts = first_words(rest, 3);
    joined
        && (OUTCOMES.contains(&first)
            || FINISHED.contains(&first)
            || OUTCOME_PARTS.iter().any(|part| parts.contains(part)))
}

/// "exec git pull ok", "web_search … → done".
fn is_settled(after: &str) -> bool {
    let end = after.trim_end_matches(['.', '!', ' ']);
    let last = end.rsplit(char::is_whitespace).next().unwrap_or_default();
    matches!(
        last,
        "ok" | "ok)" | "✓" | "✔" | "✅" | "passed" | "failed" | "done"
    ) && !end.is_empty()
        || after.contains("结果显示")
}

fn is_unreal(before: &str, after: &str) -> bool {
    let lasting = after_turn(before);
    IS_UNREAL.is_in(&without_asking(lasting))
        || UNREAL_BEHIND.is_in(after)
        || (lasting.contains("'d ") || lasting.contains("would ") || lasting.contains("was to "))
            && [" but ", ", but", " however"]
                .iter()
                .any(|turn| after.contains(turn))
        || lasting.trim_end().ends_with(" or")
}

/// "to see if it is there" sets no condition.
fn without_asking(text: &str) -> String {
    let mut text = text.to_owned();
    for asking in [
        "see if ",
        "check if ",
        "know if ",
        "tell if ",
        "find out if ",
        "see whether ",
        "check whether ",
        "know whether ",
        "verify whether ",
        "would be to ",
        "even if ",
        "as if ",
    ] {
        text = text.replace(asking, "see ");
    }
    text
}

/// What stands behind the last turn of a sentence: what was only thought of before it counts no more.
fn after_turn(before: &str) -> &str {
    static TURNS: LazyLock<&[&str]> = LazyLock::new(|| lists::list("turns"));
    let from = TURNS
        .iter()
        .filter_map(|turn| before.rfind(turn).map(|at| at + turn.len()))
        .max();
    from.map_or(before, |from| &before[from..])
}

/// Where the clause begins that the end of this text belongs to.
pub(super) fn clause_start(before: &str) -> usize {
    let from = last_bound(before, before.len());
    let clause = before[from..].trim_matches([' ', ',', ';', ':', '，', '、']);
    let is_item = clause.is_empty() || LINKERS.contains(&clause);
    if from == 0 || !is_item {
        return from;
    }
    // The item of a list: what is said of the first one is said of all.
    let end = before[..from]
        .trim_end_matches([' ', ',', '，', '、'])
        .len();
    let first = last_bound(before, end);
    let said = before[first..end].trim_matches([' ', ',', '，', '、']);
    if before[from..].starts_with([',', '，', '、']) && said.split_whitespace().count() > 1 {
        first
    } else {
        from
    }
}

static LINKERS: LazyLock<&[&str]> = LazyLock::new(|| lists::list("linkers"));

fn last_bound(text: &str, end: usize) -> usize {
    static BOUNDS: LazyLock<&[&str]> = LazyLock::new(|| lists::list("bounds"));
    let starts = |bound: &&str| text[..end].rfind(*bound).map(|at| (at + bound.len(), at));
    let last = BOUNDS.iter().filter_map(starts).max();
    last.map_or(0, |(_, at)| at)
}

/// So many words of a text.
pub(super) fn first_words(text: &str, many: usize) -> &str {
    let mut end = 0;
    for _ in 0..many {
        let rest = &text[end..];
        let lead = rest.len() - rest.trim_start().len();
        let word = rest[lead..]
            .find(char::is_whitespace)
            .unwrap_or(rest.len() - lead);
        end += lead + word;
    }
    &text[..end]
}

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
            ',', ':', '-', '–', '—', '.', '>', '→', '!', '，', '：', '；',
        ])
        .trim_end();
    let behind = after.trim_start_matches(['*', '`', '"', ' ', '-']);
    if CALLED_BEHIND.iter().any(|word| behind.starts_with(word)) {
        return Stand::Called;
    }
    let without_article = [
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
    ]
    .iter()
    .find_map(|article| {
        said.strip_suffix(article)
            .filter(|head| head.ends_with(' '))
    })
    .map_or(said, str::trim_end);
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
    if PLANS
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
        || closed
        || DECIDES.contains(&last(bare).as_str())
        || last(bare) == "tool"
        || last(number) == "step"
    {
        return Stand::Order;
    }
    Stand::Word
}

/// Whether the model speaks of itself.
pub(super) fn is_own(text: &str) -> bool {
    OWN_SUBJECT.is_in(text)
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
    let nouns: &[&str] = match takes {
        Takes::Path => &["file", "files", "document", "config", "log"],
        Takes::Url => &[
            "url", "page", "link", "site", "website", "article", "it", "them",
        ],
        Takes::Command => &["command", "script"],
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

/// Whether nothing denies a clause, makes it past or unreal.
pub(super) fn is_free_of_doubt(clause: &str, sentence: &str) -> bool {
    !is_denied(&format!(" {clause} "))
        && !PAST.is_in(&without_have_to(clause))
        && !IS_UNREAL.is_in(sentence)
}

/// Whether words make a plan.
pub(super) fn is_planned(text: &str) -> bool {
    PLANNED.is_in(text) || OWN.is_in(text)
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
