//! How replies are read, and how prompts are given.

use crate::config::kind::Kind::{Decimal, File};
use crate::config::table::{
    FIELDS, GUESSES, OUTPUTS, PLACES, Row, STRATEGIES, THOUGHTS, Used, row,
};

pub(super) const PARSER: &[Row] = &[
    row(
        "parser.strategy",
        STRATEGIES,
        Used::Yes,
        "react",
        "How replies are read first.",
    ),
    row(
        "parser.fallback_strategy",
        STRATEGIES,
        Used::Yes,
        "auto",
        "How replies are read when the first way finds nothing; empty for not at all.",
    ),
    row(
        "parser.source_field",
        FIELDS,
        Used::Yes,
        "reasoning",
        "The field that is read first. A call that is only in the reasoning counts beside an announcement (\"Working on it.\"). Beside an answer only a tool that reads may run, and anything else is asked back.",
    ),
    row(
        "parser.fallback_field",
        FIELDS,
        Used::Yes,
        "the other one",
        "The field that is read when the first has no call; the same as the first: none, and where only the reasoning is read, a call in it counts whatever is said.",
    ),
    row(
        "parser.thought",
        THOUGHTS,
        Used::Yes,
        "tagged",
        "How private reasoning stands in what a model says, where its server leaves it there: between tags (`<think>…</think>`), or `opened` by the chat template, so that a reply begins inside of it (`…</think>`) and is streamed from its end on.",
    ),
    row(
        "parser.mutating_guess",
        GUESSES,
        Used::Yes,
        "ask_model",
        "What becomes of a wish in prose that would change things: `ask_model` asks the model to write it as a call, as often as iterations remain; `ask_person` asks for an approval; `run` runs it.",
    ),
    row(
        "parser.mutating_guess_min",
        Decimal { min: 0.0, max: 1.0 },
        Used::Yes,
        "0.6",
        "The confidence from which on `mutating_guess: run` runs a wish. A plan (\"I'll …\") has 0.65, an order 0.6, something under way 0.55.",
    ),
    row(
        "parser.system_prompt_path",
        File,
        Used::Yes,
        "none",
        "A prompt in place of the built-in one; `{tools}` in it stands for the list of tools.",
    ),
    row(
        "parser.guided_json_schema_path",
        File,
        Used::Yes,
        "none",
        "A JSON Schema in place of the built-in one, for `guided_json`.",
    ),
    row(
        "parser.structured_output",
        OUTPUTS,
        Used::Yes,
        "response_format",
        "How a server is told to keep to the format of `guided_json`.",
    ),
    row(
        "parser.prompt_place",
        PLACES,
        Used::Yes,
        "system",
        "Where the prompt goes: some servers drop the system message.",
    ),
];
