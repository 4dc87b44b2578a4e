//! How many calls may begin in a time.
//!
//! A limit belongs to a tool or to a dependency that several tools share. Nothing is limited unless
//! the configuration says so. Each attempt takes one place, since each is a request to what is
//! behind the tool.
//!
//! | file | what it does |
//! |---|---|
//! | `limit` | a limit as it is written, and checked |
//! | `step` | when the next call may begin: pure |
//! | `local` | the places of this process |
//! | `shared` | the places of all processes, asked besides our own |
//! | `layer` | lets an attempt begin, wait, or end as `rate_limited` |

mod layer;
mod limit;
mod local;
mod shared;
mod step;

pub use layer::RateLimited;
pub use limit::{
    RATE_CALLS_MAX, RATE_WAIT_MS_MAX, RATE_WINDOW_MS_DEFAULT, RATE_WINDOW_MS_MAX, RateLimit,
    RateLimitOverrides, ToolLimit,
};
pub use local::LocalLimits;
pub use shared::{LIMITS_PER_CALL_MAX, SharedRateLimits, Taken};
pub use step::{Step, step};
