//! The `memory_store` tool.

use async_trait::async_trait;
use holdfast_contract::memory::{MEMORY_CONTENT_BYTES_MAX, MEMORY_METADATA_BYTES_MAX};
use holdfast_contract::{
    Artifact, Effect, MemoryType, NewMemory, PermissionTier, SessionContext, Tool, ToolContext,
    ToolError, ToolResult,
};
use serde_json::{Map, Value, json};

use super::{fault, type_of, type_schema};
use crate::tools::args;
use crate::tools::text::one_line;

/// Characters of a record that a person is shown.
const SHOWN_CHARS_MAX: usize = 80;

/// Remembers something for later sessions.
///
/// What is known word for word is not stored twice: the second call gets the first record's id. That
/// makes the tool idempotent, so a call whose answer was lost can be repeated.
#[derive(Debug, Clone, Copy, Default)]
pub struct MemoryStoreTool;

#[async_trait]
impl Tool for MemoryStoreTool {
    fn name(&self) -> &str {
        "memory_store"
    }

    fn description(&self) -> &str {
        "Remembers something for later sessions. Store one thing at a time, in a full sentence that can \
         be understood without this conversation: who, what, when and why. Storing the same words \
         again changes nothing."
    }

    fn parameters_schema(&self) -> Value {
        json!({
            "type": "object",
            "additionalProperties": false,
            "required": ["content", "memory_type"],
            "properties": {
                "content": {
                    "type": "string",
                    "minLength": 1,
                    "maxLength": MEMORY_CONTENT_BYTES_MAX,
                    "description": format!("What to remember, at most {MEMORY_CONTENT_BYTES_MAX} bytes.")
                },
                "memory_type": type_schema(
                    "decision: something that was decided, with its reason. fact: something that is \
                     so. identity: who somebody is. preference: what somebody likes or wants."
                ),
                "metadata": {
                    "type": ["object", "null"],
                    "description": format!(
                        "Whatever else belongs to it, such as a project or a source; at most \
                         {MEMORY_METADATA_BYTES_MAX} bytes of JSON. It is kept and shown, not searched."
                    )
                }
            }
        })
    }

    fn permission_tier(&self) -> PermissionTier {
        PermissionTier::Workspace
    }

    fn effect(&self) -> Effect {
        Effect::Workspace
    }

    fn is_available(&self, session: &SessionContext) -> bool {
        session.memory_write.is_some()
    }

    fn is_idempotent(&self) -> bool {
        true
    }

    async fn execute(&self, params: &Value, ctx: &ToolContext) -> Result<ToolResult, ToolError> {
        let memory = &ctx.memory_write_handle()?.store;
        let content = args::text(params, "content")?.to_owned();
        let memory_type = required_type(params)?;
        let shown = one_line(&content, SHOWN_CHARS_MAX);
        let stored = memory
            .remember(NewMemory {
                memory_type,
                content,
                metadata: metadata(params)?,
                session_id: ctx.session.session_id.clone(),
                trust: ctx.call.input_trust,
            })
            .await
            .map_err(fault)?;
        let mut output = json!({"id": stored.id, "memory_type": memory_type, "new": stored.is_new});
        if let Some(reason) = &stored.embedding_missing {
            output["note"] = json!(format!(
                "it is stored and found by its words; it has no vector yet: {reason}"
            ));
        }
        let verb = if stored.is_new {
            "Remembered"
        } else {
            "Known already:"
        };
        let mut result = ToolResult::new(output, format!("{verb} {shown:?}"));
        let uri = format!("memory:{}", stored.id);
        result.artifacts.push(Artifact::Reference { uri });
        Ok(result)
    }
}

fn required_type(params: &Value) -> Result<MemoryType, ToolError> {
    type_of(params)?.ok_or_else(|| {
        ToolError::invalid(Some("/memory_type"), "`memory_type` is required".to_owned())
    })
}

fn metadata(params: &Value) -> Result<Option<Map<String, Value>>, ToolError> {
    match params.get("metadata") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Object(fields)) => Ok(Some(fields.clone())),
        Some(_) => Err(ToolError::invalid(
            Some("/metadata"),
            "`metadata` has to be an object".to_owned(),
        )),
    }
}
