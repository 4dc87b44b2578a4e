//! What a transcript is read as depends on its bytes alone.

use std::io::{self, Read};

use holdfast_transcript::{Format, read};

/// Gives one byte at a time, as a slow pipe may.
struct Slowly<'t>(&'t [u8]);

impl Read for Slowly<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let one = into.len().min(1);
        self.0.read(&mut into[..one])
    }
}

/// A session whose first line is half written.
fn broken() -> String {
    let half = "{\"type\":\"session\",\"versi".to_owned();
    let messages = (0..5).map(|number| {
        format!(
            "{{\"type\":\"message\",\"id\":\"{number}\",\"parentId\":null,\
             \"message\":{{\"role\":\"user\",\"content\":\"hi\"}}}}"
        )
    });
    let lines: Vec<String> = std::iter::once(half).chain(messages).collect();
    lines.join("\n") + "\n"
}

#[test]
fn what_was_read_before_on_this_thread_changes_nothing() {
    let small = br#"[{"role": "user", "content": "hi"}]"#;
    read::index(&small[..]).expect("a small document");
    let text = broken();
    let (shape, index) = read::index(text.as_bytes()).expect("a session all the same");
    assert_eq!(shape.format, Format::OpenClaw);
    assert_eq!(index.invalid().len(), 1);
    assert_eq!(index.entries().count(), 6);
}

#[test]
fn a_slow_source_is_read_like_a_fast_one() {
    let text = broken();
    let (shape, index) = read::index(Slowly(text.as_bytes())).expect("a session");
    assert_eq!(shape.format, Format::OpenClaw);
    assert_eq!(index.entries().count(), 6);
}
