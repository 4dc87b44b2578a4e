//! Traces of the real binary, taken by a collector that speaks OTLP over HTTP.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use holdfast_contract::ToolCallEnvelope;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use prost::Message as _;
use tempfile::TempDir;

/// The limit in the binary, and what a busy machine may add to it.
const FLUSH_LIMIT: Duration = Duration::from_secs(2);
const SLACK: Duration = Duration::from_secs(8);
/// What the collector waits for at most; a test that meets it has failed.
const ARRIVAL_LIMIT: Duration = Duration::from_secs(20);

/// One request to the collector.
struct Posted {
    head: String,
    body: Vec<u8>,
}

/// A collector on a loopback port that answers every request with `answer`.
struct Collector {
    address: SocketAddr,
    posted: Receiver<Posted>,
}

impl Collector {
    fn answering(answer: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, posted) = channel();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let posted = read_request(&stream);
                let _ = stream.write_all(answer.as_bytes());
                if sender.send(posted).is_err() {
                    return;
                }
            }
        });
        Self { address, posted }
    }

    fn taking() -> Self {
        Self::answering(
            "HTTP/1.1 200 OK\r\ncontent-type: application/x-protobuf\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
        )
    }

    fn next(&self) -> Posted {
        self.posted.recv_timeout(ARRIVAL_LIMIT).unwrap()
    }
}

fn read_request(stream: &TcpStream) -> Posted {
    let mut reader = BufReader::new(stream);
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        if line.trim().is_empty() {
            break;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        head.push_str(&line);
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    Posted { head, body }
}

/// A directory with a configuration that names the collector.
struct Place {
    dir: TempDir,
}

impl Place {
    fn new(endpoint: &str, more: &str) -> Self {
        let dir = TempDir::new().unwrap();
        let config = format!(
            "observability:\n  otlp:\n    endpoint: {endpoint}\n    headers:\n      x-team: blue-whale\n{more}"
        );
        std::fs::write(dir.path().join("holdfast.yaml"), config).unwrap();
        Self { dir }
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }

    fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_holdfast"));
        command
            .env_clear()
            .env("HOME", self.path())
            .env("PATH", "/usr/bin:/bin")
            .arg("--config")
            .arg(self.path().join("holdfast.yaml"))
            .arg("--state")
            .arg(self.path().join("state"))
            .current_dir(self.path())
            .stdin(Stdio::null());
        command
    }

    fn call(&self, args: &[&str]) -> Output {
        self.command().arg("call").args(args).output().unwrap()
    }

    fn envelope(&self, envelope: &ToolCallEnvelope) -> PathBuf {
        let path = self.path().join("envelope.json");
        std::fs::write(&path, serde_json::to_vec(envelope).unwrap()).unwrap();
        path
    }
}

fn spans(posted: &Posted) -> Vec<Span> {
    let request = ExportTraceServiceRequest::decode(posted.body.as_slice()).unwrap();
    let mut resources = request.resource_spans.into_iter();
    let resource = resources.next().unwrap();
    assert!(resources.next().is_none());
    let about = resource.resource.unwrap().attributes;
    assert_eq!(text(&about, "service.name").as_deref(), Some("holdfast"));
    resource
        .scope_spans
        .into_iter()
        .flat_map(|scope| scope.spans)
        .collect()
}

fn named<'a>(spans: &'a [Span], name: &str) -> &'a Span {
    let mut found = spans.iter().filter(|span| span.name == name);
    let span = found.next().unwrap_or_else(|| panic!("no {name}"));
    assert!(found.next().is_none(), "more than one {name}");
    span
}

fn text(attributes: &[KeyValue], name: &str) -> Option<String> {
    let attribute = attributes.iter().find(|attribute| attribute.key == name)?;
    match attribute.value.as_ref()?.value.as_ref()? {
        Value::StringValue(text) => Some(text.clone()),
        Value::IntValue(number) => Some(number.to_string()),
        Value::BoolValue(flag) => Some(flag.to_string()),
        other => panic!("{name}: {other:?}"),
    }
}

fn said(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

#[test]
fn otlp_a_call_arrives_as_a_tree_without_its_secrets() {
    let collector = Collector::taking();
    let place = Place::new(&format!("http://{}", collector.address), "");
    let secret = "sk-live-4f9QpZ81LmXv7RtB2cYw";
    let key = "invoice-9-of-ann";
    let output = place.call(&[
        "exec",
        "--key",
        key,
        "--session",
        &format!("token={secret}"),
        "--args",
        &format!(r#"{{"command": "echo {secret}"}}"#),
    ]);
    assert!(output.status.success(), "{}", said(&output));

    let posted = collector.next();
    assert!(posted.head.starts_with("POST /v1/traces HTTP/1.1\r\n"));
    assert!(posted.head.contains("application/x-protobuf"));
    assert!(
        posted.head.contains("x-team: blue-whale"),
        "{}",
        posted.head
    );
    for hidden in [secret, key] {
        let found = posted
            .body
            .windows(hidden.len())
            .any(|bytes| bytes == hidden.as_bytes());
        assert!(!found, "{hidden} was sent");
    }

    let spans = spans(&posted);
    assert_eq!(spans.len(), 2, "{spans:?}");
    let call = named(&spans, "tool_execution");
    assert!(call.parent_span_id.is_empty());
    for (name, value) in [
        ("tool.name", "exec"),
        ("tool.status", "success"),
        ("retry.attempt", "1"),
        ("breaker.state", "CLOSED"),
        ("from_cache", "false"),
        ("session.key", "token=[redacted]"),
    ] {
        assert_eq!(
            text(&call.attributes, name).as_deref(),
            Some(value),
            "{name}"
        );
    }
    assert_eq!(text(&call.attributes, "idempotency.key").unwrap().len(), 12);

    let attempt = named(&spans, "tool_attempt");
    assert_eq!(attempt.parent_span_id, call.span_id);
    assert_eq!(attempt.trace_id, call.trace_id);
    assert!(call.start_time_unix_nano <= attempt.start_time_unix_nano);
    assert!(attempt.start_time_unix_nano <= attempt.end_time_unix_nano);
    assert!(attempt.end_time_unix_nano <= call.end_time_unix_nano);
}

#[test]
fn otlp_a_failure_is_an_error_span_below_the_callers_span() {
    let collector = Collector::taking();
    let place = Place::new(&format!("http://{}/", collector.address), "");
    let arguments = serde_json::json!({"path": "not-there.txt"});
    let arguments = arguments.as_object().unwrap().clone();
    let mut envelope = ToolCallEnvelope::new("r-traced", "read", arguments, "s", "a");
    envelope.target.correlation_id = Some("c-1".to_owned());
    envelope.trace.traceparent =
        Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".to_owned());
    let envelope = place.envelope(&envelope);
    let output = place.call(&["--envelope", envelope.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));

    let spans = spans(&collector.next());
    let call = named(&spans, "tool_execution");
    assert_eq!(
        u128::from_be_bytes(call.trace_id.as_slice().try_into().unwrap()),
        0x0af7_6519_16cd_43dd_8448_eb21_1c80_319c
    );
    assert_eq!(
        u64::from_be_bytes(call.parent_span_id.as_slice().try_into().unwrap()),
        0xb7ad_6b71_6920_3331
    );
    assert_eq!(call.status.as_ref().unwrap().code, StatusCode::Error as i32);
    assert_eq!(
        text(&call.attributes, "request.id").as_deref(),
        Some("r-traced")
    );
    assert_eq!(
        text(&call.attributes, "correlation.id").as_deref(),
        Some("c-1")
    );
    assert!(text(&call.attributes, "error.code").is_some());
}

#[test]
fn otlp_a_collector_that_is_away_costs_the_call_nothing() {
    // A port that was free a moment ago, and nobody listens on.
    let address = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let place = Place::new(&format!("http://{address}"), "");
    let begun = Instant::now();
    let output = place.call(&[
        "exec",
        "--log",
        "stderr",
        "--metrics",
        "metrics.txt",
        "--args",
        r#"{"command": "echo fine"}"#,
    ]);
    assert!(begun.elapsed() < FLUSH_LIMIT + SLACK);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert!(said(&output).contains("fine"));
    assert!(said(&output).contains(r#""event":"trace_export_failed""#));
    let metrics = std::fs::read_to_string(place.path().join("metrics.txt")).unwrap();
    for row in [
        r#"holdfast_trace_spans_total{outcome="built"} 2"#,
        r#"holdfast_trace_spans_total{outcome="failed"} 2"#,
    ] {
        assert!(metrics.contains(row), "{row} in {metrics}");
    }
}

#[test]
fn otlp_a_collector_that_refuses_costs_the_call_nothing() {
    let collector = Collector::answering(
        "HTTP/1.1 503 Service Unavailable\r\nretry-after: 60\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
    );
    let place = Place::new(&format!("http://{}", collector.address), "");
    let begun = Instant::now();
    let output = place.call(&["exec", "--args", r#"{"command": "echo fine"}"#]);
    assert!(begun.elapsed() < FLUSH_LIMIT + SLACK);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert_eq!(spans(&collector.next()).len(), 2);
}

#[test]
fn otlp_a_collector_that_hangs_is_left_after_the_flush_limit() {
    // Connections are taken by the kernel and never answered.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = Place::new(
        &format!("http://{}", listener.local_addr().unwrap()),
        "    timeoutMs: 60000\n",
    );
    let begun = Instant::now();
    let output = place.call(&[
        "exec",
        "--log",
        "stderr",
        "--args",
        r#"{"command": "echo fine"}"#,
    ]);
    let elapsed = begun.elapsed();
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert!(
        said(&output).contains("no answer within 2000 ms"),
        "{}",
        said(&output)
    );
    assert!(
        elapsed >= FLUSH_LIMIT && elapsed < FLUSH_LIMIT + SLACK,
        "{elapsed:?}"
    );
}

#[test]
fn otlp_config_show_hides_header_values_and_check_names_mistakes() {
    let place = Place::new("http://127.0.0.1:4318", "");
    for form in [&["config", "show"][..], &["config", "show", "--json"]] {
        let output = place.command().args(form).output().unwrap();
        assert!(output.status.success(), "{}", said(&output));
        let shown = said(&output);
        assert!(
            shown.contains("x-team") && shown.contains("[redacted]"),
            "{shown}"
        );
        assert!(!shown.contains("blue-whale"), "{shown}");
    }
    let place = Place::new("https://collector.example", "");
    let output = place.command().args(["config", "check"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(
        said(&output).contains("observability.otlp.endpoint"),
        "{}",
        said(&output)
    );
}
