//! A generator of bad requests, the same for the same seed.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;

use holdfast_contract::Entropy;
use holdfast_testkit::SeededEntropy;
use holdfast_testkit::http::Connection;
use serde_json::{Value, json};

use crate::harness::envelope;

/// One in this many dawdles until the server loses its patience.
const SLOW_EVERY: u64 = 60;

pub(crate) struct Villain {
    pub(crate) entropy: SeededEntropy,
    pub(crate) address: SocketAddr,
    pub(crate) token: String,
}

/// What is sent, and what follows.
pub(crate) struct Attack {
    pub(crate) name: &'static str,
    pub(crate) bytes: Vec<u8>,
    then: Then,
}

/// What the client does after its bytes.
#[derive(Clone, Copy, PartialEq)]
enum Then {
    /// Waits for an answer.
    Listen,
    /// Says that it has no more to say.
    HangUp,
}

type Make = fn(&Villain) -> Vec<u8>;

/// Every kind of bad request.
const ATTACKS: &[(&str, Then, Make)] = &[
    ("noise", Then::HangUp, |villain| {
        villain.noise(1 + villain.below(600))
    }),
    ("cut off", Then::HangUp, |villain| {
        let mut whole = villain.request(&[], &villain.harmful());
        whole.truncate(1 + villain.below(whole.len() - 1));
        whole
    }),
    ("long header", Then::Listen, |villain| {
        let long = "x".repeat(17 * 1024 + villain.below(40_000));
        villain.request(&[("x-long", &long)], &villain.harmful())
    }),
    ("many headers", Then::Listen, |villain| {
        let headers: Vec<String> = (0..101 + villain.below(400))
            .map(|index| format!("h{index}: v\r\n"))
            .collect();
        let headers = headers.concat();
        format!("POST /tools/invoke HTTP/1.1\r\n{headers}\r\n").into_bytes()
    }),
    ("announced too large", Then::Listen, |villain| {
        let size = (9 * 1024 * 1024 + villain.below(1 << 40)).to_string();
        villain.request(&[("content-length", &size)], b"{")
    }),
    ("too large", Then::Listen, |villain| {
        let body = vec![b' '; 2 * 1024 * 1024 + 1 + villain.below(1000)];
        villain.request(&[("line", "POST /tools/invoke HTTP/1.1")], &body)
    }),
    ("noise for a body", Then::Listen, |villain| {
        villain.request(&[], &villain.noise(1 + villain.below(400)))
    }),
    ("spoilt envelope", Then::Listen, |villain| {
        let line = ("line", "POST /v1/tools/call HTTP/1.1");
        villain.request(&[line], &villain.spoilt_envelope())
    }),
    ("wrong token", Then::Listen, |villain| {
        let token = villain.pick(&["", "Bearer ", "Bearer hf_wrong", "Basic eDp5", "Bearer \t"]);
        villain.request(&[("authorization", token)], &villain.harmful())
    }),
    ("wrong host", Then::Listen, |villain| {
        let hosts = [
            "evil.example",
            "",
            "127.0.0.1.evil.example",
            "localhost:x",
            "a b",
        ];
        villain.request(&[("host", villain.pick(&hosts))], &villain.harmful())
    }),
    ("from a web page", Then::Listen, |villain| {
        let origin = villain.pick(&["https://evil.example", "null", "http://127.0.0.1:1"]);
        villain.request(&[("origin", origin)], &villain.harmful())
    }),
    ("wrong type", Then::Listen, |villain| {
        let kinds = [
            "",
            "text/plain",
            "application/x-www-form-urlencoded",
            "application/jsonx",
        ];
        villain.request(
            &[("content-type", villain.pick(&kinds))],
            &villain.harmful(),
        )
    }),
    ("wrong place", Then::Listen, |villain| {
        let line = villain.pick(&[
            "GET /v1/tools/call HTTP/1.1",
            "PUT /tools/invoke HTTP/1.1",
            "POST /v1/tools/cal HTTP/1.1",
            "POST /v1/tools/call/ HTTP/1.1",
            "POST //tools/invoke HTTP/1.1",
            "DELETE /debug/tool-reliability HTTP/1.1",
            "POST /debug/tool-reliability HTTP/1.1",
            "TRACE / HTTP/1.1",
            "CONNECT evil.example:80 HTTP/1.1",
            "POST http://evil.example/tools/invoke HTTP/1.1",
        ]);
        villain.request(&[("line", line)], &villain.harmful())
    }),
    ("wrong line", Then::HangUp, |villain| {
        let line = villain.pick(&[
            "POST /tools/invoke HTTP/9.9",
            "POST /tools/invoke",
            "POST\t/tools/invoke HTTP/1.1",
            "POST /tools/ invoke HTTP/1.1",
            "PO\u{1}ST /tools/invoke HTTP/1.1",
            "\u{0}",
        ]);
        villain.request(&[("line", line)], &villain.harmful())
    }),
    ("wrong encoding", Then::Listen, |villain| {
        let how = villain.pick(&["gzip", "chunked, identity", "xchunked", "identity"]);
        villain.request(&[("transfer-encoding", how)], &villain.harmful())
    }),
    ("wrong chunks", Then::HangUp, |villain| {
        let chunks = villain.pick(&[
            "zz\r\n",
            "-1\r\n",
            "ffffffffffffffffff\r\n",
            "5\r\nab",
            "1\r\nabc\r\n0\r\n\r\n",
        ]);
        let changes = [("transfer-encoding", "chunked"), ("content-length", "")];
        villain.request(&changes, chunks.as_bytes())
    }),
];

impl Villain {
    fn below(&self, limit: usize) -> usize {
        let limit = u64::try_from(limit).expect("small");
        usize::try_from(self.entropy.below(limit)).expect("small")
    }

    fn pick<'a>(&self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len())]
    }

    fn noise(&self, length: usize) -> Vec<u8> {
        (0..length)
            .map(|_| self.entropy.next_u64().to_le_bytes()[0])
            .collect()
    }

    /// A request that would run a command if it were let through. A change to nothing removes.
    fn request(&self, changes: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
        let mut headers: BTreeMap<&str, String> = BTreeMap::from([
            ("host", self.address.to_string()),
            ("authorization", format!("Bearer {}", self.token)),
            ("content-type", "application/json".to_owned()),
            ("content-length", body.len().to_string()),
        ]);
        let path = self.pick(&["/v1/tools/call", "/tools/invoke"]);
        let mut line = format!("POST {path} HTTP/1.1");
        for (name, value) in changes {
            if *name == "line" {
                (*value).clone_into(&mut line);
            } else if value.is_empty() {
                headers.remove(name);
            } else {
                headers.insert(name, (*value).to_owned());
            }
        }
        let mut bytes = format!("{line}\r\n").into_bytes();
        for (name, value) in headers {
            bytes.extend(format!("{name}: {value}\r\n").bytes());
        }
        bytes.extend_from_slice(b"\r\n");
        bytes.extend_from_slice(body);
        bytes
    }

    /// A body that both routes would take, and that leaves a mark when it runs.
    fn harmful(&self) -> Vec<u8> {
        let id = format!("evil-{}", self.entropy.next_u64());
        let args = json!({"command": "echo x >> effects"});
        let mut body = envelope(&id, "exec", &args, Some(&id));
        body["tool"] = json!("exec");
        body["args"] = args;
        body.to_string().into_bytes()
    }

    /// An envelope with one thing wrong.
    fn spoilt_envelope(&self) -> Vec<u8> {
        let mut body: Value = serde_json::from_slice(&self.harmful()).expect("JSON");
        let field = self.pick(&[
            "/contractVersion",
            "/requestId",
            "/toolName",
            "/target",
            "/target/sessionKey",
            "/target/actorId",
            "/payload",
            "/payload/version",
            "/transport",
            "/transport/dedupeMode",
            "/transport/retryBudget/maxAttempts",
        ]);
        let wrong = [
            json!(null),
            json!([]),
            json!(-1),
            json!(true),
            json!("\u{0}"),
        ];
        *body.pointer_mut(field).expect("is there") = wrong[self.below(wrong.len())].clone();
        body.to_string().into_bytes()
    }

    pub(crate) fn attack(&self, number: u64) -> Attack {
        if number.is_multiple_of(SLOW_EVERY) {
            return self.slow();
        }
        let (name, then, make) = ATTACKS[self.below(ATTACKS.len())];
        Attack {
            name,
            bytes: make(self),
            then,
        }
    }

    /// One that stops in the middle, and waits.
    fn slow(&self) -> Attack {
        let mut bytes = self.request(&[], &self.harmful());
        let head = bytes.windows(4).position(|four| four == b"\r\n\r\n");
        let head = head.expect("a head") + 4;
        let (name, end) = if self.below(2) == 0 {
            ("slow head", 1 + self.below(head - 1))
        } else {
            ("slow body", head + self.below(bytes.len() - head - 1))
        };
        bytes.truncate(end);
        Attack {
            name,
            bytes,
            then: Then::Listen,
        }
    }

    /// Sends it; the status of what came back, none for a connection that was only closed.
    pub(crate) fn send(&self, attack: &Attack) -> io::Result<Option<u16>> {
        let mut connection = Connection::open(self.address)?;
        // The server may have seen enough before everything is sent.
        let _ = connection.send(&attack.bytes);
        if attack.then == Then::HangUp {
            let _ = connection.finish();
        }
        let closed = [
            io::ErrorKind::UnexpectedEof,
            io::ErrorKind::ConnectionReset,
            io::ErrorKind::BrokenPipe,
        ];
        match connection.answer() {
            Ok(answer) => Ok(Some(answer.status)),
            Err(error) if closed.contains(&error.kind()) => Ok(None),
            Err(error) => Err(error),
        }
    }
}
