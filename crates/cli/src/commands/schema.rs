//! `holdfast schema`

use std::process::ExitCode;

use holdfast_contract::{ToolCallEnvelope, ToolResultEnvelope};
use holdfast_reliability::idempotency::record::DedupeRecord;

use crate::args::Which;
use crate::config::Config;
use crate::output;

pub(super) fn run(which: Which) -> ExitCode {
    let schema = match which {
        Which::Openapi => {
            output::pretty_json(&holdfast_server::openapi::document());
            return ExitCode::SUCCESS;
        }
        Which::Envelope => schemars::schema_for!(ToolCallEnvelope),
        Which::Result => schemars::schema_for!(ToolResultEnvelope),
        Which::Config => schemars::schema_for!(Config),
        Which::Record => schemars::schema_for!(DedupeRecord),
    };
    output::pretty_json(&schema);
    ExitCode::SUCCESS
}
