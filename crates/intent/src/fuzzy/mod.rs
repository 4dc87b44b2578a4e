//! Plain English.
use crate::doc::Doc;
use crate::raw::RawCall;
pub(crate) fn read(_doc: &Doc<'_>) -> Vec<RawCall> {
    Vec::new()
}
