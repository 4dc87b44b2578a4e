//! Clean sessions as agents write them: a question, some rounds of calls and results, an answer.
//!
//! The texts are made of real-looking words and code with the escapes that JSON needs for them. How
//! long results are is drawn from a spread with many short and few long ones, as in real sessions.

use std::io::{self, Write};

/// Numbers that repeat.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

const LINES: &[&str] = &[
    "use std::collections::HashMap;\\n",
    "fn main() -> Result<(), Box<dyn std::error::Error>> {\\n",
    "    let path = std::env::args().nth(1).unwrap_or_else(|| \\\"input.txt\\\".to_string());\\n",
    "    // Counts how often each word occurs, and prints the ten most common ones.\\n",
    "\\tfor (index, line) in reader.lines().enumerate() {\\n",
    "drwxr-xr-x  7 user user  4096 Nov 12 09:14 node_modules\\n",
    "error[E0382]: borrow of moved value: `config`\\n  --> src/main.rs:42:17\\n   |\\n",
    "The quick brown fox jumps over the lazy dog while the build is running in the background. ",
    "I looked at the three files you named; two of them still use the old signature.\\n",
    "Größe: 12 KB — fertig ✓ (naïve façade)\\n",
    "warning: unused variable: `result`\\n",
    "[2026-11-12T09:14:07.123Z] INFO  http: GET /api/v1/items?limit=50 200 12ms\\n",
];

fn text(out: &mut String, numbers: &mut Numbers, bytes: usize) {
    let end = out.len() + bytes;
    while out.len() < end {
        out.push_str(LINES[numbers.below(LINES.len() as u64) as usize]);
    }
}

/// Most results are short, some are files.
fn result_bytes(numbers: &mut Numbers) -> usize {
    let size = match numbers.below(10) {
        0..4 => 200,
        4..7 => 1_200,
        7..9 => 4_000,
        _ => 16_000,
    };
    size / 2 + numbers.below(size as u64) as usize
}

fn uuid(numbers: &mut Numbers) -> String {
    let (a, b) = (numbers.next(), numbers.next());
    format!(
        "{:08x}-{:04x}-4{:03x}-a{:03x}-{:012x}",
        a >> 32,
        a & 0xffff,
        b & 0xfff,
        b >> 12 & 0xfff,
        b >> 16
    )
}

/// Writes one session.
pub fn write(out: &mut impl Write, number: u64, bytes: u64) -> io::Result<()> {
    let mut session = Session {
        numbers: Numbers(number),
        parent: "null".to_owned(),
        line: String::new(),
        round: 0,
    };
    let mut written = session.header(out, number)?;
    while written < bytes {
        written += session.round(out, number)?;
    }
    Ok(())
}

struct Session {
    numbers: Numbers,
    parent: String,
    line: String,
    round: u64,
}

impl Session {
    fn header(&mut self, out: &mut impl Write, number: u64) -> io::Result<u64> {
        let id = uuid(&mut self.numbers);
        self.line = match number % 5 {
            0 | 1 => format!(
                "{{\"type\":\"session\",\"version\":4,\"id\":\"{id}\",\"timestamp\":\"2026-11-15T07:06:40.749Z\",\"cwd\":\"/home/user/work\"}}"
            ),
            2 => format!(
                "{{\"type\":\"summary\",\"summary\":\"Count the words\",\"leafUuid\":\"{id}\"}}"
            ),
            3 => format!(
                "{{\"timestamp\":\"2026-11-15T07:06:40.749Z\",\"type\":\"session_meta\",\"payload\":{{\"id\":\"{id}\",\"cwd\":\"/home/user/work\",\"cli_version\":\"0.98.0\"}}}}"
            ),
            _ => "{\"role\":\"system\",\"content\":\"You are a helpful assistant.\"}".to_owned(),
        };
        self.flush(out)
    }

    fn flush(&mut self, out: &mut impl Write) -> io::Result<u64> {
        self.line.push('\n');
        out.write_all(self.line.as_bytes())?;
        let len = self.line.len() as u64;
        self.line.clear();
        Ok(len)
    }

    /// The start of an envelope, up to the message.
    fn open(&mut self, number: u64, role: &str) {
        let id = uuid(&mut self.numbers);
        let parent = std::mem::replace(&mut self.parent, format!("\"{id}\""));
        match number % 5 {
            0 | 1 => self.line.push_str(&format!("{{\"type\":\"message\",\"id\":\"{id}\",\"parentId\":{parent},\"timestamp\":\"2026-11-15T07:06:42.544Z\",\"message\":")),
            2 => self.line.push_str(&format!("{{\"parentUuid\":{parent},\"isSidechain\":false,\"userType\":\"external\",\"cwd\":\"/home/user/work\",\"sessionId\":\"5ebe0f64-8d1c-4c21-8a8c-3f2f9d6c1f11\",\"version\":\"2.1.159\",\"gitBranch\":\"main\",\"type\":\"{role}\",\"uuid\":\"{id}\",\"timestamp\":\"2026-11-15T07:06:42.544Z\",\"message\":")),
            3 => self.line.push_str("{\"timestamp\":\"2026-11-15T07:06:42.544Z\",\"type\":\"response_item\",\"payload\":"),
            _ => {}
        }
    }

    fn close(&mut self, number: u64, out: &mut impl Write) -> io::Result<u64> {
        if number % 5 != 4 {
            self.line.push('}');
        }
        self.flush(out)
    }

    fn round(&mut self, out: &mut impl Write, number: u64) -> io::Result<u64> {
        let mut written = 0;
        if self.round.is_multiple_of(12) {
            written += self.said(out, number, "user", 300)?;
        }
        self.round += 1;
        let id = format!("call_{number}_{}", self.round);
        written += self.call(out, number, &id)?;
        written += self.result(out, number, &id)?;
        if self.round.is_multiple_of(12) {
            written += self.said(out, number, "assistant", 900)?;
        }
        Ok(written)
    }

    fn said(
        &mut self,
        out: &mut impl Write,
        number: u64,
        role: &str,
        bytes: usize,
    ) -> io::Result<u64> {
        self.open(number, role);
        self.line.push_str(&match number % 5 {
            3 => format!("{{\"type\":\"message\",\"role\":\"{role}\",\"content\":[{{\"type\":\"{}\",\"text\":\"", if role == "user" { "input_text" } else { "output_text" }),
            _ => format!("{{\"role\":\"{role}\",\"content\":[{{\"type\":\"text\",\"text\":\""),
        });
        let mut line = std::mem::take(&mut self.line);
        text(&mut line, &mut self.numbers, bytes);
        self.line = line;
        self.line.push_str("\"}]}");
        self.close(number, out)
    }

    fn call(&mut self, out: &mut impl Write, number: u64, id: &str) -> io::Result<u64> {
        const USAGE: &str = "\"api\":\"anthropic-messages\",\"provider\":\"anthropic\",\"model\":\"claude-opus-4-6\",\"usage\":{\"input\":1712,\"output\":110,\"cacheRead\":48231,\"cacheWrite\":912,\"totalTokens\":50965,\"cost\":{\"input\":0.0051,\"output\":0.0016,\"cacheRead\":0.0144,\"cacheWrite\":0.0034,\"total\":0.0246}},\"stopReason\":\"toolUse\",\"timestamp\":1794726402038";
        self.open(number, "assistant");
        self.line.push_str(&match number % 5 {
            0 | 1 => format!("{{\"role\":\"assistant\",\"content\":[{{\"type\":\"thinking\",\"thinking\":\"Now the tests.\"}},{{\"type\":\"toolCall\",\"id\":\"{id}\",\"name\":\"exec\",\"arguments\":{{\"command\":\"cargo test --workspace 2>&1 | tail -n 40\",\"timeoutMs\":60000}}}}],{USAGE}}}"),
            2 => format!("{{\"id\":\"msg_{id}\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"claude-opus-4-6\",\"content\":[{{\"type\":\"tool_use\",\"id\":\"{id}\",\"name\":\"Bash\",\"input\":{{\"command\":\"cargo test --workspace 2>&1 | tail -n 40\",\"description\":\"Run the tests\"}}}}],\"stop_reason\":\"tool_use\",\"usage\":{{\"input_tokens\":12,\"cache_read_input_tokens\":48231,\"output_tokens\":110}}}}"),
            3 => format!("{{\"type\":\"function_call\",\"name\":\"shell\",\"arguments\":\"{{\\\"command\\\":[\\\"bash\\\",\\\"-lc\\\",\\\"cargo test\\\"]}}\",\"call_id\":\"{id}\"}}"),
            _ => format!("{{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{{\"id\":\"{id}\",\"type\":\"function\",\"function\":{{\"name\":\"exec\",\"arguments\":\"{{\\\"command\\\": \\\"cargo test\\\"}}\"}}}}]}}"),
        });
        self.close(number, out)
    }

    fn result(&mut self, out: &mut impl Write, number: u64, id: &str) -> io::Result<u64> {
        self.open(number, "user");
        self.line.push_str(&match number % 5 {
            0 | 1 => format!("{{\"role\":\"toolResult\",\"toolCallId\":\"{id}\",\"toolName\":\"exec\",\"content\":[{{\"type\":\"text\",\"text\":\""),
            2 => format!("{{\"role\":\"user\",\"content\":[{{\"tool_use_id\":\"{id}\",\"type\":\"tool_result\",\"is_error\":false,\"content\":\""),
            3 => format!("{{\"type\":\"function_call_output\",\"call_id\":\"{id}\",\"output\":\""),
            _ => format!("{{\"role\":\"tool\",\"tool_call_id\":\"{id}\",\"content\":\""),
        });
        let bytes = result_bytes(&mut self.numbers);
        let mut line = std::mem::take(&mut self.line);
        text(&mut line, &mut self.numbers, bytes);
        self.line = line;
        self.line.push_str(match number % 5 {
            0 | 1 => "\"}],\"details\":{\"status\":\"completed\",\"exitCode\":0,\"durationMs\":652,\"cwd\":\"/home/user/work\"},\"isError\":false,\"timestamp\":1794726402592}",
            2 => "\"}]}",
            _ => "\"}",
        });
        self.close(number, out)
    }
}
