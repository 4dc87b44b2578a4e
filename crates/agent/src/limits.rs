//! The limits of this crate, for the reference page.

use holdfast_contract::Limit;

/// The table.
pub const LIMITS: &[Limit] = &[
    Limit {
        name: "MODEL_REPLY_BYTES_MAX",
        value: crate::model::MODEL_REPLY_BYTES_MAX as u64,
        meaning: "size of one reply of a model server; a larger one is an error",
        setting: None,
    },
    Limit {
        name: "MODEL_ERROR_CHARS_MAX",
        value: crate::model::MODEL_ERROR_CHARS_MAX as u64,
        meaning: "characters of a model server's own words about its failure; more are cut off",
        setting: None,
    },
    Limit {
        name: "MODEL_REACH_MS_MAX",
        value: crate::model::MODEL_REACH_MS_MAX,
        meaning: "how long a model server may take to say that it is there",
        setting: None,
    },
    Limit {
        name: "RESULT_CHARS_DEFAULT",
        value: crate::results::RESULT_CHARS_DEFAULT as u64,
        meaning: "characters of a result that the model sees, for tools without a limit of their own",
        setting: Some("tools.result_limits"),
    },
    Limit {
        name: "CALLS_PER_REPLY_MAX",
        value: crate::run::CALLS_PER_REPLY_MAX as u64,
        meaning: "calls of one reply that run; the model is told that the others did not",
        setting: None,
    },
    Limit {
        name: "MODEL_RETRY_BASE_MS",
        value: crate::run::MODEL_RETRY_BASE_MS,
        meaning: "longest wait before a model server that is away is asked again; doubled each time",
        setting: None,
    },
    Limit {
        name: "RUNS_MAX",
        value: crate::runs::RUNS_MAX as u64,
        meaning: "runs at once in one process",
        setting: Some("executor.runsMax"),
    },
    Limit {
        name: "RUNS_WAITING_MAX",
        value: crate::runs::RUNS_WAITING_MAX as u64,
        meaning: "requests that wait for a run to end; one more is told to come again",
        setting: Some("executor.runsWaitingMax"),
    },
    Limit {
        name: "RUN_EVENTS_MAX",
        value: crate::runs::RUN_EVENTS_MAX as u64,
        meaning: "what happened in one run, for listeners that come late; the oldest is forgotten first",
        setting: None,
    },
    Limit {
        name: "RUN_KEPT_MS",
        value: crate::runs::RUN_KEPT_MS,
        meaning: "how long an ended run, and the key of a run, is kept",
        setting: None,
    },
    Limit {
        name: "RUN_OPEN_KEPT_MS",
        value: crate::runs::RUN_OPEN_KEPT_MS,
        meaning: "how long an unfinished run can be gone on with",
        setting: None,
    },
    Limit {
        name: "RUN_OWNER_LEASE_MS",
        value: crate::runs::RUN_OWNER_LEASE_MS,
        meaning: "how long a process that is not heard of counts as alive on other machines, where runs are kept in Redis",
        setting: None,
    },
    Limit {
        name: "RUN_STORE_WAIT_MS",
        value: crate::runs::RUN_STORE_WAIT_MS,
        meaning: "how long a run waits for a state that does not answer, before it stops and is taken up later",
        setting: None,
    },
    Limit {
        name: "RUN_STORE_DELAY_MS_MAX",
        value: crate::runs::RUN_STORE_DELAY_MS_MAX,
        meaning: "longest wait between two attempts at keeping a run",
        setting: None,
    },
    Limit {
        name: "RUNS_UNBURIED_MAX",
        value: crate::runs::RUNS_UNBURIED_MAX as u64,
        meaning: "cancelled runs whose end is not kept yet because the state does not answer; while there are as many, none begins",
        setting: None,
    },
    Limit {
        name: "RUN_KEY_CLAIM_MS",
        value: crate::runs::RUN_KEY_CLAIM_MS,
        meaning: "how long an `Idempotency-Key` counts as claimed while its run has not begun",
        setting: None,
    },
    Limit {
        name: "RUN_TAKE_UPS_MAX",
        value: crate::runs::RUN_TAKE_UPS_MAX as u64,
        meaning: "how often an unfinished run is taken up by itself without coming any further; then it waits for somebody to resume it",
        setting: None,
    },
    Limit {
        name: "RESUME_AGAIN_MS",
        value: crate::runs::RESUME_AGAIN_MS,
        meaning: "how long an unfinished run waits, when as many wait for a place as may, before it asks again",
        setting: None,
    },
    Limit {
        name: "CLIENT_AWAY_MS_MAX",
        value: crate::runs::CLIENT_AWAY_MS_MAX,
        meaning: "how long a client that went away may stay away before its run is cancelled",
        setting: Some("executor.client_away_seconds"),
    },
    Limit {
        name: "SUBAGENTS_MAX",
        value: crate::subagents::SUBAGENTS_MAX as u64,
        meaning: "subagents at once in one process; one more is told to come again",
        setting: None,
    },
    Limit {
        name: "SUBAGENT_WAIT_S_MAX",
        value: crate::subagents::SUBAGENT_WAIT_S_MAX,
        meaning: "how long `sessions_list` waits for a subagent to end, in seconds",
        setting: None,
    },
    Limit {
        name: "SUBAGENT_LOOK_MS",
        value: crate::subagents::SUBAGENT_LOOK_MS,
        meaning: "how often it is looked whether `holdfast sessions cancel` has told a subagent to end, in milliseconds",
        setting: None,
    },
    Limit {
        name: "RUN_BYTES_MAX",
        value: crate::tokens::RUN_BYTES_MAX as u64,
        meaning: "bytes of one kind of sign in a row whose tokens are counted exactly; a longer run counts a token a byte",
        setting: None,
    },
    Limit {
        name: "OLD_RESULT_CHARS",
        value: crate::context::fit::OLD_RESULT_CHARS as u64,
        meaning: "characters of an old result that stay when the context window fills up",
        setting: None,
    },
    Limit {
        name: "PROMPT_FILE_BYTES_MAX",
        value: crate::config::PROMPT_FILE_BYTES_MAX,
        meaning: "size of a prompt or schema in a file; a larger one is not read, with a warning",
        setting: None,
    },
    Limit {
        name: "UPSTREAM_REST_MS",
        value: crate::model::upstreams::UPSTREAM_REST_MS,
        meaning: "how long a model server that was away is left alone when there are others; doubled each time",
        setting: None,
    },
    Limit {
        name: "UPSTREAM_REST_MS_MAX",
        value: crate::model::upstreams::UPSTREAM_REST_MS_MAX,
        meaning: "how long a model server that keeps being away is left alone at most",
        setting: None,
    },
    Limit {
        name: "PAGE_ERROR_CHARS_MAX",
        value: crate::log::pages::PAGE_ERROR_CHARS_MAX as u64,
        meaning: "characters of one error on a day's page of errors; the rest is cut off",
        setting: None,
    },
    Limit {
        name: "PAGE_BYTES_MAX",
        value: crate::log::pages::PAGE_BYTES_MAX,
        meaning: "size of a day's page of errors; further errors are in the log only",
        setting: None,
    },
    Limit {
        name: "PAGE_QUEUE_MAX",
        value: crate::log::pages::PAGE_QUEUE_MAX as u64,
        meaning: "errors that wait to be written to a page; further ones are in the log only",
        setting: None,
    },
    Limit {
        name: "PAGE_LOCK_WAIT_MS",
        value: crate::log::pages::PAGE_LOCK_WAIT_MS,
        meaning: "how long a page of errors that another process holds is waited for; then its error is in the log only",
        setting: None,
    },
    Limit {
        name: "PAGE_LAST_LINES_MS",
        value: crate::log::pages::PAGE_LAST_LINES_MS,
        meaning: "how long a process that ends waits for its last errors to be written to their page",
        setting: None,
    },
];
