//! A digest over all files of a skill.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest, Sha256};

use super::key::SIGNATURE_FILE;

/// Files of one skill.
pub const SKILL_FILES_MAX: usize = 10_000;
/// Bytes of one skill.
pub const SKILL_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// How deep a skill's directories go.
const SKILL_DEPTH_MAX: usize = 32;
/// What makes a directory a skill.
const SKILL_FILE: &str = "SKILL.md";
/// The first bytes of what is hashed, so that it is never taken for something else.
const DOMAIN: &[u8] = b"holdfast-skill-1\n";

/// Whether a directory is a skill.
pub fn is_skill(dir: &Path) -> bool {
    dir.join(SKILL_FILE).is_file()
}

/// Why a skill has no digest.
#[derive(Debug, thiserror::Error)]
pub enum SkillError {
    /// No `SKILL.md` in it.
    #[error("{} is no skill: it has no SKILL.md", .0.display())]
    NoSkill(PathBuf),
    /// Something that is neither a file nor a directory.
    #[error("{} is neither a file nor a directory; what a link leads to can change unseen", .0.display())]
    Special(PathBuf),
    /// Too much of it.
    #[error("{} is too large to be verified", .0.display())]
    TooLarge(PathBuf),
    /// It can not be read.
    #[error("{} can not be read: {error}", .path.display())]
    Unreadable {
        /// What.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
}

/// SHA-256 over the names, the rights to run and the contents of all files but the signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SkillDigest([u8; 32]);

impl SkillDigest {
    /// The digest of the skill in this directory, as it is now.
    pub fn of(dir: &Path) -> Result<Self, SkillError> {
        let unreadable = |error| SkillError::Unreadable {
            path: dir.to_owned(),
            error,
        };
        // A link has the name of one skill and the files of another.
        if fs::symlink_metadata(dir).map_err(unreadable)?.is_symlink() {
            return Err(SkillError::Special(dir.to_owned()));
        }
        match fs::metadata(dir.join(SKILL_FILE)) {
            Ok(found) if found.is_file() => {}
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                return Err(unreadable(error));
            }
            Ok(_) | Err(_) => return Err(SkillError::NoSkill(dir.to_owned())),
        }
        let mut files = Vec::new();
        list(dir, dir, 0, &mut files)?;
        // By the bytes of their names, so that the order of a directory does not matter.
        files.sort();
        let mut whole = Sha256::new();
        whole.update(DOMAIN);
        let mut left_bytes = SKILL_BYTES_MAX;
        for name in files {
            let path = dir.join(&name);
            let (content, may_run) = of_file(&path, &mut left_bytes)?;
            let name = name.as_os_str().as_bytes();
            // Each part has a known length, so that no two skills are written alike.
            whole.update((name.len() as u64).to_be_bytes());
            whole.update(name);
            whole.update([u8::from(may_run)]);
            whole.update(content);
        }
        Ok(Self(whole.finalize().into()))
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

fn list(root: &Path, dir: &Path, depth: usize, files: &mut Vec<PathBuf>) -> Result<(), SkillError> {
    let unreadable = |path: &Path| {
        let path = path.to_owned();
        move |error| SkillError::Unreadable { path, error }
    };
    if depth > SKILL_DEPTH_MAX {
        return Err(SkillError::TooLarge(root.to_owned()));
    }
    for entry in fs::read_dir(dir).map_err(unreadable(dir))? {
        let entry = entry.map_err(unreadable(dir))?;
        let path = entry.path();
        let kind = entry.file_type().map_err(unreadable(&path))?;
        if kind.is_dir() {
            list(root, &path, depth + 1, files)?;
        } else if !kind.is_file() {
            return Err(SkillError::Special(path));
        } else if let Ok(name) = path.strip_prefix(root)
            && name != Path::new(SIGNATURE_FILE)
        {
            if files.len() >= SKILL_FILES_MAX {
                return Err(SkillError::TooLarge(root.to_owned()));
            }
            files.push(name.to_owned());
        }
    }
    Ok(())
}

fn of_file(path: &Path, left_bytes: &mut u64) -> Result<([u8; 32], bool), SkillError> {
    let unreadable = |error| SkillError::Unreadable {
        path: path.to_owned(),
        error,
    };
    let mut file = File::open(path).map_err(unreadable)?;
    let may_run = file.metadata().map_err(unreadable)?.permissions().mode() & 0o111 != 0;
    let mut content = Sha256::new();
    let mut part = vec![0; 64 * 1024];
    loop {
        let count = file.read(&mut part).map_err(unreadable)?;
        if count == 0 {
            return Ok((content.finalize().into(), may_run));
        }
        *left_bytes = left_bytes
            .checked_sub(count as u64)
            .ok_or_else(|| SkillError::TooLarge(path.to_owned()))?;
        content.update(&part[..count]);
    }
}

/// Reads hex digits.
pub(super) fn from_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    if text.len() != 2 * N || !text.is_ascii() {
        return None;
    }
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    Some(bytes)
}

/// Writes hex digits.
pub(super) fn write_hex(bytes: &[u8], out: &mut fmt::Formatter<'_>) -> fmt::Result {
    bytes.iter().try_for_each(|byte| write!(out, "{byte:02x}"))
}

impl fmt::Display for SkillDigest {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("sha256:")?;
        write_hex(&self.0, out)
    }
}

impl FromStr for SkillDigest {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let hex = text.strip_prefix("sha256:").and_then(from_hex);
        hex.map(Self)
            .ok_or_else(|| format!("{text:?} is no digest: sha256: and 64 hex digits are"))
    }
}

impl Serialize for SkillDigest {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for SkillDigest {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let text = String::deserialize(input)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}
