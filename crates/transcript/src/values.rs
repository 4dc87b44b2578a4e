//! Validation in memory: the messages an agent is about to send, as JSON values.

mod agents;
mod detect;

pub use detect::detect;
use serde_json::Value;
use xxhash_rust::xxh3::xxh3_64;

use crate::adapter::{Pairing, adapter};
use crate::check::{Fault, Plain, check};
use crate::format::Format;
use crate::index::{Facts, Index, ParentId};
use crate::seen::{BlockKind, Kind, Marks, Reply};
use crate::stand_in;

/// One thing that is wrong with a list of messages. The members are those of the incident log.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PairingIssue {
    /// What is wrong.
    #[serde(rename = "type")]
    pub fault: Fault,
    /// The call's id; none when the message forgot it.
    pub tool_use_id: Option<String>,
    /// The message, from 0.
    pub message_index: usize,
    /// What is wrong and what a provider would answer.
    pub description: String,
}

impl From<&crate::Finding> for PairingIssue {
    fn from(finding: &crate::Finding) -> Self {
        Self {
            fault: finding.fault,
            tool_use_id: finding.id.clone(),
            message_index: finding.entry as usize,
            description: finding.description.clone(),
        }
    }
}

/// What is wrong with the calls and results of some messages: of Anthropic's API, chat completions,
/// Responses items, or entries of `OpenClaw`, Claude Code or Codex sessions. Empty when a provider
/// would take them.
///
/// ```
/// use holdfast_transcript::{Fault, validate_tool_result_pairing};
/// use serde_json::json;
/// let messages = [
///     json!({"role": "user", "content": "What is in a.txt?"}),
///     json!({"role": "tool", "tool_call_id": "call_1", "content": "nothing"}),
/// ];
/// let issues = validate_tool_result_pairing(&messages);
/// assert_eq!(issues[0].fault, Fault::OrphanedToolResult);
/// assert_eq!(issues[0].tool_use_id.as_deref(), Some("call_1"));
/// ```
pub fn validate_tool_result_pairing(messages: &[Value]) -> Vec<PairingIssue> {
    validate_as(detect(messages), messages)
}

/// The same, for messages whose format is known.
pub fn validate_as(format: Format, messages: &[Value]) -> Vec<PairingIssue> {
    let brief = Brief::of(format, messages);
    let pairing = adapter(format).pairing();
    if is_plainly_paired(pairing, &brief) {
        return Vec::new();
    }
    let mut index = Index::default();
    for (facts, blocks) in brief.messages() {
        // More messages than can be numbered do not fit into memory.
        if index.add(facts, blocks.iter().copied()).is_err() {
            break;
        }
    }
    let found = check(&index, pairing);
    let mut blocks = Vec::new();
    // Findings come in the order of the messages: each message is looked at once.
    let mut looked_at = None;
    found
        .into_iter()
        .map(|found| {
            let message_index = found.entry as usize;
            let id = found.item.and_then(|item| {
                if looked_at != Some(message_index) {
                    blocks.clear();
                    facts(format, messages.get(message_index)?, &mut blocks);
                    looked_at = Some(message_index);
                }
                let first = index.items_of(found.entry).start;
                blocks.get(item as usize - first)?.2.map(str::to_owned)
            });
            PairingIssue {
                fault: found.fault,
                description: crate::finding::in_words(format, found, id.as_deref()),
                tool_use_id: id,
                message_index,
            }
        })
        .collect()
}

/// Whether calls and results alternate as in nearly every history, so that there is nothing to find
/// and nothing has to be indexed. An agent asks before each request: this is the answer it gets.
fn is_plainly_paired(pairing: Pairing, brief: &Brief) -> bool {
    let Some(mut plain) = Plain::under(pairing) else {
        return false;
    };
    let mut messages = brief.messages();
    messages.all(|(facts, blocks)| plain.goes_on(facts, blocks.iter().copied()))
}

/// What matters of some messages. Each is read once: that they are read is most of what it costs.
struct Brief {
    /// What each message is, and where its blocks end.
    kinds: Vec<(Kind, u32)>,
    /// The rest of what is known of each, in the formats whose entries name each other.
    linked: Vec<Facts>,
    blocks: Vec<(BlockKind, Marks, u64)>,
}

impl Brief {
    fn of(format: Format, messages: &[Value]) -> Self {
        let is_linked = matches!(format, Format::OpenClaw | Format::ClaudeCode);
        let mut brief = Self {
            kinds: Vec::with_capacity(messages.len()),
            linked: Vec::with_capacity(if is_linked { messages.len() } else { 0 }),
            blocks: Vec::with_capacity(messages.len() / 2),
        };
        let mut blocks = Vec::new();
        for message in messages {
            blocks.clear();
            let kind = if is_linked {
                let facts = facts(format, message, &mut blocks);
                brief.linked.push(facts);
                facts.kind
            } else {
                kind(format, message, &mut blocks)
            };
            brief.add(kind, &blocks);
        }
        brief
    }

    #[inline]
    fn add(&mut self, kind: Kind, blocks: &Blocks<'_>) {
        for (kind, marks, id) in blocks {
            self.blocks.push((*kind, *marks, hash(*id)));
        }
        // More blocks than can be numbered do not fit into memory.
        let end = u32::try_from(self.blocks.len()).unwrap_or(u32::MAX);
        self.kinds.push((kind, end));
    }

    fn messages(&self) -> impl Iterator<Item = (Facts, &[(BlockKind, Marks, u64)])> {
        let mut start = 0;
        self.kinds.iter().enumerate().map(move |(at, (kind, end))| {
            let end = *end as usize;
            let blocks = self.blocks.get(start..end).unwrap_or_default();
            start = end;
            let facts = self.linked.get(at).copied().unwrap_or(Facts {
                kind: *kind,
                ..Facts::default()
            });
            (facts, blocks)
        })
    }
}

type Blocks<'v> = Vec<(BlockKind, Marks, Option<&'v str>)>;

fn hash(id: Option<&str>) -> u64 {
    id.map_or(0, |id| xxh3_64(id.as_bytes()).max(1))
}

fn text<'v>(value: &'v Value, key: &str) -> Option<&'v str> {
    value.get(key)?.as_str().filter(|text| !text.is_empty())
}

/// What an entry is, in the formats where that is all there is to know of it.
#[inline]
fn kind<'v>(format: Format, entry: &'v Value, blocks: &mut Blocks<'v>) -> Kind {
    match format {
        Format::OpenAiResponses => item(entry, blocks),
        Format::Codex => rollout(entry, blocks),
        Format::LangChain => agents::langchain(entry, blocks),
        Format::Goose => agents::goose(entry, blocks),
        Format::Crush => agents::crush(entry, blocks),
        _ => message(entry, blocks),
    }
}

/// The same facts that the format's adapter finds in a line.
fn facts<'v>(format: Format, entry: &'v Value, blocks: &mut Blocks<'v>) -> Facts {
    let mut facts = Facts::default();
    match format {
        Format::Anthropic
        | Format::OpenAiChat
        | Format::OpenAiResponses
        | Format::Codex
        | Format::LangChain
        | Format::Goose
        | Format::Crush => facts.kind = kind(format, entry, blocks),
        Format::OpenClaw => openclaw(entry, blocks, &mut facts),
        Format::ClaudeCode => {
            facts.id = hash(text(entry, "uuid"));
            facts.parent = parent(entry, "parentUuid");
            let kind = entry.get("message").map(|inner| message(inner, blocks));
            let is_message = matches!(text(entry, "type"), Some("user" | "assistant"));
            if let Some(kind) = kind.filter(|_| is_message && facts.id != 0) {
                facts.kind = kind;
            } else {
                blocks.clear();
            }
            if facts.kind == Kind::Assistant {
                facts.group = hash(entry.get("message").and_then(|inner| text(inner, "id")));
            }
        }
    }
    facts
}

fn parent(entry: &Value, key: &str) -> ParentId {
    match entry.get(key) {
        None => ParentId::Before,
        Some(value) => match value.as_str().filter(|id| !id.is_empty()) {
            Some(id) => ParentId::Named(hash(Some(id))),
            None => ParentId::Root,
        },
    }
}

fn openclaw<'v>(entry: &'v Value, blocks: &mut Blocks<'v>, facts: &mut Facts) {
    facts.id = hash(text(entry, "id"));
    facts.parent = parent(entry, "parentId");
    match text(entry, "type") {
        Some("message") => {
            if let Some(inner) = entry.get("message") {
                facts.kind = message(inner, blocks);
            }
        }
        Some("session") => {
            facts.kind = Kind::Header;
            facts.id = 0;
            facts.parent = ParentId::Before;
        }
        Some("custom_message" | "branch_summary") => facts.kind = Kind::Message,
        Some("compaction") => {
            facts.kind = Kind::Compaction;
            facts.kept = hash(text(entry, "firstKeptEntryId"));
        }
        Some("leaf") if entry.get("targetId").is_some() => {
            facts.parent = parent(entry, "targetId");
        }
        // A bare message, as an agent holds it in memory.
        None => facts.kind = message(entry, blocks),
        _ => {}
    }
}

/// The members of a message or block that matter. Found in one pass, and told apart by their lengths
/// first: histories do not fit into a processor's cache, so that what is touched is what it costs.
#[derive(Default)]
struct Members<'v> {
    kind: Option<&'v Value>,
    role: Option<&'v Value>,
    content: Option<&'v Value>,
    id: Option<&'v Value>,
    calls: Option<&'v Value>,
    stop: Option<&'v Value>,
    /// The names that the id of an answered call has.
    tool_call_id: Option<&'v Value>,
    tool_use_id: Option<&'v Value>,
    other_call_id: Option<&'v Value>,
    other_use_id: Option<&'v Value>,
    tool_name: Option<&'v Value>,
    /// The id of a call in the Responses API, of both the call and its result.
    call_id: Option<&'v Value>,
    /// It is for people only: the model is never sent it.
    unsent: Option<&'v Value>,
}

impl<'v> Members<'v> {
    fn of(value: &'v Value) -> Option<Self> {
        let mut found = Self::default();
        for (key, value) in value.as_object()? {
            let slot = match key.as_str() {
                "id" => &mut found.id,
                "type" => &mut found.kind,
                "role" => &mut found.role,
                "content" => &mut found.content,
                "call_id" => &mut found.call_id,
                "toolUseId" => &mut found.other_use_id,
                "tool_name" => &mut found.tool_name,
                "tool_calls" => &mut found.calls,
                "stopReason" => &mut found.stop,
                "toolCallId" => &mut found.other_call_id,
                "tool_use_id" => &mut found.tool_use_id,
                "tool_call_id" => &mut found.tool_call_id,
                "excludeFromContext" => &mut found.unsent,
                _ => continue,
            };
            *slot = Some(value);
        }
        Some(found)
    }

    /// The id of the call that it answers, which has another name in messages than in blocks.
    fn answers(&self, own: Option<&'v Value>) -> Option<&'v str> {
        let others = [own, self.other_call_id, self.other_use_id];
        others.into_iter().find_map(string)
    }
}

fn string(value: Option<&Value>) -> Option<&str> {
    value?.as_str().filter(|text| !text.is_empty())
}

fn message<'v>(message: &'v Value, blocks: &mut Blocks<'v>) -> Kind {
    let Some(members) = Members::of(message) else {
        return Kind::Neutral;
    };
    if members.unsent.and_then(Value::as_bool) == Some(true) {
        if let Some(id) = members.answers(members.tool_call_id) {
            blocks.push((BlockKind::UnsentResult, Marks::default(), Some(id)));
        }
        return Kind::Neutral;
    }
    match members.role.and_then(Value::as_str) {
        None | Some("" | "function") => Kind::Neutral,
        Some("tool" | "toolResult") => {
            let id = members.answers(members.tool_call_id);
            let marks = Marks {
                is_by_name: id.is_none() && string(members.tool_name).is_some(),
                ..marks(members.content, false)
            };
            blocks.push((BlockKind::Result, marks, id));
            Kind::Results
        }
        Some("assistant") => {
            content(members.content, blocks);
            calls(members.calls, blocks);
            blocks.retain(|(kind, ..)| *kind != BlockKind::Result);
            if !blocks.is_empty() && matches!(string(members.stop), Some("error" | "aborted")) {
                for (kind, ..) in blocks.iter_mut() {
                    *kind = BlockKind::BrokenOffCall;
                }
            }
            Kind::Assistant
        }
        Some(_) => {
            let has_more = content(members.content, blocks);
            blocks.retain(|(kind, ..)| *kind == BlockKind::Result);
            match (blocks.is_empty(), has_more) {
                (true, _) => Kind::Message,
                (false, true) => Kind::Mixed,
                (false, false) => Kind::Results,
            }
        }
    }
}

/// Takes a list of calls.
fn calls<'v>(calls: Option<&'v Value>, blocks: &mut Blocks<'v>) {
    let calls = calls.and_then(Value::as_array);
    for call in calls.into_iter().flatten() {
        blocks.push((BlockKind::Call, Marks::default(), text(call, "id")));
    }
}

fn marks(content: Option<&Value>, is_late: bool) -> Marks {
    Marks {
        is_stand_in: stand_in::is_value(content),
        is_late,
        ..Marks::default()
    }
}

/// Takes the calls and results of a content, and says whether it holds more.
fn content<'v>(content: Option<&'v Value>, blocks: &mut Blocks<'v>) -> bool {
    let items = match content {
        Some(Value::Array(items)) => items,
        Some(Value::String(text)) => return !text.is_empty(),
        _ => return false,
    };
    let mut has_more = false;
    for block in items {
        let Some(members) = Members::of(block) else {
            has_more = true;
            continue;
        };
        match members.kind.and_then(Value::as_str) {
            Some("toolCall" | "tool_use" | "toolUse" | "functionCall") => {
                blocks.push((BlockKind::Call, Marks::default(), string(members.id)));
            }
            Some("tool_result" | "toolResult") => {
                let id = members.answers(members.tool_use_id);
                blocks.push((BlockKind::Result, marks(members.content, has_more), id));
            }
            _ => has_more = true,
        }
    }
    has_more
}

fn rollout<'v>(entry: &'v Value, blocks: &mut Blocks<'v>) -> Kind {
    let Some(payload) = entry.get("payload") else {
        return Kind::Neutral;
    };
    match text(entry, "type") {
        Some("response_item") => item(payload, blocks),
        Some("session_meta") => Kind::Header,
        Some("compacted") => {
            let history = payload.get("replacement_history").and_then(Value::as_array);
            let mut reply = Reply::default();
            for inner in history.into_iter().flatten() {
                let before = blocks.len();
                let kind = item(inner, blocks);
                reply.step(kind, before, blocks.len());
            }
            for (_, marks, _) in blocks.iter_mut().take(reply.first) {
                marks.is_past = true;
            }
            Kind::Cut
        }
        _ => Kind::Neutral,
    }
}

fn item<'v>(item: &'v Value, blocks: &mut Blocks<'v>) -> Kind {
    let Some(members) = Members::of(item) else {
        return Kind::Neutral;
    };
    let kind = string(members.kind).unwrap_or_default();
    let id = string(members.call_id);
    let is_search = matches!(kind, "tool_search_call" | "tool_search_output");
    if is_search && text(item, "execution") != Some("client") {
        return Kind::Neutral;
    }
    if crate::adapter::is_call(kind.as_bytes()) {
        if id.is_some() || matches!(kind, "function_call" | "custom_tool_call") {
            blocks.push((BlockKind::Call, Marks::default(), id));
        }
        return Kind::Assistant;
    }
    if crate::adapter::is_result(kind.as_bytes()) {
        blocks.push((BlockKind::Result, marks(item.get("output"), false), id));
        return Kind::Results;
    }
    match string(members.role) {
        Some("assistant") if matches!(kind, "" | "message") => Kind::Assistant,
        Some(_) if matches!(kind, "" | "message") => Kind::Message,
        _ => Kind::Neutral,
    }
}
