//! `holdfast audit`: the sums, and the page as a real browser shows it.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::common::House;

/// Writes a transcript as `OpenClaw` would.
#[derive(Default)]
struct Transcript {
    lines: Vec<Value>,
    at_s: u64,
}

impl Transcript {
    fn say(&mut self, message: &Value) {
        let number = self.lines.len();
        let parent = number.checked_sub(1).map(|before| format!("e{before}"));
        let minutes = self.at_s / 60;
        let time = format!("2026-11-15T07:{minutes:02}:{:02}.000Z", self.at_s % 60);
        self.lines.push(json!({
            "type": "message", "id": format!("e{number}"), "parentId": parent,
            "timestamp": time, "message": message,
        }));
        self.at_s += 1;
    }

    fn call(&mut self, tool: &str, arguments: &Value, result: Option<(bool, &str)>) {
        let id = format!("call{}", self.lines.len());
        self.say(&json!({
            "role": "assistant", "model": "gpt-4o",
            "content": [{"type": "toolCall", "id": id, "name": tool, "arguments": arguments}],
            "usage": {"input": 1000, "output": 100, "cacheRead": 0, "cacheWrite": 0},
        }));
        if let Some((failed, text)) = result {
            self.say(&json!({
                "role": "toolResult", "toolCallId": id, "toolName": tool, "isError": failed,
                "content": [{"type": "text", "text": text}],
            }));
        }
    }

    fn text(&self) -> String {
        let head = json!({"type": "session", "version": 4, "id": "s", "cwd": "/",
                          "timestamp": "2026-11-15T07:00:00.000Z"});
        let lines = std::iter::once(&head).chain(&self.lines);
        let lines: Vec<String> = lines.map(Value::to_string).collect();
        lines.join(
            "
",
        ) + "
"
    }
}

/// One loop, one message sent twice, one lost result of a tool with a nasty name, and some work.
fn history() -> String {
    let mut transcript = Transcript::default();
    transcript.say(&json!({"role": "user", "content": "go"}));
    transcript.call("write", &json!({"path": "a"}), Some((false, "written")));
    for _ in 0..6 {
        let why = "Validation failed for tool \"read\": path is required";
        transcript.call("read", &json!({}), Some((true, why)));
    }
    transcript.say(&json!({"role": "user", "content": "tell anna"}));
    let hello = json!({"to": "anna", "text": "hello"});
    transcript.call("message", &hello, Some((false, "sent")));
    transcript.call("message", &hello, Some((false, "sent")));
    transcript.call("<script>alert(1)</script>", &json!({}), None);
    transcript.call("write", &json!({"path": "z"}), Some((false, "written")));
    transcript.text()
}

fn row<'a>(report: &'a Value, table: &str, name: &str) -> &'a Value {
    let rows = report[table].as_array().expect("a table");
    rows.iter()
        .find(|row| row["name"] == name)
        .expect("the row is there")
}

#[test]
fn audit_counts_loops_duplicates_and_orphans_and_what_would_have_been_stopped() {
    let house = House::new();
    let file = house.file("s.jsonl", &history());
    let ran = house.run(&["audit", &file, "--json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let report = ran.json();
    let total = &report["total"];
    assert_eq!(report["sessions"], 1);
    assert_eq!(total["calls"], 11);
    // The second `read({})` is warned of, the third to the sixth would not have run.
    assert_eq!(
        (&total["loops"], &total["duplicates"]),
        (&json!(5), &json!(1))
    );
    assert_eq!(
        (&total["orphans"], &total["stopped"]),
        (&json!(1), &json!(5))
    );
    assert_eq!(row(&report, "byTool", "read")["stopped"], 4);
    assert_eq!(row(&report, "byTool", "message")["duplicates"], 1);
    assert_eq!(row(&report, "byModel", "gpt-4o")["requests"], 11);
    assert_eq!(row(&report, "byDay", "2026-11-15")["calls"], 11);
    // 7 calls at 1,000 tokens for $2.50 and 100 for $10 a million.
    let wasted = total["wasted"]["usd"].as_f64().expect("a number");
    assert!((wasted - 7.0 * 0.0035).abs() < 1e-9, "{wasted}");
}

#[test]
fn audit_reads_standard_input_and_says_when_all_is_older() {
    let house = House::new();
    let report = house.run_with(&["audit", "-", "--json"], &history()).json();
    assert_eq!(report["total"]["calls"], 11);
    house
        .run_with(&["audit", "-"], "not a transcript")
        .bad_usage("standard input is not a transcript");
    house
        .run_with(&["audit", "-", "."], "")
        .bad_usage("only by itself");
    let file = house.file("s.jsonl", &history());
    let ran = house.run(&["audit", &file, "--since", "2030-01-01"]);
    assert_eq!(
        ran.stdout,
        "Nothing was answered on 2030-01-01 or later; 1 older session left out.\n"
    );
    let ran = house.run(&["audit", "--since", "2030-01-01"]);
    assert!(ran.stdout.starts_with("No sessions were found"), "{ran:?}");
}

#[test]
fn audit_shows_people_a_table() {
    let house = House::new();
    let file = house.file("s.jsonl", &history());
    let ran = house.run(&["audit", &file]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(
        ran.stdout.contains("Holdfast would have stopped 5 of them"),
        "{ran:?}"
    );
    assert!(ran.stdout.contains("by tool"), "{ran:?}");
}

#[test]
fn audit_takes_own_prices_and_says_what_is_wrong_with_them() {
    let house = House::new();
    let file = house.file("s.jsonl", &history());
    let prices = house.file("p.json", r#"{"gpt-4o": {"input": 1000, "output": 0}}"#);
    let report = house
        .run(&["audit", &file, "--prices", &prices, "--json"])
        .json();
    let spent = report["total"]["spent"]["usd"].as_f64().expect("a number");
    assert!((spent - 11.0).abs() < 1e-9, "{spent}");
    let wrong = house.file("w.json", r#"{"gpt-4o": {"inptu": 1}}"#);
    house
        .run(&["audit", &file, "--prices", &wrong])
        .bad_usage("inptu");
    let missing = house.run(&["audit", "no/such/file"]);
    assert_eq!(missing.code, Some(2), "{missing:?}");
    assert!(missing.stderr.contains("no/such/file"), "{missing:?}");
    assert!(missing.stdout.contains("No sessions"), "{missing:?}");
}

#[test]
fn audit_page_in_a_real_browser_draws_its_plots_says_the_same_numbers_and_asks_nobody() {
    let house = House::new();
    let file = house.file("s.jsonl", &history());
    let page = house.file("audit.html", "");
    let report = house
        .run(&["audit", &file, "--html", &page, "--json"])
        .json();
    let browser = Browser::open(&house, Path::new(&page));

    // Drawn: a bar for each part of each bar, with an area.
    let bars = browser.dom.matches(r#"<rect class="bar "#).count();
    assert!(bars >= 4 + 3 + 3, "{bars} bars in {}", browser.dom);
    for plot in ["plot-days", "plot-tools", "plot-models"] {
        assert!(
            browser.dom.contains(&format!(r#"<svg id="{plot}""#)),
            "{plot} is missing"
        );
    }
    // The colours of loops, duplicates and what would have been stopped, on a light page.
    for colour in [[0xd1, 0x49, 0x5b], [0xed, 0xae, 0x49], [0x2a, 0x9d, 0x6f]] {
        let pixels = browser.pixels(colour);
        assert!(pixels > 500, "{pixels} pixels of {colour:?}");
    }
    // The numbers people see are those of --json.
    let embedded = between(&browser.dom, r#"id="report" hidden="">"#, "</pre>");
    let embedded: Value = serde_json::from_str(&embedded).expect("the page's own data");
    assert_eq!(embedded, report);
    for (card, number) in [("calls", 7), ("stopped", 5)] {
        let shown = between(&browser.dom, &format!(r#"id="card-{card}">"#), "<");
        assert_eq!(shown, number.to_string());
    }
    // A tool's name stays text.
    assert!(
        browser.dom.contains("&lt;script&gt;alert(1)"),
        "{}",
        browser.dom
    );
    assert_eq!(browser.requests, [""; 0]);
    // A page that does ask is caught.
    let nosy = house.file("nosy.html", r#"<img src="http://127.0.0.1:9/x.png">"#);
    let caught = Browser::open(&house, Path::new(&nosy)).requests;
    assert_eq!(caught, ["http://127.0.0.1:9/x.png"]);
}

fn between(text: &str, begin: &str, end: &str) -> String {
    let from = text.find(begin).expect("the beginning") + begin.len();
    let to = text[from..].find(end).expect("the end") + from;
    text[from..to].to_owned()
}

/// What Chromium made of a page.
struct Browser {
    dom: String,
    /// Every address that the page asked for.
    requests: Vec<String>,
    screenshot: std::path::PathBuf,
}

impl Browser {
    fn open(house: &House, page: &Path) -> Self {
        let log = house.path("net.json");
        let screenshot = house.path("page.png");
        let url = format!("file://{}", page.display());
        let net_log = format!("--log-net-log={}", log.display());
        let shot = format!("--screenshot={}", screenshot.display());
        let dom = chromium(house, &[&net_log, "--dump-dom", &url]);
        chromium(house, &[&shot, "--window-size=1100,1600", &url]);
        Self {
            dom,
            requests: requests(&log),
            screenshot,
        }
    }

    /// How many pixels of the screenshot have this colour.
    fn pixels(&self, colour: [u8; 3]) -> usize {
        let file = std::fs::File::open(&self.screenshot).expect("a screenshot");
        let mut reader = png::Decoder::new(std::io::BufReader::new(file))
            .read_info()
            .expect("a picture");
        let mut pixels = vec![0; reader.output_buffer_size().expect("a size")];
        let info = reader.next_frame(&mut pixels).expect("a frame");
        let step = info.color_type.samples();
        let found = pixels
            .chunks_exact(step)
            .filter(|pixel| pixel[..3] == colour);
        found.count()
    }
}

fn chromium(house: &House, args: &[&str]) -> String {
    let name = ["chromium", "chromium-browser", "google-chrome"]
        .into_iter()
        .find(|name| Command::new(name).arg("--version").output().is_ok())
        .expect("a browser: install the package chromium");
    let profile = format!("--user-data-dir={}", house.path("profile").display());
    let output = Command::new(name)
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
        ])
        // The browser's own housekeeping stays at home.
        .args(["--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"])
        .args([
            "--disable-background-networking",
            "--disable-component-update",
            "--no-first-run",
        ])
        .args([
            "--disable-sync",
            "--disable-features=OptimizationHints",
            &profile,
        ])
        .args(args)
        .output()
        .expect("the browser runs");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("text")
}

/// The addresses in the browser's own network log that a page is behind, not the browser itself.
fn requests(log: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(log).expect("a network log");
    let log: Value = serde_json::from_str(&text).expect("the log is JSON");
    let mut urls: Vec<String> = log["events"]
        .as_array()
        .expect("events")
        .iter()
        .map(|event| &event["params"])
        .filter(|params| {
            let initiator = params["initiator"].as_str();
            initiator.is_some_and(|initiator| initiator != "not an origin")
        })
        .filter_map(|params| params["url"].as_str().map(str::to_owned))
        .collect();
    urls.sort();
    urls.dedup();
    urls
}
