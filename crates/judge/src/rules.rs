//! Rules as data, as they stand in `rules.yaml` and in a user's configuration.

use std::borrow::Cow;
use std::sync::OnceLock;

use regex::{Regex, RegexBuilder};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::limits::{REGEX_BYTES_MAX, USER_RULES_MAX};

/// A kind of command about which a person is asked.
///
/// ```
/// use holdfast_judge::{Context, Rule, RuleSet, judge};
/// let rule = Rule {
///     id: "our-release".into(),
///     text: "releases our product".into(),
///     program: vec!["make".into()],
///     verb: vec!["release".into()],
///     ..Rule::default()
/// };
/// let rules = RuleSet::new(vec![rule]).unwrap();
/// let context = Context { undoable: true, user_rules: Some(&rules) };
/// assert!(judge("make release", &context).asks);
/// assert!(!judge("make test", &context).asks);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Rule {
    /// A name for the rule, in small letters with hyphens.
    pub id: String,
    /// What the command does, as a person reads it.
    pub text: String,
    /// Programs, by name without a directory.
    pub program: Vec<String>,
    /// Words behind the program that say what it does, in order: `[push]`, `[s3, "rb|rm"]`. Options
    /// may stand between them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub verb: Vec<String>,
    /// Words that all have to be there. `-f` is also found in `-rf`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub all: Vec<String>,
    /// Words of which one has to be there.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub any: Vec<String>,
    /// Words of which none may be there, such as `--dry-run`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub none: Vec<String>,
    /// A regular expression that one argument has to match.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arg: Option<String>,
    /// A regular expression that the arguments have to match, joined by blanks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<String>,
    /// A regular expression that the arguments must not match, joined by blanks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unless: Option<String>,
    /// A regular expression for the arguments, or for text that is fed to the command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<String>,
    /// A regular expression for a file that output is redirected to. It needs no program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// When the rule asks.
    pub when: When,
    /// Commands that the rule matches, for tests and for readers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub matches: Vec<String>,
    /// Commands that the rule does not match.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not: Vec<String>,
}

/// When a rule asks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum When {
    /// Whatever can be undone.
    #[default]
    Always,
    /// Only in a workspace whose state is not kept.
    NotUndoable,
}

/// Why a rule can not be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    /// A rule has no name, or one that is not made of small letters, digits and hyphens.
    #[error("rule {0:?}: an id is made of small letters, digits and hyphens")]
    Id(String),
    /// A rule has no text for a person.
    #[error("rule {0:?} has no text that says what its commands do")]
    NoText(String),
    /// A rule would match every command.
    #[error("rule {0:?} names no program and no target")]
    NoProgram(String),
    /// A regular expression is wrong or too large.
    #[error("rule {id:?}: `{field}` is no regular expression: {why}")]
    Regex {
        /// The rule.
        id: String,
        /// The field.
        field: &'static str,
        /// What is wrong.
        why: String,
    },
    /// There are too many rules.
    #[error("{0} rules are more than {USER_RULES_MAX}")]
    TooMany(usize),
}

/// Rules that were checked.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(try_from = "Vec<Rule>", into = "Vec<Rule>")]
pub struct RuleSet {
    pub(crate) rules: Vec<Checked>,
}

#[derive(Debug, Clone)]
pub(crate) struct Checked {
    pub(crate) rule: Rule,
    pub(crate) arg: Option<Pattern>,
    pub(crate) line: Option<Pattern>,
    pub(crate) unless: Option<Pattern>,
    pub(crate) input: Option<Pattern>,
    pub(crate) target: Option<Pattern>,
}

/// A regular expression that is compiled when it is first asked: most rules never are.
#[derive(Debug, Clone)]
pub(crate) struct Pattern {
    source: String,
    built: OnceLock<Result<Regex, String>>,
}

impl Pattern {
    fn of(source: Option<&String>) -> Option<Self> {
        source.map(|source| Self {
            source: source.clone(),
            built: OnceLock::new(),
        })
    }

    fn built(&self) -> &Result<Regex, String> {
        self.built.get_or_init(|| {
            let mut builder = RegexBuilder::new(&self.source);
            let built = builder.size_limit(REGEX_BYTES_MAX).build();
            built.map_err(|why| why.to_string())
        })
    }

    /// Whether a text fits. Rules of a configuration are compiled when it is read, and a test compiles ours.
    pub(crate) fn is_match(&self, text: &str) -> bool {
        self.built().as_ref().is_ok_and(|it| it.is_match(text))
    }
}

impl RuleSet {
    /// Checks rules, as a configuration has them.
    ///
    /// ```
    /// use holdfast_judge::{Rule, RuleError, RuleSet};
    /// let rule = Rule { id: "x".into(), text: "does x".into(), ..Rule::default() };
    /// assert_eq!(RuleSet::new(vec![rule]).err(), Some(RuleError::NoProgram("x".into())));
    /// ```
    pub fn new(rules: Vec<Rule>) -> Result<Self, RuleError> {
        if rules.len() > USER_RULES_MAX {
            return Err(RuleError::TooMany(rules.len()));
        }
        let set = Self::unchecked(rules)?;
        set.rules.iter().try_for_each(Checked::compile)?;
        Ok(set)
    }

    /// The same for rules whose regular expressions are known to be right.
    pub(crate) fn unchecked(rules: Vec<Rule>) -> Result<Self, RuleError> {
        let checked: Result<Vec<_>, _> = rules.into_iter().map(Checked::new).collect();
        checked.map(|rules| Self { rules })
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// The rules, as they were given.
    pub fn iter(&self) -> impl Iterator<Item = &Rule> {
        self.rules.iter().map(|it| &it.rule)
    }
}

impl TryFrom<Vec<Rule>> for RuleSet {
    type Error = RuleError;

    fn try_from(rules: Vec<Rule>) -> Result<Self, RuleError> {
        Self::new(rules)
    }
}

impl From<RuleSet> for Vec<Rule> {
    fn from(set: RuleSet) -> Self {
        set.rules.into_iter().map(|it| it.rule).collect()
    }
}

impl PartialEq for RuleSet {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for RuleSet {}

impl JsonSchema for RuleSet {
    fn schema_name() -> Cow<'static, str> {
        "RuleSet".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        Vec::<Rule>::json_schema(generator)
    }
}

impl Checked {
    fn new(rule: Rule) -> Result<Self, RuleError> {
        let known = |sign: char| sign.is_ascii_lowercase() || sign.is_ascii_digit() || sign == '-';
        let id = rule.id.clone();
        if id.is_empty() || !id.chars().all(known) {
            return Err(RuleError::Id(id));
        }
        if rule.text.trim().is_empty() {
            return Err(RuleError::NoText(id));
        }
        if rule.program.iter().all(|it| it.trim().is_empty()) && rule.target.is_none() {
            return Err(RuleError::NoProgram(id));
        }
        Ok(Self {
            arg: Pattern::of(rule.arg.as_ref()),
            line: Pattern::of(rule.line.as_ref()),
            unless: Pattern::of(rule.unless.as_ref()),
            input: Pattern::of(rule.input.as_ref()),
            target: Pattern::of(rule.target.as_ref()),
            rule,
        })
    }

    fn compile(&self) -> Result<(), RuleError> {
        let fields = [
            ("arg", &self.arg),
            ("line", &self.line),
            ("unless", &self.unless),
            ("input", &self.input),
            ("target", &self.target),
        ];
        for (field, pattern) in fields {
            if let Some(Err(why)) = pattern.as_ref().map(Pattern::built) {
                return Err(RuleError::Regex {
                    id: self.rule.id.clone(),
                    field,
                    why: why.clone(),
                });
            }
        }
        Ok(())
    }
}
