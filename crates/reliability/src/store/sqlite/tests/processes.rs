//! Several processes on one directory: this test program starts itself again as another one.

use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Lines, Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};

use super::*;
use crate::idempotency::record::RecordState;
use crate::store::conformance::{done, key, last_word, safe};

const ROLE: &str = "HOLDFAST_TEST_ROLE";
const DIR: &str = "HOLDFAST_TEST_DIR";
/// In front of what a child says, since the test harness talks as well.
const MARK: &str = "child says: ";
const HAMMERS: u16 = 20;
const HAMMERED_KEYS: u16 = 40;

fn say(what: &str) {
    println!("\n{MARK}{what}");
    std::io::stdout().flush().unwrap();
}

/// Until the parent closes our input or kills us.
fn stay() {
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
}

/// A process that plays a role, killed at the end of the test however that ends.
struct Other {
    child: Child,
    says: Lines<BufReader<ChildStdout>>,
}

fn command(role: &str, dir: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args([
            "--exact",
            "store::sqlite::tests::processes::plays_its_role",
            "--nocapture",
        ])
        .env(ROLE, role)
        .env(DIR, dir);
    command
}

impl Other {
    fn start(role: &str, dir: &Path) -> Self {
        Self::spawn(&mut command(role, dir))
    }

    fn spawn(command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let says = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, says }
    }

    /// What it says next, or `None` when it has ended.
    fn hear(&mut self) -> Option<String> {
        self.says
            .find_map(|line| line.unwrap().strip_prefix(MARK).map(str::to_owned))
    }

    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Not a test of its own: what the other process does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn plays_its_role() {
    let Ok(role) = std::env::var(ROLE) else {
        return;
    };
    let dir = PathBuf::from(std::env::var(DIR).unwrap());
    match role.as_str() {
        "hold" => hold(&dir).await,
        "hold with child" => hold_with_child(&dir).await,
        "wait" => wait(&dir).await,
        "fill" => fill(&dir).await,
        other => {
            let number = other.strip_prefix("hammer ").expect("no such role");
            hammer(&dir, number.parse().unwrap()).await;
        }
    }
}

async fn hold(dir: &Path) {
    let store = open(dir);
    granted(&store, 1, "unsafe").await;
    assert!(matches!(
        claim(&store, safe(wish(2, "safe"))).await,
        Claim::Granted { .. }
    ));
    say("held");
    stay();
}

#[expect(
    clippy::zombie_processes,
    reason = "the child is to outlive this process"
)]
async fn hold_with_child(dir: &Path) {
    let store = open(dir);
    let Claim::Granted {
        lifeline: Some(lifeline),
    } = claim(&store, wish(1, "parent")).await
    else {
        panic!("not granted with a lifeline");
    };
    // Any descriptor will do; standard input is one that a child is given without unsafe code.
    let inherited = lifeline.lend().unwrap();
    let child = Command::new("sleep")
        .arg("100")
        .stdin(inherited)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    say(&child.id().to_string());
    stay();
}

async fn wait(dir: &Path) {
    let store = open(dir);
    let Claim::InFlight { ticket } = claim(&store, wish(1, "waiter")).await else {
        panic!("it is in flight");
    };
    say("waiting");
    store.changed(ticket).await;
    match claim(&store, wish(1, "waiter")).await {
        Claim::Ended(record) => say(record.state.as_str()),
        other => panic!("not ended: {other:?}"),
    }
}

/// Every process wants every key. Who gets one leaves a mark, which must stay the only one.
async fn hammer(dir: &Path, me: u16) {
    // So many at once on a busy machine may keep one of them waiting for longer than a call would.
    let patient = SqliteOptions {
        busy_wait_ms: 50_000,
        ..SqliteOptions::default()
    };
    let store = open_with(&dir.join("state"), patient).expect("opens");
    for turn in 0..HAMMERED_KEYS {
        let number = (turn * 7 + me) % HAMMERED_KEYS;
        let own = 1_000 + me * HAMMERED_KEYS + turn;
        granted(&store, own, &format!("own-{me}-{turn}")).await;
        assert_eq!(
            store.release(&key(own), &format!("own-{me}-{turn}")).await,
            Ok(Ok(()))
        );
        let owner = format!("shared-{me}-{turn}");
        loop {
            match claim(&store, wish(number, &owner)).await {
                Claim::Granted { .. } => {
                    let mark = dir.join(format!("effect-{number}"));
                    let mut file = OpenOptions::new()
                        .append(true)
                        .create(true)
                        .open(mark)
                        .unwrap();
                    file.write_all(b"x").unwrap();
                    let last_word = last_word(&wish(number, &owner), done());
                    assert_eq!(store.finalise(last_word).await, Ok(Ok(())));
                    break;
                }
                Claim::InFlight { ticket } => store.changed(ticket).await,
                Claim::Ended(record) => {
                    assert_eq!(record.state, RecordState::Done);
                    break;
                }
                other @ Claim::Conflict { .. } => panic!("{other:?}"),
            }
        }
    }
    say("done");
}

async fn fill(dir: &Path) {
    let store = match open_with(dir, SqliteOptions::default()) {
        Ok(store) => store,
        Err(error) => return say(&format!("{error:?}")),
    };
    for number in 0..u16::MAX {
        match store.claim(&wish(number, &format!("owner-{number}"))).await {
            Ok(Claim::Granted { .. }) => {}
            Ok(other) => return say(&format!("{other:?}")),
            Err(error) => return say(&format!("{error:?}")),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_holder_is_noticed_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let mut holder = Other::start("hold", dir.path());
    assert_eq!(holder.hear().as_deref(), Some("held"));
    let store = open(dir.path());
    for wish in [wish(1, "a"), safe(wish(2, "b"))] {
        assert!(matches!(claim(&store, wish).await, Claim::InFlight { .. }));
    }
    holder.kill();
    // Their leases have two minutes to go.
    let Claim::Ended(record) = claim(&store, wish(1, "a")).await else {
        panic!("its holder is dead");
    };
    assert_eq!(record.state, RecordState::Unknown);
    assert!(matches!(
        claim(&store, safe(wish(2, "b"))).await,
        Claim::Granted { .. }
    ));
    assert_eq!(lock_files(dir.path()).len(), 3);
    assert_eq!(store.sweep().await, Ok(0));
    assert_eq!(lock_files(dir.path()).len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_child_with_the_lifeline_keeps_the_claim_alive() {
    let dir = tempfile::tempdir().unwrap();
    let mut holder = Other::start("hold with child", dir.path());
    let child = holder.hear().unwrap();
    let store = open(dir.path());
    holder.kill();
    assert!(matches!(
        claim(&store, wish(1, "a")).await,
        Claim::InFlight { .. }
    ));
    assert_eq!(store.sweep().await, Ok(0));
    assert!(matches!(
        claim(&store, wish(1, "a")).await,
        Claim::InFlight { .. }
    ));
    assert!(
        Command::new("kill")
            .args(["-9", &child])
            .status()
            .unwrap()
            .success()
    );
    // Killing somebody else's child can not be waited for.
    until(async || !matches!(claim(&store, wish(1, "a")).await, Claim::InFlight { .. })).await;
    assert_eq!(
        store.get(&key(1)).await.unwrap().unwrap().state,
        RecordState::Unknown
    );
}

/// Ids of processes come again: a store that is opened once more in one process has the id of the
/// one before it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_with_the_id_of_a_dead_one_takes_nothing_over() {
    let dir = tempfile::tempdir().unwrap();
    let first = open(dir.path());
    let Claim::Granted {
        lifeline: Some(lifeline),
    } = claim(&first, wish(1, "first")).await
    else {
        panic!("not granted with a lifeline");
    };
    let mut orphan = Command::new("sleep")
        .arg("100")
        .stdin(lifeline.lend().unwrap())
        .spawn()
        .unwrap();
    drop((first, lifeline));
    let second = open(dir.path());
    // Takes the dead one's own file away, and leaves that of its child.
    second.sweep().await.unwrap();
    let Claim::Granted {
        lifeline: Some(lifeline),
    } = claim(&second, wish(2, "second")).await
    else {
        panic!("not granted with a lifeline");
    };
    let lent = lifeline.lend().map(drop);
    orphan.kill().unwrap();
    orphan.wait().unwrap();
    lent.expect("a lock that the orphan has no part in");
    let Claim::Ended(record) = claim(&second, wish(1, "third")).await else {
        panic!("the second was taken for the first");
    };
    assert_eq!(record.state, RecordState::Unknown);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_process_wakes_when_the_call_ends() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    granted(&store, 1, "a").await;
    let mut waiter = Other::start("wait", dir.path());
    assert_eq!(waiter.hear().as_deref(), Some("waiting"));
    assert_eq!(
        store.finalise(last_word(&wish(1, "a"), done())).await,
        Ok(Ok(()))
    );
    assert_eq!(waiter.hear().as_deref(), Some("done"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_waits_for_a_process_that_dies_is_woken() {
    let dir = tempfile::tempdir().unwrap();
    let mut holder = Other::start("hold", dir.path());
    assert_eq!(holder.hear().as_deref(), Some("held"));
    let store = open(dir.path());
    let Claim::InFlight { ticket } = claim(&store, wish(1, "a")).await else {
        panic!("it is in flight");
    };
    let waits = tokio::spawn({
        let store = store.clone();
        async move { store.changed(ticket).await }
    });
    holder.kill();
    tokio::time::timeout(HANG, waits).await.unwrap().unwrap();
    assert!(matches!(claim(&store, wish(1, "a")).await, Claim::Ended(_)));
}

#[test]
fn twenty_processes_share_one_database() {
    let dir = tempfile::tempdir().unwrap();
    let mut hammers: Vec<Other> = (0..HAMMERS)
        .map(|me| Other::start(&format!("hammer {me}"), dir.path()))
        .collect();
    for hammer in &mut hammers {
        assert_eq!(hammer.hear().as_deref(), Some("done"));
        assert!(hammer.child.wait().unwrap().success());
    }
    for number in 0..HAMMERED_KEYS {
        let mark = std::fs::read(dir.path().join(format!("effect-{number}"))).unwrap();
        assert_eq!(
            mark,
            b"x",
            "key {number} had its effect {} times",
            mark.len()
        );
    }
    assert!(lock_files(&dir.path().join("state")).is_empty());
}

/// What a process says at last that fills the store behind `before`, a shell's words.
fn filled(shell: &mut Command, before: &str) -> Option<String> {
    let dir = tempfile::tempdir().unwrap();
    let fill = command("fill", dir.path());
    shell
        .args(["-c", &format!("{before} exec \"$0\" \"$@\"")])
        .arg(fill.get_program())
        .args(fill.get_args())
        .env(ROLE, "fill")
        .env(DIR, dir.path());
    Other::spawn(shell).hear()
}

/// Whether this process has the right to mount (`CAP_SYS_ADMIN`, the 21st).
fn may_mount() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let held = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    u64::from_str_radix(held.unwrap().trim(), 16).unwrap() & (1 << 21) != 0
}

#[test]
fn a_full_disk_refuses() {
    const MOUNT: &str = r#"mount -t tmpfs -o size=512k none "${HOLDFAST_TEST_DIR:-/mnt}" &&"#;
    // A mount of its own, which goes with the process.
    let shell = || {
        let mut shell = Command::new("unshare");
        shell.args(["--map-root-user", "--mount", "sh"]);
        shell
    };
    let tried = shell().args(["-c", &format!("{MOUNT} true")]).output();
    if tried.is_ok_and(|output| output.status.success()) {
        let said = filled(&mut shell(), MOUNT).expect("an answer");
        assert!(said.starts_with("Full("), "{said}");
    } else {
        // Others have to do with the test below.
        assert!(!may_mount(), "the one who may mount can not");
    }
}

#[test]
fn a_database_that_may_not_grow_refuses() {
    // In blocks of 512 bytes, or of 1024 for some shells: room to open it, and not for all records.
    let limit = "trap '' XFSZ; ulimit -f 512;";
    let said = filled(&mut Command::new("sh"), limit).expect("an answer");
    assert!(said.starts_with("Unavailable("), "{said}");
    assert!(said.contains("disk I/O error"), "{said}");
}
