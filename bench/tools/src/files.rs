//! A range of a 100 MB file, and an edit of a 10 MB file.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use holdfast_contract::{CallContext, SessionContext, Tool, ToolContext};
use holdfast_toolbox::tools::{EditTool, ReadTool};
use serde_json::{Value, json};

use crate::{Failed, Meter, Subject};

const READ_BYTES: usize = 100 * 1024 * 1024;
const EDIT_BYTES: usize = 10 * 1024 * 1024;
const LINES: u64 = 100;

/// Reads some lines of a file in its own way.
type Peer = fn(&Path, u64) -> Result<String, Failed>;

/// A file of lines of about 100 bytes; says how many.
fn lines(path: &Path, bytes: usize) -> Result<u64, Failed> {
    let mut text = Vec::with_capacity(bytes + 128);
    let mut number = 0;
    while text.len() < bytes {
        number += 1;
        writeln!(
            text,
            "line {number:>9}: {}",
            "an ordinary line of a log. ".repeat(3)
        )?;
    }
    fs::write(path, text)?;
    Ok(number)
}

/// What most tools do: everything into memory, then the lines.
fn plain_range(path: &Path, first: u64) -> Result<String, Failed> {
    let text = fs::read_to_string(path)?;
    let wanted = text
        .lines()
        .skip(usize::try_from(first)? - 1)
        .take(usize::try_from(LINES)?);
    Ok(wanted.collect::<Vec<_>>().join("\n"))
}

/// Line by line, which takes no memory.
fn buffered_range(path: &Path, first: u64) -> Result<String, Failed> {
    let lines = BufReader::new(File::open(path)?).lines();
    let mut found = String::new();
    for line in lines
        .skip(usize::try_from(first)? - 1)
        .take(usize::try_from(LINES)?)
    {
        found.push_str(&line?);
        found.push('\n');
    }
    Ok(found)
}

fn sed_range(path: &Path, first: u64) -> Result<String, Failed> {
    let last = first + LINES - 1;
    let program = format!("{first},{last}p;{last}q");
    let output = Command::new("sed")
        .args(["-n", &program])
        .arg(path)
        .output()?;
    Ok(String::from_utf8(output.stdout)?)
}

/// Whether the new name is on disk when an edit is done.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Name {
    /// A power cut may bring the old content back.
    Left,
    /// It does not.
    Synced,
}

/// The floor of an edit: the same bytes read, searched, written beside and synced.
fn plain_edit(path: &Path, old: &str, new: &str, name: Name) -> Result<(), Failed> {
    let text = fs::read_to_string(path)?;
    let changed = text.replacen(old, new, 1);
    let beside = path.with_extension("new");
    let mut file = File::create(&beside)?;
    file.write_all(changed.as_bytes())?;
    file.sync_all()?;
    fs::rename(&beside, path)?;
    if let (Name::Synced, Some(dir)) = (name, path.parent()) {
        File::open(dir)?.sync_all()?;
    }
    Ok(())
}

async fn run(tool: &dyn Tool, params: &Value, context: &ToolContext) -> Result<Value, Failed> {
    Ok(tool
        .execute(params, context)
        .await
        .map_err(|error| error.to_string())?
        .output)
}

pub async fn measure(rounds: usize) -> Result<Vec<Subject>, Failed> {
    let dir = tempfile::tempdir()?;
    let session = SessionContext::main("s", "agent", dir.path().to_owned());
    let context = ToolContext {
        session: Arc::new(session),
        call: CallContext::default(),
    };
    let mut subjects = read(rounds, dir.path(), &context).await?;
    subjects.extend(edit(rounds, dir.path(), &context).await?);
    Ok(subjects)
}

async fn read(rounds: usize, dir: &Path, context: &ToolContext) -> Result<Vec<Subject>, Failed> {
    let path = dir.join("large.log");
    let total = lines(&path, READ_BYTES)?;
    let section = "read";
    let mut meters = [
        Meter::new(section, "holdfast, 100 lines at the beginning of 100 MB"),
        Meter::new(section, "holdfast, 100 lines in the middle"),
        Meter::new(section, "holdfast, 100 lines at the end (tail)"),
        Meter::new(section, "read_to_string and lines(), in the middle"),
        Meter::new(section, "BufReader and lines(), in the middle"),
        Meter::new(section, "sed -n, in the middle (a process)"),
    ];
    let middle = total / 2;
    let ours = [
        json!({"path": "large.log", "limit": LINES}),
        json!({"path": "large.log", "offset": middle, "limit": LINES}),
        json!({"path": "large.log", "tail": LINES}),
    ];
    for _ in 0..rounds {
        for (meter, params) in meters.iter_mut().zip(&ours) {
            let from = Instant::now();
            let output = run(&ReadTool, params, context).await?;
            meter.note(from, 1);
            if output["lines"] != json!(LINES) {
                return Err(format!("not what was asked for: {params}").into());
            }
        }
        let peers: [Peer; 3] = [plain_range, buffered_range, sed_range];
        for (meter, peer) in meters.iter_mut().skip(ours.len()).zip(peers) {
            let from = Instant::now();
            let found = peer(&path, middle)?;
            meter.note(from, 1);
            if !found.starts_with(&format!("line {middle:>9}")) {
                return Err("a peer read something else".into());
            }
        }
    }
    Ok(meters.map(Meter::done).into())
}

async fn edit(rounds: usize, dir: &Path, context: &ToolContext) -> Result<Vec<Subject>, Failed> {
    let files = ["ours.txt", "left.txt", "synced.txt"].map(|name| dir.join(name));
    let total = lines(&files[0], EDIT_BYTES)?;
    for copy in &files[1..] {
        fs::copy(&files[0], copy)?;
    }
    let section = "edit";
    let mut meters = [
        Meter::new(section, "holdfast, one line in the middle of 10 MB"),
        Meter::new(section, "read, replacen, write beside, sync, rename"),
        Meter::new(section, "the same, and the directory synced"),
    ];
    let (a, b) = (
        format!("line {:>9}:", total / 2),
        format!("LINE {:>9}:", total / 2),
    );
    for round in 0..rounds {
        let (old, new) = if round % 2 == 0 { (&a, &b) } else { (&b, &a) };
        let params = json!({"path": "ours.txt", "old_string": old, "new_string": new});
        let from = Instant::now();
        run(&EditTool, &params, context).await?;
        meters[0].note(from, 1);
        for (place, name) in [(1, Name::Left), (2, Name::Synced)] {
            let from = Instant::now();
            plain_edit(&files[place], old, new, name)?;
            meters[place].note(from, 1);
        }
    }
    let edited = fs::read(&files[0])?;
    if fs::read(&files[1])? != edited || fs::read(&files[2])? != edited {
        return Err("the files differ".into());
    }
    Ok(meters.map(Meter::done).into())
}
