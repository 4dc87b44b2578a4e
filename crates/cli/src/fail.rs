//! An error that ends the command: what went wrong, and what to do next.

/// See the [module](self).
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Failure {
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
    pub(crate) exit_code: u8,
}

/// What a command gives back.
pub(crate) type Outcome<T> = Result<T, Failure>;

impl Failure {
    /// The command line or the configuration is wrong.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            hint: None,
            exit_code: 2,
        }
    }

    /// What was asked for could not be done.
    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            hint: None,
            exit_code: 1,
        }
    }

    /// The same, with advice.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl From<holdfast_reliability::store::StoreError> for Failure {
    fn from(error: holdfast_reliability::store::StoreError) -> Self {
        Self::failed(error.to_string())
    }
}
