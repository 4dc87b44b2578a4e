//! Who works on a run, and whether that process still lives.
//!
//! Each process holds a lock on a file of its own for as long as it lives. The kernel takes the lock
//! away when the process ends, however it ends.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The directory in the state directory.
const DIR: &str = "run-owners";

/// This process, as an owner of runs.
#[derive(Debug)]
pub struct Owner {
    name: String,
    held: Option<Held>,
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
        Ok(Self { name, held })
    }

    /// A process that shares its runs with nobody.
    pub fn alone(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            held: None,
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether another process still works on what it owns.
    pub fn is_other_alive(&self, other: &str) -> bool {
        let fits = |byte: u8| byte.is_ascii_alphanumeric();
        let Some(held) = &self.held else {
            return false;
        };
        if other == self.name || other.is_empty() || !other.bytes().all(fits) {
            return false;
        }
        let path = held.dir.join(other);
        let file = match File::open(&path) {
            Ok(file) => file,
            // What can not be found out is left alone.
            Err(error) => return error.kind() != io::ErrorKind::NotFound,
        };
        // Shared, so that two who look at once do not take each other for it.
        match file.try_lock_shared() {
            Ok(()) => {
                // A leftover of one that was killed.
                let _ = fs::remove_file(&path);
                false
            }
            Err(TryLockError::WouldBlock | TryLockError::Error(_)) => true,
        }
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        if let Some(held) = &self.held {
            let _ = fs::remove_file(held.dir.join(&self.name));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_lives_as_long_as_its_process_holds_on() {
        let dir = tempfile::tempdir().unwrap();
        let one = Owner::announced(dir.path(), "one").unwrap();
        let two = Owner::announced(dir.path(), "two").unwrap();
        assert!(one.is_other_alive("two") && two.is_other_alive("one"));
        assert!(!one.is_other_alive("one"), "oneself is no other");
        drop(two);
        assert!(!one.is_other_alive("two"));
        // What a killed process leaves: a file that nobody has locked.
        fs::write(dir.path().join(DIR).join("three"), b"").unwrap();
        assert!(!one.is_other_alive("three"));
        assert!(!dir.path().join(DIR).join("three").exists());
        assert!(!one.is_other_alive("../one") && !one.is_other_alive(""));
        assert!(!Owner::alone("x").is_other_alive("one"));
    }
}
