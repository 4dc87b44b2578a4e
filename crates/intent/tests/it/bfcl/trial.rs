//! One reply made of one item, one form and some damage, and whether the parser got it back.

use holdfast_intent::{FinishReason, Parsed, Parser};
use holdfast_testkit::SeededEntropy;
use serde_json::Value;

use super::data::{Call, Item};
use super::forms::Form;
use super::pen::{Damage, Pen};

/// Random combinations for each item and form, besides each kind alone.
const COMBINATIONS: u64 = 2;

/// What a trial does to the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Harm {
    None,
    One(Damage),
    Several(Vec<Damage>),
}

impl Harm {
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::None => "undamaged",
            Self::One(damage) => damage.name(),
            Self::Several(_) => "combinations",
        }
    }

    fn damage(&self) -> Vec<Damage> {
        match self {
            Self::None => Vec::new(),
            Self::One(damage) => vec![*damage],
            Self::Several(damage) => damage.clone(),
        }
    }
}

/// A reply and what it should give.
#[derive(Debug)]
pub(crate) struct Trial {
    pub(crate) text: String,
    pub(crate) wanted: Vec<Call>,
    pub(crate) harm: Harm,
}

/// Every reply that is made of this item in this form. The same for the same seed.
pub(crate) fn trials(item: &Item, form: &Form, seed: u64) -> Vec<Trial> {
    let dice = SeededEntropy::new(seed);
    let Some(plain) = trial(item, form, Harm::None, &dice) else {
        return Vec::new();
    };
    let suffered: Vec<Damage> = Damage::ALL
        .into_iter()
        .filter(|damage| form.suffers(*damage))
        .collect();
    let mut harms: Vec<Harm> = suffered.iter().copied().map(Harm::One).collect();
    for _ in 0..COMBINATIONS {
        let mut several = suffered.clone();
        let many = 2 + usize::from(dice.chance(50));
        while several.len() > many {
            let out = usize::try_from(dice.below(several.len() as u64)).unwrap_or(0);
            several.remove(out);
        }
        harms.push(Harm::Several(several));
    }
    let mut found: Vec<Trial> = harms
        .into_iter()
        .filter_map(|harm| trial(item, form, harm, &dice))
        // Damage that finds nothing to damage proves nothing.
        .filter(|trial| trial.text != plain.text)
        .collect();
    found.insert(0, plain);
    found
}

fn trial(item: &Item, form: &Form, harm: Harm, dice: &SeededEntropy) -> Option<Trial> {
    let damage = harm.damage();
    let pen = Pen {
        damage: &damage,
        dice,
    };
    let wanted = pen.roughened(&item.calls)?;
    Some(Trial {
        text: form.write(&wanted, &pen),
        wanted,
        harm,
    })
}

/// What differs between the calls that were wanted and those that came, or nothing.
pub(crate) fn complaint(trial: &Trial, parsed: &Parsed) -> Option<String> {
    if parsed.intents.len() != trial.wanted.len() {
        return Some(format!(
            "{} intents, not {}",
            parsed.intents.len(),
            trial.wanted.len()
        ));
    }
    for (wanted, intent) in trial.wanted.iter().zip(&parsed.intents) {
        if wanted.name != intent.name {
            return Some(format!("{} instead of {}", intent.name, wanted.name));
        }
        if !intent.complete {
            return Some(format!("{} is said to be cut off", intent.name));
        }
        let (wanted, got) = (
            Value::Object(wanted.arguments.clone()),
            Value::Object(intent.arguments.clone()),
        );
        if !same(&wanted, &got) {
            return Some(format!("{got} instead of {wanted}"));
        }
    }
    None
}

/// Equal, where a number is its value and not its spelling.
fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one.as_f64() == other.as_f64(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one
                    .iter()
                    .all(|(key, one)| other.get(key).is_some_and(|other| same(one, other)))
        }
        (one, other) => one == other,
    }
}

/// Reads a reply as a host would that knows the item's tools.
pub(crate) fn parse(parser: &Parser, text: &str) -> Parsed {
    parser.parse(text, FinishReason::Stop)
}
