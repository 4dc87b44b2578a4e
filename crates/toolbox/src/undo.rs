//! The layer that keeps what a workspace was before a call may change it, for `holdfast undo`.

use std::path::PathBuf;
use std::sync::Arc;

use holdfast_contract::{Effect, ErrorCode};
use holdfast_reliability::call::{Call, Failure, Judged, Reply};
use holdfast_reliability::service::Service;
use holdfast_undo::{Coverage, OpenPoint, UndoResult, UndoStore, Where};
use serde_json::{Value, json};

/// Takes the state before a call and after it, once for all its attempts.
pub struct KeepUndo<S> {
    inner: S,
    store: Option<Arc<UndoStore>>,
}

impl<S: Service> KeepUndo<S> {
    /// Wraps what may change a workspace. Without a store nothing is kept.
    pub fn new(inner: S, store: Option<Arc<UndoStore>>) -> Self {
        Self { inner, store }
    }
}

/// Where a call may write, if it may change its workspace at all.
fn writes(call: &Call) -> Option<Where> {
    let tool = call.tool.as_ref()?;
    if !tool.may_change_workspace() {
        return None;
    }
    // What reaches further than files may change more than the path that it names.
    let is_of_files = tool.effect() == Effect::Workspace;
    let path = call.envelope.payload.params.get("path");
    Some(match path.filter(|_| is_of_files).and_then(Value::as_str) {
        Some(path) => Where::Paths(vec![PathBuf::from(path)]),
        None => Where::Anywhere,
    })
}

async fn in_background<T: Send + 'static>(
    work: impl FnOnce() -> UndoResult<T> + Send + 'static,
) -> Result<T, String> {
    match tokio::task::spawn_blocking(work).await {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(error)) => Err(error.to_string()),
        Err(error) => Err(error.to_string()),
    }
}

/// What a caller is told: the point, how much of the workspace it holds, and why not all of it.
fn told(open: &OpenPoint) -> Value {
    let mut told = json!({ "covers": open.coverage() });
    if let Some(id) = open.id() {
        told["point"] = id.into();
    }
    if let Some(why) = open.not_kept() {
        told["why"] = why.to_string().into();
    }
    let left_out: Vec<String> = open
        .left_out()
        .iter()
        .map(|it| it.path.display().to_string())
        .collect();
    if !left_out.is_empty() {
        told["leftOut"] = left_out.into();
    }
    told
}

/// The same for `holdfast explain`.
fn explained(undo: &Value) -> String {
    let text = |name: &str| undo[name].as_str().unwrap_or_default();
    match text("point") {
        "" if undo["changed"] == false => "changed nothing in the workspace".to_owned(),
        "" => format!("can not be undone: {}", text("why")),
        id => {
            let left_out = undo["leftOut"].as_array().map_or(0, Vec::len);
            let but = match left_out {
                0 => String::new(),
                count => format!(", but for {count} paths that are not kept"),
            };
            format!("`holdfast undo {id}` takes back what it changed in the workspace{but}")
        }
    }
}

/// What a call throws away, where nobody was asked since its workspace seemed to be kept.
fn would_be_lost(call: &Call) -> Option<String> {
    if !call.keeps_undo {
        return None;
    }
    let tool = call.tool.as_ref()?;
    let verdict = tool.tier_for(&call.envelope.payload.params, &call.session);
    verdict.unless_undone.into_iter().next().map(|it| it.text)
}

impl<S: Service> Service for KeepUndo<S> {
    async fn call(&self, call: &mut Call) -> Reply {
        let (Some(store), Some(writes)) = (&self.store, writes(call)) else {
            return self.inner.call(call).await;
        };
        let opened = {
            let (store, id) = (store.clone(), call.envelope.request_id.clone());
            let workspace = call.session.workspace_root.clone();
            in_background(move || store.before(&workspace, &id, &writes)).await
        };
        let (open, mut undo) = match opened {
            Ok(open) => {
                let undo = told(&open);
                (Some(open), undo)
            }
            // What can not be undone runs all the same, and says so.
            Err(why) => (None, json!({"covers": Coverage::None, "why": why})),
        };
        if undo["covers"] == json!(Coverage::None)
            && let Some(lost) = would_be_lost(call)
        {
            let why = undo["why"].as_str().unwrap_or_default();
            let next = if open.is_some() {
                "Call it again, and a person is asked first"
            } else {
                "Mend that, or set undo.pointsMax: 0, and a person is asked instead"
            };
            let message =
                format!("{lost}, and nothing can be kept for an undo ({why}). Nothing ran. {next}");
            let code = ErrorCode::PermissionDenied;
            return Failure::before_start(code, message, Judged::Neutral).into();
        }
        let mut reply = self.inner.call(call).await;
        if let Some(open) = open {
            let (store, had_point) = (store.clone(), open.id().is_some());
            // Where this fails, the next use of the workspace takes the state instead.
            let closed = in_background(move || store.after(open)).await;
            if had_point && closed == Ok(None) {
                undo = json!({"covers": Coverage::Full, "changed": false});
            }
        }
        call.why.push(explained(&undo));
        if let Ok(output) = &mut reply.outcome {
            output
                .metadata
                .get_or_insert_default()
                .insert("undo".to_owned(), undo);
        }
        reply
    }
}
