//! The limits of this crate besides those of the tools, for the reference page.

use holdfast_contract::Limit;

/// The table.
pub const LIMITS: &[Limit] = &[
    Limit {
        name: "TOOLS_MAX",
        value: crate::registry::TOOLS_MAX as u64,
        meaning: "tools that can be registered",
        setting: None,
    },
    Limit {
        name: "PROBLEMS_MAX",
        value: crate::validate::PROBLEMS_MAX as u64,
        meaning: "argument problems told at once",
        setting: None,
    },
    Limit {
        name: "SCHEMA_BYTES_MAX",
        value: crate::validate::SCHEMA_BYTES_MAX as u64,
        meaning: "a field's schema in a validation error; a longer one is left out",
        setting: None,
    },
    Limit {
        name: "TOKEN_BYTES_MIN",
        value: crate::token::TOKEN_BYTES_MIN as u64,
        meaning: "length of a configured token at least",
        setting: None,
    },
    Limit {
        name: "TOKENS_PER_FILE_MAX",
        value: crate::token::TOKENS_PER_FILE_MAX as u64,
        meaning: "tokens that are read from one file; the rest is not read",
        setting: None,
    },
    Limit {
        name: "TOKEN_BYTES_MAX",
        value: crate::token::TOKEN_BYTES_MAX as u64,
        meaning: "length of a configured token at most",
        setting: None,
    },
    Limit {
        name: "AUDIT_TAIL_BYTES_MAX",
        value: crate::audit::AUDIT_TAIL_BYTES_MAX,
        meaning: "how much of the audit log's end a page is taken from",
        setting: None,
    },
    Limit {
        name: "APPROVAL_WAIT_MS",
        value: crate::permit::APPROVAL_WAIT_MS,
        meaning: "wait for a person's answer before silence means no",
        setting: Some("permissions.approvals.waitMs"),
    },
    Limit {
        name: "APPROVAL_WRITE_WAIT_MS",
        value: crate::permit::APPROVAL_WRITE_WAIT_MS,
        meaning: "the same for `write` and `edit`",
        setting: Some("permissions.tools.NAME.waitMs"),
    },
    Limit {
        name: "APPROVAL_WAIT_MS_MAX",
        value: crate::permit::APPROVAL_WAIT_MS_MAX,
        meaning: "longest wait for an answer that can be configured",
        setting: None,
    },
    Limit {
        name: "APPROVAL_USE_WITHIN_MS",
        value: crate::permit::APPROVAL_USE_WITHIN_MS,
        meaning: "an approval that is not used within this time is over",
        setting: Some("permissions.approvals.useWithinMs"),
    },
    Limit {
        name: "APPROVAL_DENIAL_MS",
        value: crate::permit::APPROVAL_DENIAL_MS,
        meaning: "an identical call is answered with an earlier no for this long, and nobody is asked",
        setting: Some("permissions.approvals.denialMs"),
    },
    Limit {
        name: "APPROVAL_KEPT_MS",
        value: crate::approval::service::APPROVAL_KEPT_MS,
        meaning: "how long an ended request can still be looked at",
        setting: None,
    },
    Limit {
        name: "ENDED_ARGUMENTS_BYTES_MAX",
        value: crate::approval::service::ENDED_ARGUMENTS_BYTES_MAX as u64,
        meaning: "arguments kept of a request that is over; of larger ones only the digest is",
        setting: None,
    },
    Limit {
        name: "APPROVAL_POLL_MS",
        value: crate::approval::layer::APPROVAL_POLL_MS,
        meaning: "how often a waiting call looks for an answer that another process has taken",
        setting: None,
    },
    Limit {
        name: "APPROVALS_OPEN_MAX",
        value: crate::approval::service::APPROVALS_OPEN_MAX as u64,
        meaning: "requests that wait for an answer; a call that needs one more is refused as `store_full`",
        setting: None,
    },
    Limit {
        name: "SESSION_RULE_MS",
        value: crate::approval::service::SESSION_RULE_MS,
        meaning: "how long an answer for a session counts",
        setting: None,
    },
    Limit {
        name: "AUDIT_LINE_BYTES_MAX",
        value: crate::audit::AUDIT_LINE_BYTES_MAX as u64,
        meaning: "length of an audit entry; the fields of a longer one are left out, with their size and hash",
        setting: None,
    },
    Limit {
        name: "BRANCH_DEPTH_MAX",
        value: crate::session::model::BRANCH_DEPTH_MAX as u64,
        meaning: "deepest Branch",
        setting: None,
    },
    Limit {
        name: "WORKER_DEPTH_MAX",
        value: crate::session::model::WORKER_DEPTH_MAX as u64,
        meaning: "deepest Worker",
        setting: None,
    },
    Limit {
        name: "CHILDREN_MAX",
        value: crate::session::model::CHILDREN_MAX as u64,
        meaning: "children of one session at a time",
        setting: Some("sessions.childrenMax"),
    },
    Limit {
        name: "BRANCH_TTL_MS",
        value: crate::session::model::BRANCH_TTL_MS,
        meaning: "how long a Branch lives",
        setting: Some("sessions.branchTtlMs"),
    },
    Limit {
        name: "WORKER_TTL_MS",
        value: crate::session::model::WORKER_TTL_MS,
        meaning: "how long a Worker lives",
        setting: Some("sessions.workerTtlMs"),
    },
    Limit {
        name: "CANCEL_GRACE_MS",
        value: crate::session::model::CANCEL_GRACE_MS,
        meaning: "time a cancelled session has to wrap up",
        setting: None,
    },
    Limit {
        name: "SPENDING_WINDOW_MS",
        value: crate::session::model::SPENDING_WINDOW_MS,
        meaning: "over half of a token budget within this time pauses a session",
        setting: None,
    },
    Limit {
        name: "BLOB_BYTES_MAX",
        value: crate::session::model::BLOB_BYTES_MAX as u64,
        meaning: "a blob in a session's result is smaller than this",
        setting: None,
    },
    Limit {
        name: "RESULT_ITEMS_MAX",
        value: crate::session::model::RESULT_ITEMS_MAX as u64,
        meaning: "artifacts, and memory ids, in a session's result",
        setting: None,
    },
    Limit {
        name: "SUMMARY_BYTES_MAX",
        value: crate::session::model::SUMMARY_BYTES_MAX as u64,
        meaning: "length of a context summary or a result's summary",
        setting: None,
    },
    Limit {
        name: "SPENDINGS_MAX",
        value: crate::session::model::SPENDINGS_MAX as u64,
        meaning: "spendings of a session remembered one by one; older ones are added up",
        setting: None,
    },
    Limit {
        name: "SESSION_KEPT_MS",
        value: crate::session::tree::SESSION_KEPT_MS,
        meaning: "how long an ended session can still be looked at",
        setting: None,
    },
    Limit {
        name: "OUTPUT_BYTES_MAX_DEFAULT",
        value: crate::limit_output::OUTPUT_BYTES_MAX_DEFAULT as u64,
        meaning: "size of an output in an answer; the middle of a larger one is cut, the record keeps it whole",
        setting: Some("output.bytesMax"),
    },
    Limit {
        name: "OUTPUT_BYTES_MAX_MIN",
        value: crate::limit_output::OUTPUT_BYTES_MAX_MIN as u64,
        meaning: "least output size that can be configured",
        setting: None,
    },
];
