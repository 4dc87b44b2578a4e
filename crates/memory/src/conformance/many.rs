//! Several at once.

use std::sync::Arc;

use holdfast_contract::{MemoryRead, MemoryType, MemoryWrite};

use super::{Bench, MemoryFactory, new};

/// Writers at the same time: everything is there once, and equal things are there once as well.
pub async fn many_writers_lose_nothing(factory: &dyn MemoryFactory) {
    let bench = Bench::new(factory).await;
    let writers: Vec<_> = (0..8)
        .map(|writer| {
            let memory = Arc::clone(&bench.memory);
            tokio::spawn(async move {
                for number in 0..10 {
                    let own = format!("Writer {writer} says {number} about the cat.");
                    let shared = format!("Everybody says {number} about the beach.");
                    for content in [own, shared] {
                        let said = new(MemoryType::Fact, &content);
                        memory.remember(said).await.expect("stored");
                    }
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.expect("a writer");
    }
    assert_eq!(bench.count().await, 8 * 10 + 10);
    let found = bench.found("feline").await;
    assert_eq!(found.len(), 10);
    assert!(found.iter().all(|content| content.contains("cat")));
    assert_eq!(
        bench
            .memory
            .count(Some(MemoryType::Fact))
            .await
            .expect("a count"),
        90
    );
}
