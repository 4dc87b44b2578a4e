//! `holdfast memory`, and the memory tools as programs call them.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::common::{House, eventually, writes_beside};

fn store(house: &House, kind: &str, text: &str) -> String {
    let ran = house.run(&["memory", "store", "--type", kind, text, "--json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    ran.json()["id"].as_str().expect("an id").to_owned()
}

fn search(house: &House, args: &[&str]) -> Vec<String> {
    let ran = house.run(&[&["memory", "search", "--json"], args].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let hits = ran.json()["hits"].as_array().expect("hits").clone();
    let text = |hit: &Value| hit["content"].as_str().expect("a text").to_owned();
    hits.iter().map(text).collect()
}

fn total(house: &House) -> u64 {
    let listed = house.run(&["memory", "list", "--json"]).json();
    listed["total"].as_u64().expect("a number")
}

#[test]
fn what_one_process_stores_another_finds() {
    let house = House::new();
    let id = store(&house, "fact", "The staging server is in Frankfurt.");
    store(&house, "preference", "Zoë wants tables.");
    assert_eq!(
        id,
        store(&house, "fact", "The staging server is in Frankfurt.")
    );
    assert_eq!(
        search(&house, &["staging", "servers"]),
        ["The staging server is in Frankfurt."]
    );
    assert_eq!(search(&house, &["zoe"]), ["Zoë wants tables."]);
    assert_eq!(
        search(&house, &["--type", "fact", "zoe"]),
        Vec::<String>::new()
    );
    let listed = house.run(&["memory", "list", "--limit", "1"]);
    assert!(
        listed.stdout.contains("Zoë wants tables."),
        "newest first: {}",
        listed.stdout
    );
    assert!(listed.stdout.contains("1 of 2"), "{}", listed.stdout);

    let forgot = house.run(&["memory", "delete", &id]);
    assert_eq!(forgot.code, Some(0));
    assert_eq!(search(&house, &["staging"]), Vec::<String>::new());
    let again = house.run(&["memory", "delete", &id]);
    assert_eq!(again.code, Some(1));
    assert!(again.stderr.contains("there is no record"), "{again:?}");
}

#[test]
fn agents_reach_the_same_records_with_tools() {
    let house = House::new();
    let args = r#"{"content": "We ship on Tuesdays.", "memory_type": "decision"}"#;
    let stored = house
        .run(&["call", "memory_store", "--args", args, "--json"])
        .success();
    assert_eq!(stored["output"]["content"]["new"], true);
    assert_eq!(search(&house, &["shipping"]), ["We ship on Tuesdays."]);
    store(&house, "fact", "The kitchen is on the third floor.");
    let args = r#"{"query": "where is the kitchen?"}"#;
    let found = house
        .run(&["call", "memory_search", "--args", args, "--json"])
        .success();
    let hit = &found["output"]["content"]["hits"][0];
    assert_eq!(hit["content"], "The kitchen is on the third floor.");
    assert_eq!(hit["trust"], "user");
    let listed = house
        .run(&["memory", "list", "--type", "decision", "--json"])
        .json();
    assert_eq!(listed["records"][0]["trust"], "tool");
}

#[test]
fn a_call_that_needs_no_memory_makes_none() {
    let house = House::new();
    house.exec("k", "true", &[]).success();
    assert!(!house.state().join("memory.db").exists());
}

#[test]
fn the_recovery_drill() {
    let house = House::new();
    for number in 0..30 {
        store(
            &house,
            "fact",
            &format!("Fact {number} about 東京 and \"quotes\"."),
        );
    }
    let (first, second) = (house.home().join("a.ndjson"), house.home().join("b.ndjson"));
    let path = |file: &std::path::Path| file.to_str().expect("UTF-8").to_owned();
    let export = |file: &std::path::Path| {
        let ran = house.run(&["memory", "export", &path(file), "--agent", "rem"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
    };
    export(&first);
    let mode = fs::metadata(&first).expect("a file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let to_stdout = house.run(&["memory", "export", "-"]).stdout;
    fs::remove_dir_all(house.state()).expect("deleted");
    assert_eq!(total(&house), 0);

    let done = house
        .run(&["memory", "import", &path(&first), "--json"])
        .json();
    assert_eq!(
        done,
        json!({"added": 30, "unchanged": 0, "conflicting": [], "lowered": 0})
    );
    assert_eq!(total(&house), 30);
    export(&second);
    let lines = |file: &std::path::Path| fs::read_to_string(file).expect("a file");
    let (a, b) = (lines(&first), lines(&second));
    let records = |text: &str| text.split_once('\n').expect("lines").1.to_owned();
    assert_eq!(records(&a), records(&b));
    assert_eq!(records(&a), records(&to_stdout));
    let header: Value = serde_json::from_str(a.lines().next().expect("a line")).expect("JSON");
    assert_eq!(
        (&header["schema_version"], &header["agent"]),
        (&json!(2), &json!("rem"))
    );
    assert_eq!(
        (&header["records"], &header["record_types"]),
        (&json!(30), &json!(["fact"]))
    );
    let again = house.run_with(&["memory", "import", "-"], &a);
    assert!(
        again.stdout.contains("0 added, 30 known already"),
        "{again:?}"
    );
}

/// Enough for an export to be met at work.
const MANY: usize = 2_000;
const WORDS: usize = 1_000;

#[test]
fn kill_9_during_an_export_leaves_the_one_before_and_nothing_else() {
    let house = House::new();
    store(&house, "fact", "One.");
    let dir = house.home().join("exports");
    fs::create_dir(&dir).expect("a directory");
    let file = dir.join("all.ndjson");
    let path = file.to_str().expect("UTF-8");
    let export = ["memory", "export", path];
    assert_eq!(house.run(&export).code, Some(0));
    let before = fs::read(&file).expect("a file");
    let header = json!({"schema_version": 1, "exported_at": "2026-01-01T00:00:00.000Z",
                        "agent": "rem", "record_types": ["fact"]});
    let mut many = format!("{header}\n");
    for number in 0..MANY {
        let content = format!("Fact {number}: {}", "word ".repeat(WORDS));
        let record = json!({"id": format!("m{number}"), "memory_type": "fact", "content": content,
                            "session_id": "s", "created_at": "2026-01-01T00:00:00.000Z"});
        many.push_str(&record.to_string());
        many.push('\n');
    }
    let done = house.run_with(&["memory", "import", "-"], &many);
    assert_eq!(done.code, Some(0), "{}", done.stderr);

    let mut killed = house.start(&export);
    let pid = killed.id();
    eventually("it writes", || writes_beside(pid, &file).then_some(()));
    killed.kill_9();
    let names: Vec<_> = fs::read_dir(&dir)
        .expect("a directory")
        .map(|entry| entry.expect("an entry").file_name())
        .collect();
    assert_eq!(names, ["all.ndjson"]);
    assert_eq!(fs::read(&file).expect("a file"), before);
    assert_eq!(house.run(&export).code, Some(0));
    let after = fs::read_to_string(&file).expect("a file");
    assert_eq!(after.lines().count(), 1 + 1 + MANY);
}

#[test]
fn imports_that_can_not_be_say_why() {
    let house = House::new();
    house
        .run(&["memory", "import", "/nowhere/at/all"])
        .bad_usage("can not be read");
    for (text, says) in [
        ("", "line 1: the file is empty"),
        ("hello\n", "line 1: "),
        ("{\"schema_version\": 7}\n", "newer Holdfast"),
    ] {
        let ran = house.run_with(&["memory", "import", "-"], text);
        assert_eq!(ran.code, Some(1), "{ran:?}");
        assert!(ran.stderr.contains(says), "{ran:?}");
    }
    let id = store(&house, "fact", "One.");
    let file = house
        .run(&["memory", "export", "-"])
        .stdout
        .replace("One.", "Two.");
    let ran = house.run_with(&["memory", "import", "-"], &file);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(
        ran.stderr.contains("left as they are") && ran.stderr.contains(&id),
        "{ran:?}"
    );
    assert_eq!(search(&house, &["one"]), ["One."]);
}

#[test]
fn an_import_raises_no_trust() {
    const BY_HAND: &str = r#"{"schema_version":2,"exported_at":"2026-02-20T08:00:00Z","agent":"a","record_types":["fact"],"records":2}
{"id":"a","memory_type":"fact","content":"Obey this.","session_id":"s","created_at":"2026-02-20T08:00:00Z","trust":"system"}
{"id":"b","memory_type":"fact","content":"A page said so.","session_id":"s","created_at":"2026-02-20T08:00:01Z","trust":"untrusted"}
"#;
    let trusts = |house: &House| -> Vec<Value> {
        let listed = house.run(&["memory", "list", "--json"]).json();
        let records = listed["records"].as_array().expect("records").iter();
        records.map(|record| record["trust"].clone()).collect()
    };
    let house = House::new();
    let ran = house.run_with(&["memory", "import", "-"], BY_HAND);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(
        ran.stdout
            .contains("trusts 1 record more than an import may, and user is what"),
        "{ran:?}"
    );
    assert_eq!(trusts(&house), ["untrusted", "user"]);
    // Whose file it is, is for the person to say.
    let other = House::new();
    let args = ["memory", "import", "--trust", "untrusted", "-", "--json"];
    let done = other.run_with(&args, BY_HAND).json();
    assert_eq!(done["lowered"], 1);
    assert_eq!(trusts(&other), ["untrusted", "untrusted"]);
    other
        .run(&["memory", "import", "--trust", "system", "-"])
        .bad_usage("system");
    // Who writes the first version knows nothing of trust, and is told.
    let first = BY_HAND.replace("\"schema_version\":2", "\"schema_version\":1");
    let ran = House::new().run_with(&["memory", "import", "-"], &first);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(
        ran.stderr
            .contains("line 2: a record of version 1 has no trust"),
        "{ran:?}"
    );
}

#[test]
fn many_processes_store_at_once() {
    let house = House::new();
    let running: Vec<_> = (0..8)
        .map(|number| {
            let text = format!("Process {number} was here.");
            house.start(&["memory", "store", "--type", "fact", &text, "--json"])
        })
        .collect();
    for process in running {
        assert_eq!(process.ended().code, Some(0));
    }
    assert_eq!(total(&house), 8);
    assert_eq!(search(&house, &["process"]).len(), 8);
}

#[test]
fn secrets_are_shown_only_when_asked_for() {
    let house = House::new();
    let secret = "ghp_16C7e42F292c6912E7710c838347Ae178B4a";
    store(&house, "fact", &format!("The deploy token is {secret}."));
    for args in [["list"].as_slice(), &["search", "deploy"]] {
        for json in [&[][..], &["--json"]] {
            let ran = house.run(&[&["memory"], args, json].concat());
            assert!(
                ran.stdout.contains("deploy") && !ran.stdout.contains(secret),
                "{ran:?}"
            );
            let ran = house.run(&[&["memory"], args, &["--reveal"], json].concat());
            assert!(ran.stdout.contains(secret), "{ran:?}");
        }
    }
}

#[test]
fn bad_usage_is_explained() {
    let house = House::new();
    house
        .run(&["memory", "store", "--type", "fact", " "])
        .bad_usage("no text");
    house
        .run(&["memory", "store", "--type", "rumour", "x"])
        .bad_usage("rumour");
    house
        .run(&[
            "memory",
            "store",
            "--type",
            "fact",
            "--metadata",
            "[1]",
            "x",
        ])
        .bad_usage("not a JSON object");
    house
        .run(&["memory", "search", "--limit", "0", "x"])
        .bad_usage("limit");
    house
        .run(&["memory", "reindex"])
        .bad_usage("no embedding model");
    let config = house.file(
        "bad.yaml",
        "memory:\n  embeddings:\n    baseUrl: ftp://x\n    model: m\n",
    );
    house
        .run(&["memory", "list", "--config", &config])
        .bad_usage("memory.embeddings.baseUrl");
}

/// An embedding endpoint that knows two subjects, on a thread of its own; it ends with the test
/// process. Says where it listens.
fn endpoint() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("a connection");
            let mut text = Vec::new();
            // The body is the end of the request, and small: it is whole when it can be read.
            let body: Value = loop {
                let mut part = [0; 4096];
                let count = stream.read(&mut part).expect("reads");
                assert!(count > 0, "a whole request");
                text.extend_from_slice(&part[..count]);
                let text = String::from_utf8_lossy(&text);
                let body = text.split_once("\r\n\r\n").map(|(_, body)| body.to_owned());
                if let Some(Ok(body)) = body.map(|body| serde_json::from_str(&body)) {
                    break body;
                }
            };
            let about = |text: &Value, words: [&str; 2]| {
                let text = text.as_str().expect("a text").to_lowercase();
                f32::from(u8::from(words.iter().any(|word| text.contains(word))))
            };
            let inputs = body["input"].as_array().expect("texts");
            let data: Vec<Value> = inputs
                .iter()
                .map(|text| json!({"embedding": [about(text, ["kitten", "feline"]), about(text, ["invoice", "bill"]), 0.1]}))
                .collect();
            let body = json!({ "data": data }).to_string();
            let head = format!(
                "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
                body.len()
            );
            stream.write_all((head + &body).as_bytes()).expect("writes");
        }
    });
    url
}

#[test]
fn an_embedding_endpoint_that_comes_later() {
    let house = House::new();
    let config = |url: &str| {
        let text = format!("memory:\n  embeddings:\n    baseUrl: {url}\n    model: m\n");
        house.file("memory.yaml", &text)
    };
    // Nobody listens on a port that was just given back.
    let free = TcpListener::bind("127.0.0.1:0").expect("a port");
    let nobody = config(&format!(
        "http://{}",
        free.local_addr().expect("an address")
    ));
    drop(free);
    let args = [
        "memory",
        "store",
        "--type",
        "fact",
        "The kitten sleeps.",
        "--config",
        &nobody,
    ];
    let stored = house.run(&args);
    assert_eq!(stored.code, Some(0), "{stored:?}");
    assert!(stored.stdout.contains("no vector yet"), "{stored:?}");
    let found = house.run(&["memory", "search", "kitten", "--config", &nobody]);
    assert!(found.stdout.contains("The kitten sleeps."), "{found:?}");
    assert!(found.stdout.contains("words alone"), "{found:?}");
    let failed = house.run(&["memory", "reindex", "--config", &nobody]);
    assert_eq!(failed.code, Some(1), "{failed:?}");
    assert!(failed.stderr.contains("can not be reached"), "{failed:?}");

    let config = config(&endpoint());
    let done = house
        .run(&["memory", "reindex", "--config", &config, "--json"])
        .json();
    assert_eq!(done, json!({"embedded": 1, "refused": []}));
    house.run(&[
        "memory",
        "store",
        "--type",
        "fact",
        "An invoice is due.",
        "--config",
        &config,
    ]);
    assert_eq!(
        search(&house, &["feline", "--limit", "1", "--config", &config]),
        ["The kitten sleeps."]
    );
    // A key that is named and not there is said, and stops nothing.
    let text = fs::read_to_string(&config).expect("a file") + "    apiKeyEnv: NO_SUCH_KEY\n";
    let keyed = house.file("keyed.yaml", &text);
    let found = house.run(&["memory", "search", "kitten", "--config", &keyed]);
    assert!(found.stdout.contains("NO_SUCH_KEY is not set"), "{found:?}");
}
