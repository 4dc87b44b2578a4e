//! The loop guard: ends what a model would go on doing for ever.
//!
//! A model that calls `read({})` gets an error, and calls `read({})` again; left alone it does so
//! until its context is full. The guard watches the calls of one turn and speaks up in steps:
//!
//! | layer | what it sees | what it does |
//! |---|---|---|
//! | A | an error that the call itself causes | tags it `[NON-RETRYABLE]` |
//! | B | the same call failing the same way | the second answer says `[LOOP DETECTED]`, the third call does not run |
//! | C | failures of any kind | the fifth answer says `[TOOL ERROR LIMIT]`, no tool runs until the turn ends |
//! | D | which model did it | an entry for the attribution log |
//!
//! Beside failures it counts results without progress: calls that keep returning what they have
//! returned before, alone or taking turns, are told so and later cut.
//!
//! # What is not a loop
//!
//! Most of the rules are about leaving real work alone. A command that exits non-zero has given
//! a result; asked again after tools have taken [`GuardConfig::probe_wait_ms`], it is a probe that waits for
//! something, and may repeat itself [`GuardConfig::max_identical_probes`] times. A change that succeeds for the first time gives everything that failed in execution another
//! chance, so edit, test, edit, test can go on as long as it takes; it does not excuse a call that
//! was wrong in itself. Distinct successes in a row forgive an earlier failure. A result that is new starts
//! all counting of repeats over. A call that is spelled differently, although it means the same, is
//! counted together with the others but always gets its one try: the spelling may have been the mistake.
//!
//! # How a host uses it
//!
//! The guard is a plain value with two steps, [`TurnState::check`] before a call and
//! [`TurnState::observe`] after it. It has no clock, does no I/O and knows no host; one that knows how long
//! a call took says so with [`TurnState::passed`]. A turn is a
//! [`TurnState`]; a new turn starts with a new one. A host that replays a transcript does the same
//! steps over recorded calls.
//!
//! ```
//! use holdfast_reliability::guard::{
//!     CallIdentity, GuardConfig, Observation, OutputDigest, TurnState, Verdict, decorate_output,
//! };
//! use serde_json::json;
//!
//! let config = GuardConfig::default();
//! let mut turn = TurnState::default();
//! let args = json!({ "command": "git status" });
//! let call = CallIdentity::of("exec", &args);
//!
//! assert_eq!(turn.check(&call, &config), Verdict::Run);
//! let output = "nothing to commit";
//! let advice = turn.observe(
//!     &call,
//!     &Observation::Succeeded {
//!         mutating: true,
//!         polls: false,
//!         output: OutputDigest::of_text(output),
//!     },
//!     &config,
//! );
//! assert_eq!(decorate_output(output, &advice), "nothing to commit");
//! ```
//!
//! Its memory is bounded. When it is full, what was seen longest ago is forgotten, successes and
//! failures apart; forgetting makes a call new again and so never leads to a refusal.

mod answers;
mod attribution;
pub mod attribution_log;
mod byte_classes;
mod calls;
mod classify;
mod config;
mod digits;
mod failing;
mod failures;
mod hash;
mod identity;
mod layer;
mod output;
mod receipt;
mod rounds;
mod signature;
mod state;
mod store;
mod text;
mod verdict;
mod volatile;

pub use answers::{ANSWERS_KEPT_MAX, RecordMark};
pub use attribution::{
    ARGS_BYTES_MAX, AttributionEntry, ERROR_BYTES_MAX, attribute_model, model_from_call_id,
};
pub use calls::{CALLS_KEPT_MAX, OUTCOMES_KEPT_MAX, VARYING_WINDOW_MS};
pub use classify::{ErrorClass, classify_error, classify_failure};
pub use config::{FORGIVE_AFTER_MAX, GuardConfig, GuardConfigError};
pub use failures::{FAILURES_KEPT_MAX, FORMS_KEPT_MAX, VALIDATION_TOOLS_KEPT_MAX};
pub use identity::{CallIdentity, KeptIdentity};
pub use layer::Guard;
pub use output::{ExitDigest, OutputDigest};
pub use receipt::Receipt;
pub use rounds::Sent;
pub use signature::{ErrorSignature, SIGNATURE_BYTES_MAX};
pub use state::{STATE_VERSION, TurnState};
pub use store::{Checked, GuardStore, IMPLICIT_TURN_IDLE_MS, TURN_IDLE_MS_MAX, TURNS_MAX, TurnKey};
pub use text::{
    NON_RETRYABLE_TAG, TOOL_ERROR_LIMIT_TAG, decorate_error, decorate_output, error_suffix,
    output_suffix,
};
pub use verdict::{Advice, Block, BlockCode, FailureKind, GuardAction, Observation, Verdict};
