//! File work off the async threads, with a caller that may go away.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use holdfast_contract::ToolError;

/// Tells file work that nobody waits for it any more.
///
/// A blocking task can not be stopped from outside. Without this, a write that waited in a full
/// thread pool would replace a file minutes after its caller was told that it was cancelled.
#[derive(Debug, Clone, Default)]
pub(super) struct Abandoned(Arc<AtomicBool>);

impl Abandoned {
    /// To be asked at the last point where turning back leaves no trace.
    pub(super) fn check(&self) -> Result<(), ToolError> {
        if self.0.load(Ordering::Acquire) {
            Err(ToolError::coded(
                "cancelled",
                "the caller went away; nothing was changed",
            ))
        } else {
            Ok(())
        }
    }
}

struct AbandonOnDrop(Abandoned);

impl Drop for AbandonOnDrop {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Release);
    }
}

/// Runs `work` on tokio's blocking threads.
pub(super) async fn run<T: Send + 'static>(
    work: impl FnOnce(&Abandoned) -> Result<T, ToolError> + Send + 'static,
) -> Result<T, ToolError> {
    let abandoned = Abandoned::default();
    let _caller = AbandonOnDrop(abandoned.clone());
    let task = tokio::task::spawn_blocking(move || {
        abandoned.check()?;
        work(&abandoned)
    });
    match task.await {
        Ok(result) => result,
        // The stack catches panics; it has to see this one as a panic and not as a failed file.
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        Err(_) => Err(ToolError::coded(
            "cancelled",
            "the runtime is shutting down",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[tokio::test]
    async fn work_learns_that_its_caller_went_away() {
        let (started, has_started) = tokio::sync::oneshot::channel();
        let (go_on, gate) = mpsc::channel::<()>();
        let (verdict, learned) = tokio::sync::oneshot::channel();
        let caller = tokio::spawn(run(move |abandoned| {
            let _ = started.send(());
            let _ = gate.recv();
            let _ = verdict.send(abandoned.check().is_err());
            Ok(())
        }));
        has_started.await.expect("the work starts");
        caller.abort();
        assert!(caller.await.unwrap_err().is_cancelled());
        drop(go_on);
        assert!(learned.await.expect("the work reports"));
    }
}
