//! Makes sessions to scan, and reads them with the library on one core.
//!
//!   bench-scan generate DIR BYTES FILES   clean sessions of five formats, the same every time
//!   bench-scan index FILE…                reads and checks them, and says how fast

use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::Instant;

mod sessions;

fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["generate", dir, bytes, files] => generate(
            Path::new(dir),
            bytes.parse().map_err(io::Error::other)?,
            files.parse().map_err(io::Error::other)?,
        ),
        ["index", files @ ..] => index(files),
        _ => Err(io::Error::other("usage: generate DIR BYTES FILES | index FILE…")),
    }
}

/// Sessions of one size, in turn in each format.
fn generate(dir: &Path, bytes: u64, files: u64) -> io::Result<()> {
    fs::create_dir_all(dir)?;
    for number in 0..files {
        let path = dir.join(format!("session-{number:05}.jsonl"));
        let mut out = BufWriter::with_capacity(1 << 20, fs::File::create(path)?);
        sessions::write(&mut out, number, bytes / files)?;
        out.flush()?;
    }
    Ok(())
}

fn index(files: &[&str]) -> io::Result<()> {
    let begun = Instant::now();
    let (mut bytes, mut entries, mut faults) = (0, 0, 0);
    for file in files {
        let file = fs::File::open(file)?;
        bytes += file.metadata()?.len();
        let (shape, index) = holdfast_transcript::read::index(file).map_err(io::Error::other)?;
        entries += index.len();
        faults += index.invalid().len();
        let _ = shape;
    }
    let seconds = begun.elapsed().as_secs_f64();
    println!(
        "{bytes} bytes, {entries} entries, {faults} faults, {seconds:.3} s, {:.2} GB/s",
        bytes as f64 / 1e9 / seconds
    );
    Ok(())
}
