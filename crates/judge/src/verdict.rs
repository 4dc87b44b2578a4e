//! Whether a person is asked about a text.

use std::collections::HashMap;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use crate::limits::{REASONS_MAX, SHOWN_CHARS_MAX};
use crate::matching::{Inputs, Met};
use crate::read::read;
use crate::reading::{Reading, Simple};
use crate::rules::{Checked, Rule, RuleSet, When};

/// The table of rules that ships with Holdfast.
pub const RULES: &str = include_str!("../rules.yaml");

static BUILT_IN: LazyLock<BuiltIn> = LazyLock::new(BuiltIn::new);

struct BuiltIn {
    set: RuleSet,
    by_program: HashMap<String, Vec<usize>>,
    without_program: Vec<usize>,
}

impl BuiltIn {
    fn new() -> Self {
        // A test parses the table, so an error here would not get past it.
        let rules: Vec<Rule> = serde_saphyr::from_str(RULES).unwrap_or_default();
        let set = RuleSet::unchecked(rules).unwrap_or_default();
        let mut by_program: HashMap<String, Vec<usize>> = HashMap::new();
        let mut without_program = Vec::new();
        for (at, it) in set.rules.iter().enumerate() {
            for program in &it.rule.program {
                by_program.entry(program.clone()).or_default().push(at);
            }
            if it.rule.target.is_some() {
                without_program.push(at);
            }
        }
        Self {
            set,
            by_program,
            without_program,
        }
    }

    /// The rules that name a program of the command.
    fn rules(&self, simple: &Simple) -> Vec<&Checked> {
        let places = if simple.loose { simple.words.len() } else { 1 };
        let programs = simple
            .words
            .iter()
            .take(places)
            .filter_map(|it| it.basename());
        let mut found: Vec<usize> = programs
            .filter_map(|it| self.by_program.get(it))
            .flatten()
            .copied()
            .collect();
        if !simple.targets.is_empty() {
            found.extend(&self.without_program);
        }
        found.sort_unstable();
        found.dedup();
        found
            .into_iter()
            .filter_map(|at| self.set.rules.get(at))
            .collect()
    }
}

/// The rules that ship with Holdfast.
///
/// ```
/// assert!(holdfast_judge::built_in_rules().iter().any(|rule| rule.id == "git-push-forced"));
/// ```
pub fn built_in_rules() -> &'static RuleSet {
    &BUILT_IN.set
}

/// What a text is judged by.
#[derive(Debug, Clone, Copy, Default)]
pub struct Context<'a> {
    /// Whether the workspace's state is kept, so that what the text changes there can be undone.
    pub undoable: bool,
    /// Rules that the configuration adds.
    pub user_rules: Option<&'a RuleSet>,
}

/// What would happen to a text.
///
/// ```
/// use holdfast_judge::{Context, judge};
/// let verdict = judge("git push --force", &Context { undoable: true, user_rules: None });
/// let json = serde_json::to_value(&verdict).unwrap();
/// assert_eq!(json["asks"], true);
/// assert_eq!(json["undoable"], false);
/// assert_eq!(json["reasons"][0]["rule"], "git-push-forced");
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// Whether a person is asked first.
    pub asks: bool,
    /// Whether undo brings back all that the rules know of. What a yes to one of the reasons lets
    /// happen can not be taken back.
    pub undoable: bool,
    /// Why a person is asked.
    pub reasons: Vec<Reason>,
    /// Parts of the text that could not be read. They do not ask by themselves.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<String>,
}

/// A rule that a command meets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reason {
    /// The rule's id.
    pub rule: String,
    /// What the command does, or may do.
    pub text: String,
    /// The command, on one line.
    pub command: String,
    /// When the rule asks.
    #[serde(skip)]
    pub when: When,
}

/// Says whether a person is asked about a text, and why. Nothing is run.
///
/// ```
/// use holdfast_judge::{Context, judge};
/// let kept = Context { undoable: true, user_rules: None };
/// let lost = Context { undoable: false, user_rules: None };
/// assert!(!judge("rm -rf build && cargo test", &kept).asks);
/// assert!(judge("rm -rf build", &lost).asks);
/// assert!(judge("sh -c 'cargo publish'", &kept).asks);
/// ```
pub fn judge(text: &str, context: &Context<'_>) -> Verdict {
    judge_reading(&read(text), context)
}

/// The same for a text that was read before.
///
/// ```
/// use holdfast_judge::{Context, judge_reading, read};
/// let reading = read("npm publish");
/// assert!(judge_reading(&reading, &Context::default()).asks);
/// ```
pub fn judge_reading(reading: &Reading, context: &Context<'_>) -> Verdict {
    let mut verdict = Verdict {
        undoable: context.undoable,
        ..Verdict::default()
    };
    let mut inputs = Inputs::default();
    for simple in &reading.commands {
        for checked in BUILT_IN.rules(simple) {
            weigh(checked, simple, context, &mut inputs, &mut verdict);
        }
        for checked in context.user_rules.iter().flat_map(|it| &it.rules) {
            weigh(checked, simple, context, &mut inputs, &mut verdict);
        }
    }
    verdict.asks = !verdict.reasons.is_empty();
    verdict.undoable &= !verdict.asks;
    let unread = reading.unreadable.iter().take(REASONS_MAX);
    verdict.unreadable = unread.map(|it| cut(&it.text)).collect();
    verdict
}

fn weigh(
    checked: &Checked,
    simple: &Simple,
    context: &Context<'_>,
    inputs: &mut Inputs,
    verdict: &mut Verdict,
) {
    let rule = &checked.rule;
    if rule.when == When::NotUndoable && context.undoable || verdict.reasons.len() >= REASONS_MAX {
        return;
    }
    if verdict.reasons.iter().any(|it| it.rule == rule.id) {
        return;
    }
    let Some(met) = checked.met(simple, inputs) else {
        return;
    };
    let text = match met {
        Met::Surely if simple.loose => {
            format!("may do this, in a part that can not be read: {}", rule.text)
        }
        Met::Surely => rule.text.clone(),
        Met::Maybe => {
            // A hidden verb may be any of the program's rules; one reason is enough.
            let program = simple.program().unwrap_or_default();
            let shown = cut(&simple.shown());
            // One that only asks where nothing can be undone does not stand for one that always does.
            let says_it = |it: &Reason| {
                it.command == shown && (it.when == When::Always || rule.when == When::NotUndoable)
            };
            if verdict.reasons.iter().any(says_it) {
                return;
            }
            let text = format!(
                "what `{program}` does is only known when it runs; it may do this: {}",
                rule.text
            );
            verdict.reasons.push(Reason {
                rule: rule.id.clone(),
                text,
                command: shown,
                when: rule.when,
            });
            return;
        }
    };
    let command = cut(&simple.shown());
    verdict.reasons.push(Reason {
        rule: rule.id.clone(),
        text,
        command,
        when: rule.when,
    });
}

fn cut(text: &str) -> String {
    let one_line = text
        .chars()
        .map(|sign| if sign.is_control() { ' ' } else { sign });
    let mut cut: String = one_line.take(SHOWN_CHARS_MAX).collect();
    if text.chars().count() > SHOWN_CHARS_MAX {
        cut.push('…');
    }
    cut
}
