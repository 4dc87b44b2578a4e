//! The HTTP server. What is logged, how and where.

use crate::config::kind::Kind::{Choice, File, Text};
use crate::config::table::{Row, Used, row, short, whole};

pub(super) const HTTP_SERVER: &[Row] = &[
    short(
        row(
            "http_server.port",
            whole(0, 65_535),
            Used::Yes,
            "8001",
            "The port.",
        ),
        "GPTOSS_EXECUTOR_PORT",
    ),
    row(
        "http_server.bind",
        Text,
        Used::Yes,
        "127.0.0.1",
        "The address.",
    ),
    row(
        "http_server.read_timeout_seconds",
        whole(1, 86_400),
        Used::Yes,
        "30",
        "How long a request may take to arrive.",
    ),
    row(
        "http_server.write_timeout_seconds",
        whole(1, 604_800),
        Used::No(
            "a run has its own time, and a client that takes nothing of its answer is given up after server.writeStallMsMax",
        ),
        "600",
        "How long an answer may take; not less than a run may take.",
    ),
    row(
        "http_server.idle_timeout_seconds",
        whole(1, 86_400),
        Used::Yes,
        "120",
        "How long a connection may be idle.",
    ),
    row(
        "http_server.shutdown_timeout_seconds",
        whole(0, 86_400),
        Used::Yes,
        "5",
        "How long the end waits for requests under way.",
    ),
];

pub(super) const LOGGING: &[Row] = &[
    short(
        row(
            "logging.level",
            Choice(&["debug", "info", "warn", "error"]),
            Used::Yes,
            "info",
            "What is logged.",
        ),
        "GPTOSS_EXECUTOR_LOG_LEVEL",
    ),
    row(
        "logging.format",
        Choice(&["json", "text"]),
        Used::Yes,
        "`json`, and `text` at a terminal",
        "How it is logged.",
    ),
    row(
        "logging.output",
        Text,
        Used::Yes,
        "stdout",
        "Where it is logged: `stdout`, `stderr` or a file.",
    ),
    row(
        "logging.error_log_dir",
        File,
        Used::Yes,
        "logs",
        "Where the pages of errors go.",
    ),
    row(
        "logging.error_log_filename",
        Text,
        Used::Yes,
        "YYYY-MM-DD-errors.md",
        "Their name; the day is put in.",
    ),
];
