//! Recall from a memory of 100,000 records, side by side with plain SQLite FTS5, with brute force
//! over the same vectors, and with sqlite-vec.
//!
//! Run by `bench/memory/run`. Every question is put to all subjects in turn, so that whatever the
//! machine does meanwhile happens to all of them.

mod data;
mod peers;

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use holdfast_contract::{Embedding, MemoryQuery, MemoryRead};
use holdfast_memory::backend::RecallPlan;
use holdfast_memory::embed::Purpose;
use holdfast_memory::terms::{Terms, terms};
use holdfast_memory::{Backend, EmbedError, Embedder, Memory, SqliteMemory, SqliteMemoryOptions};
use serde::Serialize;

use data::{Data, MODEL};
use peers::{BruteForce, Failed, PlainText, SqliteVec};

/// How much is measured.
struct Plan {
    records: usize,
    questions: usize,
}

#[derive(Serialize)]
struct Subject {
    name: &'static str,
    p50_ms: f64,
    p99_ms: f64,
    /// Processor time of all threads: what the search costs, whatever else the machine does.
    p50_cpu_ms: f64,
    all_us: Vec<u64>,
    all_cpu_us: Vec<u64>,
}

#[derive(Serialize)]
struct Report {
    machine: serde_json::Value,
    records: usize,
    dimensions: usize,
    questions: usize,
    store_all_s: f64,
    first_search_ms: f64,
    recall_at_10: f64,
    subjects: Vec<Subject>,
}

/// Knows the vectors of the questions.
struct Known(HashMap<String, Vec<f32>>);

#[async_trait]
impl Embedder for Known {
    fn model(&self) -> &str {
        MODEL
    }

    fn batch_max(&self) -> usize {
        64
    }

    async fn embed(&self, texts: &[String], _: Purpose) -> Result<Vec<Vec<f32>>, EmbedError> {
        Ok(texts
            .iter()
            .filter_map(|text| self.0.get(text).cloned())
            .collect())
    }
}

fn main() -> Result<(), Failed> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (plan, machine, out) = match arguments[..] {
        ["--machine", machine, "--out", out] => (
            Plan {
                records: 100_000,
                questions: 400,
            },
            machine,
            out,
        ),
        ["--quick", "--machine", machine, "--out", out] => (
            Plan {
                records: 20_000,
                questions: 60,
            },
            machine,
            out,
        ),
        _ => return Err("use bench/memory/run".into()),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let report = runtime.block_on(measure(&plan, serde_json::from_str(machine)?))?;
    println!("{}", report.table());
    std::fs::write(out, serde_json::to_string(&report)? + "\n")?;
    Ok(())
}

async fn measure(plan: &Plan, machine: serde_json::Value) -> Result<Report, Failed> {
    let data = data::make(plan.records, plan.questions);
    let dir = tempfile::tempdir()?;
    let backend = Arc::new(SqliteMemory::new(
        dir.path(),
        SqliteMemoryOptions::default(),
    ));
    let begun = Instant::now();
    for batch in data.records.chunks(1_000) {
        backend.insert(batch.to_vec()).await?;
    }
    let store_all_s = begun.elapsed().as_secs_f64();
    let plain = PlainText::new(&dir.path().join("plain.db"), &data.records)?;
    let brute = BruteForce::new(&data.records);
    let vec = SqliteVec::new(&dir.path().join("vec.db"), &data.records)?;
    // A process that has just started reads all codes with its first search.
    let fresh = SqliteMemory::new(dir.path(), SqliteMemoryOptions::default());
    let begun = Instant::now();
    fresh.recall(by_vector(&data.questions[0].1)).await?;
    let first_search_ms = begun.elapsed().as_secs_f64() * 1e3;
    backend.recall(by_vector(&data.questions[0].1)).await?;
    let (subjects, recall_at_10) = ask(&data, backend, &plain, &brute, &vec).await?;
    Ok(Report {
        machine,
        records: plan.records,
        dimensions: data::DIMENSIONS,
        questions: plan.questions,
        store_all_s,
        first_search_ms,
        recall_at_10,
        subjects,
    })
}

/// A search for the ten nearest vectors alone.
fn by_vector(vector: &[f32]) -> RecallPlan {
    RecallPlan {
        text: String::new(),
        terms: Terms::default(),
        vector: Some(Embedding {
            model: MODEL.to_owned(),
            vector: vector.to_vec(),
        }),
        memory_type: None,
        limit: 10,
        depth: 50,
    }
}

const NAMES: [&str; 6] = [
    "text: holdfast",
    "text: plain FTS5",
    "vectors: holdfast",
    "vectors: brute force",
    "vectors: sqlite-vec",
    "both: holdfast",
];

async fn ask(
    data: &Data,
    backend: Arc<SqliteMemory>,
    plain: &PlainText,
    brute: &BruteForce,
    vec: &SqliteVec,
) -> Result<(Vec<Subject>, f64), Failed> {
    let by_words = Memory::new(backend.clone());
    let known = data.questions.iter().cloned().collect();
    let whole = Memory::new(backend.clone()).with_embedder(Arc::new(Known(known)));
    let mut times: [Times; 6] = Default::default();
    let mut right = 0;
    for (text, vector) in &data.questions {
        let query = MemoryQuery::new(text.clone());
        let mut timer = Timer::start();
        let ours = by_words.search(&query).await?;
        timer.take(&mut times[0]);
        let theirs = plain.search(&terms(text).words.unwrap_or_default())?;
        timer.take(&mut times[1]);
        if ours.hits.first().map(|hit| &hit.record.content) != theirs.first() {
            return Err("the two text searches differ".into());
        }
        let plan = by_vector(vector);
        timer = Timer::start();
        let found = backend.recall(plan).await?;
        timer.take(&mut times[2]);
        let exact = brute.search(vector);
        timer.take(&mut times[3]);
        vec.search(vector)?;
        timer.take(&mut times[4]);
        whole.search(&query).await?;
        timer.take(&mut times[5]);
        let found: Vec<&str> = found
            .hits
            .iter()
            .map(|hit| hit.record.id.as_str())
            .collect();
        let ids = exact.iter().map(|place| data.records[*place].id.as_str());
        right += ids.filter(|id| found.contains(id)).count();
    }
    let recall = right as f64 / (10 * data.questions.len()) as f64;
    let subjects = NAMES
        .into_iter()
        .zip(times)
        .map(|(name, times)| subject(name, times));
    Ok((subjects.collect(), recall))
}

/// What the searches of one subject took, on the wall and on the processor.
#[derive(Default)]
struct Times {
    wall: Vec<Duration>,
    cpu: Vec<Duration>,
}

struct Timer(Instant, Duration);

impl Timer {
    fn start() -> Self {
        Self(Instant::now(), cpu())
    }

    fn take(&mut self, times: &mut Times) {
        times.wall.push(self.0.elapsed());
        times.cpu.push(cpu() - self.1);
        *self = Self::start();
    }
}

fn cpu() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

fn subject(name: &'static str, mut times: Times) -> Subject {
    times.wall.sort_unstable();
    times.cpu.sort_unstable();
    let at = |times: &[Duration], share: usize| {
        times[(times.len() - 1) * share / 100].as_secs_f64() * 1e3
    };
    let us = |times: &[Duration]| times.iter().map(|time| time.as_micros() as u64).collect();
    Subject {
        name,
        p50_ms: at(&times.wall, 50),
        p99_ms: at(&times.wall, 99),
        p50_cpu_ms: at(&times.cpu, 50),
        all_us: us(&times.wall),
        all_cpu_us: us(&times.cpu),
    }
}

impl Report {
    /// Processor time: the aims are about what a search costs, and another process's load is not
    /// part of that.
    fn p50(&self, name: &str) -> f64 {
        let found = self.subjects.iter().find(|subject| subject.name == name);
        found.map_or(f64::NAN, |subject| subject.p50_cpu_ms)
    }

    fn table(&self) -> String {
        let mut text = format!(
            "{} records, {} dimensions, {} questions; stored in {:.1} s, first search of a new process {:.0} ms\n\n",
            self.records, self.dimensions, self.questions, self.store_all_s, self.first_search_ms
        );
        for subject in &self.subjects {
            let _ = writeln!(
                text,
                "{:<22} p50 {:>8.2} ms   p99 {:>8.2} ms   p50 on the processor {:>8.2} ms",
                subject.name, subject.p50_ms, subject.p99_ms, subject.p50_cpu_ms
            );
        }
        let words = self.p50("text: holdfast") / self.p50("text: plain FTS5");
        let vectors = self.p50("vectors: brute force") / self.p50("vectors: holdfast");
        let own = self.p50("vectors: holdfast");
        let aims = [
            (
                "text / plain FTS5",
                format!("{words:.2}x"),
                "at most 1.3x",
                words <= 1.3,
            ),
            (
                "brute force / vectors",
                format!("{vectors:.1}x at {own:.1} ms"),
                "at least 5x, or under 20 ms",
                vectors >= 5.0 || own < 20.0,
            ),
            (
                "recall@10",
                format!("{:.3}", self.recall_at_10),
                "at least 0.95",
                self.recall_at_10 >= 0.95,
            ),
        ];
        text.push('\n');
        for (what, figure, aim, met) in aims {
            let verdict = if met { "met" } else { "MISSED" };
            let _ = writeln!(text, "{what:<22} {figure:>14}   aim {aim}: {verdict}");
        }
        text
    }
}
