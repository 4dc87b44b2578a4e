//! Records become rows, and rows records.
//!
//! Vectors of one model and size have a column of their own, named after both. A record has a
//! vector in one of these columns at most, and the model's name beside it.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::builder::{FixedSizeListBuilder, Float32Builder};
use arrow_array::cast::AsArray as _;
use arrow_array::types::{Float32Type, Int64Type};
use arrow_array::{Array as _, ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use holdfast_contract::memory::MemoryResult;
use holdfast_contract::{Embedding, MemoryError, MemoryRecord, MemoryType, Trust};
use holdfast_memory::backend::{fingerprint, metadata_json};
use sha2::{Digest as _, Sha256};

use crate::words;

/// The layout below. A dataset of another version is not touched.
const VERSION: &str = "1";
const VERSION_KEY: &str = "holdfast.memory.version";
/// What the names of vector columns begin with.
const VECTOR_PREFIX: &str = "vector_";

/// The columns of a record without its vectors.
pub(crate) const COLUMNS: [&str; 8] = [
    "id",
    "memory_type",
    "content",
    "metadata",
    "session_id",
    "created_at_ms",
    "trust",
    "model",
];

/// The table before any model was used.
pub(crate) fn schema() -> SchemaRef {
    let text = |name: &str| Field::new(name, DataType::Utf8, false);
    let fields = vec![
        text("id"),
        text("memory_type"),
        text("content"),
        Field::new("metadata", DataType::Utf8, true),
        text("session_id"),
        Field::new("created_at_ms", DataType::Int64, false),
        text("trust"),
        Field::new("model", DataType::Utf8, true),
        text("words"),
        text("fingerprint"),
    ];
    let version = HashMap::from([(VERSION_KEY.to_owned(), VERSION.to_owned())]);
    Arc::new(Schema::new_with_metadata(fields, version))
}

/// Whether a table is one of ours and of this version.
pub(crate) fn check(schema: &Schema) -> MemoryResult<()> {
    match schema.metadata().get(VERSION_KEY).map(String::as_str) {
        Some(VERSION) => Ok(()),
        Some(other) => Err(MemoryError::Unavailable(format!(
            "the LanceDB memory has the layout {other}, and this is made for {VERSION}: use a newer holdfast"
        ))),
        None => Err(MemoryError::Unavailable(
            "the LanceDB memory was not made by holdfast".to_owned(),
        )),
    }
}

/// The column of a model's vectors. Names of models are foreign text, so a hash stands for them.
pub(crate) fn vector_column(model: &str, dimensions: usize) -> String {
    let digest: [u8; 32] = Sha256::digest(model.as_bytes()).into();
    let short = hex(&digest[..8]);
    format!("{VECTOR_PREFIX}{short}_{dimensions}")
}

/// The field of such a column.
pub(crate) fn vector_field(name: &str, dimensions: usize) -> Field {
    let size = i32::try_from(dimensions).unwrap_or(i32::MAX);
    let item = Arc::new(Field::new("item", DataType::Float32, true));
    Field::new(name, DataType::FixedSizeList(item, size), true)
}

/// The vector columns that a table has.
pub(crate) fn vector_columns(schema: &Schema) -> Vec<String> {
    let names = schema.fields().iter().map(|field| field.name().clone());
    names
        .filter(|name| name.starts_with(VECTOR_PREFIX))
        .collect()
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A time as the table keeps it. `check_record` keeps times far below the end of it.
pub(crate) fn time(at_ms: u64) -> i64 {
    i64::try_from(at_ms).unwrap_or(i64::MAX)
}

/// Rows for a table with this schema.
pub(crate) fn batch(schema: &SchemaRef, records: &[MemoryRecord]) -> MemoryResult<RecordBatch> {
    let columns = schema
        .fields()
        .iter()
        .map(|field| match field.data_type() {
            DataType::FixedSizeList(_, size) => Ok(vectors(field.name(), *size, records)),
            DataType::Int64 => {
                let times = records.iter().map(|record| time(record.created_at_ms));
                Ok(Arc::new(Int64Array::from_iter_values(times)) as ArrayRef)
            }
            DataType::Utf8 => {
                let texts = records.iter().map(|record| text(field.name(), record));
                Ok(Arc::new(StringArray::from_iter(texts)) as ArrayRef)
            }
            other => Err(unexpected(&format!("a column of {other}"))),
        })
        .collect::<MemoryResult<Vec<_>>>()?;
    RecordBatch::try_new(schema.clone(), columns).map_err(|error| unexpected(&error.to_string()))
}

fn text(column: &str, record: &MemoryRecord) -> Option<String> {
    match column {
        "id" => Some(record.id.clone()),
        "memory_type" => Some(record.memory_type.as_str().to_owned()),
        "content" => Some(record.content.clone()),
        "metadata" => record.metadata.as_ref().map(metadata_json),
        "session_id" => Some(record.session_id.clone()),
        "trust" => Some(record.trust.as_str().to_owned()),
        "model" => record.embedding.as_ref().map(|it| it.model.clone()),
        "words" => Some(words::of_record(&record.content)),
        "fingerprint" => Some(hex(&fingerprint(record))),
        _ => None,
    }
}

fn vectors(column: &str, size: i32, records: &[MemoryRecord]) -> ArrayRef {
    let mut builder = FixedSizeListBuilder::new(Float32Builder::new(), size);
    for record in records {
        let own = record.embedding.as_ref();
        let is_its = |own: &&Embedding| vector_column(&own.model, own.vector.len()) == column;
        match own.filter(is_its) {
            Some(embedding) => {
                builder.values().append_slice(&embedding.vector);
                builder.append(true);
            }
            None => {
                let size = usize::try_from(size).unwrap_or_default();
                builder.values().append_nulls(size);
                builder.append(false);
            }
        }
    }
    Arc::new(builder.finish())
}

/// The records of a batch, with whatever vectors it has.
pub(crate) fn records(batch: &RecordBatch) -> MemoryResult<Vec<MemoryRecord>> {
    let columns = Columns::of(batch)?;
    (0..batch.num_rows())
        .map(|row| columns.record(row))
        .collect()
}

/// One column of texts.
pub(crate) fn texts<'a>(batch: &'a RecordBatch, name: &str) -> MemoryResult<&'a StringArray> {
    let column = batch.column_by_name(name);
    column
        .and_then(|column| column.as_string_opt::<i32>())
        .ok_or_else(|| unexpected(&format!("no texts in the column {name}")))
}

/// One column of whole numbers.
pub(crate) fn numbers<'a>(batch: &'a RecordBatch, name: &str) -> MemoryResult<&'a Int64Array> {
    let column = batch.column_by_name(name);
    column
        .and_then(|column| column.as_primitive_opt::<Int64Type>())
        .ok_or_else(|| unexpected(&format!("no numbers in the column {name}")))
}

struct Columns<'a> {
    texts: HashMap<&'static str, &'a StringArray>,
    times: &'a Int64Array,
    vectors: Vec<&'a arrow_array::FixedSizeListArray>,
}

impl<'a> Columns<'a> {
    fn of(batch: &'a RecordBatch) -> MemoryResult<Self> {
        let mut found = HashMap::new();
        for name in COLUMNS.into_iter().filter(|name| *name != "created_at_ms") {
            found.insert(name, texts(batch, name)?);
        }
        let schema = batch.schema();
        let vectors = vector_columns(&schema);
        let vectors = vectors.iter().filter_map(|name| batch.column_by_name(name));
        Ok(Self {
            texts: found,
            times: numbers(batch, "created_at_ms")?,
            vectors: vectors
                .filter_map(|column| column.as_fixed_size_list_opt())
                .collect(),
        })
    }

    fn text(&self, name: &str, row: usize) -> Option<&'a str> {
        let column = self.texts.get(name)?;
        column.is_valid(row).then(|| column.value(row))
    }

    fn record(&self, row: usize) -> MemoryResult<MemoryRecord> {
        let text = |name| self.text(name, row).unwrap_or_default();
        let memory_type = MemoryType::from_name(text("memory_type"));
        let trust = Trust::from_name(text("trust"));
        let (Some(memory_type), Some(trust)) = (memory_type, trust) else {
            return Err(unexpected("a record of a kind or trust that is not known"));
        };
        let metadata = self.text("metadata", row).map(serde_json::from_str);
        Ok(MemoryRecord {
            id: text("id").to_owned(),
            memory_type,
            content: text("content").to_owned(),
            metadata: metadata
                .transpose()
                .map_err(|error| unexpected(&format!("metadata is not JSON: {error}")))?,
            session_id: text("session_id").to_owned(),
            created_at_ms: self.times.value(row).unsigned_abs(),
            trust,
            embedding: self.embedding(row),
        })
    }

    fn embedding(&self, row: usize) -> Option<Embedding> {
        let model = self.text("model", row)?;
        let column = self.vectors.iter().find(|column| column.is_valid(row))?;
        let vector = column.value(row);
        Some(Embedding {
            model: model.to_owned(),
            vector: vector.as_primitive::<Float32Type>().values().to_vec(),
        })
    }
}

pub(crate) fn unexpected(what: &str) -> MemoryError {
    MemoryError::Unavailable(format!(
        "the LanceDB memory holds what it should not: {what}; import your last export into a new one"
    ))
}
