//! The limits of this crate, for the reference page.

use holdfast_contract::Limit;

/// The largest request body.
pub const BODY_BYTES_MAX: usize = holdfast_contract::envelope::ENVELOPE_BYTES_MAX;
/// The largest body of `POST /tools/invoke`, as in the gateway.
pub const INVOKE_BODY_BYTES_MAX: usize = 2 * 1024 * 1024;
/// The largest body of an admin action.
pub const ADMIN_BODY_BYTES_MAX: usize = 64 * 1024;
/// The largest request head: request line and headers.
pub const HEAD_BYTES_MAX: usize = 16 * 1024;
/// The smallest `headBytesMax`; the HTTP library can not do with less.
pub const HEAD_BYTES_MIN: usize = 8 * 1024;
/// Headers of one request.
pub const HEADERS_MAX: usize = 100;
/// How long a request's head may take, and how long a connection may be idle before it.
pub const HEAD_MS_MAX: u64 = 15_000;
/// How long a request's body may take.
pub const BODY_MS_MAX: u64 = 30_000;
/// How long a client may refuse to take any of its answer.
pub const WRITE_STALL_MS_MAX: u64 = 30_000;
/// Open connections.
pub const CONNECTIONS_MAX: usize = 512;
/// Tool calls being answered at once.
pub const CALLS_MAX: usize = 256;
/// How long calls may go on after the server was told to end.
pub const SHUTDOWN_MS_MAX: u64 = 30_000;
/// How long cancelled calls and unread answers may take on top of that.
pub const SHUTDOWN_LAST_WORDS_MS_MAX: u64 = 2_000;
/// Wrong tokens that one peer may send within a window.
pub const WRONG_TOKENS_MAX: u32 = 10;
/// That window.
pub const WRONG_TOKENS_WINDOW_MS: u64 = 60_000;
/// Peers remembered for their wrong tokens; the one seen longest ago goes first.
pub const PEERS_MAX: usize = 4096;
/// Records on one page of the admin listing.
pub const PAGE_RECORDS_MAX: usize = 500;
/// How far into the records the admin listing reaches.
pub const LISTED_RECORDS_MAX: usize = 25_000;
/// Entries of the audit log on one page.
pub const PAGE_AUDIT_MAX: usize = 500;
/// How often a server looks for calls that were approved, and that nobody runs. What it finds twice it
/// runs.
pub const APPROVED_LOOK_MS: u64 = 5_000;
/// How often it enters a call again that comes back without having run, each time after twice as long.
pub const APPROVED_TRIES_MAX: u32 = 5;
/// Approval requests on one page.
pub const PAGE_APPROVALS_MAX: usize = 500;
/// The body of an answer to an approval request.
pub const ANSWER_BODY_BYTES_MAX: usize = 16 * 1024;
/// The body of a message from a channel.
pub const MESSAGE_BODY_BYTES_MAX: usize = 1024 * 1024;
/// A reason or an operator's name in an admin action.
pub const ADMIN_WORDS_BYTES_MAX: usize = 256;
/// Servers that are looked for in one state directory.
pub const SERVERS_MAX: usize = 256;
/// How long a store may take to say how it is.
pub const PROBE_MS_MAX: u64 = 1_000;
/// How long an answer about the store's health is good for.
pub const PROBE_EVERY_MS: u64 = 1_000;
/// What is told to clients that come too early.
pub const RETRY_AFTER_S: u64 = 1;
/// The largest answer that our own client takes from a server.
pub const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;
/// How long our own client waits for an answer.
pub const ANSWER_MS_MAX: u64 = 30_000;
/// Requests of one client for a completion within a minute.
pub const REQUESTS_PER_MINUTE_MAX: u32 = 100;
/// That minute.
pub const REQUESTS_WINDOW_MS: u64 = 60_000;
/// How long a request waits for another one with its key to begin its run.
pub const RUN_BEGINS_MS_MAX: u64 = 5_000;
/// How often it looks.
pub const RUN_BEGINS_LOOK_MS: u64 = 20;
/// Messages of one request.
pub const MESSAGES_MAX: usize = 2048;
/// Functions that a client can offer in one request.
pub const CLIENT_TOOLS_MAX: usize = 256;
/// Calls in the history of one request.
pub const HISTORY_CALLS_MAX: usize = 4096;
/// Bytes of bodies that are read or being worked on, over all requests.
pub const BODIES_BYTES_MAX: usize = 64 * 1024 * 1024;
/// A body up to here needs no room among them.
pub const SMALL_BODY_BYTES_MAX: usize = ADMIN_BODY_BYTES_MAX;
/// Texts at which a model is to stop.
pub const STOPS_MAX: usize = 4;
/// The longest time that a client can give its run.
pub const RUN_TIMEOUT_S_MAX: u64 = 3600;
/// The key of a run.
pub const RUN_KEY_BYTES_MAX: usize = 255;
/// Requests that are remembered in case their clients repeat them.
pub const REPEATS_MAX: usize = 4096;
/// How long they are.
pub const REPEATS_KNOWN_MS: u64 = 600_000;
/// Runs on one page.
pub const PAGE_RUNS_MAX: usize = 100;
/// Characters of an answer in one chunk of a stream.
pub const DELTA_CHARS_MAX: usize = 64;
/// How long a stream is silent at most.
pub const STREAM_ALIVE_MS: u64 = 10_000;
/// How long an answer about the model's server is good for.
pub const MODEL_PROBE_EVERY_MS: u64 = 1_000;

const fn limit(
    name: &'static str,
    value: u64,
    meaning: &'static str,
    setting: Option<&'static str>,
) -> Limit {
    Limit {
        name,
        value,
        meaning,
        setting,
    }
}

/// The table.
pub const LIMITS: &[Limit] = &[
    limit(
        "BODY_BYTES_MAX",
        BODY_BYTES_MAX as u64,
        "body of one HTTP request; a larger one gets 413",
        Some("server.bodyBytesMax"),
    ),
    limit(
        "INVOKE_BODY_BYTES_MAX",
        INVOKE_BODY_BYTES_MAX as u64,
        "body of one `POST /tools/invoke`, as in the OpenClaw gateway; a larger one gets 413",
        None,
    ),
    limit(
        "ADMIN_BODY_BYTES_MAX",
        ADMIN_BODY_BYTES_MAX as u64,
        "body of one admin action; a larger one gets 413",
        None,
    ),
    limit(
        "HEAD_BYTES_MAX",
        HEAD_BYTES_MAX as u64,
        "request line and headers of one HTTP request; more get 431",
        Some("server.headBytesMax"),
    ),
    limit(
        "HEADERS_MAX",
        HEADERS_MAX as u64,
        "headers of one HTTP request; more get 431",
        None,
    ),
    limit(
        "HEAD_MS_MAX",
        HEAD_MS_MAX,
        "time for a request's head, and idle time before it; then the connection is closed",
        Some("server.headMsMax"),
    ),
    limit(
        "BODY_MS_MAX",
        BODY_MS_MAX,
        "time for a request's body; then 408",
        Some("server.bodyMsMax"),
    ),
    limit(
        "WRITE_STALL_MS_MAX",
        WRITE_STALL_MS_MAX,
        "time in which a client takes nothing of its answer; then the connection is closed",
        Some("server.writeStallMsMax"),
    ),
    limit(
        "CONNECTIONS_MAX",
        CONNECTIONS_MAX as u64,
        "open connections; one more gets 503 and is closed",
        Some("server.connectionsMax"),
    ),
    limit(
        "CALLS_MAX",
        CALLS_MAX as u64,
        "tool calls at once over HTTP; one more gets 503 with `Retry-After`",
        Some("server.callsMax"),
    ),
    limit(
        "SHUTDOWN_MS_MAX",
        SHUTDOWN_MS_MAX,
        "time for calls in flight when the server is told to end; then they are cancelled",
        Some("server.shutdownMsMax"),
    ),
    limit(
        "SHUTDOWN_LAST_WORDS_MS_MAX",
        SHUTDOWN_LAST_WORDS_MS_MAX,
        "time for the answers of cancelled calls to leave",
        None,
    ),
    limit(
        "WRONG_TOKENS_MAX",
        WRONG_TOKENS_MAX as u64,
        "wrong tokens of one peer within the window; further ones get 429",
        Some("server.wrongTokensMax"),
    ),
    limit(
        "WRONG_TOKENS_WINDOW_MS",
        WRONG_TOKENS_WINDOW_MS,
        "the window in which wrong tokens are counted",
        None,
    ),
    limit(
        "PEERS_MAX",
        PEERS_MAX as u64,
        "peers remembered for their wrong tokens",
        None,
    ),
    limit(
        "PAGE_RECORDS_MAX",
        PAGE_RECORDS_MAX as u64,
        "records on one page of the admin listing",
        None,
    ),
    limit(
        "LISTED_RECORDS_MAX",
        LISTED_RECORDS_MAX as u64,
        "how far into the records, newest first, the admin listing reaches",
        None,
    ),
    limit(
        "PAGE_AUDIT_MAX",
        PAGE_AUDIT_MAX as u64,
        "audit entries on one page",
        None,
    ),
    limit(
        "APPROVED_LOOK_MS",
        APPROVED_LOOK_MS,
        "how often a server looks for calls that were approved and that nobody runs, since their callers are gone; what it finds twice it runs",
        None,
    ),
    limit(
        "APPROVED_TRIES_MAX",
        APPROVED_TRIES_MAX as u64,
        "how often a server enters such a call again that comes back without having run, each time after twice as long; `holdfast approvals resume` enters it once more",
        None,
    ),
    limit(
        "PAGE_APPROVALS_MAX",
        PAGE_APPROVALS_MAX as u64,
        "approval requests that are listed over HTTP, newest first",
        None,
    ),
    limit(
        "ANSWER_BODY_BYTES_MAX",
        ANSWER_BODY_BYTES_MAX as u64,
        "body of an answer to an approval request",
        None,
    ),
    limit(
        "MESSAGE_BODY_BYTES_MAX",
        MESSAGE_BODY_BYTES_MAX as u64,
        "body of a message from a channel",
        None,
    ),
    limit(
        "ADMIN_WORDS_BYTES_MAX",
        ADMIN_WORDS_BYTES_MAX as u64,
        "a reason or an operator's name in an admin action; a longer reason is cut",
        None,
    ),
    limit(
        "SERVERS_MAX",
        SERVERS_MAX as u64,
        "servers that the command line looks for in one state directory",
        None,
    ),
    limit(
        "PROBE_MS_MAX",
        PROBE_MS_MAX,
        "time for the store to answer a health check",
        None,
    ),
    limit(
        "PROBE_EVERY_MS",
        PROBE_EVERY_MS,
        "how long such an answer is good for",
        None,
    ),
    limit(
        "ANSWER_BYTES_MAX",
        ANSWER_BYTES_MAX as u64,
        "answer that the command line takes from a server",
        None,
    ),
    limit(
        "ANSWER_MS_MAX",
        ANSWER_MS_MAX,
        "how long the command line waits for a server",
        None,
    ),
    limit(
        "REQUESTS_PER_MINUTE_MAX",
        REQUESTS_PER_MINUTE_MAX as u64,
        "requests of one client for a completion within a minute; one more is told to come again",
        Some("executor.requestsPerMinuteMax"),
    ),
    limit(
        "REQUESTS_WINDOW_MS",
        REQUESTS_WINDOW_MS,
        "that minute",
        None,
    ),
    limit(
        "RUN_BEGINS_MS_MAX",
        RUN_BEGINS_MS_MAX,
        "how long a request waits for another one with its `Idempotency-Key` to begin its run; then it is told to come again",
        None,
    ),
    limit(
        "RUN_BEGINS_LOOK_MS",
        RUN_BEGINS_LOOK_MS,
        "how often it looks",
        None,
    ),
    limit(
        "MESSAGES_MAX",
        MESSAGES_MAX as u64,
        "messages of one request for a completion",
        None,
    ),
    limit(
        "CLIENT_TOOLS_MAX",
        CLIENT_TOOLS_MAX as u64,
        "functions that a client can offer in one request for a completion",
        None,
    ),
    limit(
        "HISTORY_CALLS_MAX",
        HISTORY_CALLS_MAX as u64,
        "calls in the messages of one request for a completion",
        None,
    ),
    limit(
        "BODIES_BYTES_MAX",
        BODIES_BYTES_MAX as u64,
        "bodies of all requests, but for small ones, that are being read, checked or wait for a place of a run; further ones wait, as long as a body may take, then get 503 with `Retry-After`",
        None,
    ),
    limit(
        "SMALL_BODY_BYTES_MAX",
        SMALL_BODY_BYTES_MAX as u64,
        "a body up to here waits for no room among all bodies: there are no more of them than connections",
        None,
    ),
    limit(
        "STOPS_MAX",
        STOPS_MAX as u64,
        "texts at which a model is to stop",
        None,
    ),
    limit(
        "RUN_TIMEOUT_S_MAX",
        RUN_TIMEOUT_S_MAX,
        "the longest time that a client can give its run",
        None,
    ),
    limit(
        "RUN_KEY_BYTES_MAX",
        RUN_KEY_BYTES_MAX as u64,
        "size of the key of a run",
        None,
    ),
    limit(
        "REPEATS_MAX",
        REPEATS_MAX as u64,
        "requests of clients that count their tries which are remembered, so that a repetition finds its run; the oldest goes first",
        None,
    ),
    limit(
        "REPEATS_KNOWN_MS",
        REPEATS_KNOWN_MS,
        "how long such a request is remembered (ms)",
        None,
    ),
    limit(
        "PAGE_RUNS_MAX",
        PAGE_RUNS_MAX as u64,
        "runs on one page",
        None,
    ),
    limit(
        "DELTA_CHARS_MAX",
        DELTA_CHARS_MAX as u64,
        "characters of an answer in one chunk of a stream",
        None,
    ),
    limit(
        "STREAM_ALIVE_MS",
        STREAM_ALIVE_MS,
        "how long a stream is silent at most",
        None,
    ),
    limit(
        "MODEL_PROBE_EVERY_MS",
        MODEL_PROBE_EVERY_MS,
        "how long an answer about the model's server is good for",
        None,
    ),
];
