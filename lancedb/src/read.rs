//! Search and listings. Everything here sees one version of the table.

use std::collections::HashMap;

use arrow_array::RecordBatch;
use futures::TryStreamExt as _;
use holdfast_contract::memory::{MemoryCursor, MemoryOrder, MemoryPage, MemoryResult};
use holdfast_contract::{Embedding, MemoryHit, MemoryRecord, MemoryType};
use holdfast_memory::backend::{RecallPlan, Recalled};
use holdfast_memory::rank::fuse;
use holdfast_memory::terms::{QueryWord, query_words};
use lancedb::index::scalar::{FullTextSearchQuery, MatchQuery};
use lancedb::query::{ColumnOrdering, ExecutableQuery, Query, QueryBase, Select};
use lancedb::{DistanceType, Table};

use crate::place::failed;
use crate::rows::{self, COLUMNS, texts, time};
use crate::words::plain;

/// A text as SQL.
pub(crate) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

async fn batches(query: impl ExecutableQuery) -> MemoryResult<Vec<RecordBatch>> {
    let found = query.execute().await.map_err(failed)?;
    found.try_collect().await.map_err(failed)
}

async fn records(query: impl ExecutableQuery) -> MemoryResult<Vec<MemoryRecord>> {
    let mut found = Vec::new();
    for batch in batches(query).await? {
        found.extend(rows::records(&batch)?);
    }
    Ok(found)
}

async fn ids(query: impl ExecutableQuery) -> MemoryResult<Vec<String>> {
    let mut found = Vec::new();
    for batch in batches(query).await? {
        let ids = texts(&batch, "id")?;
        found.extend(ids.iter().flatten().map(str::to_owned));
    }
    Ok(found)
}

pub(crate) async fn recall(table: &Table, plan: &RecallPlan) -> MemoryResult<Recalled> {
    let text = text_ranking(table, plan).await?;
    let mut found = Recalled {
        total: count(table, None).await?,
        ..Recalled::default()
    };
    let mut vectors = Vec::new();
    if let Some(query) = &plan.vector {
        (vectors, found.embedded) = vector_ranking(table, plan, query).await?;
    }
    let text: Vec<&str> = text.iter().map(String::as_str).collect();
    let vectors: Vec<&str> = vectors.iter().map(String::as_str).collect();
    let mut fused = fuse(&text, &vectors);
    fused.truncate(plan.limit);
    let wanted: Vec<&str> = fused.iter().map(|one| one.key).collect();
    let mut records = fetched(table, &wanted, &COLUMNS).await?;
    for one in fused {
        if let Some(record) = records.remove(one.key) {
            found.hits.push(MemoryHit {
                record,
                score: one.score,
                text_rank: one.text_rank,
                vector_rank: one.vector_rank,
            });
        }
    }
    Ok(found)
}

fn of_type(query: Query, memory_type: Option<MemoryType>) -> Query {
    match memory_type {
        Some(wanted) => query.only_if(format!("memory_type = {}", quoted(wanted.as_str()))),
        None => query,
    }
}

/// Records by their words: those with whole words first, and when they are too few for an answer,
/// those with words that begin like them.
async fn text_ranking(table: &Table, plan: &RecallPlan) -> MemoryResult<Vec<String>> {
    let words = query_words(&plan.text);
    let mut ranking = Vec::new();
    let whole: Vec<String> = words.iter().map(|word| plain(&word.text)).collect();
    if !whole.is_empty() {
        let asked = MatchQuery::new(whole.join(" ")).with_column(Some("words".to_owned()));
        let asked = FullTextSearchQuery::new_query(asked.into());
        let query = of_type(table.query(), plan.memory_type)
            .full_text_search(asked)
            .select(Select::columns(&["id", "_score"]))
            .limit(plan.depth);
        ranking = ids(query).await?;
    }
    if ranking.len() < plan.limit || words.iter().any(|word| word.has_star) {
        for id in beginning(table, plan, &words).await? {
            if !ranking.contains(&id) {
                ranking.push(id);
            }
        }
        ranking.truncate(plan.depth);
    }
    Ok(ranking)
}

/// The newest records with a word that begins like one of these. Words consist of letters, digits
/// and signs that mean nothing in a pattern.
async fn beginning(
    table: &Table,
    plan: &RecallPlan,
    words: &[QueryWord],
) -> MemoryResult<Vec<String>> {
    let tried = words.iter().filter(|word| word.may_begin || word.has_star);
    let patterns: Vec<String> = tried
        .map(|word| {
            format!(
                "words LIKE {}",
                quoted(&format!("% {}%", plain(&word.text)))
            )
        })
        .collect();
    if patterns.is_empty() {
        return Ok(Vec::new());
    }
    let query = of_type(table.query(), plan.memory_type)
        .only_if(patterns.join(" OR "))
        .select(Select::columns(&["id", "created_at_ms"]))
        .order_by(Some(order(MemoryOrder::NewestFirst)))
        .limit(plan.depth);
    ids(query).await
}

/// Records by their vectors, nearest first, and how many have one at all.
async fn vector_ranking(
    table: &Table,
    plan: &RecallPlan,
    query: &Embedding,
) -> MemoryResult<(Vec<String>, u64)> {
    let column = rows::vector_column(&query.model, query.vector.len());
    let schema = table.schema().await.map_err(failed)?;
    if schema.field_with_name(&column).is_err() {
        return Ok((Vec::new(), 0));
    }
    let has_one = format!("{column} IS NOT NULL");
    let embedded = table.count_rows(Some(has_one.clone())).await;
    let nearest = of_type(table.query(), plan.memory_type)
        .only_if(has_one)
        .select(Select::columns(&["id", "_distance"]))
        .limit(plan.depth)
        .nearest_to(query.vector.as_slice())
        .map_err(failed)?
        .column(&column)
        .distance_type(DistanceType::Cosine);
    Ok((ids(nearest).await?, embedded.map_err(failed)? as u64))
}

/// Whole records by their ids.
pub(crate) async fn by_ids(
    table: &Table,
    wanted: &[&str],
) -> MemoryResult<HashMap<String, MemoryRecord>> {
    let schema = table.schema().await.map_err(failed)?;
    let vectors = rows::vector_columns(&schema);
    let columns: Vec<&str> = whole(&vectors);
    fetched(table, wanted, &columns).await
}

fn whole(vectors: &[String]) -> Vec<&str> {
    let vectors = vectors.iter().map(String::as_str);
    COLUMNS.into_iter().chain(vectors).collect()
}

async fn fetched(
    table: &Table,
    wanted: &[&str],
    columns: &[&str],
) -> MemoryResult<HashMap<String, MemoryRecord>> {
    if wanted.is_empty() {
        return Ok(HashMap::new());
    }
    let names: Vec<String> = wanted.iter().map(|id| quoted(id)).collect();
    let query = table
        .query()
        .only_if(format!("id IN ({})", names.join(", ")))
        .select(Select::columns(columns));
    let found = records(query).await?.into_iter();
    Ok(found.map(|record| (record.id.clone(), record)).collect())
}

pub(crate) async fn list(table: &Table, page: &MemoryPage) -> MemoryResult<Vec<MemoryRecord>> {
    let schema = table.schema().await.map_err(failed)?;
    let vectors = rows::vector_columns(&schema);
    let mut query = of_type(table.query(), page.memory_type)
        .select(Select::columns(&whole(&vectors)))
        .order_by(Some(order(page.order)))
        .limit(page.limit);
    if let Some(after) = &page.after {
        query = query.only_if(behind(after, page.order));
    }
    records(query).await
}

fn order(order: MemoryOrder) -> Vec<ColumnOrdering> {
    ["created_at_ms", "id"]
        .map(str::to_owned)
        .map(match order {
            MemoryOrder::OldestFirst => ColumnOrdering::asc_nulls_last,
            MemoryOrder::NewestFirst => ColumnOrdering::desc_nulls_last,
        })
        .into()
}

fn behind(cursor: &MemoryCursor, order: MemoryOrder) -> String {
    let (at, id) = (time(cursor.created_at_ms), quoted(&cursor.id));
    let sign = match order {
        MemoryOrder::OldestFirst => ">",
        MemoryOrder::NewestFirst => "<",
    };
    format!("(created_at_ms {sign} {at} OR (created_at_ms = {at} AND id {sign} {id}))")
}

pub(crate) async fn count(table: &Table, memory_type: Option<MemoryType>) -> MemoryResult<u64> {
    let filter = memory_type.map(|wanted| format!("memory_type = {}", quoted(wanted.as_str())));
    Ok(table.count_rows(filter).await.map_err(failed)? as u64)
}

pub(crate) async fn without_embedding(
    table: &Table,
    model: &str,
    dimensions: usize,
    after: Option<&MemoryCursor>,
    limit: usize,
) -> MemoryResult<Vec<MemoryRecord>> {
    let column = rows::vector_column(model, dimensions);
    let schema = table.schema().await.map_err(failed)?;
    // Without the column nobody has such a vector.
    let has_none = schema
        .field_with_name(&column)
        .is_ok()
        .then(|| format!("{column} IS NULL"));
    let behind = after.map(|after| behind(after, MemoryOrder::OldestFirst));
    let filters: Vec<String> = has_none.into_iter().chain(behind).collect();
    let mut query = table
        .query()
        .select(Select::columns(&COLUMNS))
        .order_by(Some(order(MemoryOrder::OldestFirst)))
        .limit(limit);
    if !filters.is_empty() {
        query = query.only_if(filters.join(" AND "));
    }
    records(query).await
}
