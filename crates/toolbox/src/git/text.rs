//! Bytes and paths in JSON: as they are where they are UTF-8, else in hexadecimal digits.

use std::ffi::OsString;
use std::fmt::Write;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Any bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Bytes(pub(super) Vec<u8>);

const AS_TEXT: &str = "t:";
const AS_HEX: &str = "x:";

/// Two hexadecimal digits a byte.
pub(super) fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        // Writing to a string can not fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let written = match std::str::from_utf8(&self.0) {
            Ok(text) => format!("{AS_TEXT}{text}"),
            Err(_) => format!("{AS_HEX}{}", hex(&self.0)),
        };
        serializer.serialize_str(&written)
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let written = String::deserialize(deserializer)?;
        if let Some(text) = written.strip_prefix(AS_TEXT) {
            return Ok(Self(text.as_bytes().to_vec()));
        }
        let hex = written.strip_prefix(AS_HEX).unwrap_or_default().as_bytes();
        let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
        let bytes: Option<Vec<u8>> = hex.chunks(2).map(byte).collect();
        bytes
            .map(Self)
            .ok_or_else(|| serde::de::Error::custom("no bytes"))
    }
}

impl From<&Path> for Bytes {
    fn from(path: &Path) -> Self {
        Self(path.as_os_str().as_bytes().to_vec())
    }
}

impl Bytes {
    pub(super) fn path(&self) -> PathBuf {
        OsString::from_vec(self.0.clone()).into()
    }

    pub(super) fn lossy(&self) -> String {
        String::from_utf8_lossy(&self.0).into_owned()
    }
}
