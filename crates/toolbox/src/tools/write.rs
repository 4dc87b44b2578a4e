//! The `write` tool.

use async_trait::async_trait;
use holdfast_contract::{
    Artifact, Effect, PermissionTier, SessionContext, TierVerdict, Tool, ToolContext, ToolError,
    ToolResult,
};
use serde_json::{Value, json};

use super::beneath::Beneath;
use super::blocking::{self, Abandoned};
use super::place::{Place, tier_of_path};
use super::text::counted;
use super::{args, atomic};

/// Content of one write.
pub const WRITE_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Creates or replaces a file.
///
/// The file is replaced in one step and keeps its mode, so nobody ever sees half of it. The same
/// content twice leaves the same file, which makes the tool idempotent.
///
/// ```
/// use std::sync::Arc;
/// use holdfast_contract::{CallContext, SessionContext, Tool, ToolContext};
/// use holdfast_toolbox::tools::WriteTool;
/// use serde_json::json;
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let workspace = tempfile::tempdir().unwrap();
/// let session = SessionContext::main("session", "agent", workspace.path().to_owned());
/// let ctx = ToolContext { session: Arc::new(session), call: CallContext::default() };
/// let params = json!({"path": "notes/today.txt", "content": "hello\n"});
/// let result = WriteTool.execute(&params, &ctx).await.unwrap();
/// assert_eq!(result.output, json!({"path": "notes/today.txt", "bytes": 6, "created": true}));
/// # });
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct WriteTool;

#[async_trait]
impl Tool for WriteTool {
    fn name(&self) -> &str {
        "write"
    }

    fn aliases(&self) -> &[&str] {
        holdfast_contract::names::WRITE
    }

    fn description(&self) -> &str {
        "Creates a file in the workspace or replaces its whole content. Missing directories are \
         created. Use `edit` to change a part of a file."
    }

    fn parameters_schema(&self) -> Value {
        json!({
            "type": "object",
            "additionalProperties": false,
            "required": ["path", "content"],
            "properties": {
                "path": {
                    "type": "string",
                    "minLength": 1,
                    "description": "The file, relative to the workspace."
                },
                "content": {
                    "type": "string",
                    "description": "The whole new content."
                }
            }
        })
    }

    fn permission_tier(&self) -> PermissionTier {
        PermissionTier::Workspace
    }

    fn tier_for(&self, params: &Value, session: &SessionContext) -> TierVerdict {
        tier_of_path(self.permission_tier(), params, session)
    }

    fn effect(&self) -> Effect {
        Effect::Workspace
    }

    fn is_available(&self, session: &SessionContext) -> bool {
        session.write.is_some()
    }

    fn is_idempotent(&self) -> bool {
        true
    }

    async fn execute(&self, params: &Value, ctx: &ToolContext) -> Result<ToolResult, ToolError> {
        let place = Place::to_write(ctx)?;
        let path = args::text(params, "path")?.to_owned();
        let content = args::text(params, "content")?.to_owned();
        if content.len() > WRITE_BYTES_MAX {
            return Err(ToolError::invalid(
                Some("/content"),
                format!("`content` is larger than {WRITE_BYTES_MAX} bytes"),
            ));
        }
        blocking::run(move |abandoned| {
            let target = Beneath::new(&place, "path", &path)?;
            write(&target, content.as_bytes(), abandoned)
        })
        .await
    }
}

fn write(target: &Beneath, content: &[u8], abandoned: &Abandoned) -> Result<ToolResult, ToolError> {
    let slot = target.slot()?;
    let failed = |error: std::io::Error| target.fault("write", &error);
    let _lock = atomic::lock(&slot).map_err(failed)?;
    let old = match slot.parent.symlink_metadata(&slot.name) {
        Ok(old) => Some(old),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => return Err(failed(error)),
    };
    if let Some(old) = &old {
        target.regular(old)?;
        check_writable(target, old)?;
    }
    replace(target, &slot, old.as_ref(), &[content], || {
        abandoned.check()
    })?;

    let shown = target.shown();
    let verb = if old.is_none() { "Created" } else { "Wrote" };
    let size = counted(content.len() as u64, "byte");
    let mut result = ToolResult::new(
        json!({"path": shown, "bytes": content.len(), "created": old.is_none()}),
        format!("{verb} {shown} ({size})"),
    );
    result.artifacts.push(Artifact::File { path: shown });
    Ok(result)
}

/// Refuses a file that is there to be read only.
pub(super) fn check_writable(
    target: &Beneath,
    old: &cap_std::fs::Metadata,
) -> Result<(), ToolError> {
    if atomic::is_write_protected(old) {
        return Err(ToolError::coded(
            "read_only_file",
            format!("{:?} is write-protected", target.asked()),
        ));
    }
    Ok(())
}

/// [`atomic::replace`] with the tools' errors.
pub(super) fn replace(
    target: &Beneath,
    slot: &super::beneath::Slot,
    old: Option<&cap_std::fs::Metadata>,
    content: &[&[u8]],
    commit: impl FnOnce() -> Result<(), ToolError>,
) -> Result<(), ToolError> {
    enum Stop {
        Io(std::io::Error),
        Refused(ToolError),
    }
    impl From<std::io::Error> for Stop {
        fn from(error: std::io::Error) -> Self {
            Self::Io(error)
        }
    }
    atomic::replace(slot, old, content, || commit().map_err(Stop::Refused)).map_err(|stop| {
        match stop {
            Stop::Io(error) => target.fault("write", &error),
            Stop::Refused(error) => error,
        }
    })
}
