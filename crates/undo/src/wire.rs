//! Numbers and texts as bytes, for trees and the index.

use crate::entry::Stamp;

/// Collects bytes.
#[derive(Default)]
pub(crate) struct Writer(Vec<u8>);

impl Writer {
    pub(crate) fn raw(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    pub(crate) fn u8(&mut self, number: u8) {
        self.0.push(number);
    }

    pub(crate) fn u32(&mut self, number: u32) {
        self.raw(&number.to_le_bytes());
    }

    pub(crate) fn u64(&mut self, number: u64) {
        self.raw(&number.to_le_bytes());
    }

    pub(crate) fn stamp(&mut self, (seconds, nanos): Stamp) {
        self.raw(&seconds.to_le_bytes());
        self.u32(nanos);
    }

    /// A text with its length. Names and link targets are far shorter than 4 GB.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.u32(u32::try_from(bytes.len()).unwrap_or(u32::MAX));
        self.raw(bytes);
    }

    pub(crate) fn done(self) -> Vec<u8> {
        self.0
    }
}

/// Takes bytes apart. Every method is `None` where the bytes end too early.
pub(crate) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(crate) fn is_done(&self) -> bool {
        self.0.is_empty()
    }

    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.array().map(u8::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    pub(crate) fn stamp(&mut self) -> Option<Stamp> {
        Some((i64::from_le_bytes(self.array()?), self.u32()?))
    }

    pub(crate) fn bytes(&mut self) -> Option<&'a [u8]> {
        let count = usize::try_from(self.u32()?).ok()?;
        self.take(count)
    }
}
