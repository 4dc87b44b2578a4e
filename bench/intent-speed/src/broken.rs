//! Damaged JSON for both sides, made with the pen of the round-trip tests.

use holdfast_testkit::SeededEntropy;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::pen::{Damage, Node, Pen};
use crate::prose::{Prose, prose};

/// A text and the value that it was made of.
#[derive(Serialize)]
pub struct Broken {
    pub text: String,
    pub wanted: Value,
}

/// What models do to JSON most.
const USUAL: &[Damage] = &[
    Damage::SingleQuotes,
    Damage::PythonLiterals,
    Damage::Comments,
    Damage::TrailingCommas,
    Damage::UnquotedKeys,
    Damage::RawNewlines,
    Damage::MissingClosers,
];

/// So many documents of about this size.
pub fn documents(many: u64, bytes: usize) -> Vec<Broken> {
    (0..many)
        .map(|seed| {
            let dice = SeededEntropy::new(seed);
            let wanted = value(&dice, bytes, seed);
            let mut damage = USUAL.to_vec();
            while damage.len() > 2 {
                let out = dice.below(damage.len() as u64);
                damage.remove(usize::try_from(out).unwrap_or(0));
            }
            let pen = Pen {
                damage: &damage,
                dice: &dice,
            };
            Broken {
                text: pen.json(&Node::Value(&wanted)),
                wanted,
            }
        })
        .collect()
}

/// A call whose arguments are a few texts, numbers and lists, up to the size.
fn value(dice: &SeededEntropy, bytes: usize, seed: u64) -> Value {
    let mut arguments = Map::new();
    let mut size = 0;
    while size < bytes {
        let key = format!(
            "{}_{}",
            ["query", "limit", "tags", "options", "note"]
                [usize::try_from(dice.below(5)).unwrap_or(0)],
            arguments.len()
        );
        let text = prose(Prose::Usual, 40, seed + size as u64).replace(['"', '\''], "");
        let text = text.trim().to_owned();
        let member = match dice.below(5) {
            0 => json!(dice.below(100_000)),
            1 => json!(dice.chance(50)),
            2 => json!(["red", "green", "blue", text]),
            3 => json!({"deep": {"flag": dice.chance(50), "ratio": 0.25, "text": text}}),
            _ => json!(text),
        };
        size += member.to_string().len() + key.len() + 6;
        arguments.insert(key, member);
    }
    json!({"name": "search", "arguments": arguments})
}
