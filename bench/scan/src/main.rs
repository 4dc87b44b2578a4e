//! Makes sessions to scan, and reads them with the library on one core.
//!
//!   bench-scan generate DIR BYTES FILES   clean sessions of five formats, the same every time
//!   bench-scan index FILE…                reads and checks them, and says how fast
//!   bench-scan validate                   10,000 messages in memory, a thousand times

use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::Instant;

use holdfast_transcript::adapter::adapter;
use holdfast_transcript::check::check;
use holdfast_transcript::{read, validate_tool_result_pairing};
use serde_json::{Value, json};

mod sessions;

fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["generate", dir, bytes, files] => generate(
            Path::new(dir),
            bytes.parse().map_err(io::Error::other)?,
            files.parse().map_err(io::Error::other)?,
        ),
        ["index", files @ ..] => index(files),
        ["validate"] => {
            validate();
            Ok(())
        }
        _ => Err(io::Error::other(
            "usage: generate DIR BYTES FILES | index FILE… | validate",
        )),
    }
}

/// Sessions of one size, in turn in each format.
fn generate(dir: &Path, bytes: u64, files: u64) -> io::Result<()> {
    fs::create_dir_all(dir)?;
    for number in 0..files {
        let path = dir.join(format!("session-{number:05}.jsonl"));
        let mut out = BufWriter::with_capacity(1 << 20, fs::File::create(path)?);
        sessions::write(&mut out, number, bytes / files)?;
        out.flush()?;
    }
    Ok(())
}

fn index(files: &[&str]) -> io::Result<()> {
    let begun = Instant::now();
    let (mut bytes, mut entries, mut faults, mut longest) = (0, 0, 0, 0);
    for file in files {
        let file = fs::File::open(file)?;
        bytes += file.metadata()?.len();
        let (shape, index) = read::index(file).map_err(io::Error::other)?;
        entries += index.len();
        longest = longest.max(index.entries().map(|entry| entry.len).max().unwrap_or(0));
        faults += check(&index, adapter(shape.format).pairing()).len();
    }
    let seconds = begun.elapsed().as_secs_f64();
    let may_take_kb = 64 * 1024 + (entries as u64 * 64 + u64::from(longest)) / 1024;
    println!(
        "{bytes} bytes, {entries} entries, {faults} faults, {seconds:.3} s, {:.2} GB/s, peak {} KB of {may_take_kb} KB",
        bytes as f64 / 1e9 / seconds,
        peak_kb()?
    );
    Ok(())
}

/// The most memory that this process has had.
fn peak_kb() -> io::Result<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let peak = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .and_then(|rest| rest.split_whitespace().next()?.parse().ok());
    peak.ok_or_else(|| io::Error::other("the kernel does not say how much memory was used"))
}

/// Writes one message of a provider's history.
type Message = fn(usize, &str) -> Value;

/// How long the library takes for a history of 10,000 messages that an agent holds in memory: as each
/// provider takes it, and with one result whose call is gone.
fn validate() {
    let text = "x".repeat(400);
    let histories: [(&str, Message); 3] = [
        ("anthropic", anthropic),
        ("chat", chat),
        ("responses", responses),
    ];
    for (name, message) in histories {
        let mut messages: Vec<_> = (0..10_000).map(|number| message(number, &text)).collect();
        report(name, &messages, 0);
        messages.remove(5_001);
        report(&format!("{name}, a call lost"), &messages, 1);
    }
}

/// Beside each figure its floor in the same run, turn by turn: a walk that reads the names of all members and
/// checks nothing. A pause of the machine hits both.
fn report(name: &str, messages: &[Value], issues: usize) {
    let (mut ours, mut floor) = (Vec::new(), Vec::new());
    for _ in 0..1000 {
        let begun = Instant::now();
        assert_eq!(validate_tool_result_pairing(messages).len(), issues);
        ours.push(begun.elapsed().as_micros());
        let begun = Instant::now();
        std::hint::black_box(messages.iter().map(names).sum::<usize>());
        floor.push(begun.elapsed().as_micros());
    }
    for (name, mut micros) in [(name, ours), ("  its floor", floor)] {
        micros.sort_unstable();
        println!(
            "{name}: best {} µs, p50 {} µs, p99 {} µs",
            micros[0], micros[500], micros[990]
        );
    }
}

/// How many members are named `type`, `role` or `id`.
fn names(value: &Value) -> usize {
    match value {
        Value::Object(members) => members
            .iter()
            .map(|(key, value)| {
                usize::from(matches!(key.as_str(), "type" | "role" | "id")) + names(value)
            })
            .sum(),
        Value::Array(items) => items.iter().map(names).sum(),
        _ => 0,
    }
}

fn anthropic(number: usize, text: &str) -> Value {
    match number % 4 {
        0 => json!({"role": "user", "content": text}),
        1 => {
            json!({"role": "assistant", "content": [{"type": "tool_use", "id": format!("toolu_{number}"), "name": "read", "input": {"path": text}}]})
        }
        2 => {
            json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": format!("toolu_{}", number - 1), "content": text}]})
        }
        _ => json!({"role": "assistant", "content": text}),
    }
}

fn chat(number: usize, text: &str) -> Value {
    match number % 4 {
        0 => json!({"role": "user", "content": text}),
        1 => {
            json!({"role": "assistant", "content": null, "tool_calls": [{"type": "function", "id": format!("call_{number}"), "function": {"name": "read", "arguments": text}}]})
        }
        2 => {
            json!({"role": "tool", "tool_call_id": format!("call_{}", number - 1), "content": text})
        }
        _ => json!({"role": "assistant", "content": text}),
    }
}

fn responses(number: usize, text: &str) -> Value {
    match number % 4 {
        0 => json!({"type": "message", "role": "user", "content": text}),
        1 => {
            json!({"type": "function_call", "call_id": format!("call_{number}"), "name": "read", "arguments": text})
        }
        2 => {
            json!({"type": "function_call_output", "call_id": format!("call_{}", number - 1), "output": text})
        }
        _ => json!({"type": "message", "role": "assistant", "content": text}),
    }
}
