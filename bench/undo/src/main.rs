//! What it costs to keep a workspace before a call and to bring it back, beside `cp -a` and git.
//!
//!   bench-undo [--quick] --machine JSON --out FILE
//!
//! Every figure is the median of some rounds; the contenders take turns within a round.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use holdfast_contract::SystemClock;
use holdfast_undo::{Options, UndoSettings, UndoStore, Where};
use serde_json::{Value, json};

/// Files in one directory.
const DIRECTORY: usize = 14;

/// Time after which every time stamp is old enough to be trusted.
const SETTLED: Duration = Duration::from_millis(50);

/// One kind of workspace.
struct Size {
    name: &'static str,
    files: usize,
    bytes: usize,
}

const SIZES: [Size; 2] = [
    Size {
        name: "1,400 files, 14 MB",
        files: 1_400,
        bytes: 14_000_000,
    },
    Size {
        name: "31,000 files, 124 MB",
        files: 31_000,
        bytes: 124_000_000,
    },
];

fn main() -> io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let (mut quick, mut machine, mut out) = (false, json!({}), None);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--quick" => quick = true,
            "--machine" => machine = serde_json::from_str(&arguments.next().unwrap_or_default())?,
            "--out" => out = arguments.next(),
            other => return Err(io::Error::other(format!("what is {other}?"))),
        }
    }
    let rounds = if quick { 3 } else { 11 };
    let mut all = Vec::new();
    for size in &SIZES {
        let mut figures = Figures::default();
        for _ in 0..rounds {
            round(size, &mut figures)?;
        }
        all.push(figures.print(size.name));
    }
    if let Some(out) = out {
        let result = json!({"machine": machine, "rounds": rounds, "sizes": all});
        fs::write(out, serde_json::to_vec_pretty(&result)?)?;
    }
    Ok(())
}

/// Milliseconds by what was measured, in the order in which it was first measured.
#[derive(Default)]
struct Figures(Vec<(&'static str, Vec<f64>)>);

impl Figures {
    fn time<T>(
        &mut self,
        what: &'static str,
        run: impl FnOnce() -> io::Result<T>,
    ) -> io::Result<T> {
        let begun = Instant::now();
        let result = run()?;
        let ms = begun.elapsed().as_secs_f64() * 1000.0;
        match self.0.iter_mut().find(|(name, _)| *name == what) {
            Some((_, taken)) => taken.push(ms),
            None => self.0.push((what, vec![ms])),
        }
        Ok(result)
    }

    fn print(&mut self, size: &str) -> Value {
        println!("\n{size}\n\n| what | median ms | best ms | worst ms |\n|---|---:|---:|---:|");
        let mut rows = Vec::new();
        for (what, taken) in &mut self.0 {
            taken.sort_by(f64::total_cmp);
            let (median, best, worst) = (taken[taken.len() / 2], taken[0], taken[taken.len() - 1]);
            println!("| {what} | {median:.1} | {best:.1} | {worst:.1} |");
            rows.push(json!({"what": what, "ms": taken}));
        }
        json!({"size": size, "figures": rows})
    }
}

/// Everything once, on a tree and a store of its own.
fn round(size: &Size, figures: &mut Figures) -> io::Result<()> {
    let scratch = tempfile::tempdir()?;
    let work = scratch.path().join("work");
    fill(&work, size)?;
    std::thread::sleep(SETTLED);
    holdfast(scratch.path(), &work, figures)?;
    cp(scratch.path(), &work, figures)?;
    git(scratch.path(), &work, figures)
}

/// Text that does not repeat from file to file.
fn fill(work: &Path, size: &Size) -> io::Result<()> {
    let mut state = 1_u64;
    for number in 0..size.files {
        let mut text = Vec::with_capacity(size.bytes / size.files + 8);
        while text.len() < size.bytes / size.files {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            text.extend_from_slice(format!("{:x}\n", state >> 8).as_bytes());
        }
        let path = file(work, number);
        if number % DIRECTORY == 0 {
            fs::create_dir_all(path.parent().unwrap_or(work))?;
        }
        fs::write(path, text)?;
    }
    Ok(())
}

fn file(work: &Path, number: usize) -> PathBuf {
    let directory = number / DIRECTORY;
    work.join(format!(
        "{}/{}/{number}.txt",
        directory / 20,
        directory % 20
    ))
}

fn holdfast(scratch: &Path, work: &Path, figures: &mut Figures) -> io::Result<()> {
    let state = scratch.join("state");
    let store = UndoStore::open(&state, UndoSettings::default(), Arc::new(SystemClock))
        .map_err(io::Error::other)?;
    let before = |call: &str| {
        let open = store
            .before(work, call, &Where::Anywhere)
            .map_err(io::Error::other)?;
        match open.not_kept() {
            Some(why) => Err(io::Error::other(why.to_string())),
            None => Ok(open),
        }
    };
    let after = |open| store.after(open).map_err(io::Error::other);
    let open = figures.time("holdfast: before, first", || before("first"))?;
    after(open)?;
    std::thread::sleep(SETTLED);
    let open = figures.time("holdfast: before, nothing changed", || before("second"))?;
    figures.time("holdfast: after, nothing changed", || after(open))?;
    let open = before("third")?;
    fs::write(file(work, 7), "changed")?;
    figures.time("holdfast: after, one file changed", || after(open))?;
    let writes = Where::Paths(vec![file(work, 8)]);
    let open = figures.time("holdfast: before and after, one file named", || {
        let open = store
            .before(work, "fourth", &writes)
            .map_err(io::Error::other)?;
        after(open)
    })?;
    drop(open);
    let open = before("last")?;
    fs::remove_dir_all(work.join("0"))?;
    let point = after(open)?.ok_or_else(|| io::Error::other("nothing was kept"))?;
    let undone = figures.time("holdfast: undo of 280 removed files", || {
        store
            .undo(&point.id, &Options::default())
            .map_err(io::Error::other)
    })?;
    assert!(undone.conflicts.is_empty() && undone.failed.is_empty());
    Ok(())
}

fn cp(scratch: &Path, work: &Path, figures: &mut Figures) -> io::Result<()> {
    let copy = scratch.join("copy");
    let mut command = Command::new("cp");
    command.arg("-a").arg(work).arg(&copy);
    figures.time("cp -a", || run(&mut command))
}

/// A repository of its own beside the workspace, as a tool would have it that keeps states with git.
fn git(scratch: &Path, work: &Path, figures: &mut Figures) -> io::Result<()> {
    let git = |arguments: &[&str]| {
        let mut command = Command::new("git");
        command
            .args([
                "-c",
                "user.name=a",
                "-c",
                "user.email=a@b",
                "-c",
                "gc.auto=0",
            ])
            .args(arguments)
            .env("GIT_DIR", scratch.join("git"))
            .env("GIT_WORK_TREE", work)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .current_dir(work);
        run(&mut command)
    };
    git(&["init", "-q"])?;
    figures.time("git add -A, first", || git(&["add", "-A"]))?;
    git(&["commit", "-qm", "first"])?;
    std::thread::sleep(SETTLED);
    figures.time("git add -A, nothing changed", || git(&["add", "-A"]))?;
    fs::write(file(work, 9), "changed")?;
    figures.time("git stash create, one file changed", || {
        git(&["stash", "create"])
    })
}

fn run(command: &mut Command) -> io::Result<()> {
    let status = command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()?;
    if status.success() {
        Ok(())
    } else {
        Err(io::Error::other(format!("{command:?} ended with {status}")))
    }
}
