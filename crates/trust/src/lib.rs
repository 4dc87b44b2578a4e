//! Where a text comes from, what a tool may do with it, and what speaks against it.
//!
//! All of it is pure: values in, values out. The layer that drives it for calls is
//! `holdfast_toolbox::trust`.
//!
//! | module | layer | what it holds |
//! |---|---|---|
//! | [`provenance`] | L1 | tags with a trust; merging takes the lowest |
//! | [`capability`] | L2 | families and actions, and what is granted |
//! | [`manifest`] | L2 | what each tool needs, and the built-in manifests |
//! | [`mod@check`] | L2 | a call against its tool's manifest |
//! | [`signal`] | L4 | what in a text speaks for an attack; advisory |
//! | [`session`] | L1, L4 | what a session has read, and what is held because of it |
//! | [`skill`] | L5 | skills pinned by their hash and signed with ed25519 |
//! | [`host`] | L1, L2, L4 | the same rules for a host with sessions and tools of its own |
//! | [`config`] | | `trust:` in the configuration |

pub mod capability;
pub mod check;
pub mod config;
pub mod host;
pub mod limits;
pub mod manifest;
pub mod provenance;
pub mod session;
pub mod signal;
pub mod skill;

pub use capability::{Capability, Family, Grant};
pub use check::{Facts, Violation, check, host_rule};
pub use config::{OnHold, TrustConfig, TrustMode};
pub use manifest::Manifest;
pub use provenance::{Link, Provenance};
pub use session::{Hold, SessionTrust};
pub use signal::{Finding, Findings, SignalKind};
