//! The seed's parser: its regular expressions and its rules, one to one.
//!
//! Two things are given to it for free: each structured strategy is tried before the fuzzy one
//! (a host has to choose one), and the names of the tools at hand are aliases of themselves.

use std::collections::BTreeMap;

use regex::Regex;
use serde_json::{Map, Value};

use crate::score::Said;

const ALIASES: &[(&str, &str)] = &[
    ("web_search", "web_search"),
    ("websearch", "web_search"),
    ("search", "web_search"),
    ("web_fetch", "web_fetch"),
    ("webfetch", "web_fetch"),
    ("fetch", "web_fetch"),
    ("read_file", "read"),
    ("readfile", "read"),
    ("read", "read"),
    ("open", "read"),
    ("write_file", "write"),
    ("writefile", "write"),
    ("write", "write"),
    ("save", "write"),
    ("execute", "exec"),
    ("run", "exec"),
    ("exec", "exec"),
    ("shell", "exec"),
    ("browser", "browser"),
    ("browse", "browser"),
];

/// Tool, its main argument, and the pattern.
const FUZZY: &[(&str, &str, &str)] = &[
    (
        "web_search",
        "query",
        r#"(?i)(?:search|look up|query|find)\s+(?:for\s+)?["']?(.+?)["']?(?:\s+(?:on|using|via)|[.\n]|$)"#,
    ),
    (
        "web_fetch",
        "url",
        r"(?i)(?:fetch|retrieve|get|download|open)\s+(?:the\s+)?(?:page|url|site|content)?\s*(?:at|from)?\s*(https?://\S+)",
    ),
    (
        "read",
        "path",
        r#"(?i)(?:read|open|view|check)\s+(?:the\s+)?(?:file|contents?\s+of)\s+["'\x60]?([/\w.\-]+)["'\x60]?"#,
    ),
    (
        "write",
        "path",
        r#"(?i)(?:write|save|create|output)\s+(?:to|as|the file)\s+["'\x60]?([/\w.\-]+)["'\x60]?"#,
    ),
    (
        "exec",
        "command",
        r#"(?i)(?:run|execute|exec)\s+(?:the\s+)?(?:command|shell|bash)?\s*["'\x60](.+?)["'\x60]"#,
    ),
];

pub struct Seed {
    action: Regex,
    input: Regex,
    marker: Regex,
    fuzzy: Vec<(&'static str, &'static str, Regex)>,
}

impl Seed {
    pub fn new() -> Result<Self, regex::Error> {
        let fuzzy = FUZZY
            .iter()
            .map(|(tool, argument, pattern)| Ok((*tool, *argument, Regex::new(pattern)?)))
            .collect::<Result<_, regex::Error>>()?;
        Ok(Self {
            action: Regex::new(r"(?m)^Action:\s*(\w+)\s*$")?,
            input: Regex::new(r"(?m)^Action Input:\s*(.+)$")?,
            marker: Regex::new(r"(?i)\[\s*TOOL\s*:\s*(\w+)\s*\|([^\]]+)\]")?,
            fuzzy,
        })
    }

    /// Parses by each structured strategy in turn, then by the fallback.
    pub fn parse(&self, text: &str, tools: &[String]) -> Vec<Said> {
        let ways: [&dyn Fn() -> Vec<Said>; 3] = [
            &|| guided(text, tools),
            &|| self.react(text, tools),
            &|| self.markers(text, tools),
        ];
        ways.iter()
            .map(|way| way())
            .find(|found| !found.is_empty())
            .unwrap_or_else(|| self.fuzzy(text))
    }

    fn react(&self, text: &str, tools: &[String]) -> Vec<Said> {
        let mut found = Vec::new();
        for action in self.action.captures_iter(text) {
            let (Some(name), Some(whole)) = (action.get(1), action.get(0)) else {
                continue;
            };
            let Some(name) = normal(name.as_str(), tools) else {
                continue;
            };
            let input = self.input.captures(&text[whole.end()..]);
            let mut arguments = Map::new();
            if let Some(input) = input.and_then(|input| input.get(1)) {
                let input = input.as_str().trim();
                let (texts, failed) = string_map(serde_json::from_str(input).ok());
                arguments = texts;
                if failed {
                    arguments.insert("input".to_owned(), Value::String(input.to_owned()));
                }
            }
            found.push(Said { name, arguments });
        }
        found
    }

    fn markers(&self, text: &str, tools: &[String]) -> Vec<Said> {
        let mut found = Vec::new();
        for marker in self.marker.captures_iter(text) {
            let Some(name) = normal(&marker[1], tools) else {
                continue;
            };
            let arguments = marker[2]
                .split('|')
                .filter_map(|pair| pair.trim().split_once('='))
                .map(|(key, value)| (key.trim().to_owned(), Value::from(value.trim())))
                .collect();
            found.push(Said { name, arguments });
        }
        found
    }

    fn fuzzy(&self, text: &str) -> Vec<Said> {
        let mut found: BTreeMap<&str, Said> = BTreeMap::new();
        for (tool, argument, pattern) in &self.fuzzy {
            for hit in pattern.captures_iter(text) {
                let mut value = hit[1].trim().to_owned();
                if *tool == "web_fetch" && !value.starts_with("http") {
                    value.insert_str(0, "https://");
                }
                // The first of each tool wins.
                found.entry(tool).or_insert_with(|| Said {
                    name: (*tool).to_owned(),
                    arguments: Map::from_iter([((*argument).to_owned(), Value::String(value))]),
                });
            }
        }
        found.into_values().collect()
    }
}

/// Go fills what fits into `map[string]string` and then says that it failed.
fn string_map(value: Option<Value>) -> (Map<String, Value>, bool) {
    let Some(Value::Object(map)) = value else {
        return (Map::new(), true);
    };
    let all = map.len();
    let texts: Map<String, Value> = map
        .into_iter()
        .filter(|(_, value)| value.is_string())
        .collect();
    let failed = texts.len() < all;
    (texts, failed)
}

fn guided(text: &str, tools: &[String]) -> Vec<Said> {
    let Ok(value) = serde_json::from_str::<Value>(text) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for call in value["tool_calls"].as_array().into_iter().flatten() {
        let (arguments, failed) = match call.get("arguments") {
            Some(arguments) => string_map(Some(arguments.clone())),
            None => (Map::new(), false),
        };
        if failed {
            // One argument that is no text, and nothing is read at all.
            return Vec::new();
        }
        if let Some(name) = call["name"].as_str().and_then(|name| normal(name, tools)) {
            found.push(Said { name, arguments });
        }
    }
    found
}

fn normal(name: &str, tools: &[String]) -> Option<String> {
    let name = name.trim();
    let lower = name.to_lowercase();
    ALIASES
        .iter()
        .find(|(alias, _)| *alias == lower)
        .map(|(_, tool)| (*tool).to_owned())
        .or_else(|| tools.iter().find(|tool| *tool == name).cloned())
}
