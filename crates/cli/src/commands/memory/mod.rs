//! `holdfast memory`

use std::io::Read;
use std::process::ExitCode;

use holdfast_contract::memory::{MEMORY_CONTENT_BYTES_MAX, MemoryOrder, MemoryPage};
use holdfast_contract::redact::Redactor;
use holdfast_contract::time::rfc3339;
use holdfast_contract::{
    MemoryError, MemoryHit, MemoryQuery, MemoryRead, MemoryRecord, MemoryWrite, NewMemory,
};
use holdfast_memory::Memory;
use serde_json::{Map, Value, json};

use super::approvals::by_a_person;
use crate::app::{App, runtime};
use crate::args::memory::{MemoryCommand, SearchArgs, StoreArgs, Type};
use crate::fail::{Failure, Outcome};
use crate::output::{self, harmless};

mod reindex;
mod transfer;

/// Characters of a text in a table.
const SHOWN_CHARS_MAX: usize = 100;

pub(super) fn run(app: &App, command: MemoryCommand, json: bool) -> Outcome<ExitCode> {
    // Agents have a tool for this, which keeps the trust of what they have read with what they store.
    // On this way in they would speak as their user, and forget what others told them.
    if !matches!(
        command,
        MemoryCommand::Search(_) | MemoryCommand::List { .. } | MemoryCommand::Export { .. }
    ) {
        by_a_person("what agents remember is changed here by people")?;
    }
    let memory = app.memory();
    runtime()?.block_on(async {
        match command {
            MemoryCommand::Store(args) => store(&memory, args, json).await,
            MemoryCommand::Search(args) => search(app, &memory, args, json).await,
            MemoryCommand::List {
                limit,
                memory_type,
                reveal,
            } => list(app, &memory, limit, memory_type, reveal, json).await,
            MemoryCommand::Delete { ids } => delete(&memory, &ids, json).await,
            MemoryCommand::Export { file, agent } => {
                transfer::export(app, &memory, &file, &agent, json).await
            }
            MemoryCommand::Import { file, trust } => {
                transfer::import(&memory, &file, trust.into(), json).await
            }
            MemoryCommand::Reindex { all } => reindex::run(&memory, all, json).await,
        }
    })
}

impl From<MemoryError> for Failure {
    fn from(error: MemoryError) -> Self {
        match error {
            MemoryError::Invalid { field, reason } => Self::usage(format!("{field}: {reason}")),
            other => Self::failed(other.to_string()),
        }
    }
}

async fn store(memory: &Memory, args: StoreArgs, json: bool) -> Outcome<ExitCode> {
    let content = match args.content.as_str() {
        "-" => read_content()?,
        text => text.to_owned(),
    };
    let stored = memory
        .remember(NewMemory {
            memory_type: args.memory_type.into(),
            content,
            metadata: args.metadata.as_deref().map(metadata).transpose()?,
            session_id: args.session,
            trust: args.trust.into(),
        })
        .await?;
    if json {
        output::json(&json!({
            "id": stored.id,
            "new": stored.is_new,
            "embeddingMissing": stored.embedding_missing,
        }));
        return Ok(ExitCode::SUCCESS);
    }
    if stored.is_new {
        output::line(&format!(
            "{} Remembered as {}",
            output::green("✓"),
            stored.id
        ));
    } else {
        output::line(&format!("Known already as {}", stored.id));
    }
    if let Some(reason) = &stored.embedding_missing {
        output::line(&output::yellow(&format!(
            "It has no vector yet and is found by its words: {}",
            harmless(reason)
        )));
        output::line("`holdfast memory reindex` makes up for it.");
    }
    Ok(ExitCode::SUCCESS)
}

/// A text from standard input, without the line's end that `echo` adds.
fn read_content() -> Outcome<String> {
    let mut text = String::new();
    std::io::stdin()
        .lock()
        .take(MEMORY_CONTENT_BYTES_MAX as u64 + 2)
        .read_to_string(&mut text)
        .map_err(|error| Failure::usage(format!("standard input can not be read: {error}")))?;
    Ok(text.trim_end_matches(['\n', '\r']).to_owned())
}

fn metadata(text: &str) -> Outcome<Map<String, Value>> {
    serde_json::from_str(text).map_err(|error| {
        Failure::usage(format!("--metadata is not a JSON object: {error}"))
            .hint("Quote it for the shell: --metadata '{\"project\": \"holdfast\"}'.")
    })
}

async fn search(app: &App, memory: &Memory, args: SearchArgs, json: bool) -> Outcome<ExitCode> {
    let query = MemoryQuery {
        text: args.query.join(" "),
        limit: args.limit,
        memory_type: args.memory_type.map(Into::into),
    };
    let found = memory.search(&query).await?;
    let view = View::new(app, args.reveal);
    if json {
        let hits: Vec<Value> = found.hits.iter().map(|hit| view.hit(hit)).collect();
        output::json(&json!({
            "hits": hits,
            "usedVectors": found.used_vectors,
            "note": found.note,
        }));
        return Ok(ExitCode::SUCCESS);
    }
    if found.hits.is_empty() {
        output::line("Nothing found.");
    } else {
        view.print(found.hits.iter().map(|hit| &hit.record));
    }
    if let Some(note) = &found.note {
        output::line(&output::yellow(&harmless(note)));
    }
    Ok(ExitCode::SUCCESS)
}

async fn list(
    app: &App,
    memory: &Memory,
    limit: usize,
    memory_type: Option<Type>,
    reveal: bool,
    json: bool,
) -> Outcome<ExitCode> {
    let page = MemoryPage {
        after: None,
        memory_type: memory_type.map(Into::into),
        order: MemoryOrder::NewestFirst,
        limit,
    };
    let found = memory.list(&page).await?;
    let total = memory.count(page.memory_type).await?;
    let view = View::new(app, reveal);
    if json {
        let records: Vec<Value> = found.iter().map(|record| view.record(record)).collect();
        output::json(&json!({"records": records, "total": total}));
        return Ok(ExitCode::SUCCESS);
    }
    if found.is_empty() {
        output::line("Nothing is remembered.");
        return Ok(ExitCode::SUCCESS);
    }
    view.print(found.iter());
    if total > found.len() as u64 {
        output::line(&output::dim(&format!("{} of {total}", found.len())));
    }
    Ok(ExitCode::SUCCESS)
}

async fn delete(memory: &Memory, ids: &[String], json: bool) -> Outcome<ExitCode> {
    let mut missing = Vec::new();
    for id in ids {
        if !memory.delete(id).await? {
            missing.push(id);
        }
    }
    if json {
        output::json(&json!({"deleted": ids.len() - missing.len(), "missing": missing}));
    } else {
        output::line(&format!(
            "Forgot {} of {}.",
            ids.len() - missing.len(),
            ids.len()
        ));
    }
    if missing.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    let names: Vec<&str> = missing.iter().map(|id| id.as_str()).collect();
    Err(
        Failure::failed(format!("there is no record {}", names.join(", ")))
            .hint("`holdfast memory list` shows the ids."),
    )
}

/// Records for eyes: redacted unless asked otherwise.
struct View {
    redactor: Option<Redactor>,
    now_ms: u64,
}

impl View {
    fn new(app: &App, reveal: bool) -> Self {
        Self {
            redactor: (!reveal).then(|| app.config.redactor()),
            now_ms: app.clock.now_ms(),
        }
    }

    fn record(&self, record: &MemoryRecord) -> Value {
        let mut text = json!({"content": record.content, "metadata": record.metadata});
        if let Some(redactor) = &self.redactor {
            redactor.redact_value_in_place(&mut text);
        }
        // Ids look like secrets to a redactor and are none.
        json!({
            "id": record.id,
            "memory_type": record.memory_type,
            "content": text["content"],
            "metadata": text["metadata"],
            "session_id": record.session_id,
            "created_at": rfc3339(record.created_at_ms),
            "trust": record.trust,
        })
    }

    fn hit(&self, hit: &MemoryHit) -> Value {
        let mut value = self.record(&hit.record);
        value["score"] = json!(hit.score);
        value["textRank"] = json!(hit.text_rank);
        value["vectorRank"] = json!(hit.vector_rank);
        value
    }

    fn print<'a>(&self, records: impl Iterator<Item = &'a MemoryRecord>) {
        let rows = records.map(|record| {
            vec![
                record.id.clone(),
                record.memory_type.as_str().to_owned(),
                record.trust.as_str().to_owned(),
                output::ago(record.created_at_ms, self.now_ms),
                self.line(&record.content),
            ]
        });
        let header = ["id", "type", "trust", "stored", "text"];
        output::line(&output::table(&header, rows));
    }

    fn line(&self, content: &str) -> String {
        let text = match &self.redactor {
            Some(redactor) => redactor.redact_text(content).into_owned(),
            None => content.to_owned(),
        };
        let mut signs = text.trim().chars();
        let mut line: String = signs.by_ref().take(SHOWN_CHARS_MAX).collect();
        if signs.next().is_some() {
            line.push('…');
        }
        harmless(&line).replace(['\n', '\t'], " ")
    }
}
