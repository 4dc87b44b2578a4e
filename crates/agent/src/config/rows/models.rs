//! Models that have a name of their own.

use crate::config::kind::Kind::{Decimal, MaybeDecimal, Secret, Text, Texts};
use crate::config::table::{
    FIELDS, HTTP2, OUTPUTS, PLACES, Row, STRATEGIES, THOUGHTS, Used, row, whole,
};

pub(super) const MODELS: &[Row] = &[
    row(
        "models.NAME.upstreams",
        Texts,
        Used::Yes,
        "those of `executor`",
        "The servers of the model that clients call NAME, in the order in which they are asked.",
    ),
    row(
        "models.NAME.model",
        Text,
        Used::Yes,
        "NAME",
        "Its name, as its servers know it.",
    ),
    row(
        "models.NAME.api_key",
        Secret,
        Used::Yes,
        "",
        "The key that its servers want.",
    ),
    row(
        "models.NAME.http2",
        HTTP2,
        Used::Yes,
        "that of `executor` on its servers",
        "When HTTP/2 is spoken with its servers.",
    ),
    row(
        "models.NAME.temperature",
        Decimal { min: 0.0, max: 2.0 },
        Used::Yes,
        "that of `executor`",
        "Sampling.",
    ),
    row(
        "models.NAME.top_p",
        MaybeDecimal { min: 0.0, max: 1.0 },
        Used::Yes,
        "that of `executor`",
        "Nucleus sampling, unless the client says otherwise; with nothing (`null`) its servers are not told of any.",
    ),
    row(
        "models.NAME.max_tokens",
        whole(1, 1_000_000),
        Used::Yes,
        "that of `executor`",
        "Tokens of one answer.",
    ),
    row(
        "models.NAME.context_window_limit",
        whole(512, 100_000_000),
        Used::Yes,
        "that of `executor`",
        "Tokens that it can hold.",
    ),
    row(
        "models.NAME.strategy",
        STRATEGIES,
        Used::Yes,
        "that of `parser`",
        "How its replies are read first.",
    ),
    row(
        "models.NAME.source_field",
        FIELDS,
        Used::Yes,
        "that of `parser`",
        "The field of its replies that is read first.",
    ),
    row(
        "models.NAME.thought",
        THOUGHTS,
        Used::Yes,
        "that of `parser`",
        "How its private reasoning stands in what it says.",
    ),
    row(
        "models.NAME.structured_output",
        OUTPUTS,
        Used::Yes,
        "that of `parser`",
        "How its server is told to keep to a format.",
    ),
    row(
        "models.NAME.prompt_place",
        PLACES,
        Used::Yes,
        "that of `parser`",
        "Where the prompt goes.",
    ),
    row(
        "models.NAME.input_per_million",
        Decimal { min: 0.0, max: 1e9 },
        Used::Yes,
        "0",
        "What a million tokens that it reads cost.",
    ),
    row(
        "models.NAME.output_per_million",
        Decimal { min: 0.0, max: 1e9 },
        Used::Yes,
        "0",
        "What a million tokens that it writes cost.",
    ),
];
