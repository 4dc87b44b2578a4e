//! The classification, row by row.

use super::Evidence::{MayHaveHappened, NoEffect};
use super::*;
use crate::retry::RetryOverrides;

/// A row reads: retriable, evidence, counts for the breaker.
#[track_caller]
fn check(classified: &Classified, expected: (bool, Evidence, bool)) {
    let seen = (
        classified.retriable,
        classified.evidence,
        classified.counts_for_breaker,
    );
    assert_eq!(seen, expected, "{classified:?}");
}

#[test]
fn http_statuses() {
    for (statuses, expected) in [
        (&[429, 503][..], (true, NoEffect, true)),
        (&[408, 500, 502, 504], (true, MayHaveHappened, true)),
        (
            &[506, 507, 508, 520, 522, 524, 529, 599],
            (true, MayHaveHappened, true),
        ),
        (&[501, 505, 511], (false, NoEffect, true)),
        (&[400, 401, 403, 404, 413, 422], (false, NoEffect, false)),
        (
            &[402, 405, 409, 410, 412, 415, 418, 423, 424, 451, 498],
            (false, NoEffect, false),
        ),
        (&[425], (true, NoEffect, false)),
        (&[499], (false, MayHaveHappened, false)),
        (
            &[0, 100, 200, 204, 303, 399, 600, u16::MAX],
            (false, MayHaveHappened, false),
        ),
    ] {
        for status in statuses {
            let classified = Classified::http(*status, Some(7));
            check(&classified, expected);
            assert_eq!(classified.code, format!("http_{status}"));
            assert_eq!(classified.retry_after_ms, Some(7));
        }
    }
}

#[test]
fn of_all_4xx_only_408_and_429_count() {
    let counted: Vec<u16> = (400..500)
        .filter(|status| Classified::http(*status, None).counts_for_breaker)
        .collect();
    assert_eq!(counted, [408, 429]);
}

#[test]
fn transport_codes() {
    use TransportCode as Code;
    for code in TransportCode::ALL {
        let (later, own) = match code {
            Code::ConnRefused
            | Code::NotFound
            | Code::EaiAgain
            | Code::EaiFail
            | Code::EaiNoData
            | Code::EaiNoName
            | Code::AddrNotAvail
            | Code::UndConnectTimeout => (NoEffect, false),
            Code::UndClosed | Code::UndDestroyed | Code::UndAborted => (MayHaveHappened, true),
            _ => (MayHaveHappened, false),
        };
        let classified = Classified::transport(*code, RequestSent::Maybe);
        check(&classified, (!own, later, !own));
        assert_eq!(classified.code, code.as_str());
        // Nothing that fails while connecting can have had an effect.
        check(
            &Classified::transport(*code, RequestSent::No),
            (!own, NoEffect, !own),
        );
    }
}

#[test]
fn codes_from_other_runtimes() {
    let named = |code| Classified::named(code, RequestSent::Maybe);
    check(&named("eai_again"), (true, NoEffect, true));
    check(&named("und_err_socket"), (true, MayHaveHappened, true));
    let unknown = named("CERT_HAS_EXPIRED");
    check(&unknown, (false, MayHaveHappened, true));
    assert_eq!(unknown.code, "CERT_HAS_EXPIRED");
}

#[test]
fn io_errors() {
    use io::ErrorKind as Kind;
    for (kind, code, expected) in [
        (Kind::TimedOut, "ETIMEDOUT", (true, MayHaveHappened, true)),
        (
            Kind::ConnectionReset,
            "ECONNRESET",
            (true, MayHaveHappened, true),
        ),
        (
            Kind::UnexpectedEof,
            "ECONNRESET",
            (true, MayHaveHappened, true),
        ),
        (
            Kind::ConnectionRefused,
            "ECONNREFUSED",
            (true, NoEffect, true),
        ),
        (
            Kind::ConnectionAborted,
            "ECONNABORTED",
            (true, MayHaveHappened, true),
        ),
        (Kind::BrokenPipe, "EPIPE", (true, MayHaveHappened, true)),
        (
            Kind::NotConnected,
            "ENOTCONN",
            (true, MayHaveHappened, true),
        ),
        (
            Kind::HostUnreachable,
            "EHOSTUNREACH",
            (true, MayHaveHappened, true),
        ),
        (
            Kind::NetworkUnreachable,
            "ENETUNREACH",
            (true, MayHaveHappened, true),
        ),
        (Kind::NetworkDown, "ENETDOWN", (true, MayHaveHappened, true)),
        (
            Kind::AddrNotAvailable,
            "EADDRNOTAVAIL",
            (true, NoEffect, true),
        ),
        (Kind::Interrupted, "io_busy", (true, MayHaveHappened, true)),
        (Kind::NotFound, "not_found", (false, NoEffect, false)),
        (
            Kind::PermissionDenied,
            "permission_denied",
            (false, NoEffect, false),
        ),
        (
            Kind::AlreadyExists,
            "already_exists",
            (false, NoEffect, false),
        ),
        (
            Kind::IsADirectory,
            "invalid_input",
            (false, NoEffect, false),
        ),
        (
            Kind::StorageFull,
            "io_error",
            (false, MayHaveHappened, true),
        ),
        (Kind::Other, "io_error", (false, MayHaveHappened, true)),
    ] {
        let classified = Classified::io(kind, RequestSent::Maybe);
        check(&classified, expected);
        assert_eq!(classified.code, code, "{kind:?}");
    }
    let unreachable = Classified::io(Kind::HostUnreachable, RequestSent::No);
    check(&unreachable, (true, NoEffect, true));
}

#[test]
fn failures_of_our_own_layers() {
    check(&Classified::timeout(), (true, MayHaveHappened, true));
    check(
        &Classified::throttled("rate_limited", Some(9)),
        (true, NoEffect, true),
    );
    check(
        &Classified::caller_mistake("invalid_arguments"),
        (false, NoEffect, false),
    );
    check(
        &Classified::cancelled(RequestSent::No),
        (false, NoEffect, false),
    );
    check(
        &Classified::cancelled(RequestSent::Maybe),
        (false, MayHaveHappened, false),
    );
    check(&Classified::circuit_open(Some(5)), (false, NoEffect, false));
    check(
        &Classified::unknown("weird"),
        (false, MayHaveHappened, true),
    );
}

#[test]
fn the_breaker_hears_of_failures_but_not_of_mistakes() {
    assert_eq!(
        Classified::timeout().attempt_result(),
        AttemptResult::Failure
    );
    assert_eq!(
        Classified::http(404, None).attempt_result(),
        AttemptResult::Neutral
    );
}

#[test]
fn a_tools_lists_change_what_is_retried_and_nothing_else() {
    let policy = RetryPolicy::try_from(RetryOverrides {
        retry_on: Some(["409", "weird", "503"].into_iter().collect()),
        never_retry_on: Some(["503", "timeout"].into_iter().collect()),
        ..RetryOverrides::default()
    })
    .unwrap();
    let under = |classified: Classified| classified.under(&policy);
    check(&under(Classified::http(409, None)), (true, NoEffect, false));
    check(
        &under(Classified::unknown("weird")),
        (true, MayHaveHappened, true),
    );
    check(&under(Classified::http(503, None)), (false, NoEffect, true));
    check(
        &under(Classified::timeout()),
        (false, MayHaveHappened, true),
    );
    check(
        &under(Classified::http(500, None)),
        (true, MayHaveHappened, true),
    );
}
