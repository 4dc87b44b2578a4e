//! What goes over the wire, as types: handlers write their answers with them, and the `OpenAPI` document
//! is made of them.

pub mod asked;
pub mod model;
pub mod tools;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// An answer that says why there is none, in the gateway's shape.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ErrorBody<'a> {
    /// What is wrong.
    pub error: ErrorText<'a>,
}

/// What is wrong.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ErrorText<'a> {
    /// For people.
    pub message: &'a str,
    /// For programs.
    #[serde(rename = "type")]
    pub kind: &'a str,
}

/// The same of a route to the model.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ChatErrorBody<'a> {
    /// What is wrong.
    pub error: ChatErrorText<'a>,
    /// What is known about the run, where one was begun.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub executor_metadata: Option<&'a Value>,
}

/// What is wrong, in the shape that clients of chat completions know.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ChatErrorText<'a> {
    /// For people.
    pub message: &'a str,
    /// The kind of error.
    #[serde(rename = "type")]
    pub kind: &'a str,
    /// For programs.
    pub code: &'a str,
    /// The field of the request that is wrong, where it is one.
    pub param: Option<&'a str>,
}
