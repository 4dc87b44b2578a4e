//! L5: skills as they were when somebody looked at them.
//!
//! A skill is a directory of instructions and scripts that an agent follows. Whoever can change one
//! commands every agent that uses it, so it is known by a digest over all of its files: pinned by a
//! person, signed by somebody whose key is configured, or at least seen before.

mod digest;
mod key;
mod register;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use digest::{SKILL_BYTES_MAX, SKILL_FILES_MAX, SkillDigest, SkillError, is_skill};
pub use key::{KeyError, PublicKey, SIGNATURE_BYTES_MAX, SIGNATURE_FILE, SecretKey, Signature};
pub use register::{Entry, REGISTER_BYTES_MAX, Register, RegisterError};

/// How well a skill is known, from the least.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Standing {
    /// Nobody has seen it before, or it has changed.
    Unknown,
    /// It is as it was when it was first seen.
    Known,
    /// Somebody whose key is configured has signed it as it is.
    Signed,
    /// A person has pinned it as it is.
    Pinned,
}

impl Standing {
    /// The name as it is written.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Known => "known",
            Self::Signed => "signed",
            Self::Pinned => "pinned",
        }
    }
}

/// What the signature of a skill turned out to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Signed {
    /// There is none.
    No,
    /// By this owner of a configured key.
    By(String),
    /// By a key that is not configured.
    ByStranger(PublicKey),
    /// Not of this skill as it is, or not readable.
    Broken(String),
}

/// What is wrong with a skill, whatever else speaks for it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SkillProblem {
    /// It is not as it was pinned.
    #[error("it has changed since it was pinned (was {was}, is {is})")]
    ChangedSincePinned {
        /// The pinned digest.
        was: SkillDigest,
        /// Its digest now.
        is: SkillDigest,
    },
    /// It is not as it was first seen.
    #[error("it has changed since it was first seen (was {was}, is {is})")]
    ChangedSinceSeen {
        /// The digest then.
        was: SkillDigest,
        /// Its digest now.
        is: SkillDigest,
    },
    /// Its signature is not its own.
    #[error("its signature does not hold: {0}")]
    BadSignature(String),
}

/// What can be said of a skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// How well it is known.
    pub standing: Standing,
    /// What is wrong with it.
    pub problems: Vec<SkillProblem>,
}

/// Judges a skill by what is on record and by its signature.
///
/// A pin that does not fit and a broken signature are wrong whatever else holds; a good signature
/// explains a change since the skill was merely seen.
pub fn judge(found: SkillDigest, entry: Option<&Entry>, signed: &Signed) -> Verdict {
    let mut problems = Vec::new();
    let mut standing = Standing::Unknown;
    if let Signed::By(_) = signed {
        standing = Standing::Signed;
    }
    if let Signed::Broken(why) = signed {
        problems.push(SkillProblem::BadSignature(why.clone()));
    }
    match entry {
        Some(entry) if entry.digest == found => {
            standing = standing.max(if entry.pinned {
                Standing::Pinned
            } else {
                Standing::Known
            });
        }
        Some(entry) if entry.pinned => problems.push(SkillProblem::ChangedSincePinned {
            was: entry.digest,
            is: found,
        }),
        Some(entry) if standing < Standing::Signed => {
            problems.push(SkillProblem::ChangedSinceSeen {
                was: entry.digest,
                is: found,
            });
        }
        Some(_) | None => {}
    }
    if !problems.is_empty() {
        standing = Standing::Unknown;
    }
    Verdict { standing, problems }
}
