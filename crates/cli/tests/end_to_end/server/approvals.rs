//! Approvals over HTTP: asked, killed, restarted, answered, and run once.

use serde_json::{Value, json};

use crate::common::{House, command_params, eventually, eventually_lines};
use crate::harness::{Serving, envelope};

#[cfg(feature = "redis")]
#[path = "approvals_away.rs"]
mod away;
#[cfg(feature = "redis")]
#[path = "approvals_shared.rs"]
mod shared;

const KEY: &str = "clean-up-7";
/// Reaches outside the workspace, so it needs a person. Each run leaves a line.
const COMMAND: &str = "rm -f ../aside/victim; echo ran >> effect";

impl Serving {
    fn approvals(&self, query: &str) -> Vec<Value> {
        let path = format!("/v1/approvals{query}");
        let answer = self.get(&path, Some(&self.approver_token));
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.json()["approvals"]
            .as_array()
            .expect("a list")
            .clone()
    }

    fn pending(&self) -> Value {
        eventually("a request is pending", || {
            match self.approvals("").as_slice() {
                [only] => Some(only.clone()),
                _ => None,
            }
        })
    }

    fn answer(&self, id: &str, way: &str, words: &Value) -> (u16, Value) {
        let path = format!("/v1/approvals/{id}/{way}");
        let answer = self.post(&path, &self.approver_token, words);
        (answer.status, answer.json())
    }

    fn state_of(&self, id: &str) -> String {
        let answer = self.get(&format!("/v1/approvals/{id}"), Some(&self.approver_token));
        answer.json()["state"].as_str().expect("a state").to_owned()
    }
}

fn call(command: &str) -> Value {
    envelope("r1", "exec", &command_params(command), Some(KEY))
}

/// A server whose call waits for a person, killed with -9 while it does, and the request's id.
fn killed_while_waiting(house: &House, more: &[&str]) -> String {
    killed_while_waiting_for(house, more, COMMAND)
}

fn killed_while_waiting_for(house: &House, more: &[&str], command: &str) -> String {
    let server = house.serve(more);
    let mut connection = server.connect();
    let asked = call(command);
    let waiting = std::thread::scope(|scope| {
        let bearer = format!("Bearer {}", server.token);
        let sender = scope.spawn(move || {
            let headers = [
                ("authorization", bearer.as_str()),
                ("content-type", "application/json"),
            ];
            let body = asked.to_string();
            connection.request("POST", "/v1/tools/call", &headers, body.as_bytes())
        });
        let request = server.pending();
        server.signal(rustix::process::Signal::KILL);
        assert!(sender.join().expect("no panic").is_err(), "the server died");
        request
    });
    assert_eq!(waiting["state"], "pending");
    assert_eq!(waiting["arguments"], command_params(command).to_string());
    assert_eq!(house.lines("effect"), 0);
    waiting["id"].as_str().expect("an id").to_owned()
}

#[test]
fn approved_after_a_restart_runs_once_with_the_captured_arguments() {
    let house = House::new();
    // Not beside the state, where nothing can be removed.
    let victim = house.workspace().join("../aside/victim");
    std::fs::write(&victim, "x").expect("writes");
    let id = killed_while_waiting(&house, &[]);
    let server = house.serve(&[]);
    assert_eq!(server.pending()["id"], json!(id));
    assert_eq!(house.lines("effect"), 0, "nothing runs before the answer");
    let (status, answered) = server.answer(&id, "approve", &json!({"by": "ann"}));
    assert_eq!(
        (status, &answered["detail"]["by"]),
        (200, &json!("ann")),
        "{answered}"
    );
    // Nobody delivers the call again: the server that was started has taken it up.
    eventually("it ran", || (house.lines("effect") == 1).then_some(()));
    eventually("it is used", || {
        (server.state_of(&id) == "used").then_some(())
    });
    assert!(!victim.exists());
    let (status, again) = server.answer(&id, "approve", &json!({}));
    assert_eq!(
        (status, &again["error"]["type"]),
        (409, &json!("already_answered")),
        "{again}"
    );
    let repeated = server.call(&call(COMMAND)).json();
    assert_eq!(repeated["fromCache"], true, "{repeated}");
    // Other arguments under the key are not what was approved.
    let changed = server.call(&call("rm -rf ..; echo ran >> effect")).json();
    assert_eq!(
        changed["error"]["code"], "idempotency_key_conflict",
        "{changed}"
    );
    assert_eq!(house.lines("effect"), 1);
    drop(server);
    // A third start finds nothing left to run.
    let _server = house.serve(&[]);
    assert_eq!(house.lines("effect"), 1);
    let log = house.run(&["audit-log", "show", "--json"]).stdout;
    assert!(
        log.contains("approval.presented") && log.contains("approval.used"),
        "{log}"
    );
    assert_eq!(house.run(&["audit-log", "verify"]).code, Some(0));
}

/// A server that stands in for nobody, since the caller lived when it looked: it looks again.
#[test]
fn approved_by_another_process_runs_without_a_restart() {
    let house = House::new();
    let server = house.serve(&[]);
    let call = house.start_exec(KEY, COMMAND, &[]);
    let id = server.pending()["id"].as_str().expect("an id").to_owned();
    call.kill_9();
    // Not over the server, which would hear of it.
    let approved = house.run(&["approvals", "approve", &id]);
    assert_eq!(approved.code, Some(0), "{approved:?}");
    eventually("it ran", || (house.lines("effect") == 1).then_some(()));
    eventually("it is used", || {
        (server.state_of(&id) == "used").then_some(())
    });
    drop(server);
    assert_eq!(
        house.run(&["approvals", "resume", "--json"]).stdout.trim(),
        "[]"
    );
    assert_eq!(house.lines("effect"), 1);
}

/// A call that nobody waits for was approved, and runs on the server until there is a file `go`.
fn runs_for_nobody(house: &House, more: &[&str]) -> Serving {
    let slow = "rm -f ../aside/victim; echo begun >> effect; while [ ! -e go ]; do sleep 0.01; done; echo done >> effect";
    let id = killed_while_waiting_for(house, &[], slow);
    let server = house.serve(more);
    let (status, answered) = server.answer(&id, "approve", &json!({}));
    assert_eq!(status, 200, "{answered}");
    eventually_lines(house, "effect", 1);
    server
}

#[test]
fn a_server_that_ends_lets_what_was_approved_finish() {
    let house = House::new();
    let server = runs_for_nobody(&house, &[]);
    server.signal(rustix::process::Signal::TERM);
    eventually("the port is closed", || {
        let closed = std::net::TcpStream::connect(server.address).is_err();
        closed.then_some(())
    });
    std::fs::write(house.path("go"), "").expect("writes");
    let (code, last) = server.ended();
    assert_eq!((code, &last["cancelledRequests"]), (Some(0), &json!(0)));
    assert_eq!(house.lines("effect"), 2);
    assert_eq!(house.only_state().as_deref(), Some("done"));
}

#[test]
fn what_was_approved_and_takes_too_long_is_cut_off_and_said_to_be() {
    let house = House::new();
    let config = house.file("short.yaml", "server: {shutdownMsMax: 50}");
    let server = runs_for_nobody(&house, &["--config", &config]);
    server.signal(rustix::process::Signal::TERM);
    let (code, last) = server.ended();
    assert_eq!((code, &last["cancelledRequests"]), (Some(0), &json!(1)));
    assert_eq!(house.lines("effect"), 1);
    assert_eq!(house.only_state().as_deref(), Some("unknown"));
}

#[test]
fn what_waits_for_a_person_does_not_hold_up_the_end_and_waits_on() {
    let house = House::new();
    let id = killed_while_waiting(&house, &[]);
    let config = house.file("long.yaml", "server: {shutdownMsMax: 600000}");
    let server = house.serve(&["--config", &config]);
    assert_eq!(server.pending()["id"], json!(id));
    server.signal(rustix::process::Signal::TERM);
    let (code, last) = server.ended();
    assert_eq!((code, &last["cancelledRequests"]), (Some(0), &json!(0)));
    let server = house.serve(&[]);
    let (status, answered) = server.answer(&id, "approve", &json!({}));
    assert_eq!(status, 200, "{answered}");
    eventually_lines(&house, "effect", 1);
}

/// Whoever delivers the call again has the only place while it waits for the one that was taken up.
#[test]
fn who_waits_for_what_was_taken_up_does_not_keep_it_from_its_start() {
    let house = House::new();
    let id = killed_while_waiting(&house, &[]);
    let config = house.file("one.yaml", "server: {callsMax: 1}");
    let server = house.serve(&["--config", &config]);
    assert_eq!(server.pending()["id"], json!(id));
    std::thread::scope(|scope| {
        let again = scope.spawn(|| server.call(&call(COMMAND)).json());
        eventually("it has its place", || {
            (server.metric("holdfast_http_calls_in_flight") == Some(1.0)).then_some(())
        });
        let (status, answered) = server.answer(&id, "approve", &json!({}));
        assert_eq!(status, 200, "{answered}");
        let told = again.join().expect("no panic");
        assert_eq!(told["status"], "success", "{told}");
    });
    assert_eq!(house.lines("effect"), 1);
}

#[test]
fn denied_after_a_restart_never_runs() {
    let house = House::new();
    let id = killed_while_waiting(&house, &[]);
    let server = house.serve(&[]);
    let (status, answered) = server.answer(&id, "deny", &json!({"reason": "not on a Friday"}));
    assert_eq!((status, &answered["state"]), (200, &json!("denied")));
    let repeated = server.call(&call(COMMAND)).json();
    assert_eq!(repeated["error"]["code"], "permission_denied", "{repeated}");
    let message = repeated["error"]["message"].as_str().expect("a message");
    assert!(message.contains("denied"), "{message}");
    assert_eq!(house.lines("effect"), 0);
}

#[test]
fn expired_while_the_server_was_away_is_over() {
    let house = House::new();
    let config = house.file("short.yaml", "permissions: {tools: {exec: {waitMs: 1500}}}");
    let more = ["--config", config.as_str()];
    let id = killed_while_waiting(&house, &more);
    let server = house.serve(&more);
    eventually("it expires", || {
        (server.state_of(&id) == "expired").then_some(())
    });
    let (status, answered) = server.answer(&id, "approve", &json!({}));
    assert_eq!(status, 409, "{answered}");
    assert_eq!(house.lines("effect"), 0);
}

#[test]
fn of_many_answers_at_once_one_counts() {
    let house = House::new();
    let id = killed_while_waiting(&house, &[]);
    let server = house.serve(&[]);
    let answers: Vec<(u16, &str)> = std::thread::scope(|scope| {
        let answering: Vec<_> = (0..12)
            .map(|number| {
                let (server, id) = (&server, &id);
                let way = if number % 2 == 0 { "approve" } else { "deny" };
                scope.spawn(move || (server.answer(id, way, &json!({})).0, way))
            })
            .collect();
        answering
            .into_iter()
            .map(|answer| answer.join().expect("no panic"))
            .collect()
    });
    let taken: Vec<&str> = answers
        .iter()
        .filter(|(status, _)| *status == 200)
        .map(|(_, way)| *way)
        .collect();
    assert_eq!(taken.len(), 1, "{answers:?}");
    assert!(
        answers
            .iter()
            .all(|(status, _)| [200, 409].contains(status))
    );
    let runs = usize::from(taken == ["approve"]);
    let end = if runs == 1 { "used" } else { "denied" };
    eventually("it ends", || (server.state_of(&id) == end).then_some(()));
    eventually("it ran", || (house.lines("effect") == runs).then_some(()));
    assert_eq!(house.run(&["audit-log", "verify"]).code, Some(0));
}

#[test]
fn an_answer_can_cover_the_session_or_become_a_policy() {
    for (scope, session) in [("session", json!("cli")), ("policy", Value::Null)] {
        let house = House::new();
        let id = killed_while_waiting(&house, &[]);
        let server = house.serve(&[]);
        let (status, answered) = server.answer(&id, "approve", &json!({"scope": scope}));
        assert_eq!((status, &answered["detail"]["scope"]), (200, &json!(scope)));
        eventually("it is used", || {
            (server.state_of(&id) == "used").then_some(())
        });
        let rules = house.run(&["approvals", "rules", "--json"]).json();
        let rule = &rules.as_array().expect("a list")[0];
        assert_eq!(rule["session"], session, "{rules}");
        let revoked = house.run(&["approvals", "revoke", rule["id"].as_str().expect("an id")]);
        assert_eq!(revoked.code, Some(0), "{revoked:?}");
    }
}

#[test]
fn only_the_approvers_token_answers() {
    let house = House::new();
    let id = killed_while_waiting(&house, &[]);
    let server = house.serve(&[]);
    let path = format!("/v1/approvals/{id}/approve");
    for token in [&server.token, &server.admin_token, &"x".repeat(67)] {
        assert_eq!(server.post(&path, token, &json!({})).status, 401);
        assert_eq!(server.get("/v1/approvals", Some(token)).status, 401);
    }
    assert_eq!(server.get("/v1/approvals", None).status, 401);
    let approver = &server.approver_token;
    assert_eq!(
        server
            .post("/v1/tools/call", approver, &call("true"))
            .status,
        401
    );
    assert_eq!(
        server.get("/debug/tool-reliability", Some(approver)).status,
        401
    );
    // Nobody approves their own request, and words that make no sense are refused.
    for (way, words, status) in [
        ("approve", json!({"by": "local"}), 403),
        ("approve", json!({"reason": "x"}), 400),
        ("approve", json!({"scope": "forever"}), 400),
        ("approve", json!({"more": 1}), 400),
        ("deny", json!({"scope": "once"}), 400),
        ("deny", json!({"reason": "x".repeat(300)}), 400),
        ("approve", json!([]), 400),
    ] {
        let (got, answer) = server.answer(&id, way, &words);
        assert_eq!(got, status, "{words}: {answer}");
    }
    assert_eq!(server.answer("nosuch00", "approve", &json!({})).0, 404);
    assert_eq!(server.state_of(&id), "pending");
    assert_eq!(house.lines("effect"), 0);
}

/// A command that has found a token and asks with it, in several ways. The last ones let go of the
/// connection before the answer, or hide behind a thread.
const THIEF: &str = r#"
import os, socket, subprocess, sys, time
address, port, path = sys.argv[1], int(sys.argv[2]), sys.argv[3]
token = open("stolen").read().strip()
def ask():
    s = socket.create_connection((address, port))
    s.sendall(f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n"
              "Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}".encode())
    return s
def status(s): return (s.recv(4096).split(b" ") + [b"nothing"])[1].decode()
print("plain", status(ask()))
half = ask(); half.shutdown(socket.SHUT_WR)
# One that hangs up may be answered, or not at all.
print("half", status(half).replace("nothing", "403"))
child = os.fork()
if child == 0:
    os.setsid()
    if os.fork() == 0:
        open("orphan.part", "w").write("orphan " + status(ask())); os.rename("orphan.part", "orphan")
    os._exit(0)
while not os.path.exists("orphan"): time.sleep(0.02)
print(open("orphan").read())
ask().close()
time.sleep(0.3)
"#;

#[test]
fn a_command_that_has_found_the_token_can_not_answer_with_it() {
    let house = House::new();
    let server = house.serve(&[]);
    std::fs::write(house.path("thief.py"), THIEF).expect("written");
    std::thread::scope(|scope| {
        let waiting =
            scope.spawn(|| server.call(&call("git push --force victim; echo ran >> effect")));
        let id = server.pending()["id"].as_str().expect("an id").to_owned();
        let (address, port) = (server.address.ip(), server.address.port());
        for (token, path) in [
            (
                &server.approver_token,
                format!("/v1/approvals/{id}/approve"),
            ),
            (&server.admin_token, "/debug/tool-reliability".to_owned()),
            (&server.token, "/v1/messages".to_owned()),
        ] {
            std::fs::write(house.path("stolen"), token).expect("written");
            // The system's own: one in the home of whoever runs the tests is out of reach.
            let thief = "PATH=/usr/bin:/bin python3 thief.py";
            let steal = format!("rm -f orphan; {thief} {address} {port} {path}");
            let stolen = json!({ "command": steal });
            let answer = server.call(&envelope(&path, "exec", &stolen, None)).json();
            let said = &answer["output"]["content"]["stdout"];
            assert_eq!(
                *said,
                json!("plain 403\nhalf 403\norphan 403\n"),
                "{path}: {answer}"
            );
        }
        assert_eq!(server.state_of(&id), "pending");
        assert_eq!(house.lines("effect"), 0);
        // Who is no command still answers.
        let (status, answered) = server.answer(&id, "deny", &json!({}));
        assert_eq!(status, 200, "{answered}");
        waiting.join().expect("no panic");
    });
}
