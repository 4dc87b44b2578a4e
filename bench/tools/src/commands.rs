//! What a command costs beside the shell alone: the tool, its confinement, and the undo point that the
//! stack takes before and after it, in a small workspace.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use holdfast_confine::{ConfinementConfig, Mode};
use holdfast_contract::{SessionContext, SystemClock, ToolCallEnvelope};
use holdfast_reliability::runtime::Runtime;
use holdfast_reliability::store::memory::MemoryLimits;
use holdfast_toolbox::stack::{Parts, Stores, ToolStack};
use holdfast_toolbox::tools::ExecTool;
use holdfast_undo::{UndoSettings, UndoStore};
use serde_json::json;

use crate::{Failed, Meter, Subject};

/// Files of the workspace, in ten directories.
const FILES: usize = 100;
const COMMAND: &str = "true";

fn workspace() -> Result<tempfile::TempDir, Failed> {
    let dir = tempfile::tempdir()?;
    for number in 0..FILES {
        let below = dir.path().join(format!("dir-{}", number % 10));
        std::fs::create_dir_all(&below)?;
        std::fs::write(below.join(format!("file-{number}")), "x".repeat(4_000))?;
    }
    Ok(dir)
}

fn stack(workspace: &Path, confined: bool, undo: Option<&Path>) -> Result<ToolStack, Failed> {
    let runtime = Arc::new(Runtime::system());
    let stores = Stores::memory(&runtime, MemoryLimits::default());
    let session = Arc::new(SessionContext::main("s", "agent", workspace.to_owned()));
    let mut parts = Parts::new(runtime, stores, Arc::new(move |_| session.clone()));
    let mode = if confined {
        Mode::BestEffort
    } else {
        Mode::Off
    };
    parts.tools.push(Arc::new(ExecTool::new().with_confinement(
        ConfinementConfig {
            mode,
            ..ConfinementConfig::default()
        },
    )));
    let store = |dir: &Path| UndoStore::open(dir, UndoSettings::default(), Arc::new(SystemClock));
    parts.undo = undo.map(store).transpose()?.map(Arc::new);
    Ok(ToolStack::new(parts)?)
}

async fn through(stack: &ToolStack, meter: &mut Meter, number: usize) -> Result<(), Failed> {
    let params = json!({"command": COMMAND})
        .as_object()
        .cloned()
        .unwrap_or_default();
    let id = format!("request-{number}");
    let mut envelope = ToolCallEnvelope::new(&*id, "exec", params, "s", "actor");
    envelope.target.turn_id = Some(id);
    let from = Instant::now();
    let result = stack.call(envelope).await;
    meter.note(from, 1);
    if result.is_success() {
        Ok(())
    } else {
        Err(format!("{:?}", result.error).into())
    }
}

pub async fn measure(rounds: usize) -> Result<Vec<Subject>, Failed> {
    let (dir, state) = (workspace()?, tempfile::tempdir()?);
    let section = "command";
    let mut shell = Meter::new(section, "bash -c true");
    let mut free = Meter::new(section, "exec, neither confined nor kept");
    let mut confined = Meter::new(section, "exec, confined");
    let mut kept = Meter::new(section, "exec, confined and kept (100 files)");
    let stacks = (
        stack(dir.path(), false, None)?,
        stack(dir.path(), true, None)?,
        stack(dir.path(), true, Some(state.path()))?,
    );
    for number in 0..rounds {
        let from = Instant::now();
        let status = Command::new("bash")
            .args(["--norc", "--noprofile", "-c", COMMAND])
            .status()?;
        shell.note(from, 1);
        if !status.success() {
            return Err("bash failed".into());
        }
        through(&stacks.0, &mut free, number).await?;
        through(&stacks.1, &mut confined, number).await?;
        through(&stacks.2, &mut kept, number).await?;
    }
    Ok([shell, free, confined, kept].map(Meter::done).into())
}
