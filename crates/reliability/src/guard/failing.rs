//! When a failing call has failed often enough, and what is said then.
//!
//! A call that can not work is told at the second identical failure. A command that says no may be asking
//! whether something is ready yet: as long as time passes between its attempts it is a probe, and may go on
//! for longer.

use super::config::GuardConfig;
use super::failures::{Counted, Family};
use super::identity::CallIdentity;
use super::text;
use super::verdict::{Advice, Block, BlockCode, GuardAction};

/// A call that has failed too often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failing {
    /// The same call, and no waiting would help.
    Identical { allowed: u32, failed: u32 },
    /// The same command, again and again at once.
    Impatient { allowed: u32, failed: u32 },
    /// The same command, also after waiting often enough.
    InVain { allowed: u32, failed: u32 },
}

impl Failing {
    /// Whether it has.
    pub(super) fn of(family: Family, counted: Counted, config: &GuardConfig) -> Option<Self> {
        let allowed = config.max_identical_failures;
        let Counted { in_a_row, attempts } = counted;
        if family != Family::NonZeroExit {
            return (in_a_row >= allowed).then_some(Self::Identical {
                allowed,
                failed: in_a_row,
            });
        }
        // Whoever allows more failures than probes means both.
        let probes = config.max_identical_probes.max(allowed);
        if attempts >= probes {
            return Some(Self::InVain {
                allowed: probes,
                failed: attempts,
            });
        }
        (in_a_row >= allowed).then_some(Self::Impatient {
            allowed,
            failed: attempts,
        })
    }

    fn text(self, name: &str) -> String {
        match self {
            Self::Identical { allowed, .. } | Self::InVain { allowed, .. } => {
                text::loop_detected(name, allowed)
            }
            Self::Impatient { allowed, .. } => text::command_loop_detected(name, allowed),
        }
    }

    fn why(self, name: &str, config: &GuardConfig) -> String {
        let (failed, setting) = match self {
            Self::Identical { allowed, failed } | Self::Impatient { allowed, failed } => {
                (failed, format!("maxIdenticalFailures = {allowed}"))
            }
            Self::InVain { allowed, failed } => (failed, format!("maxIdenticalProbes = {allowed}")),
        };
        let since = match self {
            Self::Identical { .. } => {
                "nothing has changed since that could make it work".to_owned()
            }
            Self::InVain { .. } => "waiting in between changed nothing".to_owned(),
            Self::Impatient { .. } => format!(
                "neither has anything changed since that could make it work, nor did tools take \
                 {} ms (probeWaitMs)",
                config.probe_wait_ms
            ),
        };
        format!(
            "This call of {name:?} failed {failed} times in this turn with the same arguments and the \
             same error ({setting}), and {since}.",
        )
    }
}

pub(super) fn block_failing(
    call: &CallIdentity<'_>,
    failing: Failing,
    config: &GuardConfig,
) -> Block {
    Block {
        code: BlockCode::LoopDetected,
        text: failing.text(call.name()),
        why: failing.why(call.name(), config),
    }
}

pub(super) fn advise_loop(call: &CallIdentity<'_>, failing: Failing, advice: &mut Advice) {
    advice.texts.push(failing.text(call.name()));
    advice.action = GuardAction::LoopDetected;
}
