//! The load: one set of calls with 1 KB of arguments, the same for every subject.

use holdfast_contract::{
    Effect, PermissionTier, Tool, ToolCallEnvelope, ToolContext, ToolError, ToolResult,
};
use serde_json::{Map, Value, json};

/// Calls are prepared in batches outside the timed part, as a caller has them ready: read from a
/// model's answer. Small enough that a batch stays in the second-level cache.
pub const BATCH: usize = 64;
/// Calls of one assistant turn; the loop guard counts per turn.
const CALLS_PER_TURN: u64 = 16;
/// The size of the arguments in canonical form.
pub const ARGUMENT_BYTES: usize = 1024;

/// The arguments of all calls, but for `path`, which is a new one each time.
pub fn template() -> Map<String, Value> {
    let mut params = json!({
        "path": path(0),
        "channel": "ops-reports",
        "recipients": ["anna", "ben", "carla"],
        "subject": "Quarterly numbers, second draft",
        "options": {"notify": true, "priority": 3, "ratio": 0.75, "threadId": "th-81"},
        "limit": 250,
        "offset": 0,
        "tags": ["finance", "draft", "q3"],
        "body": "",
    });
    let missing = ARGUMENT_BYTES - holdfast_reliability::canonical::canonical_string(&params).len();
    let words = "The numbers of the third quarter are in, and they look better than expected. ";
    params["body"] = Value::String(words.chars().cycle().take(missing).collect());
    match params {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

fn path(number: u64) -> String {
    format!("reports/2026/quarter-{number:012}.md")
}

/// Makes calls nobody made before: each its own request, its own arguments.
pub struct Calls {
    tool: &'static str,
    template: Map<String, Value>,
    made: u64,
    /// Tells the callers of several threads apart.
    caller: u64,
    calls_per_turn: u64,
}

impl Calls {
    pub fn new(tool: &'static str, caller: u64) -> Self {
        Self {
            tool,
            template: template(),
            made: 0,
            caller,
            calls_per_turn: CALLS_PER_TURN,
        }
    }

    /// Each call in a turn of its own, so that failures do not add up in the guard.
    pub fn one_per_turn(mut self) -> Self {
        self.calls_per_turn = 1;
        self
    }

    pub fn next_call(&mut self) -> ToolCallEnvelope {
        self.made += 1;
        let (caller, number) = (self.caller, self.made);
        let mut params = self.template.clone();
        params.insert("path".to_owned(), Value::String(path(number)));
        let mut envelope = ToolCallEnvelope::new(
            format!("0198c0de-{caller:04x}-7000-8000-{number:012}"),
            self.tool,
            params,
            "agent:main:session-0042",
            "user-17",
        );
        envelope.target.turn_id = Some(format!("turn-{caller}-{}", number / self.calls_per_turn));
        envelope
    }

    pub fn batch(&mut self) -> Vec<ToolCallEnvelope> {
        (0..BATCH).map(|_| self.next_call()).collect()
    }
}

pub const READ_ONLY: &str = "fetch_report";
pub const MUTATING: &str = "send_message";
pub const FAILING: &str = "broken";

/// A tool that does nothing, so that all of the time is overhead.
pub struct Noop {
    pub name: &'static str,
    pub effect: Effect,
    pub fails: bool,
}

#[async_trait::async_trait]
impl Tool for Noop {
    fn name(&self) -> &str {
        self.name
    }

    fn description(&self) -> &str {
        "Does nothing."
    }

    fn parameters_schema(&self) -> Value {
        json!({
            "type": "object",
            "required": ["path", "body"],
            "properties": {
                "path": {"type": "string"},
                "body": {"type": "string"},
                "channel": {"type": "string"},
                "subject": {"type": "string"},
                "limit": {"type": "integer"},
                "tags": {"type": "array", "items": {"type": "string"}},
            },
        })
    }

    fn permission_tier(&self) -> PermissionTier {
        if self.effect.is_mutating() {
            PermissionTier::System
        } else {
            PermissionTier::ReadOnly
        }
    }

    fn effect(&self) -> Effect {
        self.effect
    }

    async fn execute(&self, params: &Value, _: &ToolContext) -> Result<ToolResult, ToolError> {
        if self.fails {
            return Err(ToolError::failed("no such channel"));
        }
        let path = params["path"].clone();
        Ok(ToolResult::new(json!({"ok": true, "path": path}), ""))
    }
}
