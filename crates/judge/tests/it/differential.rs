//! The reader against the real bash: whatever bash starts is among the commands that were read, or
//! the text counts as unreadable.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use holdfast_judge::{CouldBe, Reading, blocked, read};
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};
use tempfile::TempDir;

use crate::texts::fragment;

/// Programs that write their arguments to a log and do nothing else.
const STUBS: &[&str] = &["git", "npm", "make", "rm", "shutdown", "cargo"];
/// Programs that run their arguments, as the real ones do.
const CARRIERS: &[&str] = &["env", "nice", "nohup", "timeout", "xargs", "find"];
/// How long one text may run.
const RUN_MS_MAX: u64 = 2_000;
/// How long what a text left in the background may still write to the log.
const SETTLE_MS: u64 = 5;
/// Texts of one ordinary run. `HOLDFAST_JUDGE_FUZZ_CASES` sets another number.
const CASES: u32 = 250;

struct Scratch {
    dir: TempDir,
}

impl Scratch {
    /// A directory of stubs, a log, and an empty directory to work in.
    fn new() -> Option<Self> {
        let dir = tempfile::tempdir().expect("a directory");
        let bin = dir.path().join("bin");
        fs::create_dir(&bin).expect("a directory");
        fs::create_dir(dir.path().join("cwd")).expect("a directory");
        let log = dir.path().join("log");
        for name in STUBS {
            // One write a call, so that two calls at once do not mix.
            let text = format!(
                "#!/bin/sh\nline={name}\nfor it; do line=\"$line\u{1f}$it\"; done\n\
                 printf '%s\\036' \"$line\" >> '{}'\n",
                log.display()
            );
            let path = bin.join(name);
            fs::write(&path, text).expect("a stub");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("a mode");
        }
        for name in CARRIERS {
            let real = Path::new("/usr/bin").join(name);
            if real.exists() {
                std::os::unix::fs::symlink(real, bin.join(name)).expect("a link");
            }
        }
        for shell in ["sh", "bash"] {
            std::os::unix::fs::symlink("/bin/bash", bin.join(shell)).expect("a link");
        }
        Path::new("/bin/bash").exists().then_some(Self { dir })
    }

    /// What bash starts from the text: each a program with its arguments.
    fn run(&self, text: &str) -> Vec<Vec<String>> {
        let log = self.dir.path().join("log");
        fs::write(&log, "").expect("a log");
        let mut command = Command::new("/bin/bash");
        command
            .args(["--norc", "--noprofile", "-c", text])
            .env_clear()
            .env("PATH", self.dir.path().join("bin"))
            // `cd` and `~` stay in the scratch directory, and no function calls itself without end.
            .env("HOME", self.dir.path().join("cwd"))
            .env("FUNCNEST", "3")
            .current_dir(self.dir.path().join("cwd"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0);
        let mut child = command.spawn().expect("bash starts");
        let end = Instant::now() + Duration::from_millis(RUN_MS_MAX);
        while child.try_wait().expect("bash can be waited for").is_none() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(1));
        }
        // The group is the one that was made for this text, with what it left in the background.
        std::thread::sleep(Duration::from_millis(SETTLE_MS));
        let group = format!("-{}", child.id());
        let mut kill = Command::new("kill");
        kill.args(["-9", "--", &group]).stderr(Stdio::null());
        let _ = kill.status();
        let _ = child.wait();
        let mut logged = Vec::new();
        let mut file = fs::File::open(&log).expect("a log");
        file.read_to_end(&mut logged).expect("the log can be read");
        let logged = String::from_utf8_lossy(&logged).into_owned();
        // What a text writes by a redirection stays in the scratch directory.
        let _ = fs::remove_dir_all(self.dir.path().join("cwd"));
        fs::create_dir(self.dir.path().join("cwd")).expect("a directory");
        let calls = logged.split('\u{1e}').filter(|it| !it.is_empty());
        calls
            .map(|call| call.split('\u{1f}').map(str::to_owned).collect())
            .collect()
    }
}

/// Whether the reader knew that this could be started.
fn foresaw(reading: &Reading, call: &[String]) -> bool {
    let (Some(program), arguments) = (call.first(), call.get(1..).unwrap_or_default()) else {
        return true;
    };
    let anything = |it: &CouldBe| *it == CouldBe::Anything;
    if reading.unreadable.iter().any(|it| anything(&it.could_be)) {
        return true;
    }
    // Every word that was started is a word that was read, or one was unknown.
    let known = reading
        .commands
        .iter()
        .filter(|it| it.program() == Some(program) || it.loose);
    known.into_iter().any(|simple| {
        if simple.loose {
            return simple
                .words
                .iter()
                .any(|it| it.literal().as_deref() == Some(program));
        }
        let words = simple.words.get(1..).unwrap_or_default();
        // A `~` is kept as it is written, and bash replaces it.
        let literal = |it: &holdfast_judge::Word| {
            let literal = it.literal().map(std::borrow::Cow::into_owned);
            literal.filter(|it| !it.starts_with('~'))
        };
        let literals: Vec<_> = words.iter().map(literal).collect();
        if literals.iter().all(Option::is_some) {
            let read: Vec<_> = literals.into_iter().flatten().collect();
            return read == arguments;
        }
        // Known words have to be there, in order.
        let mut left = arguments.iter();
        literals
            .into_iter()
            .flatten()
            .all(|word| left.any(|it| *it == word))
    })
}

fn shown(reading: &Reading) -> String {
    let commands = reading.commands.iter().map(|it| {
        let loose = if it.loose { "loose " } else { "" };
        format!("{loose}{}", it.shown())
    });
    let unread = reading.unreadable.iter();
    let unread = unread.map(|it| format!("unread {:?} {:?}", it.could_be, it.text));
    commands.chain(unread).collect::<Vec<_>>().join("\n  ")
}

fn check(scratch: &Scratch, text: &str) -> Result<usize, String> {
    let reading = read(text);
    let calls = scratch.run(text);
    for call in &calls {
        if !foresaw(&reading, call) {
            return Err(format!(
                "bash started {call:?} from {text:?}\nread: {}",
                shown(&reading)
            ));
        }
        // A rule that names what was started refuses the text.
        if call.first().is_some_and(|it| it == "git") {
            let rule = match call.get(1) {
                Some(verb) if verb == "push" => "git push",
                _ => "git",
            };
            if blocked(rule, &reading).is_none() {
                return Err(format!("{rule:?} let {text:?} start {call:?}"));
            }
        }
    }
    Ok(calls.len())
}

#[test]
fn tricky_texts_start_only_what_was_read() {
    let Some(scratch) = Scratch::new() else {
        return;
    };
    let corpus = include_str!("../tricky.txt");
    let mut wrong = Vec::new();
    let mut started = 0;
    let mut texts = 0;
    for text in corpus.split("\n---\n") {
        let text = text.replace("␍", "\r");
        texts += 1;
        match check(&scratch, &text) {
            Ok(count) => started += usize::from(count > 0),
            Err(why) => wrong.push(why),
        }
    }
    println!(
        "{texts} texts, {started} started something, {} wrong",
        wrong.len()
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    assert!(
        started * 2 > texts,
        "only {started} of {texts} texts start anything"
    );
}

/// Texts that could reach outside of the scratch directory are not run.
fn is_harmless(text: &str) -> bool {
    !text.contains('/') && !text.contains("..") && !text.contains("kill") && text.len() < 2_000
}

#[test]
fn generated_texts_start_only_what_was_read() {
    let Some(scratch) = Scratch::new() else {
        return;
    };
    let cases = std::env::var("HOLDFAST_JUDGE_FUZZ_CASES");
    let asked: Option<u32> = cases.ok().and_then(|it| it.parse().ok());
    let cases = asked.unwrap_or(CASES);
    let config = Config {
        cases,
        failure_persistence: None,
        max_shrink_iters: 2_000,
        ..Config::default()
    };
    // An ordinary run takes the same texts each time; a search takes new ones.
    let mut runner = match asked {
        Some(_) => TestRunner::new(config),
        None => TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha)),
    };
    let counted = std::cell::Cell::new((0_u64, 0_u64, 0_u64, 0_u64));
    let seen = std::cell::RefCell::new(BTreeSet::new());
    let result = runner.run(&fragment(), |text| {
        if !is_harmless(&text) {
            return Ok(());
        }
        let (ran, started, named, unread) = counted.get();
        let count = check(&scratch, &text).map_err(TestCaseError::fail)?;
        let reading = read(&text);
        let anything = |it: &CouldBe| *it == CouldBe::Anything;
        let known = !reading.unreadable.iter().any(|it| anything(&it.could_be));
        let unreadable = !reading.unreadable.is_empty();
        counted.set((
            ran + 1,
            started + u64::from(count > 0),
            named + u64::from(count > 0 && known),
            unread + u64::from(unreadable),
        ));
        seen.borrow_mut().insert(text);
        Ok(())
    });
    let (ran, started, named, unread) = counted.get();
    println!(
        "{ran} texts ({} different), {started} started something ({named} of them all by \
         name), {unread} unreadable in part",
        seen.borrow().len()
    );
    if let Err(why) = result {
        panic!("{why}");
    }
}
