//! The web's tools against real sockets.

#[path = "common/watched.rs"]
mod watched;

use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use crate::common::{Double, answer, clock, context};
use holdfast_contract::{Cause, HostRule, SessionKind, Tool, ToolError, ToolResult};
use holdfast_reliability::retry::{Classified, Evidence, RequestSent};
use holdfast_web::client::{Endpoint, Reach, WebClient};
use holdfast_web::config::SearchConfig;
use holdfast_web::limits::WEB_TIMEOUT_MS;
use holdfast_web::search::provider;
use holdfast_web::{WebConfig, WebFetchTool};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::json;
use watched::Watched;

fn fetcher(hosts: &[&str]) -> WebFetchTool {
    let config = WebConfig {
        allowed_hosts: hosts.iter().map(ToString::to_string).collect(),
        ..WebConfig::default()
    };
    WebFetchTool::new(&config, clock()).expect("is made")
}

async fn fetch(tool: &WebFetchTool, url: &str) -> Result<ToolResult, ToolError> {
    tool.execute(&json!({ "url": url }), &context(SessionKind::Worker, None))
        .await
}

fn html(body: &str) -> String {
    answer("200 OK", "content-type: text/html; charset=utf-8\r\n", body)
}

fn moved(to: &str) -> String {
    answer("302 Found", &format!("location: {to}\r\n"), "")
}

#[tokio::test]
async fn no_address_of_the_corpus_is_reached() {
    let tool = fetcher(&[]);
    let attacks = holdfast_testkit::corpus(include_str!("attacks/urls.txt"));
    assert!(attacks.len() >= 100, "{}", attacks.len());
    let watched = Watched::start();
    let mut wrong = Vec::new();
    for line in attacks {
        let (rule, url) = line.split_once('\t').expect("a rule and an address");
        let aimed = watched.aimed(url).filter(|_| rule != "can not be read");
        for url in std::iter::once(url.to_owned()).chain(aimed) {
            let told = match fetch(&tool, &url).await {
                Err(ToolError::PermissionDenied { reason, .. }) => reason,
                Err(ToolError::ValidationError { field, message }) => {
                    assert_eq!(field.as_deref(), Some("/url"));
                    message
                }
                other => panic!("{url}: {other:?}"),
            };
            if !told.contains(rule) {
                wrong.push(format!("{url}: {told:?}, not {rule:?}"));
            }
            assert_eq!(watched.connections(), 0, "{url}");
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // It would have been seen.
    let _came = TcpStream::connect(("127.0.0.1", watched.port)).expect("connects");
    assert_eq!(watched.connections(), 1);
}

#[tokio::test]
async fn a_page_is_readable_and_its_redirects_are_followed() {
    let words =
        "Words that make up a paragraph of some length, with commas, so that it counts. ".repeat(9);
    let page = format!(
        "<html><head><title>T</title></head><body><article><h1>H</h1><p>{words}</p><p>{words}</p></article></body></html>"
    );
    let double = Double::start(vec![
        ("/page", html(&page)),
        ("/moved", moved("/page")),
        (
            "/json",
            answer("200 OK", "content-type: application/json\r\n", "{\"a\":1}"),
        ),
        (
            "/long",
            answer(
                "200 OK",
                "content-type: text/plain\r\n",
                &"ü".repeat(200_000),
            ),
        ),
    ])
    .await;
    let tool = fetcher(&[&double.address.to_string()]);
    let got = fetch(&tool, &double.url("/moved"))
        .await
        .expect("fetched")
        .output;
    assert_eq!(
        (&got["title"], &got["url"]),
        (&json!("T"), &json!(double.url("/page")))
    );
    assert!(
        got["content"]
            .as_str()
            .expect("text")
            .contains("paragraph of some length")
    );
    let got = fetch(&tool, &double.url("/json"))
        .await
        .expect("fetched")
        .output;
    assert_eq!(got["content"], "{\"a\":1}");
    let got = fetch(&tool, &double.url("/long"))
        .await
        .expect("fetched")
        .output;
    assert_eq!(
        (
            &got["truncated"],
            got["content"].as_str().expect("text").chars().count()
        ),
        (&json!(true), 50_000)
    );
}

/// A long text says what is missing and where to go on, and its parts join to the whole.
#[tokio::test]
async fn a_long_text_is_read_in_parts_that_say_what_was_cut() {
    let lines: Vec<String> = (0..12_000).map(|n| format!("zeile {n} ü\n")).collect();
    let whole = lines.concat();
    let total = whole.chars().count();
    let text = answer(
        "200 OK",
        "content-type: text/plain; charset=utf-8\r\n",
        &whole,
    );
    let double = Double::start(vec![("/long", text)]).await;
    let tool = fetcher(&[&double.address.to_string()]);
    let ctx = context(SessionKind::Worker, None);
    let (mut joined, mut offset) = (String::new(), 0);
    loop {
        let params = json!({"url": double.url("/long"), "offset": offset});
        let got = tool.execute(&params, &ctx).await.expect("fetched").output;
        joined.push_str(got["content"].as_str().expect("text"));
        assert_eq!(got["total_chars"], total);
        let Some(next) = got.get("next_offset") else {
            assert_eq!((&got["truncated"], got.get("note")), (&json!(false), None));
            break;
        };
        offset = next.as_u64().expect("a number");
        let cut = total as u64 - offset;
        let note =
            format!("the last {cut} of {total} characters were cut; go on with offset {offset}");
        assert_eq!(
            (&got["truncated"], &got["note"]),
            (&json!(true), &json!(note))
        );
    }
    assert_eq!(joined, whole);
    let params = json!({"url": double.url("/long"), "offset": total + 1});
    let got = tool.execute(&params, &ctx).await.expect("fetched").output;
    assert_eq!(got["content"], "");
    assert_eq!(got["note"], format!("the text has only {total} characters"));
}

#[tokio::test]
async fn redirects_and_names_are_checked_like_the_first_address() {
    let double = Double::start(vec![
        ("/secret", html("SECRET")),
        // The same server by another name: one that nobody allowed.
        ("/out", moved("http://localhost:{port}/secret")),
        ("/literal", moved("http://[::ffff:127.0.0.1]:{port}/secret")),
        ("/metadata", moved("http://169.254.169.254/latest/")),
        ("/file", moved("file:///etc/passwd")),
        ("/user", moved("http://me@127.0.0.1:{port}/secret")),
        ("/loop", moved("/loop")),
    ])
    .await;
    let tool = fetcher(&[&double.address.to_string()]);
    for path in ["/out", "/literal", "/metadata", "/file", "/user"] {
        let refused = fetch(&tool, &double.url(path)).await;
        assert!(
            matches!(&refused, Err(ToolError::PermissionDenied { .. })),
            "{path}: {refused:?}"
        );
    }
    let refused = fetch(&tool, &double.url("/loop")).await;
    assert!(
        matches!(&refused, Err(ToolError::ExecutionError { cause: Cause::Coded { code }, .. }) if code == "too_many_redirects")
    );
    let strict = fetcher(&[]);
    let by_name = format!("http://localhost:{}/secret", double.address.port());
    let refused = fetch(&strict, &by_name).await;
    assert!(
        matches!(&refused, Err(ToolError::PermissionDenied { reason, .. }) if reason.contains("loopback")),
        "{refused:?}"
    );
    assert!(
        double.asked().iter().all(|asked| asked.path != "/secret"),
        "{:?}",
        double.asked()
    );
}

#[tokio::test]
async fn what_is_too_large_or_no_text_is_refused_and_errors_keep_their_status() {
    let double = Double::start(vec![
        (
            "/large",
            answer(
                "200 OK",
                "content-type: text/plain\r\n",
                &"x".repeat(6 * 1024 * 1024),
            ),
        ),
        (
            "/image",
            answer("200 OK", "content-type: image/png\r\n", "x"),
        ),
        (
            "/busy",
            answer("429 Too Many Requests", "retry-after: 7\r\n", ""),
        ),
        (
            "/until",
            answer(
                "503 Service Unavailable",
                "retry-after: Sun, 06 Nov 1994 08:49:37 GMT\r\n",
                "",
            ),
        ),
    ])
    .await;
    let tool = fetcher(&[&double.address.to_string()]);
    let cause = async |path: &str| match fetch(&tool, &double.url(path)).await {
        Err(ToolError::ExecutionError { cause, .. }) => cause,
        other => panic!("{path}: {other:?}"),
    };
    assert_eq!(
        cause("/large").await,
        Cause::Coded {
            code: "too_large".into()
        }
    );
    assert_eq!(
        cause("/image").await,
        Cause::Coded {
            code: "unsupported_type".into()
        }
    );
    assert_eq!(
        cause("/busy").await,
        Cause::Http {
            status: 429,
            retry_after_ms: Some(7000)
        }
    );
    assert_eq!(
        cause("/until").await,
        Cause::Http {
            status: 503,
            retry_after_ms: Some(7000)
        }
    );
    assert_eq!(
        cause("/missing").await,
        Cause::Http {
            status: 404,
            retry_after_ms: None
        }
    );
    let unused = TcpListener::bind("127.0.0.1:0")
        .expect("binds")
        .local_addr()
        .expect("an address");
    let tool = fetcher(&[&unused.to_string()]);
    let refused = fetch(&tool, &format!("http://{unused}/")).await;
    assert!(
        matches!(&refused, Err(ToolError::ExecutionError { cause: Cause::Transport { code }, .. }) if code == "ECONNREFUSED"),
        "{refused:?}"
    );
}

#[tokio::test]
async fn a_connection_that_is_lost_on_the_way_is_worth_another_attempt() {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n";
    let double = Double::start(vec![
        ("/silent", String::new()),
        ("/head", "HTTP/1.1 200 OK\r\ncontent-ty".to_owned()),
        ("/body", format!("{head}content-length: 100\r\n\r\nx")),
        (
            "/chunks",
            format!("{head}transfer-encoding: chunked\r\n\r\n5\r\nhel"),
        ),
        (
            "/packed",
            format!("{head}content-encoding: gzip\r\ncontent-length: 5\r\n\r\nplain"),
        ),
    ])
    .await;
    let tool = fetcher(&[&double.address.to_string()]);
    for path in ["/silent", "/head", "/body", "/chunks", "/packed"] {
        let lost = fetch(&tool, &double.url(path)).await;
        let Err(ToolError::ExecutionError {
            cause: Cause::Transport { code },
            ..
        }) = lost
        else {
            panic!("{path}: {lost:?}");
        };
        let classified = Classified::named(&code, RequestSent::Maybe);
        assert!(classified.retriable, "{path}: {code}");
        // Nobody knows how far it got: that is for the retry layer to weigh.
        assert_eq!(classified.evidence, Evidence::MayHaveHappened, "{path}");
        assert_eq!(code, "ECONNRESET", "{path}");
    }
}

/// No resolver is asked about a name with such a long part.
#[tokio::test]
async fn a_name_that_can_not_be_looked_up_is_the_callers() {
    let nowhere = format!("http://{}.example/", "a".repeat(64));
    let error = fetch(&fetcher(&[]), &nowhere)
        .await
        .expect_err("nobody is there");
    assert!(
        matches!(&error, ToolError::ExecutionError { cause: Cause::NoSuchAddress { code }, .. } if code == "ENOTFOUND"),
        "{error:?}"
    );
    // An address that was configured is ours.
    let own = reqwest::Url::parse(&nowhere).expect("an address");
    let wait = Duration::from_millis(WEB_TIMEOUT_MS);
    let client = WebClient::new(Reach::Origin(own.clone()), wait, clock());
    let error = client.get(own, &HeaderMap::new(), None).await;
    let error = error.expect_err("nobody is there");
    assert!(
        matches!(
            &error,
            ToolError::ExecutionError {
                cause: Cause::Transport { .. },
                ..
            }
        ),
        "{error:?}"
    );
}

#[tokio::test]
async fn an_allowed_host_is_allowed_on_its_ports_only() {
    let other = Double::start(vec![("/secret", html("SECRET"))]).await;
    let double = Double::start(vec![
        ("/page", html("PAGE")),
        ("/other", moved(&other.url("/secret"))),
    ])
    .await;
    let (port, other_port) = (double.address.port(), other.address.port());
    let named = format!("localhost:{port}");
    let tool = fetcher(&[&double.address.to_string(), &named, "[::1]:1"]);
    for host in ["127.0.0.1", "localhost"] {
        let got = fetch(&tool, &format!("http://{host}:{port}/page")).await;
        assert_eq!(got.expect("fetched").output["content"], "PAGE", "{host}");
    }
    for url in [
        double.url("/other"),
        other.url("/secret"),
        format!("http://localhost:{other_port}/secret"),
        "http://[::1]:2/".to_owned(),
        "http://127.0.0.1/".to_owned(),
    ] {
        let refused = fetch(&tool, &url).await;
        assert!(
            matches!(&refused, Err(ToolError::PermissionDenied { .. })),
            "{url}: {refused:?}"
        );
    }
    // Without a port those of the web are meant.
    let refused = fetch(&fetcher(&["127.0.0.1"]), &double.url("/page")).await;
    assert!(matches!(&refused, Err(ToolError::PermissionDenied { .. })));
    assert!(other.asked().is_empty(), "{:?}", other.asked());
    for wrong in ["", "http://a", "a:b", "a:70000", "a@b", "*.a", "::1:", "a:"] {
        let config = WebConfig {
            allowed_hosts: vec![wrong.to_owned()],
            ..WebConfig::default()
        };
        assert_eq!(config.problems().len(), 1, "{wrong:?}");
    }
}

#[tokio::test]
async fn what_is_meant_for_one_port_does_not_follow_to_another() {
    let other = Double::start(vec![("/", html("x"))]).await;
    let double = Double::start(vec![
        ("/to", moved(&other.url("/"))),
        ("/res/v1/web/search", moved(&other.url("/"))),
    ])
    .await;
    let hosts = [&double, &other].map(|double| {
        let address = double.address.to_string();
        Endpoint::parse(&address).expect("an endpoint")
    });
    let timeout = Duration::from_millis(WEB_TIMEOUT_MS);
    let client = WebClient::new(Reach::Public(hosts.to_vec()), timeout, clock());
    let key = HeaderName::from_static("x-subscription-token");
    let headers = HeaderMap::from_iter([(key, HeaderValue::from_static("secret"))]);
    let url = client.checked_url(&double.url("/to")).expect("allowed");
    client.get(url, &headers, None).await.expect("fetched");
    assert!(double.asked()[0].head.contains("x-subscription-token"));
    assert!(!other.asked()[0].head.contains("x-subscription-token"));
    // A search does not leave its origin at all.
    let brave = SearchConfig::Brave {
        api_key_env: "K".to_owned(),
        url: double.url("/"),
    };
    let brave = provider(&brave, Some("secret"), None, &clock()).expect("is made");
    let refused = brave.search("q", 1).await;
    assert!(
        matches!(&refused, Err(ToolError::PermissionDenied { .. })),
        "{refused:?}"
    );
    assert_eq!((double.asked().len(), other.asked().len()), (2, 1));
}

#[tokio::test]
async fn a_rule_for_hosts_holds_on_every_hop() {
    let other = Double::start(vec![("/secret", html("SECRET"))]).await;
    let double = Double::start(vec![
        ("/page", html("PAGE")),
        ("/near", moved("/page")),
        (
            "/far",
            moved(&format!("http://localhost:{}/secret", other.address.port())),
        ),
        ("/two", moved("/far")),
    ])
    .await;
    let named = format!("localhost:{}", other.address.port());
    let tool = fetcher(&[&double.address.to_string(), &named]);
    let mut ctx = context(SessionKind::Main, None);
    let far = json!({"url": double.url("/far")});
    // Without a rule both hosts are within reach.
    tool.execute(&far, &ctx).await.expect("fetched");
    assert_eq!(other.asked().len(), 1);
    ctx.call.hosts = Some(HostRule::new(|host| host == "127.0.0.1"));
    for path in ["/page", "/near"] {
        let url = json!({"url": double.url(path)});
        tool.execute(&url, &ctx).await.expect("fetched");
    }
    for path in ["/far", "/two"] {
        let url = json!({"url": double.url(path)});
        let refused = tool.execute(&url, &ctx).await;
        let Err(ToolError::PermissionDenied { reason, .. }) = &refused else {
            panic!("{path}: {refused:?}");
        };
        assert!(
            reason.contains("manifest") && reason.contains("localhost"),
            "{reason}"
        );
    }
    assert_eq!(other.asked().len(), 1, "it was not asked again");
}

#[tokio::test]
async fn a_page_that_only_looks_flat_is_shown_without_its_tags() {
    let pages = ["<div></x>", "<div><!--</div>-->"].map(|part| {
        let page = format!("{}the end", part.repeat(120_000));
        html(&page)
    });
    let [unmatched, hidden] = pages;
    let double = Double::start(vec![("/unmatched", unmatched), ("/hidden", hidden)]).await;
    let tool = fetcher(&[&double.address.to_string()]);
    for path in ["/unmatched", "/hidden"] {
        let got = fetch(&tool, &double.url(path)).await.expect("fetched");
        assert_eq!(got.output["content"], "the end", "{path}");
    }
}
