//! The limits of this crate, for the reference page.

use holdfast_contract::Limit;

/// A page or an answer that is read.
pub const WEB_BODY_BYTES_MAX: usize = 5 * 1024 * 1024;
/// Redirects that are followed.
pub const WEB_REDIRECTS_MAX: usize = 5;
/// One fetch, redirects and all, unless `timeoutMs` says so. Two of them and the longest wait in
/// between fit into the 30 s within which a call is retried.
pub const WEB_TIMEOUT_MS: u64 = 13_000;
/// One request of a fetch, whatever is configured.
pub const WEB_REQUEST_MS_MAX: u64 = 30_000;
/// Text of a page in an answer.
pub const WEB_TEXT_CHARS_MAX: usize = 50_000;
/// Elements inside elements of a page.
pub const WEB_PAGE_DEPTH_MAX: usize = 256;
/// Nodes of a page that is looked at.
pub const WEB_PAGE_NODES_MAX: usize = 100_000;
/// Beginning of a page in which it may name its character set.
pub const CHARSET_LOOK_BYTES: usize = 4 * 1024;
/// A page that is looked at, after scripts and the like are left out.
pub const WEB_PAGE_BYTES_MAX: usize = 2 * 1024 * 1024;
/// Pages that are read at once.
pub const WEB_READERS_MAX: usize = 4;
/// Length of an address.
pub const URL_BYTES_MAX: usize = 8 * 1024;
/// Searches that may begin within a minute where no limit of the tool is set.
pub const SEARCHES_PER_MINUTE_MAX: u32 = 10;
/// Results of one search.
pub const SEARCH_RESULTS_MAX: usize = 20;
/// Length of a query.
pub const SEARCH_QUERY_CHARS_MAX: usize = 1_000;
/// A provider's own words in an answer.
pub const SEARCH_TEXT_CHARS_MAX: usize = 20_000;
/// How long results are good for.
pub const SEARCH_CACHE_MS: u64 = 60_000;
/// Searches remembered.
pub const SEARCH_CACHED_MAX: usize = 256;
/// An answer of the gateway.
pub const GATEWAY_BODY_BYTES_MAX: usize = 8 * 1024 * 1024;
/// One call of a gateway's tool.
pub const GATEWAY_TIMEOUT_MS: u64 = 60_000;

const fn limit(name: &'static str, value: u64, meaning: &'static str) -> Limit {
    Limit {
        name,
        value,
        meaning,
        setting: None,
    }
}

/// The table.
pub const LIMITS: &[Limit] = &[
    limit(
        "WEB_BODY_BYTES_MAX",
        WEB_BODY_BYTES_MAX as u64,
        "body that `web_fetch` and `web_search` read; a larger one is refused as `too_large`",
    ),
    limit(
        "WEB_REDIRECTS_MAX",
        WEB_REDIRECTS_MAX as u64,
        "redirects that are followed, each checked like the first address",
    ),
    limit(
        "WEB_TIMEOUT_MS",
        WEB_TIMEOUT_MS,
        "time of one fetch or search, redirects and all, unless `timeoutMs` says so",
    ),
    limit(
        "WEB_REQUEST_MS_MAX",
        WEB_REQUEST_MS_MAX,
        "time of one request of a fetch, a search or a webhook, whatever is configured",
    ),
    limit(
        "WEB_TEXT_CHARS_MAX",
        WEB_TEXT_CHARS_MAX as u64,
        "text of a page in one answer; the rest is cut and said to be",
    ),
    limit(
        "WEB_PAGE_DEPTH_MAX",
        WEB_PAGE_DEPTH_MAX as u64,
        "elements inside elements of a page; a deeper one is shown without its tags",
    ),
    limit(
        "WEB_PAGE_NODES_MAX",
        WEB_PAGE_NODES_MAX as u64,
        "tags and texts of a page, those that a parser repeats included; a page of more is shown without its tags",
    ),
    limit(
        "CHARSET_LOOK_BYTES",
        CHARSET_LOOK_BYTES as u64,
        "beginning of a page in which a character set that it names itself is looked for",
    ),
    limit(
        "WEB_PAGE_BYTES_MAX",
        WEB_PAGE_BYTES_MAX as u64,
        "page without its scripts, styles and pictures; a larger one is shown without its tags",
    ),
    limit(
        "WEB_READERS_MAX",
        WEB_READERS_MAX as u64,
        "pages that are made readable at once; others wait within their time",
    ),
    limit(
        "URL_BYTES_MAX",
        URL_BYTES_MAX as u64,
        "length of an address; a longer one is refused as invalid",
    ),
    limit(
        "SEARCHES_PER_MINUTE_MAX",
        SEARCHES_PER_MINUTE_MAX as u64,
        "searches that may begin within a minute; `reliability.tools.web_search.rateLimit` says otherwise",
    ),
    limit(
        "SEARCH_RESULTS_MAX",
        SEARCH_RESULTS_MAX as u64,
        "results of one search",
    ),
    limit(
        "SEARCH_QUERY_CHARS_MAX",
        SEARCH_QUERY_CHARS_MAX as u64,
        "length of a query; a longer one is refused as invalid",
    ),
    limit(
        "SEARCH_TEXT_CHARS_MAX",
        SEARCH_TEXT_CHARS_MAX as u64,
        "a provider's own words in the answer to a search; the rest is cut and said to be",
    ),
    limit(
        "SEARCH_CACHE_MS",
        SEARCH_CACHE_MS,
        "how long the results of a search are given again",
    ),
    limit(
        "SEARCH_CACHED_MAX",
        SEARCH_CACHED_MAX as u64,
        "searches whose results are kept; the oldest goes first",
    ),
    limit(
        "GATEWAY_BODY_BYTES_MAX",
        GATEWAY_BODY_BYTES_MAX as u64,
        "answer of the gateway that is read",
    ),
    limit(
        "GATEWAY_TIMEOUT_MS",
        GATEWAY_TIMEOUT_MS,
        "time of one call of a gateway's tool",
    ),
];

#[cfg(test)]
mod tests {
    use holdfast_reliability::retry::RetryPolicy;

    use super::WEB_TIMEOUT_MS;

    #[test]
    fn two_fetches_and_the_wait_between_them_fit_into_the_retry_deadline() {
        let policy = RetryPolicy::standard();
        let two_ms = 2 * WEB_TIMEOUT_MS + policy.max_retry_delay_ms();
        assert!(two_ms <= policy.max_elapsed_ms(), "{two_ms} ms");
    }
}
