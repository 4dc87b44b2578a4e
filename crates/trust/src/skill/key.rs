//! ed25519 keys and signatures of skills.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use ed25519_dalek::{Signer, SigningKey, VerifyingKey};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::digest::{SkillDigest, from_hex, write_hex};

/// The file in a skill that holds its signature.
pub const SIGNATURE_FILE: &str = "SKILL.sig";
/// Size of a signature or key file.
pub const SIGNATURE_BYTES_MAX: usize = 4 * 1024;
/// The only format there is.
const VERSION: u32 = 1;
/// The first bytes of what is signed, so that it is never taken for something else.
const DOMAIN: &[u8] = b"holdfast-skill-signature-1\n";
/// How a key begins.
const PREFIX: &str = "ed25519:";

/// Why a key or signature can not be used.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// Not a key.
    #[error("{0:?} is no public key: ed25519: and 64 hex digits are")]
    NoKey(String),
    /// The operating system gives no random bytes.
    #[error("there is no randomness to be had: {0}")]
    NoRandomness(String),
    /// The file of a secret key holds something else.
    #[error("{} holds no secret key", .0.display())]
    NoSecret(PathBuf),
    /// Others can read a secret key.
    #[error("{} can be read by others than its owner", .0.display())]
    Open(PathBuf),
    /// A file can not be used.
    #[error("{}: {error}", .path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A signature file that is not one.
    #[error("{} is no signature: {why}", .path.display())]
    NoSignature {
        /// Which.
        path: PathBuf,
        /// Why.
        why: String,
    },
}

/// A key that signatures are checked with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicKey(VerifyingKey);

impl fmt::Display for PublicKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(PREFIX)?;
        write_hex(self.0.as_bytes(), out)
    }
}

impl FromStr for PublicKey {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        let bytes = text.trim().strip_prefix(PREFIX).and_then(from_hex::<32>);
        let key = bytes.and_then(|bytes| VerifyingKey::from_bytes(&bytes).ok());
        // A weak key would hold for signatures of others.
        key.filter(|key| !key.is_weak())
            .map(Self)
            .ok_or_else(|| KeyError::NoKey(text.to_owned()))
    }
}

impl Serialize for PublicKey {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for PublicKey {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let text = String::deserialize(input)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// A key that skills are signed with. Never printed.
pub struct SecretKey(SigningKey);

impl SecretKey {
    /// A new key, from the operating system's randomness.
    pub fn generate() -> Result<Self, KeyError> {
        let mut seed = [0; 32];
        getrandom::fill(&mut seed).map_err(|error| KeyError::NoRandomness(error.to_string()))?;
        Ok(Self::from_seed(&seed))
    }

    /// The key made of these random bytes.
    pub fn from_seed(seed: &[u8; 32]) -> Self {
        Self(SigningKey::from_bytes(seed))
    }

    /// Reads a key that nobody else can read.
    pub fn read(path: &Path) -> Result<Self, KeyError> {
        let file = File::open(path).map_err(|error| failed(path, error))?;
        let mode = file
            .metadata()
            .map_err(|error| failed(path, error))?
            .permissions()
            .mode();
        if mode & 0o077 != 0 {
            return Err(KeyError::Open(path.to_owned()));
        }
        let text = bounded(file).map_err(|error| failed(path, error))?;
        let seed = from_hex(text.trim()).ok_or_else(|| KeyError::NoSecret(path.to_owned()))?;
        Ok(Self::from_seed(&seed))
    }

    /// Writes the key to a new file that nobody else can read.
    pub fn write_new(&self, path: &Path) -> Result<(), KeyError> {
        let mut options = OpenOptions::new();
        let options = options.write(true).create_new(true).mode(0o600);
        let mut file = options.open(path).map_err(|error| failed(path, error))?;
        let seed = Hex(self.0.to_bytes());
        let written = writeln!(file, "{seed}").and_then(|()| file.sync_all());
        written.map_err(|error| failed(path, error))
    }

    /// The key that its signatures are checked with.
    pub fn public(&self) -> PublicKey {
        PublicKey(self.0.verifying_key())
    }

    /// Signs a skill as it is, under its name.
    pub fn sign(&self, name: &str, digest: SkillDigest) -> Signature {
        let signature = self.0.sign(&signed_text(name, digest));
        Signature {
            version: VERSION,
            key: self.public(),
            bytes: Hex(signature.to_bytes()),
        }
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("SecretKey").field(&self.public()).finish()
    }
}

/// What `SKILL.sig` holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Signature {
    version: u32,
    /// Who says that he signed.
    pub key: PublicKey,
    #[serde(rename = "signature")]
    bytes: Hex<64>,
}

impl Signature {
    /// The signature of the skill in this directory, if it has one.
    pub fn read(dir: &Path) -> Result<Option<Self>, KeyError> {
        let path = dir.join(SIGNATURE_FILE);
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(&path, error)),
        };
        let text = bounded(file).map_err(|error| failed(&path, error))?;
        let wrong = |why: String| KeyError::NoSignature {
            path: path.clone(),
            why,
        };
        let read: Self = serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
        if read.version != VERSION {
            return Err(wrong(format!("its version {} is not known", read.version)));
        }
        Ok(Some(read))
    }

    /// Puts it into the skill in this directory.
    pub fn write(&self, dir: &Path) -> Result<(), KeyError> {
        let path = dir.join(SIGNATURE_FILE);
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        std::fs::write(&path, text).map_err(|error| failed(&path, error))
    }

    /// Whether it is of the skill with this name and digest, by the key it names.
    pub fn holds(&self, name: &str, digest: SkillDigest) -> bool {
        let signature = ed25519_dalek::Signature::from_bytes(&self.bytes.0);
        let text = signed_text(name, digest);
        self.key.0.verify_strict(&text, &signature).is_ok()
    }
}

/// A name goes with it: a good skill is not to be passed for another.
fn signed_text(name: &str, digest: SkillDigest) -> Vec<u8> {
    let mut text = DOMAIN.to_vec();
    text.extend((name.len() as u64).to_be_bytes());
    text.extend(name.as_bytes());
    text.extend(digest.bytes());
    text
}

fn failed(path: &Path, error: io::Error) -> KeyError {
    KeyError::File {
        path: path.to_owned(),
        error,
    }
}

fn bounded(file: File) -> io::Result<String> {
    let mut text = String::new();
    file.take(SIGNATURE_BYTES_MAX as u64)
        .read_to_string(&mut text)?;
    Ok(text)
}

/// Bytes that are written as hex digits.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Hex<const N: usize>([u8; N]);

impl<const N: usize> fmt::Display for Hex<N> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(&self.0, out)
    }
}

impl<const N: usize> Serialize for Hex<N> {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.collect_str(self)
    }
}

impl<'de, const N: usize> Deserialize<'de> for Hex<N> {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let text = String::deserialize(input)?;
        let bytes = from_hex(&text);
        bytes
            .map(Self)
            .ok_or_else(|| serde::de::Error::custom(format!("{} hex digits are needed", 2 * N)))
    }
}
