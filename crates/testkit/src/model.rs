//! A model server that says what a script says, in vLLM's words, on a real socket.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};

/// What the model says to one question.
#[derive(Debug, Clone)]
pub enum Say {
    /// This much thinking and this content, and why it stopped.
    Reply {
        /// What it thought; null on the wire when empty.
        reasoning: String,
        /// What it said; null on the wire when empty.
        content: String,
        /// Why it stopped.
        finish: &'static str,
    },
    /// A message of its own, for native calls.
    Message(Value),
    /// An HTTP status and a body.
    Status(u16, String),
    /// 429, and after how many seconds it wants to be asked again.
    Busy(u64),
    /// A success with this body, whatever it is.
    Body(String),
    /// A streamed answer that stops after its first part until [`ModelServer::release`].
    Held(String, String),
    /// A streamed answer that ends after this part, without its end.
    BrokenOff(String),
    /// A stream of exactly these bytes, which ends as a stream should.
    Stream(String),
    /// A stream of these bytes over and over, until its reader is gone.
    Endless(String),
    /// Half of an answer, then the end of the connection.
    Half,
    /// Nothing until the server ends.
    Silence,
}

impl Say {
    /// Only thinks, as gpt-oss does when it wants a tool.
    pub fn thinks(text: impl Into<String>) -> Self {
        Self::Reply {
            reasoning: text.into(),
            content: String::new(),
            finish: "stop",
        }
    }

    /// Thinks nothing and says this.
    pub fn says(text: impl Into<String>) -> Self {
        Self::Reply {
            reasoning: String::new(),
            content: text.into(),
            finish: "stop",
        }
    }

    /// Thinks of one call, in the words of `ReAct`.
    pub fn calls(tool: &str, arguments: &Value) -> Self {
        Self::thinks(format!(
            "Thought: next\nAction: {tool}\nAction Input: {arguments}"
        ))
    }
}

type Script = dyn Fn(&Value) -> Say + Send + Sync;

struct Shared {
    script: Box<Script>,
    asked: Mutex<Vec<Value>>,
    keys: Mutex<Vec<String>>,
    answered: AtomicU64,
    ends: AtomicBool,
    released: AtomicBool,
}

/// The server; it ends when it is dropped.
pub struct ModelServer {
    address: SocketAddr,
    shared: Arc<Shared>,
}

impl ModelServer {
    /// A server whose answers are a function of the request.
    pub fn start(script: impl Fn(&Value) -> Say + Send + Sync + 'static) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            script: Box::new(script),
            asked: Mutex::default(),
            keys: Mutex::default(),
            answered: AtomicU64::new(0),
            ends: AtomicBool::new(false),
            released: AtomicBool::new(false),
        });
        let for_all = shared.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                if for_all.ends.load(Ordering::SeqCst) {
                    return;
                }
                let (Ok(stream), shared) = (stream, for_all.clone()) else {
                    continue;
                };
                std::thread::spawn(move || serve(stream, &shared));
            }
        });
        Ok(Self { address, shared })
    }

    /// A server that says one thing after the other, by how often its model has spoken in the
    /// history it is sent. So a question that is asked again is answered alike.
    pub fn says(script: Vec<Say>) -> io::Result<Self> {
        Self::start(move |request| {
            let spoken = turns(request);
            let say = script.get(spoken).or(script.last());
            say.cloned().unwrap_or(Say::Silence)
        })
    }

    /// Where it is.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Lets what is held go on.
    pub fn release(&self) {
        self.shared.released.store(true, Ordering::SeqCst);
    }

    /// The bodies it was sent.
    pub fn asked(&self) -> Vec<Value> {
        self.shared.asked.lock().clone()
    }

    /// The `Authorization` headers it was sent.
    pub fn keys(&self) -> Vec<String> {
        self.shared.keys.lock().clone()
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        self.shared.ends.store(true, Ordering::SeqCst);
        // Wakes the thread that waits for connections.
        let _ = TcpStream::connect(self.address);
    }
}

/// How often the model has spoken in a history.
pub fn turns(request: &Value) -> usize {
    let messages = request["messages"].as_array();
    messages.map_or(0, |list| {
        list.iter().filter(|it| it["role"] == "assistant").count()
    })
}

fn serve(stream: TcpStream, shared: &Shared) {
    let _ = stream.set_nodelay(true);
    let mut stream = BufReader::new(stream);
    while let Ok(Some((path, body))) = request(&mut stream, shared) {
        // A server that is gone answers nobody, also not on a connection that was kept.
        if shared.ends.load(Ordering::SeqCst) {
            return;
        }
        let answered = if path.ends_with("/models") {
            write(stream.get_mut(), 200, &models())
        } else {
            answer(stream.get_mut(), &body, shared)
        };
        if answered.is_err() {
            return;
        }
    }
}

/// One request: its path and its body.
fn request(
    stream: &mut BufReader<TcpStream>,
    shared: &Shared,
) -> io::Result<Option<(String, Vec<u8>)>> {
    let mut line = String::new();
    if stream.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
    let mut length = 0;
    loop {
        let mut line = String::new();
        stream.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(':') else {
            break;
        };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.trim().parse().unwrap_or(0),
            "authorization" => shared.keys.lock().push(value.trim().to_owned()),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body)?;
    Ok(Some((path, body)))
}

fn answer(stream: &mut TcpStream, body: &[u8], shared: &Shared) -> io::Result<()> {
    let request: Value = serde_json::from_slice(body).unwrap_or_default();
    let say = (shared.script)(&request);
    let streams = request["stream"] == true;
    shared.asked.lock().push(request);
    let number = shared.answered.fetch_add(1, Ordering::SeqCst);
    let or_null = |text: &str| {
        if text.is_empty() {
            Value::Null
        } else {
            json!(text)
        }
    };
    match say {
        Say::Held(before, after) => {
            stream_head(stream)?;
            stream_text(stream, number, "content", &before)?;
            while !shared.released.load(Ordering::SeqCst) && !shared.ends.load(Ordering::SeqCst) {
                std::thread::sleep(Duration::from_millis(5));
            }
            stream_text(stream, number, "content", &after)?;
            stream_end(stream, number, "stop")
        }
        Say::BrokenOff(text) => {
            stream_head(stream)?;
            stream_text(stream, number, "content", &text)?;
            Err(io::ErrorKind::ConnectionAborted.into())
        }
        Say::Stream(bytes) => {
            stream_head(stream)?;
            stream_part(stream, &bytes)?;
            stream.write_all(b"0\r\n\r\n")
        }
        Say::Endless(bytes) => {
            stream_head(stream)?;
            while !shared.ends.load(Ordering::SeqCst) {
                stream_part(stream, &bytes)?;
            }
            Err(io::ErrorKind::ConnectionAborted.into())
        }
        Say::Reply {
            reasoning,
            content,
            finish,
        } if streams => {
            stream_head(stream)?;
            stream_text(stream, number, "reasoning_content", &reasoning)?;
            stream_text(stream, number, "content", &content)?;
            stream_end(stream, number, finish)
        }
        Say::Message(message) if streams => {
            stream_head(stream)?;
            let text = message["content"].as_str().unwrap_or_default();
            stream_text(stream, number, "content", text)?;
            let calls = message["tool_calls"]
                .as_array()
                .cloned()
                .unwrap_or_default();
            for (place, mut call) in calls.into_iter().enumerate() {
                call["index"] = json!(place);
                stream_event(stream, number, &json!({"tool_calls": [call]}), None)?;
            }
            stream_end(stream, number, "tool_calls")
        }
        Say::Reply {
            reasoning,
            content,
            finish,
        } => {
            let message = json!({
                "role": "assistant", "content": or_null(&content), "refusal": null,
                "annotations": null, "audio": null, "function_call": null, "tool_calls": [],
                "reasoning_content": or_null(&reasoning)});
            write(stream, 200, &completion(number, &message, finish))
        }
        Say::Message(message) => write(stream, 200, &completion(number, &message, "tool_calls")),
        Say::Status(status, body) => write(stream, status, &body),
        Say::Busy(seconds) => busy(stream, seconds),
        Say::Body(body) => write(stream, 200, &body),
        Say::Half => half(stream, number),
        Say::Silence => {
            // The client may leave before; its end of the connection is looked at, not waited for.
            stream.set_read_timeout(Some(Duration::from_millis(20)))?;
            let mut byte = [0];
            while !shared.ends.load(Ordering::SeqCst) {
                match stream.peek(&mut byte) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Ok(0) | Err(_) => break,
                    Ok(_) => std::thread::sleep(Duration::from_millis(20)),
                }
            }
            Err(io::ErrorKind::ConnectionAborted.into())
        }
    }
}

fn busy(stream: &mut TcpStream, seconds: u64) -> io::Result<()> {
    let answer =
        format!("HTTP/1.1 429 Scripted\r\nretry-after: {seconds}\r\ncontent-length: 2\r\n\r\n{{}}");
    stream.write_all(answer.as_bytes())
}

/// Half of an answer, and no more.
fn half(stream: &mut TcpStream, number: u64) -> io::Result<()> {
    let whole = completion(number, &json!({"content": "half"}), "stop");
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        whole.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(&whole.as_bytes()[..whole.len() / 2])?;
    Err(io::ErrorKind::ConnectionAborted.into())
}

fn stream_head(stream: &mut TcpStream) -> io::Result<()> {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n\
                transfer-encoding: chunked\r\n\r\n";
    stream.write_all(head.as_bytes())
}

fn stream_part(stream: &mut TcpStream, text: &str) -> io::Result<()> {
    write!(stream, "{:x}\r\n{text}\r\n", text.len())
}

fn stream_event(
    stream: &mut TcpStream,
    number: u64,
    delta: &Value,
    finish: Option<&str>,
) -> io::Result<()> {
    let event = json!({
        "id": format!("chatcmpl-{number:032x}"),
        "object": "chat.completion.chunk",
        "created": 1_794_700_000,
        "model": "gpt-oss",
        "choices": [{"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish,
                     "stop_reason": null, "token_ids": null}],
    });
    stream_part(stream, &format!("data: {event}\n\n"))
}

/// A text word by word, as a model says it.
fn stream_text(stream: &mut TcpStream, number: u64, field: &str, text: &str) -> io::Result<()> {
    for word in text.split_inclusive(' ') {
        stream_event(stream, number, &json!({field: word}), None)?;
    }
    Ok(())
}

fn stream_end(stream: &mut TcpStream, number: u64, finish: &str) -> io::Result<()> {
    stream_event(stream, number, &json!({}), Some(finish))?;
    let usage = json!({"id": format!("chatcmpl-{number:032x}"), "object": "chat.completion.chunk",
        "created": 1_794_700_000, "model": "gpt-oss", "choices": [],
        "usage": {"prompt_tokens": 100, "total_tokens": 120, "completion_tokens": 20}});
    stream_part(stream, &format!("data: {usage}\n\n"))?;
    stream_part(stream, "data: [DONE]\n\n")?;
    stream.write_all(b"0\r\n\r\n")
}

/// As vLLM writes it, with the fields it leaves empty.
fn completion(number: u64, message: &Value, finish: &str) -> String {
    json!({
        "id": format!("chatcmpl-{number:032x}"),
        "object": "chat.completion",
        "created": 1_794_700_000,
        "model": "gpt-oss",
        "choices": [{"index": 0, "message": message, "logprobs": null, "finish_reason": finish,
                     "stop_reason": null, "token_ids": null}],
        "service_tier": null,
        "system_fingerprint": null,
        "usage": {"prompt_tokens": 100, "total_tokens": 120, "completion_tokens": 20,
                  "prompt_tokens_details": null},
        "prompt_logprobs": null,
        "prompt_token_ids": null,
        "kv_transfer_params": null,
    })
    .to_string()
}

fn models() -> String {
    json!({"object": "list", "data": [{"id": "gpt-oss", "object": "model", "created": 1_794_700_000,
        "owned_by": "vllm", "root": "gpt-oss", "parent": null, "max_model_len": 32768}]})
    .to_string()
}

fn write(stream: &mut TcpStream, status: u16, body: &str) -> io::Result<()> {
    let head = format!(
        "HTTP/1.1 {status} Scripted\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())
}
