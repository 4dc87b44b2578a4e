//! Records and vectors in, and out again: one commit a step, and one writer at a time.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::RecordBatchIterator;
use arrow_schema::{Schema, SchemaRef};
use futures::TryStreamExt as _;
use holdfast_contract::memory::{Inserted, MemoryResult};
use holdfast_contract::{Embedding, MemoryError, MemoryRecord};
use holdfast_memory::backend::{Put, fingerprint, is_equal};
use lancedb::query::{ExecutableQuery as _, QueryBase as _, Select};
use lancedb::table::NewColumnTransform;

use crate::place::{Place, Turn, failed};
use crate::read::{self, quoted};
use crate::rows::{self, texts};

pub(crate) async fn remember(place: &Place, record: MemoryRecord) -> MemoryResult<Put> {
    let turn = place.turn().await?;
    let print = quoted(&rows::hex(&fingerprint(&record)));
    let known = turn
        .table
        .query()
        .only_if(format!("fingerprint = {print}"))
        .select(Select::columns(&["id"]))
        .limit(1);
    let known = known.execute().await.map_err(failed)?;
    for batch in known.try_collect::<Vec<_>>().await.map_err(failed)? {
        if let Some(id) = texts(&batch, "id")?.iter().flatten().next() {
            return Ok(Put::Known(id.to_owned()));
        }
    }
    make_room(place, &turn, 1).await?;
    add(&turn, &[record]).await?;
    turn.commit(1).await?;
    Ok(Put::Added)
}

/// What a batch changes, worked out before anything is written.
#[derive(Default)]
struct Plan {
    done: Inserted,
    new: Vec<MemoryRecord>,
    /// Records that are there and gain a vector.
    embedded: Vec<MemoryRecord>,
}

impl Plan {
    fn of(records: Vec<MemoryRecord>, mut known: HashMap<String, MemoryRecord>) -> Self {
        let mut plan = Self::default();
        let mut places: HashMap<String, usize> = HashMap::new();
        for record in records {
            if let Some(place) = places.get(&record.id) {
                let earlier = &mut plan.new[*place];
                if !is_equal(earlier, &record) {
                    plan.done.conflicting.push(record.id);
                    continue;
                }
                if earlier.embedding.is_none() {
                    earlier.embedding = record.embedding;
                }
                plan.done.unchanged += 1;
                continue;
            }
            match known.get_mut(&record.id) {
                None => {
                    places.insert(record.id.clone(), plan.new.len());
                    plan.done.added += 1;
                    plan.new.push(record);
                }
                Some(there) if is_equal(there, &record) => {
                    if there.embedding.is_none() && record.embedding.is_some() {
                        there.embedding.clone_from(&record.embedding);
                        plan.embedded.push(record);
                    }
                    plan.done.unchanged += 1;
                }
                Some(_) => plan.done.conflicting.push(record.id),
            }
        }
        plan
    }
}

pub(crate) async fn insert(place: &Place, records: Vec<MemoryRecord>) -> MemoryResult<Inserted> {
    let turn = place.turn().await?;
    let ids: Vec<&str> = records.iter().map(|record| record.id.as_str()).collect();
    let known = read::by_ids(&turn.table, &ids).await?;
    let plan = Plan::of(records, known);
    make_room(place, &turn, plan.new.len() as u64).await?;
    let rows = plan.new.len() + plan.embedded.len();
    if plan.embedded.is_empty() {
        add(&turn, &plan.new).await?;
    } else {
        let all = [plan.new, plan.embedded].concat();
        merge(&turn, &all, Unmatched::Inserted).await?;
    }
    if rows > 0 {
        turn.commit(rows).await?;
    }
    Ok(plan.done)
}

/// Refuses what would be too many.
async fn make_room(place: &Place, turn: &Turn<'_>, more: u64) -> MemoryResult<()> {
    let records = read::count(&turn.table, None).await?;
    if records + more <= place.records_max {
        return Ok(());
    }
    Err(MemoryError::Full(format!(
        "there are {} records at most; delete some that are no longer needed",
        place.records_max
    )))
}

async fn add(turn: &Turn<'_>, records: &[MemoryRecord]) -> MemoryResult<()> {
    if records.is_empty() {
        return Ok(());
    }
    let schema = with_columns_for(turn, records).await?;
    let batch = rows::batch(&schema, records)?;
    turn.table.add(batch).execute().await.map_err(failed)?;
    Ok(())
}

/// What becomes of rows that are not there yet.
enum Unmatched {
    Inserted,
    LeftOut,
}

/// Puts whole rows in the place of those with the same ids, in one commit; says how many there were.
async fn merge(
    turn: &Turn<'_>,
    records: &[MemoryRecord],
    unmatched: Unmatched,
) -> MemoryResult<u64> {
    let schema = with_columns_for(turn, records).await?;
    let batch = rows::batch(&schema, records)?;
    let mut merge = turn.table.merge_insert(&["id"]);
    merge.when_matched_update_all(None);
    if let Unmatched::Inserted = unmatched {
        merge.when_not_matched_insert_all();
    }
    let rows = RecordBatchIterator::new([Ok(batch)], schema);
    let done = merge.execute(Box::new(rows)).await.map_err(failed)?;
    Ok(done.num_updated_rows)
}

/// The table's schema, with a column for every model that these records have vectors of.
async fn with_columns_for(turn: &Turn<'_>, records: &[MemoryRecord]) -> MemoryResult<SchemaRef> {
    let schema = turn.table.schema().await.map_err(failed)?;
    let mut missing: Vec<arrow_schema::Field> = Vec::new();
    for embedding in records
        .iter()
        .filter_map(|record| record.embedding.as_ref())
    {
        let name = rows::vector_column(&embedding.model, embedding.vector.len());
        let is_there = schema.field_with_name(&name).is_ok();
        if !is_there && missing.iter().all(|field| *field.name() != name) {
            missing.push(rows::vector_field(&name, embedding.vector.len()));
        }
    }
    if missing.is_empty() {
        return Ok(schema);
    }
    let nulls = NewColumnTransform::AllNulls(Arc::new(Schema::new(missing)));
    let added = turn.table.add_columns().transform(nulls);
    added.execute().await.map_err(failed)?;
    turn.table.schema().await.map_err(failed)
}

pub(crate) async fn delete(place: &Place, id: &str) -> MemoryResult<bool> {
    let turn = place.turn().await?;
    let filter = format!("id = {}", quoted(id));
    let there = turn.table.count_rows(Some(filter.clone())).await;
    if there.map_err(failed)? == 0 {
        return Ok(false);
    }
    turn.table.delete(filter.as_str()).await.map_err(failed)?;
    turn.commit(1).await?;
    Ok(true)
}

pub(crate) async fn embed(place: &Place, vectors: Vec<(String, Embedding)>) -> MemoryResult<u64> {
    let turn = place.turn().await?;
    let ids: Vec<&str> = vectors.iter().map(|(id, _)| id.as_str()).collect();
    let mut known = read::by_ids(&turn.table, &ids).await?;
    // The last vector of a record counts, and each counts as done.
    let mut done = 0;
    let mut changed: HashMap<String, MemoryRecord> = HashMap::new();
    for (id, embedding) in vectors {
        let there = changed.remove(&id).or_else(|| known.remove(&id));
        if let Some(mut record) = there {
            record.embedding = Some(embedding);
            changed.insert(id, record);
            done += 1;
        }
    }
    if changed.is_empty() {
        return Ok(0);
    }
    let rows: Vec<MemoryRecord> = changed.into_values().collect();
    merge(&turn, &rows, Unmatched::LeftOut).await?;
    turn.commit(rows.len()).await?;
    Ok(done)
}
