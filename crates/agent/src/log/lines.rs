//! One event a line. Values that come from outside are redacted here, by the one redactor.

use std::fmt::Write as _;
use std::sync::Arc;

use holdfast_contract::Clock;
use holdfast_contract::redact::Redactor;
use holdfast_contract::time::rfc3339;
use holdfast_reliability::observe::log::LineSink;
use serde_json::{Map, Value};

/// Characters of one text of an event for those who look closely; more are cut off.
pub const LOG_TEXT_CHARS_MAX: usize = 1_000_000;
/// Characters of one value of any other event, written as JSON where it is no text.
pub const LOG_VALUE_CHARS_MAX: usize = 1_000;
/// Characters of one text in such a value. What goes through a run is its client's: a log that is
/// always on says what was called, and not what was in the files.
pub const LOG_BRIEF_CHARS_MAX: usize = 200;

/// How much an event matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Whole requests and replies.
    Debug,
    /// What happens.
    Info,
    /// What went wrong and was dealt with.
    Warn,
    /// What went wrong.
    Error,
}

impl Level {
    /// Its name in the log.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Debug => "DEBUG",
            Self::Info => "INFO",
            Self::Warn => "WARN",
            Self::Error => "ERROR",
        }
    }

    /// The level that a configuration names.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "debug" => Some(Self::Debug),
            "info" => Some(Self::Info),
            "warn" => Some(Self::Warn),
            "error" => Some(Self::Error),
            _ => None,
        }
    }
}

/// How a line looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// A JSON object.
    Json,
    /// Words for people at a terminal.
    Text,
}

/// Writes events.
pub struct RunLog {
    sink: Arc<dyn LineSink>,
    clock: Arc<dyn Clock>,
    redactor: Redactor,
    level: Level,
    format: Format,
}

impl RunLog {
    /// Logs to `sink` what matters at least as much as `level`.
    pub fn new(
        sink: Arc<dyn LineSink>,
        clock: Arc<dyn Clock>,
        redactor: Redactor,
        level: Level,
        format: Format,
    ) -> Self {
        Self {
            sink,
            clock,
            redactor,
            level,
            format,
        }
    }

    /// Whether such events are written.
    pub fn takes(&self, level: Level) -> bool {
        level >= self.level
    }

    /// Writes one event with its fields.
    pub fn event(&self, level: Level, event: &'static str, fields: Value) {
        if !self.takes(level) {
            return;
        }
        let mut fields = match fields {
            Value::Object(fields) => fields,
            _ => Map::new(),
        };
        for value in fields.values_mut() {
            self.redactor.redact_value_in_place(value);
            // Only then: half of a secret would not be known for one.
            match level {
                Level::Debug => cut(value, LOG_TEXT_CHARS_MAX),
                Level::Info | Level::Warn | Level::Error => shorten(value),
            }
        }
        let mut line = match self.format {
            Format::Json => self.json(level, event, &fields),
            Format::Text => self.text(level, event, &fields),
        };
        line.push('\n');
        self.sink.line(line.as_bytes());
    }

    fn json(&self, level: Level, event: &str, fields: &Map<String, Value>) -> String {
        let time = rfc3339(self.clock.now_ms());
        let mut line = format!(
            "{{\"timestamp\":\"{time}\",\"level\":\"{}\",\"logger\":\"executor\",\"event\":\"{event}\"",
            level.as_str()
        );
        for (name, value) in fields {
            // Writing to a string can not fail.
            let _ = write!(line, ",\"{name}\":{value}");
        }
        line.push('}');
        line
    }

    fn text(&self, level: Level, event: &str, fields: &Map<String, Value>) -> String {
        let time = rfc3339(self.clock.now_ms());
        let mut line = format!("{time}  {}  executor  {event}", level.as_str());
        for (name, value) in fields {
            let _ = write!(line, " {name}={value}");
        }
        line
    }
}

/// As much of a value as says what it is about.
fn shorten(value: &mut Value) {
    if value.is_array() || value.is_object() {
        cut(value, LOG_BRIEF_CHARS_MAX);
        let written = value.to_string();
        if written.chars().count() <= LOG_VALUE_CHARS_MAX {
            return;
        }
        *value = Value::String(written);
    }
    cut(value, LOG_VALUE_CHARS_MAX);
}

/// Long texts lose their end, and say how much of it.
fn cut(value: &mut Value, chars_max: usize) {
    match value {
        Value::String(text) if text.len() > chars_max => {
            if let Some((at, _)) = text.char_indices().nth(chars_max) {
                let more = text[at..].chars().count();
                text.truncate(at);
                // Writing to a string can not fail.
                let _ = write!(text, "… ({more} characters more)");
            }
        }
        Value::Array(list) => list.iter_mut().for_each(|it| cut(it, chars_max)),
        Value::Object(map) => map.values_mut().for_each(|it| cut(it, chars_max)),
        _ => {}
    }
}
