//! Who may do what: the availability table, the tiers, approvals and the tree of sessions.

#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a helper that fails is a test that fails"
)]

#[path = "permission/adopted.rs"]
mod adopted;
#[path = "permission/adopted_marks.rs"]
mod adopted_marks;
#[path = "permission/adopted_stories.rs"]
mod adopted_stories;
#[path = "permission/aliases.rs"]
mod aliases;
#[path = "permission/approval.rs"]
mod approval;
#[path = "permission/at_once.rs"]
mod at_once;
#[path = "permission/availability.rs"]
mod availability;
#[path = "permission/bench.rs"]
mod bench;
#[path = "permission/forced.rs"]
mod forced;
#[path = "permission/handed.rs"]
mod handed;
#[path = "permission/holds.rs"]
mod holds;
#[path = "permission/lapsed.rs"]
mod lapsed;
#[path = "permission/mains.rs"]
mod mains;
#[path = "permission/messages.rs"]
mod messages;
#[path = "permission/policy.rs"]
mod policy;
#[path = "permission/requests.rs"]
mod requests;
#[path = "permission/rules.rs"]
mod rules;
#[path = "permission/sessions.rs"]
mod sessions;
#[path = "permission/shown.rs"]
mod shown;
#[path = "permission/spent.rs"]
mod spent;
#[path = "permission/stalled.rs"]
mod stalled;
#[path = "permission/starting.rs"]
mod starting;
#[path = "permission/steps.rs"]
mod steps;
#[path = "permission/trust.rs"]
mod trust;
#[path = "permission/unread.rs"]
mod unread;
