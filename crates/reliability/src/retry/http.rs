//! What an HTTP status says about a failed call.

use std::borrow::Cow;

use super::classify::{Classified, Evidence};

/// The meaning of a status, in the order of the questions that are asked of it.
struct Meaning {
    retriable: bool,
    evidence: Evidence,
    counts_for_breaker: bool,
}

impl Meaning {
    /// The server refused before it did anything, and may take it later.
    const LATER: Self = Self::of(true, Evidence::NoEffect, true);
    /// The server, or something before it, failed in the middle.
    const FAILED: Self = Self::of(true, Evidence::MayHaveHappened, true);
    /// The request is wrong and will stay wrong.
    const OUR_MISTAKE: Self = Self::of(false, Evidence::NoEffect, false);
    /// The server can not do this at all.
    const NEVER: Self = Self::of(false, Evidence::NoEffect, true);
    /// Refused before anything was done, for a reason that lies in how we asked.
    const ASK_AGAIN: Self = Self::of(true, Evidence::NoEffect, false);
    /// Not a failure, or one whose meaning nobody knows: no proof of anything.
    const UNCLEAR: Self = Self::of(false, Evidence::MayHaveHappened, false);

    const fn of(retriable: bool, evidence: Evidence, counts_for_breaker: bool) -> Self {
        Self {
            retriable,
            evidence,
            counts_for_breaker,
        }
    }
}

/// The table of statuses. One that is not named counts as the x00 of its class, as RFC 9110
/// (section 15) asks of every client.
const fn meaning(status: u16) -> Meaning {
    match status {
        // 429 and 503 say that the request was turned away.
        429 | 503 => Meaning::LATER,
        // The server gave up waiting for the rest of the request; part of it was there.
        408 => Meaning::FAILED,
        // RFC 8470: the server was not willing to risk a replay, and did nothing.
        425 => Meaning::ASK_AGAIN,
        // 400, 401, 403, 404, 409, 413, 422 and all their neighbours.
        400..=498 => Meaning::OUR_MISTAKE,
        // Not implemented, version not supported, log in to the network first.
        501 | 505 | 511 => Meaning::NEVER,
        // 500, 502, 504, and what proxies add (520 to 529): the request may have got through.
        500..=599 => Meaning::FAILED,
        // Successes, redirects and numbers that are no status. Also 499, which some gateways
        // report for a request that its caller left: it may have got through before.
        _ => Meaning::UNCLEAR,
    }
}

/// The code of a status, without an allocation for those that are seen in practice.
fn code(status: u16) -> Cow<'static, str> {
    Cow::Borrowed(match status {
        400 => "http_400",
        401 => "http_401",
        403 => "http_403",
        404 => "http_404",
        408 => "http_408",
        409 => "http_409",
        413 => "http_413",
        422 => "http_422",
        429 => "http_429",
        500 => "http_500",
        502 => "http_502",
        503 => "http_503",
        504 => "http_504",
        other => return Cow::Owned(format!("http_{other}")),
    })
}

/// Classifies a status; see [`Classified::http`].
pub(super) fn classify(status: u16, retry_after_ms: Option<u64>) -> Classified {
    let Meaning {
        retriable,
        evidence,
        counts_for_breaker,
    } = meaning(status);
    Classified {
        code: code(status),
        retriable,
        evidence,
        counts_for_breaker,
        retry_after_ms,
    }
}
