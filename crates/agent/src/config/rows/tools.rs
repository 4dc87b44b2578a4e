//! What the tools may do.

use crate::config::kind::Kind::{Choice, Texts};
use crate::config::table::{Row, Used, row, whole};

pub(super) const TOOLS: &[Row] = &[
    row(
        "tools.enabled",
        Texts,
        Used::Yes,
        "all",
        "The tools that are offered.",
    ),
    row(
        "tools.default_timeout_seconds",
        whole(1, 86_400),
        Used::Yes,
        "30",
        "How long a call may take.",
    ),
    row(
        "tools.result_limits.NAME",
        whole(0, 10_000_000),
        Used::Yes,
        "3000",
        "Characters of a result of the tool NAME that the model sees.",
    ),
    row(
        "tools.web_search.timeout_seconds",
        whole(1, 86_400),
        Used::Yes,
        "30",
        "How long a search may take.",
    ),
    row(
        "tools.web_search.max_results",
        whole(1, 100),
        Used::Yes,
        "10",
        "Hits of a search.",
    ),
    row(
        "tools.web_fetch.timeout_seconds",
        whole(1, 86_400),
        Used::Yes,
        "30",
        "How long a page may take.",
    ),
    row(
        "tools.web_fetch.max_chars",
        whole(1, 100_000_000),
        Used::Yes,
        "50000",
        "Characters of a page.",
    ),
    row(
        "tools.web_fetch.extract_mode",
        Choice(&["markdown", "text"]),
        Used::Only("markdown", "a page is always made into Markdown"),
        "markdown",
        "What is made of a page.",
    ),
    row(
        "tools.read.timeout_seconds",
        whole(1, 86_400),
        Used::Yes,
        "10",
        "How long reading may take.",
    ),
    row(
        "tools.write.timeout_seconds",
        whole(1, 86_400),
        Used::Yes,
        "10",
        "How long writing may take.",
    ),
    row(
        "tools.exec.timeout_seconds",
        whole(1, 86_400),
        Used::Yes,
        "60",
        "How long a command may take.",
    ),
    row(
        "tools.exec.allowed_commands",
        Texts,
        Used::Yes,
        "[]",
        "Commands that may run; all when empty.",
    ),
    row(
        "tools.exec.blocked_commands",
        Texts,
        Used::Yes,
        "[]",
        "Commands that may not run.",
    ),
    row(
        "tools.browser.timeout_seconds",
        whole(1, 86_400),
        Used::Yes,
        "30",
        "How long the browser may take.",
    ),
];
