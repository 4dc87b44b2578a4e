//! What is remembered and what is asked, the same in every run.

use holdfast_contract::{Embedding, MemoryRecord, MemoryType, Trust};

pub const DIMENSIONS: usize = 384;
pub const MODEL: &str = "bench";
/// Texts come in subjects, as real ones do: vectors of one subject are near each other.
const SUBJECTS: usize = 500;

/// Numbers that are spread and repeat from run to run.
pub struct Numbers(pub u64);

impl Numbers {
    pub fn next(&mut self) -> u64 {
        // The generator of Steele, Lea and Flood.
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut number = self.0;
        number = (number ^ (number >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        number = (number ^ (number >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        number ^ (number >> 31)
    }

    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    /// Roughly normal: the sum of four even ones.
    fn normal(&mut self) -> f32 {
        (0..4)
            .map(|_| (self.next() >> 40) as f32 / (1 << 24) as f32 - 0.5)
            .sum()
    }

    fn vector(&mut self) -> Vec<f32> {
        (0..DIMENSIONS).map(|_| self.normal()).collect()
    }
}

fn near(center: &[f32], numbers: &mut Numbers, spread: f32) -> Vec<f32> {
    let moved = center.iter().map(|part| part + spread * numbers.normal());
    moved.collect()
}

/// A word of a vocabulary in which few words are common and most are rare.
fn word(numbers: &mut Numbers) -> String {
    let even = (numbers.next() >> 11) as f64 / (1_u64 << 53) as f64;
    let rank = (30_000.0_f64.powf(even)) as u64;
    let mut text = String::new();
    let mut rest = rank.wrapping_mul(2_654_435_761) % 4_000_000;
    for _ in 0..3 {
        text.push((b'a' + (rest % 20) as u8) as char);
        text.push(b"aeiou"[(rest / 20 % 5) as usize] as char);
        rest /= 100;
    }
    text
}

pub struct Data {
    pub records: Vec<MemoryRecord>,
    pub questions: Vec<(String, Vec<f32>)>,
}

pub fn make(count: usize, questions: usize) -> Data {
    let mut numbers = Numbers(7);
    let centers: Vec<Vec<f32>> = (0..SUBJECTS).map(|_| numbers.vector()).collect();
    let records: Vec<MemoryRecord> = (0..count)
        .map(|place| {
            let words: Vec<String> = (0..12 + numbers.below(30))
                .map(|_| word(&mut numbers))
                .collect();
            let center = &centers[numbers.below(SUBJECTS)];
            MemoryRecord {
                id: format!("{place:08}"),
                memory_type: MemoryType::ALL[place % 4],
                content: words.join(" "),
                metadata: None,
                session_id: "bench".to_owned(),
                created_at_ms: 1_700_000_000_000 + place as u64,
                trust: Trust::Tool,
                embedding: Some(Embedding {
                    model: MODEL.to_owned(),
                    vector: near(center, &mut numbers, 0.9),
                }),
            }
        })
        .collect();
    // A question is about a record: some of its words, and a vector near its own.
    let questions = (0..questions)
        .map(|_| {
            let about = &records[numbers.below(records.len())];
            let words: Vec<&str> = about.content.split(' ').collect();
            let asked: Vec<&str> = (0..4).map(|_| words[numbers.below(words.len())]).collect();
            let vector = about
                .embedding
                .as_ref()
                .map_or(&[][..], |found| &found.vector);
            (asked.join(" "), near(vector, &mut numbers, 0.4))
        })
        .collect();
    Data { records, questions }
}
