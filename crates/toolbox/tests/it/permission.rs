//! Who may do what: the availability table, the tiers, approvals and the tree of sessions.

mod adopted;
mod adopted_marks;
mod adopted_stories;
mod aliases;
mod approval;
mod at_once;
mod availability;
mod bench;
mod forced;
mod handed;
mod holds;
mod lapsed;
mod mains;
mod messages;
mod policy;
mod requests;
mod rules;
mod sessions;
mod shown;
mod spent;
mod stalled;
mod starting;
mod steps;
mod trust;
mod unattended;
mod unread;
