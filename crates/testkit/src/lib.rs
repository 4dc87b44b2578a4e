//! What tests need: time that obeys, randomness that repeats, tools that misbehave on command.

mod checks;
mod clock;
pub mod http;
mod made;
pub mod model;
pub mod redis;
pub mod sim;
mod tool;
pub mod wait;

pub use clock::{SeededEntropy, TokioClock};
pub use made::{Does, MadeTool};
pub use tool::{Reaction, ScriptedTool};

/// The attacks of a corpus: one a line, exactly as it stands, remarks after a `#` left out.
pub fn corpus(text: &str) -> Vec<&str> {
    text.lines().filter(|line| !line.starts_with('#')).collect()
}
