//! One event a line. Values that come from outside are redacted here, by the one redactor.

use std::fmt::Write as _;
use std::sync::Arc;

use holdfast_contract::Clock;
use holdfast_contract::redact::Redactor;
use holdfast_contract::time::rfc3339;
use holdfast_reliability::observe::log::LineSink;
use serde_json::{Map, Value};

/// Characters of one text of an event; more are cut off.
pub const LOG_TEXT_CHARS_MAX: usize = 1_000_000;

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
            cut(value);
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

/// Long texts lose their end, and say how much of it.
fn cut(value: &mut Value) {
    match value {
        Value::String(text) if text.len() > LOG_TEXT_CHARS_MAX => {
            if let Some((at, _)) = text.char_indices().nth(LOG_TEXT_CHARS_MAX) {
                let more = text[at..].chars().count();
                text.truncate(at);
                // Writing to a string can not fail.
                let _ = write!(text, "… ({more} characters more)");
            }
        }
        Value::Array(list) => list.iter_mut().for_each(cut),
        Value::Object(map) => map.values_mut().for_each(cut),
        _ => {}
    }
}
