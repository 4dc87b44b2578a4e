//! The file with the pinned and known skills. It lives in the state directory, where no tool gets.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::digest::SkillDigest;

/// Size of the file.
pub const REGISTER_BYTES_MAX: usize = 16 * 1024 * 1024;
/// The only format there is.
const VERSION: u32 = 1;

/// Why the file can not be used.
#[derive(Debug, thiserror::Error)]
pub enum RegisterError {
    /// It can not be read or written.
    #[error("{} can not be used: {error}", .path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// It holds something else.
    #[error("{} is not as it was written: {why}", .path.display())]
    Content {
        /// Which.
        path: PathBuf,
        /// Why.
        why: String,
    },
}

/// A skill as it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Entry {
    /// Its digest then.
    pub digest: SkillDigest,
    /// Whether a person has pinned it, or it was merely seen.
    pub pinned: bool,
    /// When.
    pub at_ms: u64,
    /// Who pinned it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

/// The skills that are on record, by their directories.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Register {
    version: u32,
    /// By directory.
    pub skills: BTreeMap<PathBuf, Entry>,
}

impl Default for Register {
    fn default() -> Self {
        Self {
            version: VERSION,
            skills: BTreeMap::new(),
        }
    }
}

impl Register {
    /// Reads it; a file that is not there has no entries, and one that can not be read is an error:
    /// taking it for empty would make every changed skill a new one.
    pub fn read(path: &Path) -> Result<Self, RegisterError> {
        let failed = |error| RegisterError::File {
            path: path.to_owned(),
            error,
        };
        let wrong = |why| RegisterError::Content {
            path: path.to_owned(),
            why,
        };
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(failed(error)),
        };
        let mut text = String::new();
        file.take(REGISTER_BYTES_MAX as u64)
            .read_to_string(&mut text)
            .map_err(failed)?;
        let read: Self = serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
        if read.version != VERSION {
            return Err(wrong(format!("its version {} is not known", read.version)));
        }
        Ok(read)
    }

    /// Writes it whole: the old one or the new one is there, whatever happens.
    pub fn write(&self, path: &Path) -> Result<(), RegisterError> {
        let failed = |error| RegisterError::File {
            path: path.to_owned(),
            error,
        };
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        let mut beside = path.as_os_str().to_owned();
        beside.push(format!(".{}", std::process::id()));
        let beside = PathBuf::from(beside);
        let mut options = OpenOptions::new();
        let options = options.write(true).create(true).truncate(true).mode(0o600);
        let written = options.open(&beside).and_then(|mut file| {
            file.write_all(text.as_bytes())?;
            file.sync_all()
        });
        written
            .and_then(|()| std::fs::rename(&beside, path))
            .map_err(failed)
    }
}
