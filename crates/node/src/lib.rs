//! Holdfast for Node: the loop guard, the trust rules and the transcript checks, as an addon.
//!
//! It translates and decides nothing: what a call's outcome is, the host's plugin says
//! (`integrations/openclaw`); what follows from it, the guard says. Values cross as strings and plain
//! objects, and long texts as bytes.
//!
//! | module | what it gives |
//! |---|---|
//! | `guard` | the classes `GuardedCall` and `ToolGuard`: turns, verdicts, the texts that a model reads, the attribution log |
//! | `arguments` | a call's arguments, put together from what crosses |
//! | `outcome` | what became of a call, in words of JavaScript |
//! | `once` | the class `OnceLedger`: which calls with an effect outside were made already |
//! | `trust` | the class `TrustDesk`: whose words a session has read, and what is held because of them |
//! | `transcripts` | scan, repair and check sessions, off the event loop |
//! | `settings` | settings from JSON, with the name of the one that is wrong |
//! | `work` | what runs on a thread of Node's pool |
//! | `safely` | no panic crosses into Node |

mod arguments;
pub mod guard;
pub mod once;
pub mod outcome;
mod safely;
mod settings;
pub mod transcripts;
pub mod trust;
pub mod work;

use napi_derive::napi;

/// The version of the interface between the addon and its packages. One that finds another does not
/// use it.
const INTERFACE_VERSION: u32 = 5;

/// The version of the interface that this addon has.
#[napi]
pub fn interface_version() -> u32 {
    INTERFACE_VERSION
}

/// Panics, so that a test can show that Node lives on.
///
/// # Panics
///
/// Always, and only inside.
#[cfg(feature = "probe")]
#[napi]
pub fn probe_panic() -> napi::Result<u32> {
    #[expect(clippy::panic, reason = "that is what it is for")]
    safely::run(|| panic!("as asked"))
}
