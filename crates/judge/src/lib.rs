//! What a shell text starts by itself, and which rules it meets.
//!
//! Text can not say what a program will do. It does say which commands the shell itself starts, and a
//! few of them leave the machine and can not be taken back. This crate reads the text with a grammar
//! of bash, and holds the commands against rules that are data.
//!
//! | module | what it does |
//! |---|---|
//! | `tree`, `values` | walks the syntax tree of one text |
//! | `check` | finds where the grammar could read otherwise than bash |
//! | `word`, `ansi` | takes the quotes off a word |
//! | `variables` | what a text sets its variables to |
//! | `wrap` | commands in the arguments of `env`, `xargs`, `sh -c` and the like |
//! | `loose` | reads what the grammar does not take, word by word |
//! | `read` | puts a reading together |
//! | `listed` | `commands.blocked` and `commands.allowed` |
//! | `rules`, `matching` | rules as data |
//! | `verdict` | whether a person is asked |

mod ansi;
mod check;
pub mod limits;
mod listed;
mod loose;
mod matching;
mod read;
mod reading;
mod rules;
mod tree;
mod values;
mod variables;
mod verdict;
mod word;
mod wrap;

pub use listed::{Refusal, Why, allowed, blocked};
pub use read::{read, read_with_input};
pub use reading::{CouldBe, Reading, Simple, Unread};
pub use rules::{Rule, RuleError, RuleSet, When};
pub use verdict::{Context, RULES, Reason, Verdict, built_in_rules, judge, judge_reading};
pub use word::Word;
