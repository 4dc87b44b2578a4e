//! The arguments of a call in canonical form, written once and used by all who compare them.

use serde_json::Value;

use crate::canonical::{CanonicalOptions, Digest, FieldNames, Shows, write_noting};
use crate::scratch::Buffer;

/// The exact arguments without their volatile fields, in canonical form.
#[derive(Debug)]
pub(crate) struct CanonicalArguments {
    form: Buffer,
    shows: Shows,
}

impl CanonicalArguments {
    pub(crate) fn of(params: &Value, volatile_fields: &FieldNames) -> Self {
        let mut form = Buffer::borrow();
        let options = CanonicalOptions::params(volatile_fields);
        let shows = write_noting(params, &options, &mut form);
        Self { form, shows }
    }

    /// The form, if it shows all there is to the arguments.
    pub(crate) fn whole(&self) -> Option<&[u8]> {
        (self.shows == Shows::Everything).then_some(self.form.as_slice())
    }

    /// What tells these arguments from others.
    pub(crate) fn digest(&self) -> Digest {
        Digest::of(&self.form)
    }
}
