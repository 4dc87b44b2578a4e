//! Limits of connections and time, over real sockets.

use std::net::SocketAddr;
use std::sync::Arc;

use holdfast_contract::Tool;
use holdfast_server::{Ended, ServerConfig, serve};
use holdfast_testkit::http::{Answer, Connection};
use holdfast_testkit::wait::{eventually, until};
use holdfast_testkit::{Reaction, ScriptedTool};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::{JoinHandle, spawn_blocking};

use crate::http::harness::{CALLER, Harness, envelope};

struct Listening {
    harness: Harness,
    address: SocketAddr,
    end: Option<oneshot::Sender<()>>,
    serving: JoinHandle<Ended>,
}

async fn listen(tools: Vec<Arc<dyn Tool>>, config: &ServerConfig) -> Listening {
    let harness = Harness::with(tools, config, None);
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("binds");
    let address = listener.local_addr().expect("an address");
    let (end, ended) = oneshot::channel::<()>();
    let ended = async {
        let _ = ended.await;
    };
    let server = harness.server.clone();
    let serving = tokio::spawn(serve(server, listener, ended, std::future::pending()));
    Listening {
        harness,
        address,
        end: Some(end),
        serving,
    }
}

fn config() -> ServerConfig {
    ServerConfig {
        head_ms_max: 200,
        body_ms_max: 200,
        shutdown_ms_max: 200,
        connections_max: 2,
        calls_max: 1,
        ..ServerConfig::default()
    }
}

fn call(connection: &mut Connection, id: &str, tool: &str) -> std::io::Result<Answer> {
    let bearer = format!("Bearer {CALLER}");
    let headers = [
        ("authorization", bearer.as_str()),
        ("content-type", "application/json"),
    ];
    let body = envelope(id, tool, &json!({})).to_string();
    connection.request("POST", "/v1/tools/call", &headers, body.as_bytes())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_connection_too_many_is_told_so() {
    let listening = listen(Vec::new(), &config()).await;
    let address = listening.address;
    let tested = spawn_blocking(move || {
        let health = |connection: &mut Connection| connection.request("GET", "/health", &[], b"");
        let mut one = Connection::open(address).expect("connects");
        let mut two = Connection::open(address).expect("connects");
        assert_eq!(health(&mut one).expect("an answer").status, 200);
        assert_eq!(health(&mut two).expect("an answer").status, 200);
        let mut three = Connection::open(address).expect("connects");
        let refused = three.answer().expect("an answer");
        assert_eq!(refused.status, 503);
        assert_eq!(refused.header("retry-after"), Some("1"));
        assert_eq!(refused.json()["error"]["type"], "overloaded");
        // A place that is given back can be taken.
        drop(one);
        drop(two);
        eventually("a place is given back", || {
            let mut again = Connection::open(address).expect("connects");
            let answer = health(&mut again);
            answer.is_ok_and(|it| it.status == 200).then_some(())
        });
    });
    tested.await.expect("no panic");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_call_too_many_is_told_to_come_again() {
    let tool = Arc::new(ScriptedTool::mutating("slow", [Reaction::Hang]));
    let listening = listen(vec![tool.clone()], &config()).await;
    let address = listening.address;
    let tested = spawn_blocking(move || {
        let mut slow = Connection::open(address).expect("connects");
        let body = envelope("r1", "slow", &json!({})).to_string();
        let bearer = format!("Bearer {CALLER}");
        let headers = [
            ("authorization", bearer.as_str()),
            ("content-type", "application/json"),
        ];
        slow.send_request("POST", "/v1/tools/call", &headers, body.as_bytes())
            .expect("sends");
        eventually("it runs", || (tool.executions() > 0).then_some(()));
        let mut other = Connection::open(address).expect("connects");
        let refused = call(&mut other, "r2", "slow").expect("an answer");
        assert_eq!(
            (refused.status, refused.header("retry-after")),
            (503, Some("1"))
        );
        assert_eq!(refused.json()["error"]["type"], "overloaded");
        // Health is no call.
        let health = other
            .request("GET", "/health", &[], b"")
            .expect("an answer");
        assert_eq!(health.status, 200);
        // Whoever goes away gives the place back.
        drop(slow);
        tool.then([Reaction::Succeed]);
        let mut number = 0;
        eventually("the place is given back", || {
            number += 1;
            let answer = call(&mut other, &format!("again-{number}"), "slow").expect("an answer");
            (answer.status == 200).then_some(())
        });
    });
    tested.await.expect("no panic");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn those_who_dawdle_are_cut_off() {
    let listening = listen(Vec::new(), &config()).await;
    let address = listening.address;
    let tested = spawn_blocking(move || {
        // Says nothing, or not enough.
        for bytes in ["", "POST /tools/invoke HTTP/1.1\r\nhost: localhost\r\n"] {
            let mut silent = Connection::open(address).expect("connects");
            silent.send(bytes.as_bytes()).expect("sends");
            let said = String::from_utf8_lossy(&silent.rest().expect("is closed")).into_owned();
            assert!(
                said.is_empty() || said.starts_with("HTTP/1.1 408"),
                "{said}"
            );
        }
        let mut slow = Connection::open(address).expect("connects");
        let head = format!(
            "POST /tools/invoke HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {CALLER}\r\n\
             content-type: application/json\r\ncontent-length: 100\r\n\r\n{{"
        );
        slow.send(head.as_bytes()).expect("sends");
        let refused = slow.answer().expect("an answer");
        assert_eq!(refused.status, 408);
        assert_eq!(
            refused.json(),
            json!({"error": {"message": "Request body timeout", "type": "invalid_request_error"}})
        );
        assert_eq!(slow.rest().expect("is closed"), b"");
    });
    tested.await.expect("no panic");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn at_the_end_calls_are_cancelled_and_answered() {
    let tool = Arc::new(ScriptedTool::mutating("slow", [Reaction::EffectThenHang]));
    let mut listening = listen(vec![tool.clone()], &config()).await;
    let address = listening.address;
    let asked = spawn_blocking(move || {
        let mut slow = Connection::open(address).expect("connects");
        call(&mut slow, "r1", "slow")
    });
    until("it has its effect", async || tool.effects() > 0).await;
    // A connection that has sent half a head must not hold the end up for long.
    let mut half = Connection::open(address).expect("connects");
    half.send(b"GET /hea").expect("sends");
    drop(listening.end.take());
    let answer = asked.await.expect("no panic").expect("an answer");
    assert_eq!(answer.json()["error"]["code"], "outcome_unknown");
    let ended = listening.serving.await.expect("no panic");
    assert_eq!(ended, Ended::Cancelled { requests: 1 });
    assert_eq!(listening.harness.records().await, 1);
    assert!(Connection::open(address).is_err());
}
