//! Every error code with its meaning and what to do next.
//!
//! One table: the envelope's `error.code`, the hint shown to people, and the reference pages under
//! `docs/errors/` all come from here.

/// A stable error code of Holdfast's own. Tools add codes of theirs (`http_503`, `ECONNRESET`, …).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorCode {
    /// The envelope is malformed.
    InvalidEnvelope,
    /// No such tool.
    ToolNotFound,
    /// The arguments do not fit the tool's schema.
    InvalidArguments,
    /// Not allowed.
    PermissionDenied,
    /// An admit hook said no.
    RefusedByHook,
    /// The same failing call again.
    LoopDetected,
    /// Too many failures in this turn.
    ToolErrorLimit,
    /// The key was used for another call.
    IdempotencyKeyConflict,
    /// A call with the key is running.
    DuplicateInFlight,
    /// Time ran out, harmlessly.
    Timeout,
    /// The effect may have happened.
    OutcomeUnknown,
    /// A breaker is open.
    CircuitOpen,
    /// A rate limit is used up.
    RateLimited,
    /// The record store can take no more.
    StoreFull,
    /// The record store can not be used.
    StoreUnavailable,
    /// The caller went away before anything ran.
    Cancelled,
    /// The tool tried and failed.
    ExecutionFailed,
    /// The tool panicked.
    ToolPanicked,
    /// The output does not fit.
    OutputTooLarge,
}

/// What the reference says about a code.
#[derive(Debug, Clone, Copy)]
pub struct CodeDoc {
    /// The code.
    pub code: ErrorCode,
    /// What happened, in one sentence.
    pub summary: &'static str,
    /// Whether an effect can have happened, and what is recorded.
    pub record: &'static str,
    /// What to do next.
    pub next: &'static str,
}

impl ErrorCode {
    /// The code as callers see it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::InvalidEnvelope => "invalid_envelope",
            Self::ToolNotFound => "tool_not_found",
            Self::InvalidArguments => "invalid_arguments",
            Self::PermissionDenied => "permission_denied",
            Self::RefusedByHook => "refused_by_hook",
            Self::LoopDetected => "loop_detected",
            Self::ToolErrorLimit => "tool_error_limit",
            Self::IdempotencyKeyConflict => "idempotency_key_conflict",
            Self::DuplicateInFlight => "duplicate_in_flight",
            Self::Timeout => "timeout",
            Self::OutcomeUnknown => "outcome_unknown",
            Self::CircuitOpen => "circuit_open",
            Self::RateLimited => "rate_limited",
            Self::StoreFull => "store_full",
            Self::StoreUnavailable => "store_unavailable",
            Self::Cancelled => "cancelled",
            Self::ExecutionFailed => "execution_failed",
            Self::ToolPanicked => "tool_panicked",
            Self::OutputTooLarge => "output_too_large",
        }
    }

    /// Whether repeating the call is pointless or dangerous.
    pub const fn is_terminal(self) -> bool {
        !matches!(
            self,
            Self::DuplicateInFlight
                | Self::Timeout
                | Self::CircuitOpen
                | Self::RateLimited
                | Self::StoreFull
                | Self::StoreUnavailable
                | Self::Cancelled
        )
    }

    /// Whether a later call with the same intent may succeed.
    pub const fn is_retriable(self) -> bool {
        !self.is_terminal()
    }

    /// The code's row in the reference.
    pub fn doc(self) -> &'static CodeDoc {
        // The table below has a row for every variant; a test holds it to that.
        CODES
            .iter()
            .find(|row| row.code == self)
            .unwrap_or(&CODES[0])
    }
}

/// The reference table.
pub const CODES: &[CodeDoc] = &[
    CodeDoc {
        code: ErrorCode::InvalidEnvelope,
        summary: "The call envelope is malformed; the message names the field.",
        record: "Nothing ran and nothing was recorded.",
        next: "Correct the named field. `holdfast schema envelope` prints the schema.",
    },
    CodeDoc {
        code: ErrorCode::ToolNotFound,
        summary: "There is no tool with this name.",
        record: "Nothing ran and nothing was recorded; the loop guard counts it as a validation failure.",
        next: "Use one of the names in the message, or list them with `holdfast tools`.",
    },
    CodeDoc {
        code: ErrorCode::InvalidArguments,
        summary: "The arguments do not fit the tool's schema; the message names the field, the reason and the field's schema.",
        record: "Nothing ran and nothing was recorded; the loop guard counts it as a validation failure.",
        next: "Correct the field. `holdfast tools TOOL` prints the whole schema.",
    },
    CodeDoc {
        code: ErrorCode::PermissionDenied,
        summary: "A policy, a missing capability or a refused approval forbids the call.",
        record: "Nothing ran and nothing was recorded.",
        next: "Read the rule in the message. Name another path, address or command that it allows, or do without; what a policy or the session forbids, only whoever keeps the configuration can allow.",
    },
    CodeDoc {
        code: ErrorCode::RefusedByHook,
        summary: "A configured admit hook refused the call or could not be asked.",
        record: "Nothing ran and nothing was recorded.",
        next: "Read the hook's reason in the message; an admit hook that fails or times out refuses.",
    },
    CodeDoc {
        code: ErrorCode::LoopDetected,
        summary: "The same call failed identically before, or repeats without progress, so it was not run again.",
        record: "Nothing ran and nothing was recorded; the blocked call counts toward the turn's limit.",
        next: "Try another approach. `holdfast explain REQUEST` shows what was counted. A new turn (`--turn NEW`) starts afresh.",
    },
    CodeDoc {
        code: ErrorCode::ToolErrorLimit,
        summary: "Too many tool calls failed in this turn; no tool runs until the turn ends.",
        record: "Nothing ran and nothing was recorded.",
        next: "End the turn and review the approach: a new turn (`--turn NEW`) starts afresh. `guard.maxFailuresPerTurn` sets the limit.",
    },
    CodeDoc {
        code: ErrorCode::IdempotencyKeyConflict,
        summary: "The idempotency key was used before with other arguments.",
        record: "Nothing ran; the first call's record is unchanged.",
        next: "Use a new key for a new intent, or set `reliability.onKeyConflict: independent`.",
    },
    CodeDoc {
        code: ErrorCode::DuplicateInFlight,
        summary: "A call with the same key is still running, and the caller asked not to wait (`bestEffort`).",
        record: "Nothing ran; the running call is not disturbed. HTTP status 409.",
        next: "Ask again later with the same key, or use `dedupeMode: enforced` to wait for the result.",
    },
    CodeDoc {
        code: ErrorCode::Timeout,
        summary: "Time ran out before a result was there, and a repeat is safe.",
        record: "If the tool ran, the failure is kept for 5 minutes.",
        next: "Call again with `dedupeMode: bestEffort`, or allow more time.",
    },
    CodeDoc {
        code: ErrorCode::OutcomeUnknown,
        summary: "The effect may or may not have happened: the call timed out, lost its connection or its process died after it had started.",
        record: "Recorded as unknown for 24 hours; duplicates get this answer, and the tool is not run again.",
        next: "Check whether the effect is there. If it is not, `holdfast dedupe clear KEY` allows the call again.",
    },
    CodeDoc {
        code: ErrorCode::CircuitOpen,
        summary: "The circuit breaker is open after repeated failures; the tool was not called.",
        record: "Nothing ran and the claim was released.",
        next: "Wait for the cooldown, or `holdfast breaker reset KEY` when the cause is mended.",
    },
    CodeDoc {
        code: ErrorCode::RateLimited,
        summary: "The configured rate limit of the tool or of what is behind it is used up; the tool was not called.",
        record: "Nothing ran and the claim was released. HTTP status 429.",
        next: "Call again after `retryAfterMs`. `rateLimit` of the tool, its class or its dependency sets the limit; with `maxWaitMs` calls wait for their turn.",
    },
    CodeDoc {
        code: ErrorCode::StoreFull,
        summary: "The record store is full and nothing in it can be evicted, so the call can not be protected.",
        record: "Nothing ran.",
        next: "Free disk space or raise the store's limits; `holdfast dedupe flush` removes finished records.",
    },
    CodeDoc {
        code: ErrorCode::StoreUnavailable,
        summary: "The record store can not be read or written, so the call can not be protected.",
        record: "Nothing ran.",
        next: "Read the cause in the message: a corrupt, read-only or locked database is named with its path, a Redis that is away with what it answers; `holdfast doctor` tries it. Then call again: nothing ran.",
    },
    CodeDoc {
        code: ErrorCode::Cancelled,
        summary: "The caller went away before the tool started.",
        record: "Nothing ran; kept as cancelled for 5 minutes, and a duplicate runs.",
        next: "Call again.",
    },
    CodeDoc {
        code: ErrorCode::ExecutionFailed,
        summary: "The tool ran and failed for a reason that would not change on a second try.",
        record: "The failure is kept for 5 minutes and given to duplicates.",
        next: "Read the message; change the arguments or the world it names.",
    },
    CodeDoc {
        code: ErrorCode::ToolPanicked,
        summary: "The tool's own code panicked; the process goes on.",
        record: "Unknown for a tool with effects, a failure kept for 5 minutes otherwise.",
        next: "This is a bug in the tool: report it with the request id.",
    },
    CodeDoc {
        code: ErrorCode::OutputTooLarge,
        summary: "The tool worked but its output is larger than a record may be.",
        record: "Recorded as done without its output; duplicates get this answer, and the tool is not run again.",
        next: "Ask for less (a range, a filter), or raise `reliability.store.payloadBytesMax`.",
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_its_own_row_and_name() {
        for row in CODES {
            assert_eq!(row.code.doc().summary, row.summary, "{}", row.code.as_str());
            assert_eq!(
                CODES
                    .iter()
                    .filter(|other| other.code.as_str() == row.code.as_str())
                    .count(),
                1
            );
        }
        // `OutputTooLarge` is the last variant: the count of rows has to reach it.
        assert_eq!(CODES.len(), ErrorCode::OutputTooLarge as usize + 1);
    }
}
