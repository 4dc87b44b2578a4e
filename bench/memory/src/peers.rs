//! What recall is measured against.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::Path;

use holdfast_contract::MemoryRecord;
use rusqlite::{Connection, params};

use crate::data::DIMENSIONS;

pub type Failed = Box<dyn std::error::Error>;

/// Plain FTS5 with the same tokenizer over the same texts.
pub struct PlainText(Connection);

impl PlainText {
    pub fn new(file: &Path, records: &[MemoryRecord]) -> Result<Self, Failed> {
        let mut conn = Connection::open(file)?;
        conn.execute_batch(
            "PRAGMA journal_mode = WAL;
             CREATE VIRTUAL TABLE plain USING fts5 (content,
                 tokenize = 'porter unicode61 remove_diacritics 2');",
        )?;
        let step = conn.transaction()?;
        for (place, record) in records.iter().enumerate() {
            step.prepare_cached("INSERT INTO plain (rowid, content) VALUES (?1, ?2)")?
                .execute(params![place as i64, record.content])?;
        }
        step.commit()?;
        Ok(Self(conn))
    }

    /// The ten best texts for an expression.
    pub fn search(&self, expression: &str) -> Result<Vec<String>, Failed> {
        let mut statement = self.0.prepare_cached(
            "SELECT content FROM plain WHERE plain MATCH ?1 ORDER BY rank LIMIT 10",
        )?;
        let found = statement.query_map([expression], |row| row.get(0))?;
        Ok(found.collect::<Result<_, _>>()?)
    }
}

/// Every vector in memory, compared one after the other.
pub struct BruteForce {
    numbers: Vec<f32>,
}

/// Written so that the compiler makes vector instructions of it, for a fair peer.
fn product(a: &[f32], b: &[f32]) -> f32 {
    let (a, b) = (a.as_chunks::<16>().0, b.as_chunks::<16>().0);
    let mut sums = [0.0_f32; 16];
    for (a, b) in a.iter().zip(b) {
        for lane in 0..16 {
            sums[lane] += a[lane] * b[lane];
        }
    }
    sums.iter().sum()
}

fn unit(vector: &[f32]) -> Vec<f32> {
    let length = product(vector, vector).sqrt();
    vector.iter().map(|part| part / length).collect()
}

impl BruteForce {
    pub fn new(records: &[MemoryRecord]) -> Self {
        let vectors = records
            .iter()
            .filter_map(|record| record.embedding.as_ref());
        Self {
            numbers: vectors.flat_map(|found| unit(&found.vector)).collect(),
        }
    }

    /// The places of the ten nearest, exactly.
    pub fn search(&self, query: &[f32]) -> Vec<usize> {
        let query = unit(query);
        let mut best: BinaryHeap<Reverse<(u32, usize)>> = BinaryHeap::new();
        for (place, vector) in self.numbers.chunks_exact(DIMENSIONS).enumerate() {
            // From -1…1 to 0…2, where the bits of a float are in its own order.
            let likeness = (product(vector, &query) + 1.0).max(0.0).to_bits();
            if best.len() < 10 {
                best.push(Reverse((likeness, place)));
            } else if best.peek().is_some_and(|worst| worst.0.0 < likeness) {
                best.pop();
                best.push(Reverse((likeness, place)));
            }
        }
        let mut found: Vec<_> = best.into_iter().map(|found| found.0).collect();
        found.sort_by_key(|found| Reverse(found.0));
        found.into_iter().map(|(_, place)| place).collect()
    }
}

/// The `vec0` table of sqlite-vec over the same vectors.
pub struct SqliteVec(Connection);

impl SqliteVec {
    pub fn new(file: &Path, records: &[MemoryRecord]) -> Result<Self, Failed> {
        // SAFETY: this is how the crate documents its own registration.
        unsafe {
            type Init = unsafe extern "C" fn(
                *mut rusqlite::ffi::sqlite3,
                *mut *mut std::os::raw::c_char,
                *const rusqlite::ffi::sqlite3_api_routines,
            ) -> std::os::raw::c_int;
            let init =
                std::mem::transmute::<*const (), Init>(sqlite_vec::sqlite3_vec_init as *const ());
            rusqlite::ffi::sqlite3_auto_extension(Some(init));
        }
        let mut conn = Connection::open(file)?;
        conn.execute_batch(&format!(
            "PRAGMA journal_mode = WAL;
             CREATE VIRTUAL TABLE vec USING vec0 (numbers float[{DIMENSIONS}] distance_metric=cosine);"
        ))?;
        let step = conn.transaction()?;
        for (place, record) in records.iter().enumerate() {
            let Some(found) = &record.embedding else {
                continue;
            };
            step.prepare_cached("INSERT INTO vec (rowid, numbers) VALUES (?1, ?2)")?
                .execute(params![place as i64, bytes(&found.vector)])?;
        }
        step.commit()?;
        Ok(Self(conn))
    }

    pub fn search(&self, query: &[f32]) -> Result<Vec<i64>, Failed> {
        let mut statement = self.0.prepare_cached(
            "SELECT rowid FROM vec WHERE numbers MATCH ?1 AND k = 10 ORDER BY distance",
        )?;
        let found = statement.query_map([bytes(query)], |row| row.get(0))?;
        Ok(found.collect::<Result<_, _>>()?)
    }
}

fn bytes(vector: &[f32]) -> Vec<u8> {
    vector.iter().flat_map(|part| part.to_le_bytes()).collect()
}
