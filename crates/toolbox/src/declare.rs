//! The tools as models are told of them: one declaration, several wire forms.

use std::fmt::Write as _;

use holdfast_contract::Effect;
use serde_json::{Value, json};

use crate::registry::{Registered, Registry};

/// For the `tools` of `OpenAI`'s chat API.
pub fn openai(registry: &Registry) -> Value {
    each(registry, |found| {
        json!({
            "type": "function",
            "function": {
                "name": found.tool.name(),
                "description": found.tool.description(),
                "parameters": *found.schema,
            }
        })
    })
}

/// For the `tools` of Anthropic's messages API.
pub fn anthropic(registry: &Registry) -> Value {
    each(registry, |found| {
        json!({
            "name": found.tool.name(),
            "description": found.tool.description(),
            "input_schema": *found.schema,
        })
    })
}

/// The result of MCP's `tools/list`.
pub fn mcp(registry: &Registry) -> Value {
    let tools = each(registry, |found| {
        let effect = found.tool.effect();
        json!({
            "name": found.tool.name(),
            "description": found.tool.description(),
            "inputSchema": *found.schema,
            "annotations": {
                "readOnlyHint": effect == Effect::None,
                // Doing it twice may equal doing it once, and still replace what was there.
                "destructiveHint": effect.is_mutating(),
                "idempotentHint": found.tool.is_idempotent(),
                "openWorldHint": effect == Effect::External,
            }
        })
    });
    json!({ "tools": tools })
}

/// Text for a system prompt.
pub fn prompt(registry: &Registry) -> String {
    let mut text = String::from("You can call these tools:\n");
    for found in registry.iter() {
        // Writing to a string can not fail.
        let _ = write!(
            text,
            "\n## {}\n{}\nParameters (JSON Schema): {}\n",
            found.tool.name(),
            found.tool.description(),
            found.schema
        );
    }
    text
}

fn each(registry: &Registry, form: impl Fn(&Registered) -> Value) -> Value {
    registry.iter().map(|found| form(found)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::base_tools;

    #[test]
    fn every_form_says_what_the_tool_declares() {
        let mut registry = Registry::new();
        for tool in base_tools() {
            registry.register(tool).expect("registered");
        }
        let (openai, anthropic, mcp) = (openai(&registry), anthropic(&registry), mcp(&registry));
        let text = prompt(&registry);
        for (at, found) in registry.iter().enumerate() {
            let (name, schema) = (found.tool.name(), &*found.schema);
            assert_eq!(openai[at]["type"], "function");
            let function = &openai[at]["function"];
            assert_eq!(
                (&function["name"], &function["parameters"]),
                (&json!(name), schema)
            );
            assert_eq!(
                (&anthropic[at]["name"], &anthropic[at]["input_schema"]),
                (&json!(name), schema)
            );
            let of_mcp = &mcp["tools"][at];
            assert_eq!(
                (&of_mcp["name"], &of_mcp["inputSchema"]),
                (&json!(name), schema)
            );
            let looks = matches!(name, "read" | "memory_search");
            assert_eq!(of_mcp["annotations"]["readOnlyHint"], looks, "{name}");
            let reaches_out = matches!(name, "exec" | "message");
            assert_eq!(
                of_mcp["annotations"]["openWorldHint"], reaches_out,
                "{name}"
            );
            for said in [name, found.tool.description(), &schema.to_string()] {
                assert!(text.contains(said), "{name}");
            }
        }
        assert_eq!(openai.as_array().map(Vec::len), Some(base_tools().len()));
    }
}
