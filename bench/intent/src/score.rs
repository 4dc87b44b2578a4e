//! Right, wrong and missing.

use serde::Serialize;
use serde_json::{Map, Value};

/// A call that one of the subjects found, or that was wanted.
#[derive(Debug, Clone)]
pub struct Said {
    pub name: String,
    pub arguments: Map<String, Value>,
}

/// A call that a case wants; without arguments only its name is asked for.
#[derive(Debug, Clone)]
pub struct Wanted {
    pub name: String,
    pub arguments: Option<Map<String, Value>>,
}

/// One subject on one form.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct Score {
    /// Found and wanted, by name.
    pub right: usize,
    /// Found and not wanted.
    pub wrong: usize,
    /// Wanted and not found.
    pub missing: usize,
    /// Of the right ones, those with exactly the right arguments.
    pub exact: usize,
}

impl Score {
    /// Pairs what was found with what was wanted: first those that agree in all, then by name.
    pub fn add(&mut self, wanted: &[Wanted], found: &[Said]) {
        let mut open: Vec<&Said> = found.iter().collect();
        let mut left = Vec::new();
        for want in wanted {
            let hit = open.iter().position(|said| {
                said.name == want.name
                    && want
                        .arguments
                        .as_ref()
                        .is_none_or(|arguments| same_members(arguments, &said.arguments))
            });
            match hit {
                Some(place) => {
                    open.remove(place);
                    self.right += 1;
                    self.exact += 1;
                }
                None => left.push(want),
            }
        }
        for want in left {
            match open.iter().position(|said| said.name == want.name) {
                Some(place) => {
                    open.remove(place);
                    self.right += 1;
                }
                None => self.missing += 1,
            }
        }
        self.wrong += open.len();
    }

    pub fn join(&mut self, other: Self) {
        self.right += other.right;
        self.wrong += other.wrong;
        self.missing += other.missing;
        self.exact += other.exact;
    }

    /// Of what was found, how much was wanted; nothing when nothing was found.
    pub fn precision(self) -> Option<f64> {
        share(self.right, self.right + self.wrong)
    }

    /// Of what was wanted, how much was found; nothing when nothing was wanted.
    pub fn recall(self) -> Option<f64> {
        share(self.right, self.right + self.missing)
    }

    /// Of what was wanted, how much came with exactly its arguments.
    pub fn exactness(self) -> Option<f64> {
        share(self.exact, self.right + self.missing)
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts far below 2^53")]
fn share(part: usize, all: usize) -> Option<f64> {
    (all > 0).then(|| part as f64 / all as f64)
}

fn same_members(one: &Map<String, Value>, other: &Map<String, Value>) -> bool {
    one.len() == other.len()
        && one
            .iter()
            .all(|(key, one)| other.get(key).is_some_and(|other| same(one, other)))
}

/// Equal, where a number is its value and not its spelling.
fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one.as_f64() == other.as_f64(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => same_members(one, other),
        (one, other) => one == other,
    }
}
