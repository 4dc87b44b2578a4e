//! Whether words around a tool's name make a wish of it: the languages differ, the tables say how.

use std::collections::HashSet;
use std::sync::LazyLock;

use memchr::memmem::FinderRev;

use super::lists;
use crate::cues::WordSet;

static DENIED: LazyLock<WordSet> = LazyLock::new(|| lists::word_set("denied"));

static PAST: LazyLock<WordSet> = LazyLock::new(|| lists::word_set("past"));

/// What puts off or puts to choice, wherever it stands before the name.
static RECOUNTS: LazyLock<WordSet> = LazyLock::new(|| lists::word_set("recounts"));

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
    /// What stands between the name and what it is given.
    pub(super) gap: &'a str,
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
        gap,
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
    if PAST.is_in(gap) || RECOUNTS.is_in(before) {
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

/// "exec is not needed".
pub(super) fn is_denied_behind(after: &str) -> bool {
    // What is said behind a turn is not said of the name.
    let turns = TURNS.iter().filter_map(|turn| after.find(turn));
    let after = &after[..turns.min().unwrap_or(after.len())];
    // "… を実行し、何も変えずに報告": what is done is not what is left out behind it.
    let done = ["し、", "して、", "って、", "んで、"].iter();
    let done = done.filter_map(|end| after.find(end)).min();
    let head = first_words(&after[..done.unwrap_or(after.len())], 5);
    lists::list("denied behind")
        .iter()
        .any(|word| head.contains(word))
}

/// Verbs that tell what a call gave, right behind it.
static OUTCOMES: LazyLock<HashSet<&str>> = LazyLock::new(|| lists::set("outcomes"));

/// The same where words have no blanks between them.
static OUTCOME_PARTS: LazyLock<&[&str]> = LazyLock::new(|| lists::list("outcome parts"));

/// Small words before such a verb.
static BEFORE_OUTCOME: LazyLock<&[&str]> = LazyLock::new(|| lists::list("before outcome"));

/// Whether what follows a call tells how it went.
pub(super) fn tells_outcome(behind: &str) -> bool {
    static FINISHED: LazyLock<HashSet<&str>> = LazyLock::new(|| lists::set("finished"));
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
        && (FINISHED.contains(first)
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
            || OUTCOMES.contains(verb)
            || FINISHED.contains(verb)
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
        && (OUTCOMES.contains(first)
            || FINISHED.contains(first)
            || !parts.is_ascii() && OUTCOME_PARTS.iter().any(|part| parts.contains(part)))
}

/// "exec git pull ok".
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
    let would = lasting.contains("'d ") || lasting.contains("would ");
    IS_UNREAL.is_in(&without_asking(lasting))
        || would && without_asking(after).contains(" if ")
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

/// How a sentence turns away from what it said.
static TURNS: LazyLock<&[&str]> = LazyLock::new(|| lists::list("turns"));

/// What stands behind the last turn of a sentence: what was only thought of before it counts no more.
fn after_turn(before: &str) -> &str {
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
    // "anzi no, leggo …": a "no" that ends a clause denies nothing behind it.
    let answers = [
        "no", "non", "nein", "nei", "nej", "nee", "não", "nie", "нет",
    ];
    if said
        .rsplit(' ')
        .next()
        .is_some_and(|last| answers.contains(&last))
    {
        return from;
    }
    if before[from..].starts_with([',', '，', '、']) && said.split_whitespace().count() > 1 {
        first
    } else {
        from
    }
}

static LINKERS: LazyLock<&[&str]> = LazyLock::new(|| lists::list("linkers"));

fn last_bound(text: &str, end: usize) -> usize {
    static BOUNDS: LazyLock<Vec<FinderRev<'static>>> = LazyLock::new(|| {
        let bounds = lists::list("bounds").iter();
        bounds.map(|bound| FinderRev::new(*bound)).collect()
    });
    let starts = |bound: &FinderRev<'_>| {
        let at = bound.rfind(&text.as_bytes()[..end])?;
        Some((at + bound.needle().len(), at))
    };
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

/// Whether the model speaks of itself.
pub(super) fn is_own(text: &str) -> bool {
    OWN_SUBJECT.is_in(text)
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

/// Whether words between a name and what it is given tell that it is done.
pub(super) fn is_told(between: &str) -> bool {
    [
        " was ",
        " were ",
        " has been ",
        " have been ",
        " got ",
        " wurde ",
        " a été ",
        " fue ",
        " ble ",
    ]
    .iter()
    .any(|words| between.contains(words))
}
