//! The structured forms that models really write, one small module each. They are found by their
//! openers in one walk over the text and read at that place.

pub(crate) mod call_object;
mod element_values;
mod elements;
mod final_answer;
mod glm;
mod harmony;
mod json_text;
mod markers;
mod markup;
mod markup_tags;
mod opener_signs;
pub(crate) mod pythonic;
mod react;
mod scan;
mod tagged;
mod tail;
mod tokens;
mod xml;

pub(crate) use markup_tags::LastClosers;
pub(crate) use scan::scan;

use crate::problem::Problem;
use crate::raw::RawCall;

/// What stands at one place.
#[derive(Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "facts that have nothing to do with each other"
)]
pub(crate) struct Found {
    pub(crate) calls: Vec<RawCall>,
    /// The byte after it.
    pub(crate) end: usize,
    /// The model says it is done.
    pub(crate) done: bool,
    /// The answer for the user.
    pub(crate) answer: Option<String>,
    /// Something that wanted to be a call but can not be read.
    pub(crate) failed: bool,
    /// The text was cut off in something that no call is left of.
    pub(crate) cut: bool,
    /// Data that was mended: text behind it may have been taken for a part of it.
    pub(crate) mended: bool,
    /// A call beside those that are there is of no tool, and is left out.
    pub(crate) lost: bool,
}

impl Found {
    pub(crate) fn calls(calls: Vec<RawCall>, end: usize) -> Self {
        Self {
            failed: calls.is_empty(),
            calls,
            end,
            ..Self::default()
        }
    }
}

/// All that the text holds, in its order.
#[derive(Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "facts that have nothing to do with each other"
)]
pub(crate) struct Scan {
    pub(crate) calls: Vec<RawCall>,
    pub(crate) done: bool,
    pub(crate) answer: Option<String>,
    /// Something wanted to be a call but could not be read.
    pub(crate) failed: bool,
    /// The same beside calls: a call of no tool, or one in control tokens that stand in a row with calls
    /// or at the end of the text.
    pub(crate) lost: bool,
    /// The text was cut off in something that no call is left of.
    pub(crate) cut: bool,
    /// Why the end of the text was not read.
    pub(crate) stopped: Option<Problem>,
}

/// How sure each form is.
pub(crate) mod sure {
    /// The format's own tokens stand around it.
    pub(crate) const TOKENS: f64 = 0.98;
    /// A call in JSON, fenced or bare.
    pub(crate) const JSON: f64 = 0.95;
    /// A call whose arguments lie beside its name.
    pub(crate) const FLAT_JSON: f64 = 0.88;
    /// Python syntax.
    pub(crate) const PYTHON: f64 = 0.92;
    /// `Action:` and `Action Input:`.
    pub(crate) const REACT: f64 = 0.9;
    /// `[TOOL:…]`.
    pub(crate) const MARKERS: f64 = 0.88;
}
