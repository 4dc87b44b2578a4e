//! The ADR's table, cell by cell.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use holdfast_contract::{Effect, MemoryRead, PermissionTier, SessionContext, SessionKind, Tool};
use holdfast_memory::{Memory, SqliteMemory, SqliteMemoryOptions};
use holdfast_toolbox::session::Spawn;
use holdfast_toolbox::tools::base_tools;
use serde_json::{Value, json};

use crate::permission::bench::{Bench, Build, Probe, Recorded, ask, word};

/// Tool, arguments, and whether Main, Branch and Worker may.
fn table() -> Vec<(&'static str, Value, [bool; 3])> {
    vec![
        ("read", json!({"path": "a.txt"}), [true, true, true]),
        (
            "write",
            json!({"path": "new.txt", "content": "x"}),
            [true, true, false],
        ),
        (
            "edit",
            json!({"path": "a.txt", "old_string": "one", "new_string": "two"}),
            [true, true, false],
        ),
        (
            "exec",
            json!({"command": "echo x > made"}),
            [true, true, false],
        ),
        ("message", json!({"text": "hello"}), [true, true, false]),
        ("memory_search", json!({"query": "tea"}), [true, true, true]),
        (
            "memory_store",
            json!({"memory_type": "fact", "content": "tea is green"}),
            [true, true, false],
        ),
        ("web_search", json!({"query": "x"}), [true, true, true]),
        (
            "web_fetch",
            json!({"url": "https://example.com"}),
            [true, true, true],
        ),
    ]
}

/// Every tool there is, registered without a look at the session.
fn tools() -> Vec<Arc<dyn Tool>> {
    let mut tools = base_tools();
    tools.push(Probe::new(
        "web_search",
        PermissionTier::ReadOnly,
        Effect::None,
    ));
    tools.push(Probe::new(
        "web_fetch",
        PermissionTier::ReadOnly,
        Effect::None,
    ));
    tools
}

/// A Main session with everything there is to hold.
pub(crate) async fn open(bench: &Bench, root: &Path, channel: &Arc<Recorded>) -> Remembered {
    let dir = tempfile::tempdir().unwrap();
    let backend = SqliteMemory::new(dir.path(), SqliteMemoryOptions::default());
    let memory = Arc::new(Memory::new(Arc::new(backend)));
    let context = SessionContext::main("main", "agent", root.to_owned())
        .with_channel(channel.clone())
        .with_memory(&memory);
    bench.tree.open_main_with(context).await.unwrap();
    Remembered { memory, _dir: dir }
}

pub(crate) struct Remembered {
    memory: Arc<Memory>,
    _dir: tempfile::TempDir,
}

impl Remembered {
    pub(crate) async fn count(&self) -> u64 {
        self.memory.count(None).await.unwrap()
    }
}

pub(crate) fn files(root: &Path) -> BTreeMap<String, Vec<u8>> {
    std::fs::read_dir(root)
        .expect("a directory")
        .map(|entry| {
            let path = entry.expect("an entry").path();
            (
                path.display().to_string(),
                std::fs::read(&path).expect("a file"),
            )
        })
        .collect()
}

#[tokio::test]
async fn every_cell_of_the_table_holds() {
    for (tool, params, may) in table() {
        for (kind, may) in [SessionKind::Main, SessionKind::Branch, SessionKind::Worker]
            .into_iter()
            .zip(may)
        {
            let dir = tempfile::tempdir().unwrap();
            std::fs::write(dir.path().join("a.txt"), "one\n").unwrap();
            let channel = Recorded::silent();
            let bench = Build::default().bench(tools());
            let remembered = open(&bench, dir.path(), &channel).await;
            let session = match kind {
                SessionKind::Main => "main".to_owned(),
                kind => {
                    let wish = Spawn {
                        kind,
                        context_summary: "work".into(),
                        token_budget: None,
                    };
                    bench.tree.spawn("main", wish).await.unwrap().id
                }
            };
            let context = bench.tree.context(&session).expect("it lives");
            let offered = bench.stack.offered(&context).get(tool).is_some();
            assert_eq!(offered, may, "{tool} offered to a {kind:?}");
            let before = files(dir.path());
            let result = bench.stack.call(ask(tool, &session, params.clone())).await;
            let expected = if may { "ran" } else { "permission_denied" };
            assert_eq!(word(&result), expected, "{tool} in a {kind:?}: {result:?}");
            if !may {
                assert_eq!(files(dir.path()), before, "{tool} in a {kind:?}");
            }
            let stored = u64::from(tool == "memory_store" && may);
            assert_eq!(remembered.count().await, stored, "{tool} in a {kind:?}");
            let sent = channel.sent.lock().len();
            assert_eq!(
                sent,
                usize::from(tool == "message" && may),
                "{tool} in a {kind:?}"
            );
        }
    }
}
