//! Eight processes, one Redis, faults of every kind, and what must hold in the end.

use std::collections::{HashMap, HashSet, VecDeque};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use holdfast_contract::Entropy;
use holdfast_testkit::SeededEntropy;
use holdfast_testkit::redis::{Persistence, RedisServer};

use crate::redis_chaos::checker;
use crate::redis_chaos::worker::{DIR, TASKS, URL};

const WORKERS: usize = 8;
/// The first delivery of an intent and its duplicates.
const DELIVERIES_PER_INTENT: u64 = 6;
/// Every so many answers something breaks.
const ANSWERS_PER_FAULT: usize = 1_000;
/// A call that is answered this long after a timer that ends with its deadline has missed it.
const LATE_MS: u64 = 5_000;
/// Nothing takes this long unless it hangs.
const HANG: Duration = Duration::from_mins(1);

/// What a worker said: which one, and the line; none at its end.
type Said = (u64, Option<String>);

struct Worker {
    id: u64,
    child: Child,
    input: ChildStdin,
    /// Deliveries under way: their numbers and intents.
    under_way: HashMap<u64, u64>,
}

impl Worker {
    fn start(id: u64, dir: &Path, url: &str, said: &Sender<Said>) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "redis_chaos::worker::worker_process",
                "--nocapture",
            ])
            .env(DIR, dir)
            .env(URL, url)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (input, output) = (child.stdin.take().unwrap(), child.stderr.take().unwrap());
        let said = said.clone();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines() {
                let Ok(line) = line else { break };
                let _ = said.send((id, Some(line)));
            }
            let _ = said.send((id, None));
        });
        Self {
            id,
            child,
            input,
            under_way: HashMap::new(),
        }
    }

    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // Ended already, unless the test fails.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What clients were told about an intent.
#[derive(Default, Debug)]
struct Told {
    success: u32,
    unknown: u32,
    /// Who said that it is done.
    done_by: HashSet<u64>,
}

struct Crowd<'a> {
    dir: &'a Path,
    server: RedisServer,
    random: SeededEntropy,
    waiting: VecDeque<u64>,
    workers: Vec<Worker>,
    next_number: u64,
    next_worker: u64,
    said: (Sender<Said>, Receiver<Said>),
    told: HashMap<u64, Told>,
    codes: HashMap<String, u64>,
    latest_ms: u64,
}

impl Crowd<'_> {
    fn start_worker(&mut self) {
        let worker = Worker::start(self.next_worker, self.dir, &self.server.url(), &self.said.0);
        self.next_worker += 1;
        self.workers.push(worker);
    }

    /// Keeps every worker busy.
    fn hand_out(&mut self) {
        for worker in &mut self.workers {
            while worker.under_way.len() < TASKS {
                let Some(intent) = self.waiting.pop_front() else {
                    return;
                };
                let number = self.next_number;
                self.next_number += 1;
                worker.under_way.insert(number, intent);
                // A worker that is gone says so itself.
                let _ = writeln!(worker.input, "{number} {intent}");
            }
        }
    }

    /// One answer. What is not settled is delivered again, as a client would.
    fn take(&mut self, worker: u64, line: &str) -> bool {
        let Some(answer) = line.strip_prefix("answer ") else {
            assert!(!line.contains("panicked"), "a worker: {line}");
            return false;
        };
        let mut parts = answer.split(' ');
        let number: u64 = parts.next().unwrap().parse().unwrap();
        let code = parts.next().unwrap();
        let late_ms: u64 = parts.next().unwrap().parse().unwrap();
        let Some(worker) = self.workers.iter_mut().find(|known| known.id == worker) else {
            return false;
        };
        let intent = worker.under_way.remove(&number).unwrap();
        let worker = worker.id;
        *self.codes.entry(code.to_owned()).or_default() += 1;
        self.latest_ms = self.latest_ms.max(late_ms);
        let told = self.told.entry(intent).or_default();
        match code {
            "success" => {
                told.success += 1;
                told.done_by.insert(worker);
            }
            "outcome_unknown" => told.unknown += 1,
            "store_unavailable" | "timeout" | "cancelled" => {
                self.waiting.push_back(intent);
                return false;
            }
            other => panic!("an answer that nothing explains: {other}"),
        }
        true
    }

    fn kill_a_worker(&mut self) {
        let index = usize::try_from(self.random.next_u64()).unwrap_or(0) % self.workers.len();
        let mut worker = self.workers.swap_remove(index);
        worker.kill();
        self.waiting.extend(worker.under_way.values());
        self.start_worker();
    }

    fn break_something(&mut self, turn: usize) {
        match turn % 5 {
            0 | 3 => self.kill_a_worker(),
            1 => {
                self.server.pause().unwrap();
                std::thread::sleep(Duration::from_millis(500 + self.random.next_u64() % 1_000));
                self.server.resume().unwrap();
            }
            2 => {
                for kind in ["normal", "pubsub"] {
                    self.server
                        .command(&["CLIENT", "KILL", "TYPE", kind])
                        .unwrap();
                }
            }
            _ => {
                self.server.kill().unwrap();
                std::thread::sleep(Duration::from_millis(self.random.next_u64() % 500));
                self.server.run().unwrap();
            }
        }
    }

    fn run(&mut self) {
        for _ in 0..WORKERS {
            self.start_worker();
        }
        let (mut answers, mut faults) = (0, 0);
        loop {
            self.hand_out();
            if self.waiting.is_empty() && self.workers.iter().all(|one| one.under_way.is_empty()) {
                break;
            }
            let (worker, line) = self.said.1.recv_timeout(HANG).expect("it hangs");
            match line {
                Some(line) => answers += usize::from(self.take(worker, &line)),
                None => assert!(
                    self.workers.iter().all(|known| known.id != worker),
                    "a worker ended by itself"
                ),
            }
            if answers / ANSWERS_PER_FAULT > faults {
                self.break_something(faults);
                faults += 1;
            }
        }
        assert!(faults >= 5, "every kind of fault came by");
        println!("{answers} answers, {faults} faults, {:?}", self.codes);
    }

    /// Asks once more, now that nothing breaks, for what somebody who still lives has said to be
    /// done: what it finished while Redis was away it has written back. (What a killed one finished
    /// and could not write is unknown to all others, and rightly so.)
    fn forgotten(&mut self) -> Vec<u64> {
        let alive: HashSet<u64> = self.workers.iter().map(|worker| worker.id).collect();
        let sure = self
            .told
            .iter()
            .filter(|(_, told)| !told.done_by.is_disjoint(&alive));
        self.waiting = sure.map(|(intent, _)| *intent).collect();
        assert!(!self.waiting.is_empty(), "somebody finished something");
        self.told.clear();
        self.codes.clear();
        let calm = Instant::now();
        loop {
            assert!(
                calm.elapsed() < HANG,
                "{} still not settled after {HANG:?} of calm: {:?}",
                self.waiting.len(),
                self.codes
            );
            self.hand_out();
            if self.waiting.is_empty() && self.workers.iter().all(|one| one.under_way.is_empty()) {
                break;
            }
            let (worker, line) = self.said.1.recv_timeout(HANG).expect("it hangs");
            if let Some(line) = line {
                self.take(worker, &line);
            }
        }
        let doubted = self.told.iter().filter(|(_, told)| told.unknown > 0);
        doubted.map(|(intent, _)| *intent).collect()
    }
}

#[test]
fn every_effect_at_most_once_whatever_breaks() {
    let intents: u64 = std::env::var("HOLDFAST_CHAOS_INTENTS")
        .map_or(2_000, |text| text.parse().expect("a number of intents"));
    let seed: u64 =
        std::env::var("HOLDFAST_CHAOS_SEED").map_or(7, |text| text.parse().expect("a seed"));
    let dir = tempfile::tempdir().unwrap();
    for name in ["effects", "history"] {
        std::fs::create_dir(dir.path().join(name)).unwrap();
    }
    let random = SeededEntropy::new(seed);
    let mut deliveries: Vec<(u64, u64)> = (0..intents * DELIVERIES_PER_INTENT)
        .map(|number| (random.next_u64(), number % intents))
        .collect();
    deliveries.sort_unstable();
    let mut crowd = Crowd {
        dir: dir.path(),
        server: RedisServer::start(Persistence::Always, &[]).unwrap(),
        random,
        waiting: deliveries.into_iter().map(|(_, intent)| intent).collect(),
        workers: Vec::new(),
        next_number: 0,
        next_worker: 0,
        said: channel(),
        told: HashMap::new(),
        codes: HashMap::new(),
        latest_ms: 0,
    };
    let begun = Instant::now();
    crowd.run();
    println!("seed {seed}, {intents} intents in {:?}", begun.elapsed());

    assert!(
        crowd.latest_ms <= LATE_MS,
        "somebody waited {} ms beyond the deadline",
        crowd.latest_ms
    );
    let mut unknown = 0;
    for intent in 0..intents {
        let effects = std::fs::metadata(dir.path().join("effects").join(intent.to_string()))
            .map_or(0, |file| file.len());
        let told = &crowd.told[&intent];
        assert!(effects <= 1, "intent {intent} took effect {effects} times");
        assert!(
            told.success + told.unknown > 0,
            "intent {intent} was never settled"
        );
        assert!(
            told.success == 0 || effects == 1,
            "intent {intent} succeeded without an effect"
        );
        unknown += u64::from(told.success == 0);
    }
    println!("{unknown} intents of unknown outcome");
    let forgotten = crowd.forgotten();
    assert!(
        forgotten.is_empty(),
        "finished by somebody who lives, and not known to the others: {forgotten:?}"
    );
    let histories = checker::read(&dir.path().join("history"));
    let keys: HashSet<_> = histories.keys().collect();
    assert_eq!(keys.len() as u64, intents);
    let wrong = checker::wrong(&histories);
    for key in wrong.iter().take(3) {
        println!("{key}: {:#?}", histories[key]);
    }
    assert!(
        wrong.is_empty(),
        "{} keys are not linearizable",
        wrong.len()
    );
}
