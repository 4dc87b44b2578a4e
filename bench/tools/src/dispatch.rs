//! A call of a tool that does nothing: bare, checked against its schema alone, through the stack
//! without the reliability layers, and through all of it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use holdfast_contract::{
    CallContext, Effect, PermissionTier, SessionContext, Tool, ToolCallEnvelope, ToolContext,
    ToolError, ToolResult,
};
use holdfast_reliability::config::ReliabilityConfig;
use holdfast_reliability::runtime::Runtime;
use holdfast_reliability::store::memory::{MemoryDocumentStore, MemoryLimits};
use holdfast_toolbox::stack::{Parts, Stores, ToolStack};
use holdfast_toolbox::trust::TrustBook;
use holdfast_trust::TrustConfig;
use serde_json::{Value, json};

use crate::{Failed, Meter, Subject};

const CALLS: u64 = 1_000;

struct Noop;

#[async_trait]
impl Tool for Noop {
    fn name(&self) -> &str {
        "noop"
    }

    fn description(&self) -> &str {
        "Does nothing."
    }

    fn parameters_schema(&self) -> Value {
        json!({"type": "object", "additionalProperties": false, "required": ["path", "limit"],
               "properties": {
                   "path": {"type": "string", "minLength": 1, "maxLength": 4096},
                   "limit": {"type": "integer", "minimum": 1, "maximum": 1000},
                   "mode": {"enum": ["a", "b", "c"]},
                   "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 16},
                   "options": {"type": "object", "additionalProperties": {"type": "boolean"}}}})
    }

    fn permission_tier(&self) -> PermissionTier {
        PermissionTier::ReadOnly
    }

    fn effect(&self) -> Effect {
        Effect::None
    }

    async fn execute(&self, _: &Value, _: &ToolContext) -> Result<ToolResult, ToolError> {
        Ok(ToolResult::new(
            json!({"ok": true, "text": "twenty words of an answer"}),
            "",
        ))
    }
}

fn params() -> Value {
    json!({"path": "src/main.rs", "limit": 200, "mode": "b", "tags": ["one", "two", "three"],
           "options": {"follow": true, "hidden": false}})
}

/// Which layers a stack has.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Layers {
    /// Resolve, permit, validate and execute.
    Dispatch,
    /// The same with provenance, manifests and signals.
    Vouched,
    /// All, as by default.
    All,
}

fn stack(layers: Layers) -> Result<ToolStack, Failed> {
    let runtime = Arc::new(Runtime::system());
    let stores = Stores::memory(&runtime, MemoryLimits::default());
    let session = Arc::new(SessionContext::main(
        "s",
        "agent",
        PathBuf::from("/nonexistent"),
    ));
    let mut parts = Parts::new(runtime.clone(), stores, Arc::new(move |_| session.clone()));
    parts.tools.push(Arc::new(Noop));
    if layers != Layers::All {
        parts.reliability = ReliabilityConfig {
            enabled: false,
            ..ReliabilityConfig::default()
        };
    }
    if layers != Layers::Dispatch {
        let documents = Arc::new(MemoryDocumentStore::new(runtime.clock.clone()));
        let book = TrustBook::new(TrustConfig::default(), documents, runtime);
        parts.trust = Some(Arc::new(book));
    }
    Ok(ToolStack::new(parts)?)
}

async fn through(stack: &ToolStack, meter: &mut Meter, number: &mut u64) -> Result<(), Failed> {
    // Made beforehand: reading an envelope is not what is measured.
    let envelopes: Vec<ToolCallEnvelope> = (0..CALLS)
        .map(|_| {
            *number += 1;
            let params = params().as_object().cloned().unwrap_or_default();
            let id = format!("request-{number}");
            let mut envelope = ToolCallEnvelope::new(&*id, "noop", params, "s", "actor");
            envelope.target.turn_id = Some(id);
            envelope
        })
        .collect();
    let from = Instant::now();
    for envelope in envelopes {
        if !stack.call(envelope).await.is_success() {
            return Err("a call failed".into());
        }
    }
    meter.note(from, CALLS);
    Ok(())
}

pub async fn measure(rounds: usize) -> Result<Vec<Subject>, Failed> {
    let tool: Arc<dyn Tool> = Arc::new(Noop);
    let checker = jsonschema::validator_for(&tool.parameters_schema())?;
    let session = Arc::new(SessionContext::main(
        "s",
        "agent",
        PathBuf::from("/nonexistent"),
    ));
    let context = ToolContext {
        session,
        call: CallContext::default(),
    };
    let section = "dispatch";
    let mut bare = Meter::new(section, "the tool itself");
    let mut checked = Meter::new(section, "jsonschema alone, then the tool");
    let mut dispatched = Meter::new(section, "resolve, permit, validate, execute");
    let mut vouched = Meter::new(
        section,
        "the same, vouched for (manifest, provenance, signals)",
    );
    let mut all = Meter::new(section, "the whole stack, in memory");
    let stacks = (
        stack(Layers::Dispatch)?,
        stack(Layers::Vouched)?,
        stack(Layers::All)?,
    );
    let (params, mut number) = (params(), 0);
    for _ in 0..rounds {
        let from = Instant::now();
        for _ in 0..CALLS {
            std::hint::black_box(tool.execute(&params, &context).await?);
        }
        bare.note(from, CALLS);
        let from = Instant::now();
        for _ in 0..CALLS {
            if !checker.is_valid(std::hint::black_box(&params)) {
                return Err("the arguments do not fit".into());
            }
            std::hint::black_box(tool.execute(&params, &context).await?);
        }
        checked.note(from, CALLS);
        through(&stacks.0, &mut dispatched, &mut number).await?;
        through(&stacks.1, &mut vouched, &mut number).await?;
        through(&stacks.2, &mut all, &mut number).await?;
    }
    Ok([bare, checked, dispatched, vouched, all]
        .map(Meter::done)
        .into())
}
