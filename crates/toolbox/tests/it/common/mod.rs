//! What the tool tests share.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use holdfast_contract::{
    CallContext, Cause, SessionContext, Tool, ToolContext, ToolError, ToolResult,
};
use serde_json::Value;

/// A workspace inside a directory of its own, so that there is an outside to escape to.
pub(crate) struct Workspace {
    outer: tempfile::TempDir,
    pub(crate) root: PathBuf,
}

impl Workspace {
    pub(crate) fn new() -> Self {
        let outer = tempfile::tempdir().expect("a directory");
        let root = outer.path().join("workspace");
        fs::create_dir(&root).expect("a workspace");
        Self { outer, root }
    }

    pub(crate) fn outside(&self) -> &Path {
        self.outer.path()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    pub(crate) fn put(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.path(name), content).expect("writes");
    }

    pub(crate) fn get(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).expect("reads")
    }

    pub(crate) fn context(&self) -> ToolContext {
        let session = SessionContext::main("session", "agent", self.root.clone());
        ToolContext {
            session: Arc::new(session),
            call: CallContext::default(),
        }
    }

    pub(crate) async fn call(
        &self,
        tool: &dyn Tool,
        params: Value,
    ) -> Result<ToolResult, ToolError> {
        tool.execute(&params, &self.context()).await
    }
}

/// The code of a failure, or what it is instead.
pub(crate) fn code(result: Result<ToolResult, ToolError>) -> String {
    match result {
        Err(ToolError::ExecutionError {
            cause: Cause::Coded { code },
            ..
        }) => code.into_owned(),
        Err(ToolError::PermissionDenied { .. }) => "permission_denied".into(),
        Err(ToolError::ValidationError { field, .. }) => format!("invalid {field:?}"),
        other => format!("{other:?}"),
    }
}
