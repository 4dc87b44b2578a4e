//! `json_repair`, driven over a pipe so that its rounds lie between ours.

use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde::{Deserialize, Serialize};

/// Which versions answered.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Versions {
    pub python: String,
    pub json_repair: String,
}

/// One round over one group of documents.
#[derive(Debug, Clone, Copy, Deserialize)]
pub struct Round {
    pub seconds: f64,
    pub exact: usize,
}

pub struct Python {
    child: Child,
    commands: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    pub versions: Versions,
}

impl Python {
    /// Starts the interpreter with the groups of documents in a file.
    pub fn start(interpreter: &Path, documents: &Path) -> io::Result<Self> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("intent-speed/python/bench.py");
        let mut child = Command::new(interpreter)
            .args([script.as_path(), documents])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let missing = || io::Error::other("no pipe");
        let commands = child.stdin.take().ok_or_else(missing)?;
        let mut answers = BufReader::new(child.stdout.take().ok_or_else(missing)?);
        let mut line = String::new();
        answers.read_line(&mut line)?;
        Ok(Self {
            child,
            commands: Some(commands),
            answers,
            versions: serde_json::from_str(&line)?,
        })
    }

    pub fn round(&mut self, group: usize) -> io::Result<Round> {
        let commands = self
            .commands
            .as_mut()
            .ok_or_else(|| io::Error::other("closed"))?;
        writeln!(commands, "{group}")?;
        commands.flush()?;
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        Ok(serde_json::from_str(&line)?)
    }
}

impl Drop for Python {
    fn drop(&mut self) {
        // It ends when its input ends.
        drop(self.commands.take());
        let _ = self.child.wait();
    }
}
