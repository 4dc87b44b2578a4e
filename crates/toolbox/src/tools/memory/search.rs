//! The `memory_search` tool.

use async_trait::async_trait;
use holdfast_contract::memory::{MEMORY_HITS_DEFAULT, MEMORY_HITS_MAX};
use holdfast_contract::time::rfc3339;
use holdfast_contract::{
    Effect, MemoryHit, MemoryQuery, PermissionTier, Recall, SessionContext, Tool, ToolContext,
    ToolError, ToolResult,
};
use serde_json::{Value, json};

use super::{fault, type_of, type_schema};
use crate::tools::args;
use crate::tools::text::{counted, one_line};

/// Text of all hits in one answer. The longest record fits whole.
pub const MEMORY_ANSWER_BYTES_MAX: usize = 64 * 1024;
/// Hits and characters of each that a person is shown.
const SHOWN_HITS_MAX: usize = 3;
const SHOWN_CHARS_MAX: usize = 80;

/// Searches what the agent remembers.
///
/// It works with the session's right to read memory, which a worker has as well.
#[derive(Debug, Clone, Copy, Default)]
pub struct MemorySearchTool;

#[async_trait]
impl Tool for MemorySearchTool {
    fn name(&self) -> &str {
        "memory_search"
    }

    fn description(&self) -> &str {
        "Searches what you remembered in this and earlier sessions: decisions, facts, identities and \
         preferences. Finds by words and by meaning, best first. Use it before you ask the user for \
         something that may be known, and before you decide what may have been decided."
    }

    fn parameters_schema(&self) -> Value {
        json!({
            "type": "object",
            "additionalProperties": false,
            "required": ["query"],
            "properties": {
                "query": {
                    "type": "string",
                    "minLength": 1,
                    "description": "What to look for: a question or a few words. Ending a word with * looks for all words that begin like it."
                },
                "limit": {
                    "type": ["integer", "null"],
                    "minimum": 1,
                    "maximum": MEMORY_HITS_MAX,
                    "default": MEMORY_HITS_DEFAULT,
                    "description": "Records at most."
                },
                "memory_type": {
                    "anyOf": [type_schema("Only records of this type."), {"type": "null"}],
                    "description": "Only records of this type; all types without it."
                }
            }
        })
    }

    fn permission_tier(&self) -> PermissionTier {
        PermissionTier::ReadOnly
    }

    fn effect(&self) -> Effect {
        Effect::None
    }

    fn is_available(&self, session: &SessionContext) -> bool {
        session.memory_read.is_some()
    }

    async fn execute(&self, params: &Value, ctx: &ToolContext) -> Result<ToolResult, ToolError> {
        let memory = &ctx.memory_read_handle()?.store;
        let limit = args::optional_count(params, "limit")?;
        let query = MemoryQuery {
            text: args::text(params, "query")?.to_owned(),
            limit: limit.map_or(MEMORY_HITS_DEFAULT, |limit| {
                usize::try_from(limit).unwrap_or(usize::MAX)
            }),
            memory_type: type_of(params)?,
        };
        let found = memory.search(&query).await.map_err(fault)?;
        Ok(answer(&query, &found))
    }
}

fn answer(query: &MemoryQuery, found: &Recall) -> ToolResult {
    let mut room_bytes = MEMORY_ANSWER_BYTES_MAX;
    let mut hits = Vec::new();
    for hit in &found.hits {
        if room_bytes == 0 {
            break;
        }
        hits.push(describe(hit, &mut room_bytes));
    }
    let mut output = json!({
        "search": if found.used_vectors { "words and meaning" } else { "words" },
        "hits": hits,
    });
    let left_out = found.hits.len() - hits.len();
    if left_out > 0 {
        output["left_out"] = json!(left_out);
        output["hint"] = json!("The records left out do not fit; search more narrowly.");
    }
    if let Some(note) = &found.note {
        output["note"] = json!(note);
    }
    let mut result = ToolResult::new(output, display(query, found));
    // What is read from memory keeps the trust it was stored with.
    result.trust = found.hits.iter().map(|hit| hit.record.trust).min();
    result
}

/// A hit for a model: what it says, what it is, when it was said and how far it can be trusted.
fn describe(hit: &MemoryHit, room_bytes: &mut usize) -> Value {
    let record = &hit.record;
    let shown = &record.content[..record.content.floor_char_boundary(*room_bytes)];
    let is_cut = shown.len() < record.content.len();
    *room_bytes = if is_cut { 0 } else { *room_bytes - shown.len() };
    let mut described = json!({
        "id": record.id,
        "memory_type": record.memory_type,
        "content": shown,
        "created_at": rfc3339(record.created_at_ms),
        "session_id": record.session_id,
        "trust": record.trust,
    });
    if is_cut {
        described["content_cut_at_bytes"] = json!(shown.len());
    }
    if let Some(metadata) = &record.metadata {
        described["metadata"] = json!(metadata);
    }
    described
}

fn display(query: &MemoryQuery, found: &Recall) -> String {
    let asked = one_line(&query.text, SHOWN_CHARS_MAX);
    if found.hits.is_empty() {
        return format!("Nothing remembered about {asked:?}");
    }
    let count = counted(found.hits.len() as u64, "record");
    let mut text = format!("Found {count} about {asked:?}");
    for hit in found.hits.iter().take(SHOWN_HITS_MAX) {
        text.push_str("\n- ");
        text.push_str(&one_line(&hit.record.content, SHOWN_CHARS_MAX));
    }
    text
}

#[cfg(test)]
mod tests {
    use holdfast_contract::{MemoryRecord, MemoryType, Trust};

    use super::*;

    fn hit(content: String) -> MemoryHit {
        MemoryHit {
            record: MemoryRecord {
                id: "m-1".to_owned(),
                memory_type: MemoryType::Fact,
                content,
                metadata: None,
                session_id: "s".to_owned(),
                created_at_ms: 0,
                trust: Trust::Untrusted,
                embedding: None,
            },
            score: 1.0,
            text_rank: Some(1),
            vector_rank: None,
        }
    }

    #[test]
    fn an_answer_never_outgrows_its_bound() {
        let part = MEMORY_ANSWER_BYTES_MAX / 2 - 1;
        let found = Recall {
            hits: vec![
                hit("a".repeat(part)),
                hit("é".repeat(part)),
                hit("left out".to_owned()),
            ],
            used_vectors: false,
            note: Some("a note".to_owned()),
        };
        let result = answer(&MemoryQuery::new("q"), &found);
        let hits = result.output["hits"].as_array().unwrap();
        assert_eq!(hits.len(), 2);
        assert_eq!(hits[0].get("content_cut_at_bytes"), None);
        let shown = hits[1]["content"].as_str().unwrap();
        assert_eq!(hits[1]["content_cut_at_bytes"], shown.len());
        assert!(part + shown.len() <= MEMORY_ANSWER_BYTES_MAX);
        assert_eq!(result.output["left_out"], 1);
        assert_eq!(result.output["note"], "a note");
        assert!(
            result.display.starts_with("Found 3 records"),
            "{}",
            result.display
        );
    }
}
