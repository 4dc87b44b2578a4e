//! Messages as model servers and their clients write them.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// Who says something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The rules.
    System,
    /// A person, or the loop on its behalf.
    User,
    /// The model.
    Assistant,
    /// A tool, answering a native call.
    Tool,
}

/// A call in a server's own form.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NativeCall {
    /// What the result has to name.
    pub id: String,
    /// The tool.
    pub name: String,
    /// The arguments.
    pub arguments: Map<String, Value>,
}

/// How `OpenClaw` begins what it adds to a conversation under its user's name.
// In two parts: whoever reads this file as a tool's result is not to take it for a boundary.
pub(crate) const HOSTS_OWN: &str = concat!("<<<BEGIN_", "OPENCLAW_INTERNAL_CONTEXT>>>");

/// One message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// Who says it.
    pub role: Role,
    /// What is said.
    pub content: String,
    /// The calls of an assistant message, where the server has such.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<NativeCall>,
    /// The call that a tool message answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answers: Option<String>,
}

impl Message {
    /// A message that is only text.
    pub fn text(role: Role, content: impl Into<String>) -> Self {
        Self {
            role,
            content: content.into(),
            calls: Vec::new(),
            answers: None,
        }
    }

    /// Whether the user says it. A host may put words of its own behind the user's, in the same role; what
    /// it says is told to the model and is neither the task nor the user speaking.
    pub fn is_users(&self) -> bool {
        self.role == Role::User && !self.content.trim_start().starts_with(HOSTS_OWN)
    }

    /// The same in the form of chat completions.
    pub fn to_wire(&self) -> Value {
        let mut wire = json!({"role": self.role, "content": self.content});
        if !self.calls.is_empty() {
            let calls: Vec<Value> = self.calls.iter().map(call_to_wire).collect();
            wire["tool_calls"] = calls.into();
        }
        if let Some(id) = &self.answers {
            wire["tool_call_id"] = id.as_str().into();
        }
        wire
    }

    /// Reads a message that a client sent. The error names the field.
    pub fn from_wire(wire: &Value) -> Result<Self, String> {
        let role = match wire["role"].as_str() {
            Some("system" | "developer") => Role::System,
            Some("user") => Role::User,
            Some("assistant") => Role::Assistant,
            Some("tool" | "function") => Role::Tool,
            Some(other) => return Err(format!("role: {other:?} is not known")),
            None => return Err("role: missing".to_owned()),
        };
        let answers = match &wire["tool_call_id"] {
            Value::Null => None,
            Value::String(id) => Some(id.clone()),
            _ => return Err("tool_call_id: has to be a text".to_owned()),
        };
        if role == Role::Tool && answers.is_none() {
            return Err("tool_call_id: missing in a message of role tool".to_owned());
        }
        Ok(Self {
            role,
            content: content_from_wire(&wire["content"])?,
            calls: calls_from_wire(&wire["tool_calls"])?,
            answers,
        })
    }
}

fn call_to_wire(call: &NativeCall) -> Value {
    let arguments = Value::Object(call.arguments.clone()).to_string();
    json!({"id": call.id, "type": "function",
           "function": {"name": call.name, "arguments": arguments}})
}

/// Text, nothing, or parts of which we take the text.
pub(crate) fn content_from_wire(content: &Value) -> Result<String, String> {
    match content {
        Value::Null => Ok(String::new()),
        Value::String(text) => Ok(text.clone()),
        Value::Array(parts) => {
            let mut texts = Vec::with_capacity(parts.len());
            for (place, part) in parts.iter().enumerate() {
                match (part["type"].as_str(), part["text"].as_str()) {
                    (Some("text" | "input_text" | "output_text"), Some(text)) => texts.push(text),
                    (Some("refusal"), _) => {}
                    (Some(kind), _) => {
                        return Err(format!(
                            "content[{place}]: parts of type {kind:?} can not be read here, only text"
                        ));
                    }
                    (None, _) => return Err(format!("content[{place}].type: missing")),
                }
            }
            Ok(texts.join("\n"))
        }
        _ => Err("content: neither text nor a list of parts".to_owned()),
    }
}

fn calls_from_wire(calls: &Value) -> Result<Vec<NativeCall>, String> {
    let list = match calls {
        Value::Null => return Ok(Vec::new()),
        Value::Array(list) => list,
        _ => return Err("tool_calls: has to be a list of calls".to_owned()),
    };
    let read = |(place, call): (usize, &Value)| {
        let name = call["function"]["name"]
            .as_str()
            .ok_or_else(|| format!("tool_calls[{place}].function.name: missing"))?;
        let written = match &call["function"]["arguments"] {
            Value::Null => "{}",
            Value::String(text) => text,
            _ => {
                return Err(format!(
                    "tool_calls[{place}].function.arguments: has to be a text"
                ));
            }
        };
        if !(call["id"].is_null() || call["id"].is_string()) {
            return Err(format!("tool_calls[{place}].id: has to be a text"));
        }
        let arguments = serde_json::from_str(written).map_err(|error| {
            format!("tool_calls[{place}].function.arguments: no JSON object ({error})")
        })?;
        Ok(NativeCall {
            id: call["id"].as_str().unwrap_or_default().to_owned(),
            name: name.to_owned(),
            arguments,
        })
    };
    list.iter().enumerate().map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_host_adds_under_its_users_name_is_not_the_users() {
        let internal = format!("\n{HOSTS_OWN}\nThe time is …");
        for (role, content, users) in [
            (Role::User, "What is the time?", true),
            (Role::User, internal.as_str(), false),
            (Role::User, &format!("What does {HOSTS_OWN} mean?"), true),
            (Role::Assistant, "Noon.", false),
        ] {
            assert_eq!(Message::text(role, content).is_users(), users, "{content}");
        }
    }

    #[test]
    fn what_clients_send_is_read_and_written_back() {
        let wire = json!({"role": "assistant", "content": "", "tool_calls": [
            {"id": "c1", "type": "function",
             "function": {"name": "read", "arguments": "{\"path\":\"a\"}"}}]});
        let message = Message::from_wire(&wire).unwrap();
        assert_eq!(message.calls[0].arguments["path"], "a");
        assert_eq!(message.to_wire(), wire);
        let answer = json!({"role": "tool", "content": "x", "tool_call_id": "c1"});
        assert_eq!(Message::from_wire(&answer).unwrap().to_wire(), answer);
        let parts = json!({"role": "user", "content": [
            {"type": "text", "text": "a"}, {"type": "text", "text": "b"}]});
        assert_eq!(Message::from_wire(&parts).unwrap().content, "a\nb");
    }

    #[test]
    fn what_can_not_be_read_is_named() {
        let table = [
            (json!({"content": "x"}), "role: missing"),
            (json!({"role": "robot", "content": "x"}), "role: \"robot\""),
            (json!({"role": "user", "content": 3}), "content: neither"),
            (
                json!({"role": "user", "content": [{"type": "image_url"}]}),
                "content[0]: parts of type \"image_url\"",
            ),
            (json!({"role": "tool", "content": "x"}), "tool_call_id"),
            (
                json!({"role": "assistant", "content": null,
                       "tool_calls": [{"function": {"name": "f", "arguments": "{"}}]}),
                "tool_calls[0].function.arguments",
            ),
        ];
        for (wire, says) in table {
            let error = Message::from_wire(&wire).unwrap_err();
            assert!(error.contains(says), "{error}");
        }
    }
}
