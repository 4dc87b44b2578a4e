//! Everything as it was at one moment.

use std::collections::{BTreeMap, HashMap};
use std::future::Future;
use std::sync::mpsc::sync_channel;

use arrow_array::UInt64Array;
use arrow_array::cast::AsArray as _;
use arrow_array::types::UInt64Type;
use futures::TryStreamExt as _;
use holdfast_contract::memory::MemoryResult;
use holdfast_contract::{MemoryError, MemoryRecord, MemoryType};
use holdfast_memory::backend::Snapshot;
use lancedb::Table;
use lancedb::query::{ExecutableQuery as _, QueryBase as _, Select};

use crate::place::{Shared, failed};
use crate::rows::{self, COLUMNS, numbers, texts, unexpected};

/// A version of the table, and where its rows are, in the order in which they are handed out.
pub(crate) struct LanceSnapshot {
    place: Shared,
    /// None while nothing has been remembered.
    table: Option<Table>,
    columns: Vec<String>,
    rows: std::vec::IntoIter<u64>,
}

impl LanceSnapshot {
    pub(crate) async fn begin(place: Shared) -> MemoryResult<Self> {
        let Some(table) = place.view().await? else {
            return Ok(Self {
                place,
                table: None,
                columns: Vec::new(),
                rows: Vec::new().into_iter(),
            });
        };
        let schema = table.schema().await.map_err(failed)?;
        let columns = COLUMNS.into_iter().map(str::to_owned);
        let columns = columns.chain(rows::vector_columns(&schema)).collect();
        let query = table
            .query()
            .select(Select::columns(&["created_at_ms", "id"]))
            .with_row_id();
        let found = query.execute().await.map_err(failed)?;
        let mut order: Vec<(i64, String, u64)> = Vec::new();
        for batch in found.try_collect::<Vec<_>>().await.map_err(failed)? {
            let row_ids = row_ids(&batch)?;
            let (times, ids) = (numbers(&batch, "created_at_ms")?, texts(&batch, "id")?);
            for row in 0..batch.num_rows() {
                let id = ids.value(row).to_owned();
                order.push((times.value(row), id, row_ids.value(row)));
            }
        }
        order.sort_unstable();
        let rows: Vec<u64> = order.into_iter().map(|(_, _, row)| row).collect();
        Ok(Self {
            place,
            table: Some(table),
            columns,
            rows: rows.into_iter(),
        })
    }

    /// Waits for work on the store's own runtime, on a thread that may block.
    fn wait<T: Send + 'static>(
        &self,
        work: impl Future<Output = MemoryResult<T>> + Send + 'static,
    ) -> MemoryResult<T> {
        let (answer, answered) = sync_channel(1);
        self.place.runtime()?.spawn(async move {
            let _ = answer.send(work.await);
        });
        answered.recv().unwrap_or_else(|_| {
            let reason = "the work was cut short".to_owned();
            Err(MemoryError::Unavailable(reason))
        })
    }
}

fn row_ids(batch: &arrow_array::RecordBatch) -> MemoryResult<&UInt64Array> {
    let column = batch.column_by_name("_rowid");
    column
        .and_then(|column| column.as_primitive_opt::<UInt64Type>())
        .ok_or_else(|| unexpected("rows without a place"))
}

impl Snapshot for LanceSnapshot {
    fn counts(&mut self) -> MemoryResult<BTreeMap<MemoryType, u64>> {
        let Some(table) = self.table.clone() else {
            return Ok(BTreeMap::new());
        };
        self.wait(async move {
            let mut counts = BTreeMap::new();
            for known in MemoryType::ALL {
                let records = crate::read::count(&table, Some(known)).await?;
                if records > 0 {
                    counts.insert(known, records);
                }
            }
            Ok(counts)
        })
    }

    fn next(&mut self, limit: usize) -> MemoryResult<Vec<MemoryRecord>> {
        let wanted: Vec<u64> = self.rows.by_ref().take(limit).collect();
        let table = self.table.clone().filter(|_| !wanted.is_empty());
        let Some(table) = table else {
            return Ok(Vec::new());
        };
        let columns = self.columns.clone();
        self.wait(async move {
            let taken = table
                .take_row_ids(wanted.clone())
                .select(Select::columns(&columns))
                .with_row_id();
            let found = taken.execute().await.map_err(failed)?;
            let mut by_row: HashMap<u64, MemoryRecord> = HashMap::new();
            for batch in found.try_collect::<Vec<_>>().await.map_err(failed)? {
                let places: Vec<u64> = row_ids(&batch)?.values().to_vec();
                by_row.extend(places.into_iter().zip(rows::records(&batch)?));
            }
            wanted
                .iter()
                .map(|row| {
                    let record = by_row.remove(row);
                    record.ok_or_else(|| unexpected("a row that is gone"))
                })
                .collect()
        })
    }
}
