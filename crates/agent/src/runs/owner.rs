//! Who works on a run, and whether that process still lives.
//!
//! Each process holds a lock on a file of its own for as long as it lives. The kernel takes the lock
//! away when the process ends, however it ends. Processes on other machines do not see it: where runs
//! are kept for several machines, each process has a lease in that store as well, and renews it.

use std::collections::HashSet;
use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use holdfast_contract::Clock;
use holdfast_reliability::store::StoreResult;
use holdfast_reliability::store::documents::{
    Created, DocumentStore, NewDocument, Replaced, Replacement,
};
use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::OnceCell;
use tokio::task::JoinHandle;

use super::RUN_OWNER_LEASE_MS;

/// The directory in the state directory.
const DIR: &str = "run-owners";
/// The kind of a lease's document.
const LEASE: &str = "run-owner";

/// This process, as an owner of runs.
pub struct Owner {
    name: String,
    held: Option<Held>,
    lease: Option<Lease>,
    /// Processes of this machine that were found dead: their leases speak for them a while longer.
    dead: Mutex<HashSet<String>>,
}

/// What processes on other machines see of one.
struct Lease {
    documents: Arc<dyn DocumentStore>,
    clock: Arc<dyn Clock>,
    /// Renews it, once it is there.
    renewing: OnceCell<JoinHandle<()>>,
}

#[derive(Debug)]
struct Held {
    dir: PathBuf,
    _locked: File,
}

impl Owner {
    /// A process whose runs others on the state directory may see. The name has to be its own, made
    /// of letters and digits.
    pub fn announced(state_dir: &Path, name: impl Into<String>) -> io::Result<Self> {
        let name = name.into();
        let dir = state_dir.join(DIR);
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&dir)?;
        let new = dir.join(format!("{name}.new"));
        let file = fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&new)?;
        file.lock()?;
        // Nobody sees it before it is locked.
        fs::rename(&new, dir.join(&name))?;
        let held = Some(Held { dir, _locked: file });
        Ok(Self {
            name,
            held,
            lease: None,
            dead: Mutex::default(),
        })
    }

    /// The same, seen by processes on other machines too.
    #[must_use]
    pub fn leased(mut self, documents: Arc<dyn DocumentStore>, clock: Arc<dyn Clock>) -> Self {
        self.lease = Some(Lease {
            documents,
            clock,
            renewing: OnceCell::new(),
        });
        self
    }

    /// To be had before the first run is this process's: others see it from then on.
    pub(super) async fn announce(&self) -> StoreResult<()> {
        let Some(lease) = &self.lease else {
            return Ok(());
        };
        let begun = lease.renewing.get_or_try_init(|| async {
            renew(&*lease.documents, &*lease.clock, &self.name).await?;
            let (documents, clock) = (lease.documents.clone(), lease.clock.clone());
            let name = self.name.clone();
            Ok(tokio::spawn(async move {
                loop {
                    tokio::time::sleep(Duration::from_millis(RUN_OWNER_LEASE_MS / 3)).await;
                    // What could not be renewed now is tried again well before its end.
                    let _ = renew(&*documents, &*clock, &name).await;
                }
            }))
        });
        begun.await.map(|_| ())
    }

    /// A process that shares its runs with nobody.
    pub fn alone(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            held: None,
            lease: None,
            dead: Mutex::default(),
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether another process still works on what it owns: the kernel knows of this machine's, and
    /// a lease speaks for those of others.
    pub async fn is_other_alive(&self, other: &str) -> bool {
        if other == self.name {
            return false;
        }
        if let Some(known) = self.is_alive_here(other) {
            return known;
        }
        match &self.lease {
            None => false,
            // What can not be found out is left alone.
            Some(lease) => !matches!(lease.documents.document(LEASE, other).await, Ok(None)),
        }
    }

    /// What this machine knows of a process; nothing when it knows of none.
    fn is_alive_here(&self, other: &str) -> Option<bool> {
        let fits = |byte: u8| byte.is_ascii_alphanumeric();
        let held = self.held.as_ref()?;
        if other.is_empty() || !other.bytes().all(fits) {
            return None;
        }
        if self.dead.lock().contains(other) {
            return Some(false);
        }
        let path = held.dir.join(other);
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            // What can not be found out is left alone.
            Err(_) => return Some(true),
        };
        // Shared, so that two who look at once do not take each other for it.
        match file.try_lock_shared() {
            Ok(()) => {
                // A leftover of one that was killed.
                self.dead.lock().insert(other.to_owned());
                let _ = fs::remove_file(&path);
                Some(false)
            }
            Err(TryLockError::WouldBlock | TryLockError::Error(_)) => Some(true),
        }
    }
}

/// Makes the lease, or makes it longer.
async fn renew(documents: &dyn DocumentStore, clock: &dyn Clock, name: &str) -> StoreResult<()> {
    let expires_at_ms = Some(clock.now_ms().saturating_add(RUN_OWNER_LEASE_MS));
    let new = NewDocument {
        kind: LEASE.to_owned(),
        id: name.to_owned(),
        group: String::new(),
        body: json!({}),
        expires_at_ms,
    };
    if let Created::Exists(found) = documents.create(new).await? {
        let mut change = Replacement::of(&found, json!({}));
        change.expires_at_ms = expires_at_ms;
        // Nobody else renews it.
        let _: Replaced = documents.replace(change).await?;
    }
    Ok(())
}

impl Drop for Owner {
    fn drop(&mut self) {
        if let Some(held) = &self.held {
            let _ = fs::remove_file(held.dir.join(&self.name));
        }
        if let Some(renewing) = self.lease.as_ref().and_then(|lease| lease.renewing.get()) {
            renewing.abort();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_owner_lives_as_long_as_its_process_holds_on() {
        let dir = tempfile::tempdir().unwrap();
        let one = Owner::announced(dir.path(), "one").unwrap();
        let two = Owner::announced(dir.path(), "two").unwrap();
        assert!(one.is_other_alive("two").await && two.is_other_alive("one").await);
        assert!(!one.is_other_alive("one").await, "oneself is no other");
        drop(two);
        assert!(!one.is_other_alive("two").await);
        // What a killed process leaves: a file that nobody has locked.
        fs::write(dir.path().join(DIR).join("three"), b"").unwrap();
        assert!(!one.is_other_alive("three").await);
        assert!(!dir.path().join(DIR).join("three").exists());
        assert!(!one.is_other_alive("../one").await && !one.is_other_alive("").await);
        assert!(!Owner::alone("x").is_other_alive("one").await);
    }

    #[tokio::test(start_paused = true)]
    async fn on_another_machine_a_lease_speaks_for_an_owner() {
        use holdfast_reliability::store::memory::MemoryDocumentStore;
        use holdfast_testkit::TokioClock;

        let clock = Arc::new(TokioClock::new());
        let shared = Arc::new(MemoryDocumentStore::new(clock.clone()));
        let at = |name: &str| Owner::alone(name).leased(shared.clone(), clock.clone());
        let (one, two) = (at("one"), at("two"));
        assert!(!two.is_other_alive("one").await, "nobody has heard of it");
        one.announce().await.unwrap();
        for _ in 0..10 {
            tokio::time::sleep(Duration::from_millis(RUN_OWNER_LEASE_MS)).await;
            assert!(two.is_other_alive("one").await, "it renews its lease");
        }
        // One that was killed on this machine is dead, whatever its lease says.
        let dir = tempfile::tempdir().unwrap();
        let three = Owner::announced(dir.path(), "three").unwrap();
        let three = three.leased(shared.clone(), clock.clone());
        fs::write(dir.path().join(DIR).join("one"), b"").unwrap();
        assert!(!three.is_other_alive("one").await && !three.is_other_alive("one").await);
        drop(one);
        assert!(two.is_other_alive("one").await, "nobody can know yet");
        tokio::time::sleep(Duration::from_millis(RUN_OWNER_LEASE_MS)).await;
        assert!(!two.is_other_alive("one").await);
    }
}
