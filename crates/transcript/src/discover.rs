//! Which files are sessions: where each agent keeps them, and how directories are searched.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Directories below a given one, at most.
const DEPTH_MAX: usize = 32;

/// Where this user's agents keep their things. Environment variables are read by the caller.
#[derive(Debug, Clone, Default)]
pub struct Homes {
    /// The user's home.
    pub home: Option<PathBuf>,
    /// `OPENCLAW_STATE_DIR`.
    pub openclaw_state: Option<PathBuf>,
    /// `OPENCLAW_HOME`, a home of its own.
    pub openclaw_home: Option<PathBuf>,
    /// `CLAUDE_CONFIG_DIR`.
    pub claude: Option<PathBuf>,
    /// `CODEX_HOME`.
    pub codex: Option<PathBuf>,
}

impl Homes {
    /// `OpenClaw`'s directory.
    pub fn openclaw(&self) -> Option<PathBuf> {
        self.openclaw_state.clone().or_else(|| {
            let home = self.openclaw_home.as_ref().or(self.home.as_ref())?;
            Some(home.join(".openclaw"))
        })
    }

    /// The session folders of every known agent that are there.
    pub fn session_folders(&self) -> Vec<PathBuf> {
        let mut folders = Vec::new();
        folders.extend(self.openclaw().map(|dir| dir.join("agents")));
        let below_home = |path: &str| self.home.as_ref().map(|home| home.join(path));
        folders.extend(below_home(".pi/agent/sessions"));
        let claude = self.claude.clone().or_else(|| below_home(".claude"));
        folders.extend(claude.map(|dir| dir.join("projects")));
        if let Some(codex) = self.codex.clone().or_else(|| below_home(".codex")) {
            folders.push(codex.join("sessions"));
            folders.push(codex.join("archived_sessions"));
        }
        folders.extend(below_home(".local/share/goose/sessions"));
        folders.retain(|folder| folder.is_dir());
        folders
    }
}

/// A file that may hold sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// Where it is.
    pub path: PathBuf,
    /// What speaks for it.
    pub claim: Claim,
}

/// What speaks for a file being a transcript, before anybody looks into it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claim {
    /// Somebody named it, so that it has to be one.
    Named,
    /// It is in a directory and named as sessions are (`.jsonl`): what can not be read of it is said.
    Session,
    /// It is in a directory and could be one.
    Maybe,
}

/// The files at and below a path, in order. What can not be listed is told to `failed`; loops of
/// symbolic links are walked once.
pub fn candidates(path: &Path, failed: &mut impl FnMut(&Path, &io::Error)) -> Vec<Candidate> {
    let mut found = Vec::new();
    match fs::metadata(path) {
        Ok(meta) if meta.is_dir() => {
            let mut visited = HashSet::new();
            walk(path, 0, &mut visited, &mut found, failed);
            forget_links(&mut found);
            found.sort_by(|a, b| a.path.cmp(&b.path));
        }
        Ok(_) => found.push(Candidate {
            path: path.to_owned(),
            claim: Claim::Named,
        }),
        Err(error) => failed(path, &error),
    }
    found
}

/// A link to a file that is there as well is the same session: it would be mended twice.
fn forget_links(found: &mut Vec<Candidate>) {
    let is_link = |path: &Path| fs::symlink_metadata(path).is_ok_and(|meta| meta.is_symlink());
    if !found.iter().any(|candidate| is_link(&candidate.path)) {
        return;
    }
    let mut seen = HashSet::new();
    let (links, files): (Vec<_>, Vec<_>) = found.drain(..).partition(|it| is_link(&it.path));
    for candidate in files.into_iter().chain(links) {
        // What can not be followed any more is reported by whoever reads it.
        if fs::canonicalize(&candidate.path).map_or(true, |place| seen.insert(place)) {
            found.push(candidate);
        }
    }
}

fn walk(
    dir: &Path,
    depth: usize,
    visited: &mut HashSet<(u64, u64)>,
    found: &mut Vec<Candidate>,
    failed: &mut impl FnMut(&Path, &io::Error),
) {
    let listed = fs::metadata(dir).and_then(|meta| {
        // Through links a directory can be reached twice, or contain itself.
        let is_new = visited.insert((meta.dev(), meta.ino()));
        if is_new && depth <= DEPTH_MAX {
            fs::read_dir(dir).map(Some)
        } else {
            Ok(None)
        }
    });
    let entries = match listed {
        Ok(Some(entries)) => entries,
        Ok(None) => return,
        Err(error) => return failed(dir, &error),
    };
    for entry in entries {
        let path = match entry {
            Ok(entry) => entry.path(),
            Err(error) => return failed(dir, &error),
        };
        match fs::metadata(&path) {
            Ok(meta) if meta.is_dir() => walk(&path, depth + 1, visited, found, failed),
            Ok(meta) if meta.is_file() => {
                found.extend(claim(&path).map(|claim| Candidate { path, claim }));
            }
            Err(error) if claim(&path).is_some() => failed(&path, &error),
            // Other files, and dangling links that nobody would take for a session.
            Ok(_) | Err(_) => {}
        }
    }
}

/// Whether a file in a directory is worth a look. What it is, its content decides.
fn claim(path: &Path) -> Option<Claim> {
    let name = path.file_name()?.to_str()?;
    if crate::write::is_ours(name) {
        return None;
    }
    match path.extension()?.to_str()? {
        "jsonl" => Some(Claim::Session),
        "json" | "sqlite" | "db" => Some(Claim::Maybe),
        _ => None,
    }
}
