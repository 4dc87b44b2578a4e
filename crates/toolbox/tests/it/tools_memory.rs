//! The memory tools over a real store, directly and through the whole stack.

use std::sync::Arc;

use holdfast_contract::{
    CallContext, MemoryRead, PermissionTier, SessionContext, SessionKind, Tool, ToolCallEnvelope,
    ToolContext, ToolError, ToolResult, ToolResultEnvelope, Trust,
};
use holdfast_memory::conformance::Meaning;
use holdfast_memory::{Memory, SqliteMemory, SqliteMemoryOptions};
use holdfast_reliability::runtime::Runtime;
use holdfast_reliability::store::memory::MemoryLimits;
use holdfast_toolbox::stack::{Parts, Stores, ToolStack};
use holdfast_toolbox::tools::{MemorySearchTool, MemoryStoreTool, base_tools};
use serde_json::{Map, Value, json};

struct Agent {
    memory: Arc<Memory>,
    model: Arc<Meaning>,
    _dir: tempfile::TempDir,
}

impl Agent {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let model = Meaning::new("meaning-1");
        let backend = SqliteMemory::new(dir.path(), SqliteMemoryOptions::default());
        let memory = Memory::new(Arc::new(backend)).with_embedder(model.clone());
        Self {
            memory: Arc::new(memory),
            model,
            _dir: dir,
        }
    }

    fn main(&self) -> SessionContext {
        let session = SessionContext::main("session-9", "agent", "/nowhere".into());
        session.with_memory(&self.memory)
    }

    /// What a worker gets: it may look, and has no way to change anything.
    fn worker(&self) -> SessionContext {
        let kind = SessionKind::Worker;
        let session = SessionContext::of_kind(kind, "worker-1", "agent", "/nowhere".into());
        session.with_memory(&self.memory)
    }
}

async fn call(
    tool: &dyn Tool,
    session: SessionContext,
    params: Value,
) -> Result<ToolResult, ToolError> {
    let ctx = ToolContext {
        session: Arc::new(session),
        call: CallContext {
            input_trust: Trust::Tool,
            ..CallContext::default()
        },
    };
    tool.execute(&params, &ctx).await
}

fn stack(session: SessionContext) -> ToolStack {
    let runtime = Arc::new(Runtime::system());
    let stores = Stores::memory(&runtime, MemoryLimits::default());
    let session = Arc::new(session);
    let parts = Parts::new(runtime, stores, Arc::new(move |_| session.clone()));
    ToolStack::new(parts.with_tools(base_tools())).unwrap()
}

async fn through(stack: &ToolStack, request: &str, tool: &str, args: Value) -> ToolResultEnvelope {
    let Value::Object(args) = args else {
        panic!("arguments are an object")
    };
    let args: Map<String, Value> = args;
    stack
        .call(ToolCallEnvelope::new(
            request.to_owned(),
            tool.to_owned(),
            args,
            "session-9".to_owned(),
            "actor".to_owned(),
        ))
        .await
}

#[tokio::test]
async fn what_is_stored_is_found() {
    let agent = Agent::new();
    let params = json!({"content": "The staging server is in Frankfurt.", "memory_type": "fact",
        "metadata": {"project": "holdfast"}});
    let stored = call(&MemoryStoreTool, agent.main(), params.clone())
        .await
        .unwrap();
    assert_eq!(stored.output["new"], true);
    let id = stored.output["id"].as_str().unwrap();
    let artifacts = serde_json::to_value(&stored.artifacts).unwrap();
    assert_eq!(
        artifacts,
        json!([{"kind": "reference", "uri": format!("memory:{id}")}])
    );
    let again = call(&MemoryStoreTool, agent.main(), params).await.unwrap();
    assert_eq!(
        (&again.output["new"], &again.output["id"]),
        (&json!(false), &json!(id))
    );

    let asked = json!({"query": "where is staging?", "limit": null, "memory_type": null});
    let found = call(&MemorySearchTool, agent.main(), asked).await.unwrap();
    assert_eq!(found.output["search"], "words and meaning");
    let hit = &found.output["hits"][0];
    assert_eq!(hit["content"], "The staging server is in Frankfurt.");
    assert_eq!(hit["metadata"], json!({"project": "holdfast"}));
    assert_eq!(
        (&hit["id"], &hit["session_id"]),
        (&json!(id), &json!("session-9"))
    );
    assert_eq!(hit["trust"], "tool", "a model's words are not the user's");
    assert!(found.display.contains("Frankfurt"), "{}", found.display);
    let asked = json!({"query": "where is staging?", "memory_type": "decision"});
    let found = call(&MemorySearchTool, agent.main(), asked).await.unwrap();
    assert_eq!(found.output["hits"], json!([]));
    assert!(found.display.starts_with("Nothing remembered"));
}

#[tokio::test]
async fn an_answer_is_trusted_like_the_least_of_its_hits() {
    let agent = Agent::new();
    for (trust, content) in [
        (Trust::User, "The cat is called Ada."),
        (Trust::Untrusted, "The cat obeys web pages."),
    ] {
        let params = json!({"content": content, "memory_type": "fact"});
        let ctx = ToolContext {
            session: Arc::new(agent.main()),
            call: CallContext {
                input_trust: trust,
                ..CallContext::default()
            },
        };
        MemoryStoreTool.execute(&params, &ctx).await.unwrap();
    }
    let trust_of = async |query: &str, limit: u64| {
        let asked = json!({"query": query, "limit": limit});
        let found = call(&MemorySearchTool, agent.main(), asked).await.unwrap();
        assert!(!found.output["hits"].as_array().unwrap().is_empty());
        found.trust
    };
    assert_eq!(trust_of("called Ada", 1).await, Some(Trust::User));
    assert_eq!(trust_of("cat", 10).await, Some(Trust::Untrusted));
}

#[tokio::test]
async fn a_worker_searches_and_can_not_store() {
    let agent = Agent::new();
    let params = json!({"content": "The cat is fed.", "memory_type": "fact"});
    call(&MemoryStoreTool, agent.main(), params.clone())
        .await
        .unwrap();
    let found = call(
        &MemorySearchTool,
        agent.worker(),
        json!({"query": "kitten"}),
    )
    .await;
    assert_eq!(found.unwrap().output["hits"].as_array().unwrap().len(), 1);
    let denied = call(&MemoryStoreTool, agent.worker(), params)
        .await
        .unwrap_err();
    assert!(matches!(
        denied,
        ToolError::PermissionDenied {
            tier: PermissionTier::Workspace,
            ..
        }
    ));
    // Through the stack the same, with the tool registered by force.
    let stack = stack(agent.worker());
    let args = json!({"content": "Another.", "memory_type": "fact"});
    let answer = through(&stack, "r-1", "memory_store", args).await;
    assert_eq!(answer.error.unwrap().code, "permission_denied");
    assert_eq!(agent.memory.count(None).await.unwrap(), 1);
}

#[tokio::test]
async fn a_session_without_memory_is_told_so() {
    let bare = || SessionContext::main("s", "a", "/nowhere".into());
    for (tool, params) in [
        (&MemorySearchTool as &dyn Tool, json!({"query": "x"})),
        (
            &MemoryStoreTool,
            json!({"content": "x", "memory_type": "fact"}),
        ),
    ] {
        let denied = call(tool, bare(), params).await.unwrap_err();
        assert!(
            matches!(denied, ToolError::PermissionDenied { .. }),
            "{denied}"
        );
        assert!(denied.to_string().contains("memory"));
    }
}

#[tokio::test]
async fn calls_through_the_stack_are_validated_and_take_other_hosts_names() {
    let agent = Agent::new();
    let stack = stack(agent.main());
    let args = json!({"text": "Ada prefers tea.", "type": "Preference"});
    let stored = through(&stack, "r-1", "memory_store", args.clone()).await;
    assert!(stored.is_success(), "{stored:?}");
    // The same request again is answered from its record, a new one finds the words known.
    let again = through(&stack, "r-1", "memory_store", args.clone()).await;
    assert!(again.from_cache);
    let fresh = through(&stack, "r-2", "memory_store", args).await;
    assert_eq!(fresh.output.unwrap().content["new"], false);
    assert_eq!(agent.memory.count(None).await.unwrap(), 1);

    let found = through(
        &stack,
        "r-3",
        "memory_search",
        json!({"query": "tea", "top_k": 1}),
    )
    .await;
    let content = found.output.unwrap().content;
    assert_eq!(content["hits"][0]["memory_type"], "preference");
    let bad = [
        ("memory_search", json!({})),
        ("memory_search", json!({"query": ""})),
        ("memory_search", json!({"query": "x", "limit": 101})),
        (
            "memory_search",
            json!({"query": "x", "memory_type": "rumour"}),
        ),
        ("memory_store", json!({"content": "x"})),
        (
            "memory_store",
            json!({"content": "x", "memory_type": "fact", "metadata": 7}),
        ),
        (
            "memory_store",
            json!({"content": "x", "memory_type": "fact", "extra": 1}),
        ),
    ];
    for (number, (tool, args)) in bad.into_iter().enumerate() {
        // Each in a turn of its own, so that the loop guard has nothing to say.
        let answer = through(&stack, &format!("bad-{number}"), tool, args.clone()).await;
        let error = answer.error.unwrap();
        assert!(
            matches!(
                error.code.as_str(),
                "invalid_arguments" | "tool_error_limit"
            ),
            "{args}: {error:?}"
        );
    }
}

#[tokio::test]
async fn limits_that_a_schema_can_not_say_are_named() {
    let agent = Agent::new();
    // Fewer characters than allowed and more bytes.
    let wide = "é".repeat(20_000);
    let params = json!({"content": wide, "memory_type": "fact"});
    let refused = call(&MemoryStoreTool, agent.main(), params)
        .await
        .unwrap_err();
    assert!(
        matches!(&refused, ToolError::ValidationError { field: Some(field), .. } if field == "/content"),
        "{refused:?}"
    );
    assert!(refused.to_string().contains("32768"), "{refused}");
    let params = json!({"query": "x".repeat(10_000)});
    let refused = call(&MemorySearchTool, agent.main(), params)
        .await
        .unwrap_err();
    assert!(matches!(refused, ToolError::ValidationError { .. }));
}

#[tokio::test]
async fn a_model_that_is_away_is_said_and_stops_nothing() {
    let agent = Agent::new();
    agent.model.set_away(true);
    let params = json!({"content": "The cat is fed.", "memory_type": "fact"});
    let stored = call(&MemoryStoreTool, agent.main(), params).await.unwrap();
    assert!(
        stored.output["note"]
            .as_str()
            .unwrap()
            .contains("no vector yet")
    );
    let found = call(&MemorySearchTool, agent.main(), json!({"query": "cat"}))
        .await
        .unwrap();
    assert_eq!(found.output["search"], "words");
    assert!(
        found.output["note"]
            .as_str()
            .unwrap()
            .contains("words alone")
    );
    assert_eq!(found.output["hits"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_memory_that_can_not_be_opened_has_a_code() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("memory.db"), "notes ".repeat(1000)).unwrap();
    let backend = SqliteMemory::new(dir.path(), SqliteMemoryOptions::default());
    let memory = Arc::new(Memory::new(Arc::new(backend)));
    let session = SessionContext::main("s", "a", "/nowhere".into()).with_memory(&memory);
    let stack = stack(session);
    let answer = through(&stack, "r-1", "memory_search", json!({"query": "x"})).await;
    let error = answer.error.unwrap();
    assert_eq!(error.code, "memory_unavailable");
    assert!(
        error.message.contains("is not a database"),
        "{}",
        error.message
    );
}
