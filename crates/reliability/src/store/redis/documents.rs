//! Documents that all processes share: runs, and who works on them.
//!
//! All of them live in one slot of a cluster, so that a document and its indexes change in one step.

use futures_util::FutureExt;
use redis::Value;

use super::link::surprise;
use super::{RedisState, Shared};
use crate::store::documents::{
    Created, DOCUMENTS_MAX, Document, DocumentFilter, DocumentStore, NewDocument, Replaced,
    Replacement, check_size,
};
use crate::store::{StoreError, StoreFuture, StoreResult};

/// Expired documents that one step forgets.
const SWEEP_BATCH: u64 = 500;

/// What a step answers.
struct Answer {
    word: String,
    rest: Vec<Value>,
}

impl Shared {
    async fn document_step(&self, step: &str, args: &[&str]) -> StoreResult<Answer> {
        let base = self.names.single("documents");
        let time = self.link.script_time_ms().to_string();
        let mut all: Vec<&[u8]> = vec![step.as_bytes(), time.as_bytes()];
        all.extend(args.iter().map(|text| text.as_bytes()));
        let mut lane = self.link.lane().await?;
        let script = &self.scripts.document;
        let answer = self
            .link
            .eval_on(&mut lane, script, &[base.as_bytes()], &all)
            .await?;
        if matches!(step, "create" | "replace" | "remove") {
            self.link.replicated(&mut lane).await?;
        }
        let Value::Array(mut parts) = answer else {
            return Err(surprise("a document"));
        };
        if parts.is_empty() {
            return Err(surprise("a document"));
        }
        let word = text(&parts.remove(0))?;
        Ok(Answer { word, rest: parts })
    }

    async fn create_document(&self, new: NewDocument) -> StoreResult<Created> {
        let body = check_size(&new.body)?;
        let (ends, most) = (end_of(new.expires_at_ms), DOCUMENTS_MAX.to_string());
        let args = [&new.kind, &new.id, &new.group, &body, &ends, &most].map(String::as_str);
        let answer = self.document_step("create", &args).await?;
        match answer.word.as_str() {
            "done" => Ok(Created::New(answer.document(&new.kind)?)),
            "there" => Ok(Created::Exists(answer.document(&new.kind)?)),
            _ => Err(StoreError::Full(format!(
                "{DOCUMENTS_MAX} documents are kept, and none has expired"
            ))),
        }
    }

    async fn replace_document(&self, change: Replacement) -> StoreResult<Replaced> {
        let body = check_size(&change.body)?;
        let (version, ends) = (change.version.to_string(), end_of(change.expires_at_ms));
        let args = [
            &change.kind,
            &change.id,
            &version,
            &change.group,
            &body,
            &ends,
        ];
        let answer = self
            .document_step("replace", &args.map(String::as_str))
            .await?;
        match answer.word.as_str() {
            "done" => Ok(Replaced::Done(answer.document(&change.kind)?)),
            "there" => Ok(Replaced::Changed(answer.document(&change.kind)?)),
            _ => Ok(Replaced::Gone),
        }
    }

    async fn list_documents(&self, filter: &DocumentFilter) -> StoreResult<Vec<Document>> {
        let (by_group, group) = option(filter.group.as_deref());
        let (is_after, after) = option(filter.after.as_deref());
        let most = filter.page().to_string();
        let args = [&filter.kind, by_group, group, is_after, after, &most];
        let answer = self.document_step("list", &args).await?;
        answer
            .rest
            .iter()
            .map(|fields| document(&filter.kind, fields))
            .collect()
    }

    async fn sweep_all_documents(&self) -> StoreResult<u64> {
        let mut swept = 0;
        loop {
            let answer = self
                .document_step("sweep", &[&SWEEP_BATCH.to_string()])
                .await?;
            let Some(Value::Int(count)) = answer.rest.first() else {
                return Err(surprise("a sweep"));
            };
            let count = u64::try_from(*count).unwrap_or(0);
            swept += count;
            if count < SWEEP_BATCH {
                return Ok(swept);
            }
        }
    }
}

impl Answer {
    fn document(&self, kind: &str) -> StoreResult<Document> {
        let fields = self.rest.first().ok_or_else(|| surprise("a document"))?;
        document(kind, fields)
    }
}

fn option(given: Option<&str>) -> (&str, &str) {
    given.map_or(("0", ""), |text| ("1", text))
}

fn end_of(expires_at_ms: Option<u64>) -> String {
    expires_at_ms.map_or_else(String::new, |end_ms| end_ms.to_string())
}

fn text(value: &Value) -> StoreResult<String> {
    match value {
        Value::BulkString(bytes) => {
            String::from_utf8(bytes.clone()).map_err(|_| surprise("a document's text"))
        }
        Value::SimpleString(text) => Ok(text.clone()),
        Value::Int(number) => Ok(number.to_string()),
        _ => Err(surprise("a document's field")),
    }
}

/// A document from its fields: id, group, version, body, made, changed, end.
fn document(kind: &str, fields: &Value) -> StoreResult<Document> {
    let Value::Array(fields) = fields else {
        return Err(surprise("a document"));
    };
    let texts = fields.iter().map(text).collect::<StoreResult<Vec<_>>>()?;
    let [id, group, version, body, created, updated, ends] = texts.as_slice() else {
        return Err(surprise("a document"));
    };
    let number = |text: &String| text.parse().map_err(|_| surprise("a document's number"));
    Ok(Document {
        kind: kind.to_owned(),
        id: id.clone(),
        group: group.clone(),
        version: number(version)?,
        body: serde_json::from_str(body).map_err(|_| surprise("a document's body"))?,
        created_at_ms: number(created)?,
        updated_at_ms: number(updated)?,
        expires_at_ms: if ends.is_empty() {
            None
        } else {
            Some(number(ends)?)
        },
    })
}

impl DocumentStore for RedisState {
    fn create(&self, new: NewDocument) -> StoreFuture<'_, Created> {
        self.shared.create_document(new).boxed().into()
    }

    fn document<'a>(&'a self, kind: &'a str, id: &'a str) -> StoreFuture<'a, Option<Document>> {
        async move {
            let answer = self.shared.document_step("get", &[kind, id]).await?;
            match answer.word.as_str() {
                "there" => answer.document(kind).map(Some),
                _ => Ok(None),
            }
        }
        .boxed()
        .into()
    }

    fn replace(&self, change: Replacement) -> StoreFuture<'_, Replaced> {
        self.shared.replace_document(change).boxed().into()
    }

    fn replace_detached(&self, change: Replacement) {
        let shared = self.shared.clone();
        if let Some(runtime) = &self.runtime {
            runtime.spawn(async move {
                // Nobody waits for it; who looks again finds out.
                let _ = shared.replace_document(change).await;
            });
        }
    }

    fn documents<'a>(&'a self, filter: &'a DocumentFilter) -> StoreFuture<'a, Vec<Document>> {
        self.shared.list_documents(filter).boxed().into()
    }

    fn remove<'a>(&'a self, kind: &'a str, id: &'a str) -> StoreFuture<'a, bool> {
        async move {
            let answer = self.shared.document_step("remove", &[kind, id]).await?;
            Ok(answer.word == "done")
        }
        .boxed()
        .into()
    }

    fn sweep_documents(&self) -> StoreFuture<'_, u64> {
        self.shared.sweep_all_documents().boxed().into()
    }
}
