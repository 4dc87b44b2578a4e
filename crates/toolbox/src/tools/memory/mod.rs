//! The tools over what an agent remembers: `memory_search` and `memory_store`.

use holdfast_contract::{MemoryError, MemoryType, ToolError};
use serde_json::{Value, json};

pub mod search;
pub mod store;

/// A failed memory operation as a tool's error.
fn fault(error: MemoryError) -> ToolError {
    match error {
        MemoryError::Invalid { field, reason } => {
            ToolError::invalid(Some(&format!("/{field}")), format!("`{field}`: {reason}"))
        }
        MemoryError::Full(_) => ToolError::coded("memory_full", error.to_string()),
        MemoryError::Unavailable(_) => ToolError::coded("memory_unavailable", error.to_string()),
    }
}

/// The schema of a type, with what each is for: a model chooses by these words.
fn type_schema(description: &str) -> Value {
    json!({
        "type": "string",
        "enum": MemoryType::ALL.map(MemoryType::as_str),
        "description": description
    })
}

/// The type that was given, if any.
fn type_of(params: &Value) -> Result<Option<MemoryType>, ToolError> {
    let Some(name) = super::args::optional_text(params, "memory_type")? else {
        return Ok(None);
    };
    let known = MemoryType::from_name(name);
    known.map(Some).ok_or_else(|| {
        let names = MemoryType::ALL.map(MemoryType::as_str).join(", ");
        let message = format!("`memory_type` has to be one of {names}");
        ToolError::invalid(Some("/memory_type"), message)
    })
}
