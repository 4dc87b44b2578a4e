//! The calls of one reply: side by side where nothing changes anything, else in order; and those that
//! wait for what others bring.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::common::{Script, stack, task};
use async_trait::async_trait;
use holdfast_agent::run::{Ending, Loop, NoCheckpoint, Phase, RunState};
use holdfast_contract::{Effect, PermissionTier, Tool, ToolContext, ToolError, ToolResult};
use holdfast_testkit::{Does, MadeTool};
use parking_lot::Mutex;
use serde_json::{Value, json};

/// Notes how many of them run at once, in what order they begin, and with what.
#[derive(Default)]
struct Seen {
    now: AtomicU64,
    most: AtomicU64,
    begun: Mutex<Vec<(&'static str, String)>>,
}

struct Noted(&'static str, Arc<Seen>);

#[async_trait]
impl Does for Noted {
    async fn run(&self, params: &Value, _: &ToolContext) -> Result<ToolResult, ToolError> {
        let Self(name, seen) = self;
        let given = params.as_object().and_then(|all| all.values().next());
        let text = given.and_then(Value::as_str).unwrap_or_default().to_owned();
        seen.begun.lock().push((name, text));
        let now = seen.now.fetch_add(1, Ordering::SeqCst) + 1;
        seen.most.fetch_max(now, Ordering::SeqCst);
        tokio::time::sleep(Duration::from_secs(1)).await;
        seen.now.fetch_sub(1, Ordering::SeqCst);
        let found = match *name {
            "web_search" => "1. https://example.com/claude",
            "web_fetch" => "Claude has news.",
            _ => "done",
        };
        Ok(ToolResult::new(json!(found), ""))
    }
}

fn tools(seen: &Arc<Seen>, all: &[(&'static str, Effect)]) -> Vec<Arc<dyn Tool>> {
    let made = |(name, effect): &(&'static str, Effect)| {
        let noted = Noted(name, seen.clone());
        let made = MadeTool::doing(name, PermissionTier::ReadOnly, *effect, noted);
        Arc::new(made) as Arc<dyn Tool>
    };
    all.iter().map(made).collect()
}

fn calls(all: &[(&str, &str)]) -> Value {
    let call = |(place, (name, text)): (usize, &(&str, &str))| {
        let arguments = json!({ "text": text }).to_string();
        json!({"id": format!("c{place}"), "type": "function",
               "function": {"name": name, "arguments": arguments}})
    };
    let calls: Vec<Value> = all.iter().enumerate().map(call).collect();
    json!({"choices": [{"message": {"content": null, "tool_calls": calls},
                        "finish_reason": "tool_calls"}]})
}

fn says(text: &str) -> Value {
    json!({"choices": [{"message": {"content": text}, "finish_reason": "stop"}]})
}

async fn ran(tools: Vec<Arc<dyn Tool>>, says: Vec<Value>) -> (RunState, Vec<Value>) {
    let stack = stack(tools);
    let model = Script::new(says.into_iter().map(Ok).collect());
    let agent = Loop::new(model.clone(), stack.clone());
    let ended = agent.go_on(task(&stack), &NoCheckpoint).await;
    (ended.expect("kept"), model.asked())
}

#[tokio::test(start_paused = true)]
async fn calls_that_only_look_run_side_by_side_and_others_one_after_the_other() {
    for (effect, at_once) in [(Effect::None, 3), (Effect::Workspace, 1)] {
        let seen = Arc::<Seen>::default();
        let all = [("look", Effect::None), ("other", effect)];
        let three = calls(&[("look", "a"), ("other", "b"), ("look", "c")]);
        let (state, asked) = ran(tools(&seen, &all), vec![three, says("Final Answer: x")]).await;
        assert!(matches!(state.phase, Phase::Ended(Ending::Answered { .. })));
        assert_eq!(seen.most.load(Ordering::SeqCst), at_once, "{effect:?}");
        // Side by side or not, results and names are in the order of the reply.
        assert_eq!(state.tools_called, ["look", "other", "look"]);
        let answered: Vec<&str> = asked[1]["messages"]
            .as_array()
            .expect("messages")
            .iter()
            .filter_map(|message| message["tool_call_id"].as_str())
            .collect();
        assert_eq!(answered, ["c0", "c1", "c2"]);
    }
}

/// The specification's own example: what is to be fetched is only known when the search is done.
#[tokio::test(start_paused = true)]
async fn a_call_that_waits_for_a_result_is_made_when_it_is_there() {
    let seen = Arc::<Seen>::default();
    let all = [
        ("web_search", Effect::None),
        ("web_fetch", Effect::None),
        ("write", Effect::Workspace),
    ];
    let plan = "[TOOL:web_search|query=Claude AI news 2026]\n\
                [TOOL:web_fetch|url=<will fill from results>]\n\
                [TOOL:write|path=<output file>]";
    let script = vec![
        says(plan),
        says("[TOOL:write|path=summary.md]"),
        says("Final Answer: I've saved a summary."),
    ];
    let (state, asked) = ran(tools(&seen, &all), script).await;
    let begun = seen.begun.lock().clone();
    let begun: Vec<(&str, &str)> = begun.iter().map(|(name, text)| (*name, &**text)).collect();
    assert_eq!(
        begun,
        [
            ("web_search", "Claude AI news 2026"),
            ("web_fetch", "https://example.com/claude"),
            ("write", "summary.md"),
        ]
    );
    assert_eq!(state.tools_called, ["web_search", "web_fetch", "write"]);
    assert_eq!(
        state.phase,
        Phase::Ended(Ending::Answered {
            content: "I've saved a summary.".to_owned(),
            cut_off: false,
            filtered: false,
        })
    );
    let told = asked[1]["messages"].to_string();
    assert!(
        told.contains("https://example.com/claude") && told.contains("web_fetch"),
        "{told}"
    );
    // Nobody knows yet which file: that call waits for the model.
    assert!(told.contains("write") && told.contains("not run"), "{told}");
}
