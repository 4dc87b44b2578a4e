//! One run's place in the store.

use std::sync::Arc;

use holdfast_reliability::canonical::Digest;
use holdfast_reliability::store::StoreError;
use holdfast_reliability::store::documents::{DOCUMENT_BYTES_MAX, Document, Replaced, Replacement};
use tokio::sync::Mutex;

use super::hold::Hold;
use super::store::{RUN, RunStore, group};
use crate::run::RunState;

/// Why a run could not be kept.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Unkept {
    /// The state does not answer, or has no room.
    #[error("{0}")]
    Away(StoreError),
    /// It is not ours any more.
    #[error("{0}")]
    Taken(&'static str),
    /// It is larger than anything that is kept.
    #[error("it has grown to {0} bytes, and at most {DOCUMENT_BYTES_MAX} are kept")]
    TooLarge(usize),
}

/// One run's place in the store.
pub(super) struct Kept {
    hold: Arc<Hold>,
    client: String,
    /// The version that is ours to replace. Held while it is being replaced.
    last: Arc<Mutex<Last>>,
}

/// What is known of the last version, which the store has: not all of it a second time.
struct Last {
    version: u64,
    /// Of all of it, to know whether anything has changed.
    digest: Option<Digest>,
    /// The run without what makes it large.
    outline: RunState,
}

impl Last {
    fn of(version: u64, state: &RunState) -> Self {
        Self {
            version,
            digest: digest(state),
            outline: state.outline(),
        }
    }
}

/// What can not be written has none, and is never taken for unchanged.
fn digest(state: &RunState) -> Option<Digest> {
    let text = serde_json::to_vec(state).ok()?;
    Some(Digest::of(&text))
}

impl Kept {
    pub(super) fn of(hold: Arc<Hold>, document: &Document, client: &str, state: &RunState) -> Self {
        Self {
            hold,
            client: client.to_owned(),
            last: Arc::new(Mutex::new(Last::of(document.version, state))),
        }
    }

    /// The run as it was last kept. From a state that does not answer, without what was said in it: it
    /// is not written there either, as things are.
    pub(super) async fn last(&self, store: &RunStore) -> RunState {
        let last = self.last.lock().await;
        match store.get(&last.outline.id).await {
            Ok(run) if run.owner == store.name() => run.state,
            Ok(_) | Err(_) => last.outline.clone(),
        }
    }

    /// The run stays in hand as long as this does.
    pub(super) fn hold(&self) -> Arc<Hold> {
        self.hold.clone()
    }

    /// Who asked for it.
    pub(super) fn client(&self) -> &str {
        &self.client
    }

    /// Keeps the run, if it has changed and is still ours. A write goes on when nobody waits for it
    /// any more, and the next one waits for it: the store carries out what it was told.
    pub(super) async fn write(&self, store: &RunStore, state: &RunState) -> Result<(), Unkept> {
        let mut last = self.last.clone().lock_owned().await;
        let next = Last::of(last.version, state);
        if next.digest.is_some() && next.digest == last.digest {
            return Ok(());
        }
        let mut change = Replacement {
            kind: RUN.to_owned(),
            id: state.id.clone(),
            version: last.version,
            group: group(state).to_owned(),
            body: store.body(state, &self.client),
            expires_at_ms: Some(store.kept_until_ms(state)),
        };
        let documents = store.documents.clone();
        let (hold, owner) = (self.hold.clone(), store.name().to_owned());
        let writing = tokio::spawn(async move {
            let _hold = hold;
            loop {
                let replaced = documents.replace(change.clone()).await;
                return match replaced {
                    Ok(Replaced::Done(document)) => {
                        *last = Last {
                            version: document.version,
                            ..next
                        };
                        Ok(())
                    }
                    // An earlier write of ours was carried out, and its answer lost: nobody else
                    // here has it in hand.
                    Ok(Replaced::Changed(found)) if found.body["owner"] == owner => {
                        change.version = found.version;
                        continue;
                    }
                    Ok(Replaced::Changed(_)) => {
                        Err(Unkept::Taken("another process has taken it up"))
                    }
                    Ok(Replaced::Gone) => Err(Unkept::Taken("it was removed")),
                    Err(error) => Err(too_large(&change).unwrap_or(Unkept::Away(error))),
                };
            }
        });
        let cut_off = |error: tokio::task::JoinError| {
            Unkept::Away(StoreError::Unavailable(error.to_string()))
        };
        writing.await.map_err(cut_off)?
    }
}

/// Whether a change could never be kept.
fn too_large(change: &Replacement) -> Option<Unkept> {
    let bytes = change.body.to_string().len();
    (bytes > DOCUMENT_BYTES_MAX).then_some(Unkept::TooLarge(bytes))
}
