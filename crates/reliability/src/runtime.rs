//! What all layers share.

use std::sync::{Arc, OnceLock};

use holdfast_contract::redact::Redactor;
use holdfast_contract::{Clock, Entropy, SystemClock, SystemEntropy};

use crate::canonical::{Digest, hex_chunk};
use crate::observe::{Event, Observer, Observers};
use crate::policy::Switches;
use crate::rate::SharedRateLimits;
use crate::retry::SharedRetryBudget;

/// Time, randomness, switches and observers of one stack.
pub struct Runtime {
    /// Wall time.
    pub clock: Arc<dyn Clock>,
    /// Randomness.
    pub entropy: Arc<dyn Entropy>,
    /// What can be switched at run time.
    pub switches: Switches,
    /// Takes secrets out of the errors that leave.
    pub redactor: Redactor,
    observers: Observers,
    shared_retries: OnceLock<Arc<dyn SharedRetryBudget>>,
    shared_limits: OnceLock<Arc<dyn SharedRateLimits>>,
}

impl Runtime {
    /// A runtime with the given time and randomness.
    pub fn new(clock: Arc<dyn Clock>, entropy: Arc<dyn Entropy>, observers: Observers) -> Self {
        Self {
            clock,
            entropy,
            switches: Switches::default(),
            redactor: Redactor::default(),
            observers,
            shared_retries: OnceLock::new(),
            shared_limits: OnceLock::new(),
        }
    }

    /// The operating system's time and randomness, and no observers.
    pub fn system() -> Self {
        Self::new(
            Arc::new(SystemClock),
            Arc::new(SystemEntropy),
            Observers::new(),
        )
    }

    /// Lets retries draw on a budget that other processes share. The first one stays.
    pub fn share_retries(&self, budget: Arc<dyn SharedRetryBudget>) {
        let _ = self.shared_retries.set(budget);
    }

    /// The budget that other processes share, if there is one.
    pub fn shared_retries(&self) -> Option<&dyn SharedRetryBudget> {
        self.shared_retries.get().map(|budget| &**budget)
    }

    /// Lets attempts keep to rate limits that other processes share. The first ones stay.
    pub fn share_limits(&self, limits: Arc<dyn SharedRateLimits>) {
        let _ = self.shared_limits.set(limits);
    }

    /// The rate limits that other processes share, if there are any.
    pub fn shared_limits(&self) -> Option<&dyn SharedRateLimits> {
        self.shared_limits.get().map(|limits| &**limits)
    }

    /// Tells the observers.
    pub fn tell(&self, event: &Event<'_>) {
        self.observers.observe(event);
    }

    /// A token nobody else has, safe as a file name.
    pub fn token(&self) -> Arc<str> {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.entropy.next_u64().to_be_bytes());
        bytes[8..].copy_from_slice(&self.entropy.next_u64().to_be_bytes());
        hex_chunk(&bytes, &mut [0; 2 * Digest::BYTES]).into()
    }
}
