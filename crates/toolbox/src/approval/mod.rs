//! Calls that wait for a person.
//!
//! | module | what it does |
//! |---|---|
//! | [`model`] | a request, its state, and rules made of answers |
//! | [`step`] | the life of a request as pure functions |
//! | [`service`] | keeps requests, takes answers, knows the rules |
//! | [`error`] | why an answer was not taken |
//! | [`layer`] | holds one call up until it may run |
//! | `own` | the requests of one intent |
//! | `adopt` | a call goes on with the request of an identical one whose asker is gone |
//! | [`orphans`] | asks whether an asker lives, and makes a request another call's |
//! | `start` | uses an approval for the one run it is for |
//! | `stop` | why a call that was to wait does not run |
//! | `unread` | requests that this version can not read |
//! | [`waiting`] | tells who listens that a call waits |
//! | [`resume`] | runs what was approved after its process had died |
//! | [`reply`] | answers written as messages |
//! | [`by_message`] | takes them, bound to their requests by a code |
//!
//! A request captures the call whole. What is run is what was shown: the digest of the arguments is
//! checked again right before the tool starts, and the step from approved to used is a
//! compare-and-set, so that one answer runs one call once, whoever comes first.

mod adopt;
pub mod by_message;
mod delivery;
pub mod error;
pub mod layer;
mod marks;
pub mod model;
pub mod orphans;
mod own;
pub mod reply;
pub mod resume;
pub mod service;
mod start;
pub mod step;
mod stop;
mod unread;
pub mod waiting;
mod withdraw;

pub use by_message::Heard;
pub use error::AnswerError;
pub use layer::Approve;
pub use model::{Approval, ApprovalRequest, ApprovalState, Rule, Wanted};
pub use resume::{ResumeWhich, Resumed, ResumedBy, resume_one, resume_open};
pub use service::Approvals;
pub use step::{Action, Refused};
