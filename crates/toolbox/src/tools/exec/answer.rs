//! What a caller is told of a command.

use std::os::unix::process::ExitStatusExt;

use holdfast_contract::ToolResult;
use serde_json::{Value, json};

use super::capture::Capture;
use super::family::Gone;
use super::supervise::Finished;

/// What a shell reports for a command that died of signal 0; signals are added to it.
const SIGNAL_EXIT_BASE: i32 = 128;

/// What a command had printed when its time was up, and whether something of it is still there.
pub(super) fn printed(stdout: Capture, stderr: Capture, gone: Gone) -> Value {
    let (stdout, stdout_cut) = stdout.into_text();
    let (stderr, stderr_cut) = stderr.into_text();
    let truncated = stdout_cut || stderr_cut;
    let mut told = json!({"stdout": stdout, "stderr": stderr, "truncated": truncated});
    if gone == Gone::NotAll {
        told["still_running"] = true.into();
    }
    told
}

pub(super) fn result(display: &str, finished: Finished) -> ToolResult {
    let signal = finished.status.signal();
    let exit_code = match (finished.status.code(), signal) {
        (Some(code), _) => code,
        (None, Some(signal)) => SIGNAL_EXIT_BASE + signal,
        (None, None) => SIGNAL_EXIT_BASE,
    };
    let (stdout, stdout_cut) = finished.stdout.into_text();
    let (stderr, stderr_cut) = finished.stderr.into_text();
    let mut output = json!({
        "exit_code": exit_code,
        "stdout": stdout,
        "stderr": stderr,
        "truncated": stdout_cut || stderr_cut,
    });
    if let Some(signal) = signal {
        output["signal"] = signal.into();
    }
    if finished.still_running {
        output["still_running"] = true.into();
    }
    let how = match signal {
        Some(signal) => format!("died of signal {signal}"),
        None => format!("exited with {exit_code}"),
    };
    let mut result = ToolResult::new(output, format!("`{display}` {how}"));
    result.exit_code = (exit_code != 0).then_some(exit_code);
    result
}
