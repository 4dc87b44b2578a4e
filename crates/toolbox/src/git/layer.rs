//! The layer that sets aside what git would run later, around every call that may change a workspace.

use std::path::PathBuf;
use std::sync::Arc;

use holdfast_reliability::call::{Call, Failure, Reply};
use holdfast_reliability::service::Service;
use serde_json::{Map, Value, json};

use super::keeper::GitKeeper;

const HINT: &str = "Git itself would run this later, outside of the confinement, when a person uses git here, so it \
                    was set aside. A person can look at it with `holdfast git list` and put it back with `holdfast \
                    git keep [ID]`; then it is known here, and not set aside again.";

/// Compares what git would run before a call and after it.
pub struct KeepGit<S> {
    inner: S,
    keeper: Option<Arc<GitKeeper>>,
}

impl<S: Service> KeepGit<S> {
    /// Wraps what may change a workspace. Without a keeper nothing is compared.
    pub fn new(inner: S, keeper: Option<Arc<GitKeeper>>) -> Self {
        Self { inner, keeper }
    }
}

/// A call under way. Dropped without an end, its workspace is compared when all of it has ended.
struct UnderWay {
    keeper: Arc<GitKeeper>,
    workspace: PathBuf,
    has_ended: bool,
}

impl UnderWay {
    fn end(mut self) -> Vec<String> {
        self.has_ended = true;
        self.keeper.end(&self.workspace)
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        if !self.has_ended {
            self.keeper.abandon(&self.workspace);
        }
    }
}

impl<S: Service> Service for KeepGit<S> {
    async fn call(&self, call: &mut Call) -> Reply {
        let tool = call.tool.as_ref();
        let changes = tool.is_some_and(|tool| tool.may_change_workspace());
        let workspace = call.session.workspace_root.clone();
        // On the heap: as one future with the layers around it, it is nested deeper than compilers follow
        // without being told to, in every crate that uses the stack.
        let inner = Box::pin(self.inner.call(call));
        let Some(keeper) = self.keeper.clone().filter(|_| changes) else {
            return inner.await;
        };
        let begun = tokio::task::spawn_blocking(move || {
            keeper.begin(&workspace);
            UnderWay {
                keeper,
                workspace,
                has_ended: false,
            }
        });
        let under_way = begun.await;
        let mut reply = inner.await;
        let told = match under_way {
            Ok(under_way) => tokio::task::spawn_blocking(move || under_way.end()).await,
            Err(error) => Err(error),
        };
        let told = told.unwrap_or_else(|error| vec![format!("NOT looked at: {error}")]);
        if !told.is_empty() {
            tell(&mut reply, told);
        }
        reply
    }
}

/// Names it in the answer; all else stays as it is.
fn tell(reply: &mut Reply, told: Vec<String>) {
    match &mut reply.outcome {
        Ok(output) => match Arc::make_mut(&mut output.content) {
            Value::Object(content) => add(content, told),
            // An answer of another shape keeps it.
            _ => add(output.metadata.get_or_insert_default(), told),
        },
        Err(Failure { besides, .. }) => {
            let details = &mut besides.get_or_insert_default().details;
            let details = details.get_or_insert_with(|| json!({}));
            if let Value::Object(details) = details {
                add(details, told);
            }
        }
    }
}

fn add(answer: &mut Map<String, Value>, told: Vec<String>) {
    answer.insert("set_aside".to_owned(), told.into());
    let hint = match answer.get("hint").and_then(Value::as_str) {
        Some(hint) => format!("{hint} {HINT}"),
        None => HINT.to_owned(),
    };
    answer.insert("hint".to_owned(), hint.into());
}
