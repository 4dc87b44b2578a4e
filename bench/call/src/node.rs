//! The Node stack, driven over a pipe so that its rounds lie between the others.

use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use serde::Deserialize;
use serde_json::json;

use crate::load::BATCH;
use crate::sample::{Meter, Round};
use crate::stack::Log;

pub struct Node {
    child: Child,
    commands: ChildStdin,
    answers: BufReader<ChildStdout>,
}

#[derive(Deserialize)]
struct Answer {
    batches_ns: Vec<u64>,
    each_ns: Vec<u64>,
}

impl Node {
    pub fn start(script: &Path, template: &Path, sink: &Path) -> io::Result<Self> {
        let mut child = Command::new("node")
            .args([script, template, sink])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let missing = || io::Error::other("no pipe");
        Ok(Self {
            commands: child.stdin.take().ok_or_else(missing)?,
            answers: BufReader::new(child.stdout.take().ok_or_else(missing)?),
            child,
        })
    }

    fn ask(&mut self, calls: usize, log: Log, per_call: bool) -> io::Result<Answer> {
        let command = json!({
            "calls": calls, "batch": BATCH, "log": log == Log::On, "per_call": per_call,
        });
        writeln!(self.commands, "{command}")?;
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        serde_json::from_str(&line).map_err(io::Error::other)
    }

    pub fn round(&mut self, calls: usize, log: Log) -> io::Result<Round> {
        let calls = calls.div_ceil(BATCH) * BATCH;
        let mut meter = Meter::default();
        let together = self.ask(calls, log, false)?;
        for batch_ns in together.batches_ns {
            meter.add_batch(Duration::from_nanos(batch_ns), BATCH);
        }
        meter.add_each_ns(self.ask(calls, log, true)?.each_ns);
        Ok(meter.round())
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // It ends by itself when its input does; asking twice does no harm.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
