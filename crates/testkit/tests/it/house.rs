//! The house rules that a compiler does not check.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Which of our crates may depend on which. Arrows only point up this table toward `contract`.
const MAY_DEPEND_ON: &[(&str, &[&str])] = &[
    ("holdfast-client", &[]),
    ("holdfast-contract", &[]),
    ("holdfast-database", &[]),
    ("holdfast-confine", &["holdfast-contract"]),
    (
        "holdfast-reliability",
        &["holdfast-client", "holdfast-contract", "holdfast-database"],
    ),
    (
        "holdfast-memory",
        &["holdfast-client", "holdfast-contract", "holdfast-database"],
    ),
    ("holdfast-trust", &["holdfast-contract"]),
    ("holdfast-undo", &["holdfast-contract"]),
    (
        "holdfast-toolbox",
        &[
            "holdfast-confine",
            "holdfast-contract",
            "holdfast-judge",
            "holdfast-reliability",
            "holdfast-trust",
            "holdfast-undo",
        ],
    ),
    (
        "holdfast-web",
        &[
            "holdfast-client",
            "holdfast-contract",
            "holdfast-reliability",
        ],
    ),
    ("holdfast-intent", &["holdfast-contract"]),
    ("holdfast-judge", &["holdfast-contract"]),
    ("holdfast-transcript", &["holdfast-contract"]),
    (
        "holdfast-agent",
        &[
            "holdfast-client",
            "holdfast-contract",
            "holdfast-intent",
            "holdfast-reliability",
            "holdfast-toolbox",
            "holdfast-transcript",
        ],
    ),
    (
        "holdfast-node",
        &[
            "holdfast-agent",
            "holdfast-contract",
            "holdfast-intent",
            "holdfast-reliability",
            "holdfast-transcript",
            "holdfast-trust",
        ],
    ),
    (
        "holdfast-server",
        &[
            "holdfast-agent",
            "holdfast-contract",
            "holdfast-intent",
            "holdfast-reliability",
            "holdfast-toolbox",
            "holdfast-undo",
        ],
    ),
    (
        "holdfast",
        &[
            "holdfast-agent",
            "holdfast-client",
            "holdfast-confine",
            "holdfast-contract",
            "holdfast-intent",
            "holdfast-judge",
            "holdfast-memory",
            "holdfast-reliability",
            "holdfast-server",
            "holdfast-toolbox",
            "holdfast-transcript",
            "holdfast-trust",
            "holdfast-undo",
            "holdfast-web",
        ],
    ),
    ("holdfast-testkit", &["holdfast-contract"]),
];

/// Crates that only these of ours may know.
const KNOWN_TO: &[(&str, &[&str])] = &[
    (
        "rusqlite",
        &[
            "holdfast-database",
            "holdfast-reliability",
            "holdfast-memory",
            "holdfast-transcript",
        ],
    ),
    ("redis", &["holdfast-reliability"]),
    ("rustls", &["holdfast-client"]),
    (
        "reqwest",
        &[
            "holdfast-agent",
            "holdfast-client",
            "holdfast-memory",
            "holdfast-web",
            "holdfast",
        ],
    ),
    ("prometheus-client", &["holdfast-reliability"]),
    ("cap-std", &["holdfast-toolbox"]),
    ("dom_smoothie", &["holdfast-web"]),
    ("encoding_rs", &["holdfast-web"]),
    ("dom_query", &["holdfast-web"]),
    ("landlock", &["holdfast-confine"]),
    ("seccompiler", &["holdfast-confine"]),
    ("napi", &["holdfast-node"]),
    ("napi-derive", &["holdfast-node"]),
    ("axum", &["holdfast-server"]),
    ("hyper", &["holdfast-server"]),
    ("subtle", &["holdfast-toolbox"]),
    ("tiktoken", &["holdfast-agent"]),
    ("tree-sitter", &["holdfast-judge"]),
    ("tree-sitter-bash", &["holdfast-judge"]),
    ("ed25519-dalek", &["holdfast-trust"]),
    ("ignore", &["holdfast-undo"]),
    ("similar", &["holdfast-undo"]),
    ("clap", &["holdfast"]),
    ("opentelemetry", &["holdfast"]),
];

/// A source file longer than this is cut into rooms.
const SOURCE_LINES_MAX: usize = 500;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The direct dependencies of each crate under `crates`, by kind: those that ship, and those of tests.
/// Benches and fuzz targets use whatever they measure or feed.
fn dependencies() -> BTreeMap<String, Vec<(String, bool)>> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--format-version", "1"])
        .current_dir(root())
        .output()
        .expect("cargo can be run");
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo prints JSON");
    let packages = metadata["packages"].as_array().expect("packages");
    let ours = |package: &&Value| {
        let manifest = package["manifest_path"].as_str().expect("a path");
        manifest.contains("/crates/")
    };
    packages
        .iter()
        .filter(ours)
        .map(|package| {
            let found = package["dependencies"]
                .as_array()
                .expect("dependencies")
                .iter()
                .map(|found| {
                    let name = found["name"].as_str().expect("a name").to_owned();
                    (name, found["kind"].as_str() != Some("dev"))
                })
                .collect();
            (package["name"].as_str().expect("a name").to_owned(), found)
        })
        .collect()
}

#[test]
fn arrows_only_point_toward_the_contract() {
    for (name, found) in dependencies() {
        let (_, allowed) = MAY_DEPEND_ON
            .iter()
            .find(|(known, _)| *known == name)
            .unwrap_or_else(|| panic!("the crate {name} has no row in the table of this test"));
        for (dependency, ships) in found {
            let ours = dependency.starts_with("holdfast");
            // Tests may use the kit from everywhere.
            let allowed = !ours || !ships || allowed.contains(&dependency.as_str());
            assert!(allowed, "{name} must not depend on {dependency}");
        }
    }
}

#[test]
fn foreign_crates_are_known_in_their_rooms_only() {
    for (name, found) in dependencies() {
        for (dependency, ships) in found {
            if let Some((_, owners)) = KNOWN_TO.iter().find(|(known, _)| *known == dependency) {
                assert!(
                    !ships || owners.contains(&name.as_str()),
                    "{name} must not know {dependency}"
                );
            }
        }
    }
}

#[test]
fn source_files_are_short_enough_to_find_ones_way() {
    let mut long = Vec::new();
    for file in source_files(&root().join("crates")) {
        let lines = std::fs::read_to_string(&file)
            .expect("a source file")
            .lines()
            .count();
        if lines > SOURCE_LINES_MAX {
            long.push(format!("{} has {lines} lines", file.display()));
        }
    }
    assert!(
        long.is_empty(),
        "over {SOURCE_LINES_MAX} lines:\n{}",
        long.join("\n")
    );
}

fn source_files(dir: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(dir).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files.extend(source_files(&path));
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            files.push(path);
        }
    }
    files
}
