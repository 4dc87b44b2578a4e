//! `holdfast serve`, the real binary on a real port.

mod abuse;
mod admin;
mod approvals;
mod calls;
mod ending;
mod messages;
mod modes;
mod villain;
