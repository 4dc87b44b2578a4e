//! The verbs, and the programs that people name without quotation marks.

use std::sync::LazyLock;

use super::lead::strip_word;
use super::phrases::Phrases;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verb {
    Search,
    Find,
    Fetch,
    Get,
    Open,
    /// Reads only when somebody says of himself that he does.
    See,
    Read,
    Write,
    Create,
    Run,
    Browse,
    Screenshot,
    Use,
}

pub(super) const VERBS: &[(&str, Verb)] = &[
    ("search", Verb::Search),
    ("searching", Verb::Search),
    ("look up", Verb::Search),
    ("looking up", Verb::Search),
    ("query", Verb::Search),
    ("querying", Verb::Search),
    ("google", Verb::Search),
    ("googling", Verb::Search),
    ("web search", Verb::Search),
    ("research", Verb::Search),
    ("researching", Verb::Search),
    ("see what the internet says about", Verb::Search),
    ("see what the web says about", Verb::Search),
    ("see what google says about", Verb::Search),
    ("look online for", Verb::Search),
    ("look on the web for", Verb::Search),
    ("look for", Verb::Find),
    ("find", Verb::Find),
    ("finding", Verb::Find),
    ("looking for", Verb::Find),
    ("fetch", Verb::Fetch),
    ("fetching", Verb::Fetch),
    ("retrieve", Verb::Fetch),
    ("retrieving", Verb::Fetch),
    ("download", Verb::Fetch),
    ("downloading", Verb::Fetch),
    ("scrape", Verb::Fetch),
    ("visit", Verb::Fetch),
    ("visiting", Verb::Fetch),
    ("pull up", Verb::Get),
    ("get", Verb::Get),
    ("getting", Verb::Get),
    ("access", Verb::Get),
    ("grab", Verb::Get),
    ("load", Verb::Open),
    ("loading", Verb::Open),
    ("open", Verb::Open),
    ("opening", Verb::Open),
    ("check", Verb::Open),
    ("checking", Verb::Open),
    ("view", Verb::Open),
    ("viewing", Verb::Open),
    ("look at", Verb::Open),
    ("looking at", Verb::Open),
    ("show", Verb::Open),
    ("inspect", Verb::Open),
    ("inspecting", Verb::Open),
    ("examine", Verb::Open),
    ("examining", Verb::Open),
    ("review", Verb::Open),
    ("double-check", Verb::See),
    ("double check", Verb::See),
    ("verify", Verb::See),
    ("see", Verb::See),
    ("see what's in", Verb::See),
    ("see what is in", Verb::See),
    ("go through", Verb::See),
    ("go over", Verb::See),
    ("look into", Verb::See),
    ("look through", Verb::See),
    ("look inside", Verb::See),
    ("look in", Verb::See),
    ("peek at", Verb::See),
    ("check out", Verb::See),
    ("dig into", Verb::See),
    ("parse", Verb::See),
    ("analyze", Verb::See),
    ("study", Verb::See),
    ("read", Verb::Read),
    ("reading", Verb::Read),
    ("cat", Verb::Read),
    ("write", Verb::Write),
    ("writing", Verb::Write),
    ("save", Verb::Write),
    ("saving", Verb::Write),
    ("store", Verb::Write),
    ("output", Verb::Create),
    ("create", Verb::Create),
    ("creating", Verb::Create),
    ("run", Verb::Run),
    ("running", Verb::Run),
    ("execute", Verb::Run),
    ("executing", Verb::Run),
    ("exec", Verb::Run),
    ("browse", Verb::Browse),
    ("browsing", Verb::Browse),
    ("navigate", Verb::Browse),
    ("navigating", Verb::Browse),
    ("go to", Verb::Browse),
    ("take a screenshot", Verb::Screenshot),
    ("taking a screenshot", Verb::Screenshot),
    ("screenshot", Verb::Screenshot),
    ("use", Verb::Use),
    ("using", Verb::Use),
    ("call", Verb::Use),
    ("calling", Verb::Use),
    ("invoke", Verb::Use),
    ("invoking", Verb::Use),
];

/// Programs that people name without quotation marks.
pub(super) const PROGRAMS: &[&str] = &[
    "ls",
    "git",
    "cargo",
    "npm",
    "npx",
    "yarn",
    "pnpm",
    "python",
    "python3",
    "pip",
    "pip3",
    "node",
    "make",
    "docker",
    "kubectl",
    "curl",
    "wget",
    "grep",
    "find",
    "cat",
    "pytest",
    "go",
    "rustc",
    "echo",
    "cd",
    "mkdir",
    "rm",
    "cp",
    "mv",
    "sed",
    "awk",
    "bash",
    "sh",
    "uname",
    "whoami",
    "pwd",
    "date",
    "df",
    "du",
    "ps",
    "top",
    "java",
    "mvn",
    "gradle",
    "terraform",
    "ansible",
    "ruff",
    "mypy",
    "black",
    "tsc",
    "deno",
    "bun",
    "just",
];

/// Programs that are seen as such only by what they are given.
pub(super) const FURTHER_PROGRAMS: &[&str] = &[
    "tail",
    "head",
    "docker-compose",
    "systemctl",
    "service",
    "journalctl",
    "ss",
    "netstat",
    "lsof",
    "ip",
    "ping",
    "dig",
    "nslookup",
    "host",
    "ssh",
    "scp",
    "rsync",
    "tar",
    "zip",
    "unzip",
    "gzip",
    "chmod",
    "chown",
    "ln",
    "touch",
    "sort",
    "uniq",
    "wc",
    "diff",
    "cut",
    "tr",
    "xargs",
    "tree",
    "stat",
    "file",
    "free",
    "uptime",
    "env",
    "printenv",
    "which",
    "kill",
    "pkill",
    "htop",
    "sqlite3",
    "psql",
    "mysql",
    "redis-cli",
    "apt",
    "apt-get",
    "brew",
    "dnf",
    "yum",
    "pacman",
    "snap",
    "rustup",
    "rustfmt",
    "clang",
    "gcc",
    "g++",
    "cmake",
    "ctest",
    "jest",
    "vitest",
    "eslint",
    "prettier",
    "poetry",
    "uv",
    "tox",
    "flake8",
    "php",
    "composer",
    "ruby",
    "gem",
    "bundle",
    "rake",
    "perl",
    "Rscript",
    "dotnet",
    "swift",
    "helm",
    "aws",
    "gcloud",
    "az",
    "gh",
    "jq",
    "yq",
    "rg",
    "fd",
    "ffmpeg",
    "convert",
    "openssl",
    "nginx",
    "sudo",
    "test",
    "crontab",
    "id",
    "hostname",
    "nproc",
    "lscpu",
    "mount",
    "strace",
    "watch",
    "time",
    "nvidia-smi",
    "shellcheck",
    "hadolint",
    "./gradlew",
];

/// Verbs of which a search, or a look, can be the object.
const SEARCH_VERBS: &[&str] = &[
    "do",
    "doing",
    "perform",
    "performing",
    "conduct",
    "conducting",
    "run",
    "running",
    "make",
    "start",
    "start with",
    "begin with",
];
const LOOK_VERBS: &[&str] = &["take", "taking", "have", "having"];

/// The verbs, to be looked up.
static VERB_PHRASES: LazyLock<Phrases> =
    LazyLock::new(|| Phrases::new(VERBS.iter().map(|(word, _)| *word)));
static LOOK_PHRASES: LazyLock<Phrases> = LazyLock::new(|| Phrases::new(LOOK_VERBS.iter().copied()));
static SEARCH_PHRASES: LazyLock<Phrases> =
    LazyLock::new(|| Phrases::new(SEARCH_VERBS.iter().copied()));

/// The first words of all verbs.
pub(super) fn verbs() -> impl Iterator<Item = &'static str> {
    let verbs = VERBS.iter().map(|(word, _)| *word);
    verbs.chain(SEARCH_VERBS.iter().chain(LOOK_VERBS).copied())
}

/// The verb that a text begins with, and where its object starts.
pub(super) fn verb_of(lower: &str) -> Option<(Verb, usize)> {
    if let Some(tail) = a_search(lower) {
        return Some((Verb::Search, lower.len() - tail.len()));
    }
    if let Some(tail) = a_look(lower) {
        return Some((Verb::Open, lower.len() - tail.len()));
    }
    let (number, tail) = VERB_PHRASES.strip(lower)?;
    Some((VERBS[number].1, lower.len() - tail.len()))
}

/// "take a quick look at": what stands behind it.
fn a_look(lower: &str) -> Option<&str> {
    let (_, tail) = LOOK_PHRASES.strip(lower)?;
    let mut tail = ["a", "another"]
        .iter()
        .find_map(|article| strip_word(tail, article))?;
    for _ in 0..3 {
        let looked = ["look", "peek", "glance"]
            .iter()
            .find_map(|noun| strip_word(tail, noun));
        if let Some(rest) = looked {
            return ["at", "into", "through", "inside"]
                .iter()
                .find_map(|at| strip_word(rest, at));
        }
        tail = tail.split_once(' ')?.1.trim_start();
    }
    None
}

/// "do a quick web search": what stands behind it.
fn a_search(lower: &str) -> Option<&str> {
    let (_, tail) = SEARCH_PHRASES.strip(lower)?;
    let mut tail = ["a", "another", "one more", "some", "more"]
        .iter()
        .find_map(|article| strip_word(tail, article))?;
    // At most a few adjectives: "quick web".
    for _ in 0..4 {
        if let Some(rest) = strip_word(tail, "search") {
            return Some(rest);
        }
        if let Some(rest) = strip_word(tail, "research") {
            let about = ["on", "into"]
                .iter()
                .find_map(|word| strip_word(rest, word));
            return Some(about.unwrap_or(rest));
        }
        tail = tail.split_once(' ')?.1.trim_start();
    }
    None
}

/// Whether a text begins with a verb.
pub(super) fn starts_with_verb(lower: &str) -> bool {
    verb_of(lower).is_some()
}
