//! Outputs that fit: the beginning and the end are kept, and what was cut is said.
//!
//! A tool has limits of its own; this one holds for every tool, also for one that has none. The
//! record of a call keeps the whole output. Only the answer that leaves is cut.

use std::collections::BTreeMap;
use std::sync::Arc;

use holdfast_contract::ToolResultEnvelope;
use holdfast_reliability::config::ConfigProblem;
use holdfast_reliability::idempotency::record::output_bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::tools::read_on;

/// Default of [`OutputConfig::bytes_max`].
pub const OUTPUT_BYTES_MAX_DEFAULT: usize = 1024 * 1024;
/// Least that can be configured: room for the marks.
pub const OUTPUT_BYTES_MAX_MIN: usize = 256;
/// What a result says to people, in an answer: they asked for a line or two.
pub const DISPLAY_BYTES_MAX: usize = 16 * 1024;
/// Strings are not cut below this as long as lists can be.
const STRING_BYTES_MIN: usize = 128;

/// `output:` in the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct OutputConfig {
    /// Size of a tool's output as JSON in an answer; the middle of a larger one is cut.
    pub bytes_max: usize,
    /// By tool.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub tools: BTreeMap<String, usize>,
}

impl Default for OutputConfig {
    fn default() -> Self {
        Self {
            bytes_max: OUTPUT_BYTES_MAX_DEFAULT,
            tools: BTreeMap::new(),
        }
    }
}

impl OutputConfig {
    /// The limit of a tool.
    pub fn of(&self, tool: &str) -> usize {
        self.tools.get(tool).copied().unwrap_or(self.bytes_max)
    }

    /// Everything that is wrong, given the names of the tools there are.
    pub fn problems(&self, is_tool: impl Fn(&str) -> bool) -> Vec<ConfigProblem> {
        let mut problems = Vec::new();
        let all = [("output.bytesMax".to_owned(), self.bytes_max)];
        let by_tool = self
            .tools
            .iter()
            .map(|(name, bytes)| (format!("output.tools.{name}"), *bytes));
        for (path, bytes) in all.into_iter().chain(by_tool) {
            if bytes < OUTPUT_BYTES_MAX_MIN {
                let reason = format!("has to be at least {OUTPUT_BYTES_MAX_MIN} bytes");
                problems.push(ConfigProblem::new(path, reason));
            }
        }
        for name in self.tools.keys().filter(|name| !is_tool(name)) {
            let reason = format!("there is no tool named {name:?}");
            problems.push(ConfigProblem::new("output.tools", reason));
        }
        problems
    }
}

/// Cuts an answer to its tool's limit and says so beside it.
pub fn limit_output(result: &mut ToolResultEnvelope, config: &OutputConfig) {
    let bytes_max = config.of(&result.tool_name);
    if let Some(details) = result.error.as_mut().and_then(|it| it.details.as_mut())
        && details.to_string().len() > bytes_max
    {
        *details = cut_to(details, bytes_max);
    }
    let Some(output) = &mut result.output else {
        return;
    };
    let display = output
        .metadata
        .as_mut()
        .and_then(|it| it.get_mut("display"));
    if let Some(Value::String(display)) = display
        && display.len() > DISPLAY_BYTES_MAX.min(bytes_max)
    {
        *display = head_and_tail(display, DISPLAY_BYTES_MAX.min(bytes_max));
    }
    // A little more than it really is, and cheap: most outputs are far below any limit.
    if output_bytes(output) <= bytes_max {
        return;
    }
    let bytes = output.content.to_string().len();
    if bytes <= bytes_max {
        return;
    }
    let cut = cut_to(&output.content, bytes_max);
    let shown = cut.to_string().len();
    output.content = Arc::new(cut);
    let note = json!({"bytes": bytes, "shownBytes": shown, "bytesMax": bytes_max});
    output
        .metadata
        .get_or_insert_default()
        .insert("truncated".to_owned(), note);
}

/// The value within so many bytes of JSON: long strings lose their middle first, then long lists. Where it
/// says of itself that it is whole, it no longer does.
pub fn cut_to(value: &Value, bytes_max: usize) -> Value {
    let mut cut = cut_parts(value, bytes_max);
    if let Some(flag @ Value::Bool(false)) = cut.get_mut("truncated") {
        *flag = Value::Bool(true);
    }
    cut
}

fn cut_parts(value: &Value, bytes_max: usize) -> Value {
    let size = |value: &Value| value.to_string().len();
    let mut best = None;
    // The longest strings that still fit.
    let (mut low, mut high) = (STRING_BYTES_MIN, bytes_max);
    while low <= high {
        let middle = low.midpoint(high);
        let mut tried = shortened(value, middle, usize::MAX);
        read_on::say_where(value, &mut tried);
        if size(&tried) <= bytes_max {
            best = Some(tried);
            low = middle + 1;
        } else {
            high = middle - 1;
        }
    }
    // Then shorter and shorter lists of short strings.
    let mut items_max = 4096;
    while best.is_none() && items_max >= 2 {
        let mut tried = shortened(value, STRING_BYTES_MIN, items_max);
        read_on::say_where(value, &mut tried);
        if size(&tried) <= bytes_max {
            best = Some(tried);
        }
        items_max /= 2;
    }
    // What is neither, an object of thousands of fields, is shown as text.
    best.unwrap_or_else(|| {
        let text = value.to_string();
        let mut room = bytes_max;
        loop {
            let tried = Value::String(head_and_tail(&text, room));
            if size(&tried) <= bytes_max || room < 2 {
                return tried;
            }
            room = room * 3 / 4;
        }
    })
}

fn shortened(value: &Value, string_bytes: usize, items_max: usize) -> Value {
    match value {
        Value::String(text) => Value::String(head_and_tail(text, string_bytes)),
        Value::Array(items) if items.len() > items_max => {
            let half = items_max / 2;
            let cut = items.len() - 2 * half;
            let kept = |part: &[Value]| -> Vec<Value> {
                part.iter()
                    .map(|item| shortened(item, string_bytes, items_max))
                    .collect()
            };
            let mut list = kept(items.get(..half).unwrap_or_default());
            list.push(Value::String(format!("[… {cut} items cut …]")));
            list.extend(kept(items.get(items.len() - half..).unwrap_or_default()));
            Value::Array(list)
        }
        Value::Array(items) => items
            .iter()
            .map(|item| shortened(item, string_bytes, items_max))
            .collect(),
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| (name.clone(), shortened(value, string_bytes, items_max)))
            .collect(),
        other => other.clone(),
    }
}

/// The first and the last half of the bytes that may stay, with a mark of what is between.
fn head_and_tail(text: &str, bytes_max: usize) -> String {
    if text.len() <= bytes_max {
        return text.to_owned();
    }
    let half = bytes_max / 2;
    let head = text
        .get(..text.floor_char_boundary(half))
        .unwrap_or_default();
    let from = text.ceil_char_boundary(text.len() - half);
    let tail = text.get(from..).unwrap_or_default();
    let cut = text.len() - head.len() - tail.len();
    format!("{head}\n[… {cut} bytes cut …]\n{tail}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beginning_and_the_end_stay_and_the_rest_is_counted() {
        let lines: Vec<String> = (0..2000).map(|n| format!("line {n}")).collect();
        let long = lines.join("\n") + "\n";
        let value = json!({"exit_code": 0, "stdout": long, "stderr": "short"});
        let cut = cut_to(&value, 2000);
        assert!(cut.to_string().len() <= 2000);
        assert_eq!(
            (&cut["exit_code"], &cut["stderr"]),
            (&json!(0), &json!("short"))
        );
        let stdout = cut["stdout"].as_str().expect("text");
        assert!(
            stdout.starts_with("line 0\n") && stdout.ends_with("line 1999\n"),
            "{stdout}"
        );
        let said: usize = stdout
            .split("[… ")
            .nth(1)
            .and_then(|rest| rest.split(' ').next()?.parse().ok())
            .expect("a count");
        let kept = stdout.len() - format!("\n[… {said} bytes cut …]\n").len();
        assert_eq!(kept + said, long.len());
        // As much as fits is used.
        assert!(cut.to_string().len() > 1800);
    }

    #[test]
    fn everything_can_be_cut_to_every_size() {
        let many: Vec<Value> = (0..5000)
            .map(|n| json!({"n": n, "text": "ä€😀".repeat(20)}))
            .collect();
        let wide: serde_json::Map<String, Value> = (0..3000)
            .map(|n| (format!("field {n}"), json!(n)))
            .collect();
        let deep = (0..60).fold(json!("x".repeat(5000)), |inner, _| json!([inner]));
        let escapes = json!("\u{1}".repeat(5000));
        for value in [
            json!(many),
            Value::Object(wide),
            deep,
            escapes,
            json!("€".repeat(9999)),
        ] {
            for bytes_max in [256, 257, 1000, 4096] {
                let cut = cut_to(&value, bytes_max);
                let size = cut.to_string().len();
                assert!(size <= bytes_max, "{size} of {bytes_max}");
                assert!(
                    cut.to_string().contains("cut …]"),
                    "it does not say so: {cut}"
                );
            }
        }
    }

    #[test]
    fn what_was_cut_no_longer_says_that_it_is_whole() {
        let ran = json!({"exit_code": 0, "stdout": "x".repeat(5000), "truncated": false});
        assert_eq!(cut_to(&ran, 1000)["truncated"], true);
        let listed = json!({"hits": ["x".repeat(5000)]});
        assert!(cut_to(&listed, 1000).get("truncated").is_none());
    }

    /// What is said about going on leads to the first line that was not shown.
    #[test]
    fn a_file_that_is_cut_goes_on_where_it_was_cut() {
        let lines: Vec<String> = (10..2000).map(|n| format!("line {n}\n")).collect();
        let whole = json!({"content": lines.concat(), "first_line": 10, "lines": 1990,
            "truncated": false});
        let cut = cut_to(&whole, 2000);
        assert!(cut.to_string().len() <= 2000);
        let shown = cut["content"].as_str().expect("text");
        let next = cut["next_offset"].as_u64().expect("a line");
        assert!(
            !shown.contains(&format!("line {next}\n")),
            "{next}: {shown}"
        );
        assert!(
            shown.contains(&format!("line {}\n", next - 1)),
            "{next}: {shown}"
        );
        let note = format!("there is more; go on with offset {next}");
        assert_eq!(
            (&cut["truncated"], &cut["note"]),
            (&json!(true), &json!(note))
        );

        let long = json!({"content": "ä".repeat(5000), "first_line": 3, "first_column": 11});
        let cut = cut_to(&long, 2000);
        let shown = cut["content"].as_str().expect("text");
        let head = shown.chars().take_while(|sign| *sign == 'ä').count() as u64;
        assert_eq!(
            (&cut["next_offset"], &cut["next_column"]),
            (&json!(3), &json!(11 + head))
        );
    }

    /// What is said to people is bounded as well, whatever the size of what the model gets.
    #[test]
    fn a_display_is_cut_like_an_output() {
        use holdfast_contract::{ResultOutput, Status};
        let answer = |display: &str| ToolResultEnvelope {
            request_id: "r".to_owned(),
            status: Status::Success,
            from_cache: false,
            cache: None,
            tool_name: "t".to_owned(),
            duration_ms: 0,
            attempts: 1,
            output: Some(ResultOutput {
                content: Arc::new(json!("small")),
                metadata: json!({ "display": display }).as_object().cloned(),
            }),
            error: None,
            retried_by: Vec::new(),
        };
        let limited = |display: &str, config: &OutputConfig| {
            let mut result = answer(display);
            limit_output(&mut result, config);
            let metadata = result.output.and_then(|output| output.metadata);
            let display = metadata.and_then(|it| Some(it.get("display")?.as_str()?.to_owned()));
            display.expect("a text")
        };
        let long = format!("begin{}end", "ä".repeat(DISPLAY_BYTES_MAX));
        let small = OutputConfig {
            bytes_max: OUTPUT_BYTES_MAX_MIN,
            ..OutputConfig::default()
        };
        for (config, most) in [
            (OutputConfig::default(), DISPLAY_BYTES_MAX),
            (small, OUTPUT_BYTES_MAX_MIN),
        ] {
            let cut = limited(&long, &config);
            assert!(cut.starts_with("begin") && cut.ends_with("end"), "{cut}");
            assert!(cut.contains("bytes cut …]"), "{cut}");
            assert!(cut.len() < most + 50, "{}", cut.len());
            assert_eq!(limited("short", &config), "short");
        }
    }

    #[test]
    fn lists_say_how_many_items_are_missing() {
        let list: Vec<u32> = (0..10_000).collect();
        let cut = cut_to(&json!(list), 1000);
        let items = cut.as_array().expect("a list");
        assert_eq!(
            (items.first(), items.last()),
            (Some(&json!(0)), Some(&json!(9999)))
        );
        let said = items.iter().find_map(Value::as_str).expect("a mark");
        let kept = items.len() - 1;
        assert_eq!(said, format!("[… {} items cut …]", 10_000 - kept));
    }
}
