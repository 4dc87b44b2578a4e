//! What operators are told is true: messages are those of the source, and the unit is one.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use holdfast_server::limits::{SHUTDOWN_LAST_WORDS_MS_MAX, SHUTDOWN_MS_MAX};

fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize().expect("the repository")
}

fn sources(dir: &Path, all: &mut String) {
    for entry in fs::read_dir(dir).expect("reads").flatten() {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, all);
        } else if path.extension().is_some_and(|kind| kind == "rs") {
            all.push_str(&fs::read_to_string(&path).expect("reads"));
        }
    }
}

/// The source, as a reader of messages sees it: lines that go on are one.
fn source() -> String {
    let mut all = String::new();
    for entry in fs::read_dir(root().join("crates"))
        .expect("reads")
        .flatten()
    {
        sources(&entry.path().join("src"), &mut all);
    }
    let mut joined = String::with_capacity(all.len());
    for line in all.lines() {
        if let Some(goes_on) = line.strip_suffix('\\') {
            joined.push_str(goes_on.trim_start());
        } else {
            joined.push_str(line.trim_start());
            joined.push('\n');
        }
    }
    joined
}

/// The messages that the page quotes: what is in code in the first column of its tables.
fn quoted(page: &str) -> Vec<String> {
    let rows = page.lines().filter(|line| line.starts_with("| `"));
    let first = rows.filter_map(|line| line.split('|').nth(1));
    let codes = first.flat_map(|cell| cell.split('`').skip(1).step_by(2));
    codes.map(str::to_owned).collect()
}

#[test]
fn the_messages_of_the_troubleshooting_page_are_those_of_the_source() {
    let page = fs::read_to_string(root().join("docs/troubleshooting.md")).expect("the page");
    let (quoted, source) = (quoted(&page), source());
    assert!(quoted.len() >= 20, "{quoted:?}");
    for message in quoted {
        for part in message.split('…').map(str::trim).filter(|it| it.len() > 2) {
            assert!(source.contains(part), "nobody says {part:?} ({message:?})");
        }
    }
}

#[test]
fn the_unit_is_taken_by_systemd() {
    let is_here = Command::new("systemd-analyze").arg("--version").output();
    is_here.expect("systemd-analyze: install the package systemd");
    let unit = fs::read_to_string(root().join("ops/holdfast.service")).expect("the unit");
    // The binary and the user of this machine, so that only the unit itself can be wrong.
    let here = unit
        .replace("/usr/local/bin/holdfast", env!("CARGO_BIN_EXE_holdfast"))
        .replace("User=holdfast", "User=root")
        .replace("Group=holdfast", "Group=root");
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("holdfast.service");
    fs::write(&path, here).expect("writes");
    let output = Command::new("systemd-analyze")
        .args(["verify", "--man=no"])
        .arg(&path)
        .output()
        .expect("runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    // Units of the machine itself are not ours to judge.
    let ours: Vec<&str> = said
        .lines()
        .filter(|line| line.contains("holdfast.service"))
        .collect();
    assert!(ours.is_empty(), "{said}");
    let security = Command::new("systemd-analyze")
        .args(["security", "--offline=true", "--threshold=40"])
        .arg(&path)
        .output()
        .expect("runs");
    let told = String::from_utf8_lossy(&security.stdout);
    assert!(security.status.success(), "{told}");
}

#[test]
fn the_unit_starts_what_there_is() {
    let unit = fs::read_to_string(root().join("ops/holdfast.service")).expect("the unit");
    let line = unit
        .lines()
        .find_map(|line| line.strip_prefix("ExecStart="))
        .expect("a command");
    let words: Vec<&str> = line.split_whitespace().skip(1).collect();
    // Every option of it is known: asked for help, the same command line is read and not run.
    let output = Command::new(env!("CARGO_BIN_EXE_holdfast"))
        .args(&words)
        .arg("--help")
        .output()
        .expect("runs");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// The values of a key of the unit.
fn settings(unit: &str, key: &str) -> Vec<String> {
    let lines = unit.lines().filter_map(|line| line.split_once('='));
    let values = lines.filter(|(name, _)| *name == key);
    values.map(|(_, value)| value.to_owned()).collect()
}

/// Whoever follows the page has what the unit names, and it starts.
#[test]
fn the_steps_of_the_deployment_page_are_enough_for_the_unit() {
    let page = fs::read_to_string(root().join("docs/deployment.md")).expect("the page");
    let unit = fs::read_to_string(root().join("ops/holdfast.service")).expect("the unit");
    let dir = tempfile::tempdir().expect("a directory");
    let here = |text: &str| {
        let mut text = text.to_owned();
        for place in ["/etc/holdfast", "/srv/holdfast", "/var/lib/holdfast"] {
            text = text.replace(place, &format!("{}{place}", dir.path().display()));
        }
        text
    };
    for place in ["etc", "srv", "var/lib"] {
        fs::create_dir_all(dir.path().join(place)).expect("a directory");
    }
    let block = page.split("```").nth(1).expect("the steps");
    let steps = block.lines().filter_map(|line| line.strip_prefix("$ "));
    // Not done here: users, what is built, and what needs systemd itself.
    let others = [
        "cargo ",
        "useradd",
        "systemctl",
        "/etc/systemd",
        "doctor",
        "curl ",
    ];
    let mut done = 0;
    for step in steps.filter(|step| !others.iter().any(|it| step.contains(it))) {
        let step = here(step)
            .replace("sudo ", "")
            .replace("--owner holdfast --group holdfast", "");
        let ran = Command::new("bash").args(["-euc", &step]).output();
        let ran = ran.expect("runs");
        assert!(ran.status.success(), "{step}: {ran:?}");
        done += 1;
    }
    assert_eq!(done, 4, "{block}");
    for key in ["ReadWritePaths", "EnvironmentFile"] {
        for path in settings(&unit, key) {
            let path = here(path.trim_start_matches('-'));
            assert!(Path::new(&path).exists(), "{key}={path}");
        }
    }
    // As systemd does it.
    let state = settings(&unit, "StateDirectory").concat();
    let state = dir.path().join("var/lib").join(state);
    fs::create_dir(&state).expect("a directory");
    let within = settings(&unit, "WorkingDirectory").concat();
    assert_eq!(Path::new(&here(&within)), state);
    let line = here(&settings(&unit, "ExecStart").concat());
    let mut started = Command::new(env!("CARGO_BIN_EXE_holdfast"))
        .args(line.split_whitespace().skip(1))
        .args(["--listen", "127.0.0.1:0"])
        .env_clear()
        .env("HOME", &state)
        .env("PATH", std::env::var_os("PATH").expect("a PATH"))
        .current_dir(&state)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("starts");
    let mut said = String::new();
    let output = started.stdout.take().expect("a pipe");
    BufReader::new(output).read_line(&mut said).expect("reads");
    started.kill().expect("ends");
    let ended = started.wait_with_output().expect("ends");
    assert!(
        said.contains("\"event\":\"server_started\""),
        "{said}{}",
        String::from_utf8_lossy(&ended.stderr)
    );
}

/// A service that is killed before it has let its requests end breaks off what it promised to end.
#[test]
fn the_unit_waits_for_the_end_of_what_it_stops() {
    // Commands are ended after the requests, and records are written.
    const AFTERWARDS_MS: u64 = 10_000;
    let unit = fs::read_to_string(root().join("ops/holdfast.service")).expect("the unit");
    let seconds = settings(&unit, "TimeoutStopSec").concat();
    let waits_ms = seconds.parse::<u64>().expect("seconds") * 1000;
    let takes_ms = SHUTDOWN_MS_MAX + 3 * SHUTDOWN_LAST_WORDS_MS_MAX + AFTERWARDS_MS;
    assert!(
        waits_ms > takes_ms,
        "{waits_ms} ms, and it takes {takes_ms}"
    );
}

/// The files that are compiled into the sources of a directory.
fn included(dir: &Path, all: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).expect("reads").flatten() {
        let path = entry.path();
        if path.is_dir() {
            included(&path, all);
            continue;
        }
        let text = fs::read_to_string(&path).unwrap_or_default();
        for call in ["include_str!(\"", "include_bytes!(\""] {
            let names = text.split(call).skip(1);
            let names = names.filter_map(|rest| rest.split('"').next());
            all.extend(names.filter_map(|name| dir.join(name).canonicalize().ok()));
        }
    }
}

/// An image is built of the source alone, and of all of it: what a build reads is let in.
#[test]
fn the_container_is_built_of_the_source_and_reaps_what_commands_leave() {
    let ignored = fs::read_to_string(root().join(".dockerignore")).expect("the list");
    let lines: Vec<&str> = ignored
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .collect();
    // Everything is left out, then what is needed is let in.
    assert_eq!(lines[0], "*");
    let let_in: Vec<&str> = lines
        .iter()
        .filter_map(|line| line.strip_prefix('!'))
        .collect();
    assert!(lines.contains(&"**/target"));
    let manifest = fs::read_to_string(root().join("Cargo.toml")).expect("the manifest");
    let members = "members = [\"crates/*\", \"bench\", \"fuzz\"]";
    assert!(manifest.contains(members), "{manifest}");
    let mut read = ["Cargo.toml", "Cargo.lock", "bench", "fuzz"]
        .map(|name| root().join(name))
        .to_vec();
    for entry in fs::read_dir(root().join("crates"))
        .expect("reads")
        .flatten()
    {
        read.push(entry.path());
        included(&entry.path().join("src"), &mut read);
    }
    for path in read {
        let path = path.strip_prefix(root()).expect("of the repository");
        let is_let_in = let_in.iter().any(|it| path.starts_with(it));
        assert!(is_let_in, "a build reads {}", path.display());
    }
    let file = fs::read_to_string(root().join("ops/Containerfile")).expect("the file");
    assert!(file.contains("ENTRYPOINT [\"/usr/bin/tini\", \"--\", \"/usr/local/bin/holdfast\"]"));
    let installed = file.lines().find(|line| line.contains("apt-get install"));
    assert!(installed.is_some_and(|line| line.contains(" tini ")));
}
