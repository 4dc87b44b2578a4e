//! The command line on a Redis that two machines share: each state directory here is a machine.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use holdfast_testkit::http::{Answer, Connection};
use holdfast_testkit::redis::{Persistence, RedisServer};
use holdfast_testkit::wait::eventually;
use serde_json::{Value, json};
use tempfile::TempDir;

const PASSWORD: &str = "s3cret-p@ss/word";

struct Machine {
    dir: TempDir,
    config: PathBuf,
}

impl Machine {
    /// A machine whose records are kept as the YAML says.
    fn new(store: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let config = dir.path().join("holdfast.yaml");
        let log = dir.path().join("guard.log");
        let text = format!(
            "reliability:\n  store:\n{store}\nguard:\n  logPath: {}\n",
            log.display()
        );
        std::fs::write(&config, text).unwrap();
        Self { dir, config }
    }

    fn on(url: &str) -> Self {
        Self::new(&format!(
            "    kind: redis\n    redis:\n      url: {url}\n      responseMs: 500\n      connectMs: 500"
        ))
    }

    fn command(&self, args: &[&str], workspace: &Path) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_holdfast"));
        command
            .args(args)
            .arg("--config")
            .arg(&self.config)
            .arg("--state")
            .arg(self.dir.path().join("state"))
            .current_dir(workspace)
            .env_remove("HOLDFAST_LOG")
            .env("HOLDFAST_REDIS_PASSWORD", PASSWORD);
        command
    }

    fn run(&self, args: &[&str], workspace: &Path) -> Output {
        self.command(args, workspace).output().unwrap()
    }

    fn json(&self, args: &[&str], workspace: &Path) -> Value {
        let output = self.run(&[args, &["--json"]].concat(), workspace);
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic_with(&output))
    }
}

#[expect(clippy::panic, reason = "a command that prints no JSON has failed")]
fn panic_with(output: &Output) -> ! {
    panic!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

fn pay(key: &str) -> [&str; 6] {
    [
        "call",
        "exec",
        "--key",
        key,
        "--args",
        r#"{"command": "echo paid >> ledger"}"#,
    ]
}

#[test]
fn two_machines_one_effect_and_everything_else_is_shared() {
    let server = RedisServer::start(Persistence::None, &["--requirepass", PASSWORD]).unwrap();
    let workspace = tempfile::tempdir().unwrap();
    let here = workspace.path();
    let (one, two) = (Machine::on(&server.url()), Machine::on(&server.url()));

    let first = one.json(&pay("order-17"), here);
    assert_eq!(
        (&first["status"], &first["fromCache"]),
        (&"success".into(), &false.into())
    );
    let second = two.json(&pay("order-17"), here);
    assert_eq!(
        (&second["status"], &second["fromCache"]),
        (&"success".into(), &true.into())
    );
    assert_eq!(
        std::fs::read_to_string(here.join("ledger")).unwrap(),
        "paid\n"
    );

    let listed = two.json(&["dedupe", "list"], here);
    assert_eq!(listed.as_array().map(Vec::len), Some(1));
    assert_eq!(listed[0]["state"], "done");

    one.json(&["breaker", "force-open", "exec"], here);
    let refused = two.json(&pay("order-18"), here);
    assert_eq!(refused["error"]["code"], "circuit_open");
    two.json(&["breaker", "reset", "exec"], here);
    assert_eq!(one.json(&pay("order-18"), here)["status"], "success");

    // Why a call was answered as it was is known where it ran.
    let explained = two.json(&["explain"], here);
    assert_eq!(explained.as_array().map(Vec::len), Some(2));

    // To another store and back again.
    let file = here.join("records.ndjson");
    let path = file.to_str().unwrap();
    assert_eq!(one.json(&["dedupe", "export", path], here)["exported"], 2);
    let mode = std::fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert!(
        !one.run(&["dedupe", "export", path], here).status.success(),
        "never overwritten"
    );
    let alone = Machine::new("    kind: sqlite");
    assert_eq!(alone.json(&["dedupe", "import", path], here)["imported"], 2);
    assert_eq!(alone.json(&["dedupe", "import", path], here)["known"], 2);
    assert_eq!(alone.json(&pay("order-17"), here)["fromCache"], true);

    // A call that was named is found wherever it is asked for again, one that only reads too.
    let args = r#"{"path": "ledger"}"#;
    let read = ["call", "read", "--key", "look", "--args", args];
    assert_eq!(one.json(&read, here)["fromCache"], false);
    assert_eq!(two.json(&read, here)["fromCache"], true);

    // The password is nowhere to be seen.
    for args in [
        &["config", "show"][..],
        &["config", "check"],
        &["config", "show", "--json"],
    ] {
        let output = one.run(args, here);
        assert!(output.status.success());
        let shown = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(!shown.contains("s3cret"), "{shown}");
    }
}

#[test]
fn without_redis_calls_with_effects_are_refused_and_reading_goes_on() {
    let mut server = RedisServer::start(Persistence::None, &[]).unwrap();
    let workspace = tempfile::tempdir().unwrap();
    let here = workspace.path();
    std::fs::write(here.join("a.txt"), "text").unwrap();
    let machine = Machine::on(&server.url());
    server.kill().unwrap();
    let refused = machine.json(&pay("order-19"), here);
    assert_eq!(refused["error"]["code"], "store_unavailable");
    assert!(!refused.to_string().contains("s3cret"), "{refused}");
    assert!(!here.join("ledger").exists(), "nothing ran");
    let read = machine.json(&["call", "read", "--args", r#"{"path": "a.txt"}"#], here);
    assert_eq!(read["status"], "success");
    let listed = machine.run(&["dedupe", "list"], here);
    assert!(!listed.status.success());
}

#[test]
fn a_wrong_address_is_told_without_its_password() {
    let machine = Machine::on("http://u:s3cret@h/");
    let checked = machine.run(&["config", "check"], machine.dir.path());
    assert_eq!(checked.status.code(), Some(2));
    let said = String::from_utf8_lossy(&checked.stderr).into_owned();
    assert!(said.contains("reliability.store.redis.url"), "{said}");
    assert!(!said.contains("s3cret"), "{said}");
}

/// Starts a call that has its effect and then waits, stops Redis, and lets the call end.
fn call_during_which_redis_stops(machine: &Machine, server: &RedisServer, here: &Path) -> Child {
    let mut call = machine.command(&SLOW_PAY, here);
    let call = call
        .arg("--json")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let call = call.spawn().unwrap();
    until("it runs", || here.join("ledger").exists());
    server.pause().unwrap();
    std::fs::write(here.join("go"), "").unwrap();
    call
}

const SLOW_PAY: [&str; 6] = [
    "call",
    "exec",
    "--key",
    "slow",
    "--args",
    r#"{"command": "echo paid >> ledger; while [ ! -e go ]; do sleep 0.05; done"}"#,
];

#[test]
fn what_ran_while_redis_went_away_is_written_when_it_is_back() {
    let server = RedisServer::start(Persistence::None, &["--requirepass", PASSWORD]).unwrap();
    let workspace = tempfile::tempdir().unwrap();
    let here = workspace.path();
    let (one, two) = (Machine::on(&server.url()), Machine::on(&server.url()));
    let mut call = call_during_which_redis_stops(&one, &server, here);
    let mut said = BufReader::new(call.stderr.take().unwrap()).lines();
    assert!(
        said.any(|line| line
            .unwrap()
            .contains("waiting for Redis to take what is still to be recorded")),
        "it waits"
    );
    server.resume().unwrap();
    assert!(call.wait().unwrap().success());
    assert_eq!(said.count(), 0, "nothing is amiss");
    let again = two.json(&SLOW_PAY, here);
    assert_eq!(
        (&again["status"], &again["fromCache"]),
        (&"success".into(), &true.into())
    );
    let ledger = std::fs::read_to_string(here.join("ledger")).unwrap();
    assert_eq!(ledger, "paid\n");
}

#[test]
fn what_can_not_be_recorded_is_said() {
    let server = RedisServer::start(Persistence::None, &["--requirepass", PASSWORD]).unwrap();
    let workspace = tempfile::tempdir().unwrap();
    let here = workspace.path();
    let machine = Machine::on(&server.url());
    let call = call_during_which_redis_stops(&machine, &server, here);
    let output = call.wait_with_output().unwrap();
    server.resume().unwrap();
    assert!(output.status.success(), "it ran");
    let answer: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic_with(&output));
    let told = answer["output"]["metadata"]["advisory"].to_string();
    let expected = "did not take the record of this call";
    assert!(told.contains(expected), "{answer}");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains(expected), "{said}");
}

#[test]
fn config_check_tries_redis() {
    let mut server = RedisServer::start(Persistence::None, &["--requirepass", PASSWORD]).unwrap();
    let here = tempfile::tempdir().unwrap();
    let machine = Machine::on(&server.url());
    let checked = machine.json(&["config", "check"], here.path());
    assert_eq!(checked["redis"], "answers");
    server.kill().unwrap();
    let refused = machine.run(&["config", "check"], here.path());
    assert_eq!(refused.status.code(), Some(1));
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        said.contains("Redis") && said.contains("--offline"),
        "{said}"
    );
    assert!(!said.contains("s3cret"), "{said}");
    let offline = machine.json(&["config", "check", "--offline"], here.path());
    assert_eq!(
        (&offline["ok"], &offline["redis"]),
        (&true.into(), &"not tried".into())
    );
}

/// A machine that serves; killed when the test is done with it.
struct Serving {
    child: Child,
    address: std::net::SocketAddr,
    bearer: String,
}

impl Serving {
    fn start(machine: &Machine, here: &Path) -> Self {
        Self::start_saying(machine, here, Stdio::inherit())
    }

    fn start_saying(machine: &Machine, here: &Path, stderr: Stdio) -> Self {
        let words = ["serve", "--json", "--listen", "127.0.0.1:0", "--log", "off"];
        let mut command = machine.command(&words, here);
        command.stdout(Stdio::piped()).stderr(stderr);
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        let mut said = BufReader::new(child.stdout.take().unwrap());
        said.read_line(&mut line).unwrap();
        let started: Value = serde_json::from_str(&line).unwrap();
        let url = started["url"].as_str().unwrap();
        let token = machine.dir.path().join("state/server-token");
        let token = std::fs::read_to_string(token).unwrap();
        Self {
            child,
            address: url.trim_start_matches("http://").parse().unwrap(),
            bearer: format!("Bearer {}", token.trim()),
        }
    }

    fn ask(&self, method: &str, path: &str, body: &str) -> Answer {
        let headers = [
            ("authorization", self.bearer.as_str()),
            ("content-type", "application/json"),
        ];
        let mut connection = Connection::open(self.address).unwrap();
        let asked = connection.request(method, path, &headers, body.as_bytes());
        asked.unwrap()
    }

    /// The slow payment, by its key.
    fn pay(&self) -> Answer {
        let params: Value = serde_json::from_str(SLOW_PAY[5]).unwrap();
        let envelope = json!({
            "contractVersion": "1.1", "requestId": "request", "toolName": "exec",
            "toolNamespace": "holdfast.tools",
            "target": {"sessionKey": "session", "actorId": "actor", "turnId": "turn"},
            "payload": {"version": "1.0", "params": params, "idempotencyKey": "slow"},
            "transport": {"dedupeMode": "enforced", "retryBudget": {"maxAttempts": 1, "maxElapsedMs": 1000}},
            "control": {}, "trace": {},
        });
        self.ask("POST", "/v1/tools/call", &envelope.to_string())
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn until(what: &str, mut there: impl FnMut() -> bool) {
    eventually(what, || there().then_some(()));
}

#[test]
fn a_server_writes_back_what_ended_while_redis_was_gone() {
    let args = ["--requirepass", PASSWORD];
    let mut server = RedisServer::start(Persistence::Always, &args).unwrap();
    let workspace = tempfile::tempdir().unwrap();
    let here = workspace.path();
    let machines = [Machine::on(&server.url()), Machine::on(&server.url())];
    let [one, two] = machines
        .each_ref()
        .map(|machine| Serving::start(machine, here));
    let is_well = |serving: &Serving| serving.ask("GET", "/ready", "").status == 200;
    until("both are ready", || is_well(&one) && is_well(&two));

    let answer = std::thread::scope(|scope| {
        let call = scope.spawn(|| one.pay());
        until("it runs", || here.join("ledger").exists());
        server.kill().unwrap();
        until("it is noticed", || !is_well(&one));
        std::fs::write(here.join("go"), "").unwrap();
        call.join().unwrap()
    });
    assert_eq!(answer.json()["status"], "success", "{}", answer.text());
    // Nothing else may begin until the server is back, and nothing does.
    let refused = two.pay();
    assert_eq!(refused.json()["error"]["code"], "store_unavailable");

    server.run().unwrap();
    until("both are ready again", || is_well(&one) && is_well(&two));
    let again = two.pay().json();
    assert_eq!(
        (&again["status"], &again["fromCache"]),
        (&"success".into(), &true.into()),
        "{again}"
    );
    let ledger = std::fs::read_to_string(here.join("ledger")).unwrap();
    assert_eq!(ledger, "paid\n");
}

/// A machine on this server with settings of tools besides.
fn with_tools(server: &RedisServer, tools: &str) -> Machine {
    Machine::new(&format!(
        "    kind: redis\n    redis: {{url: \"{}\", responseMs: 10000}}\n  tools: {tools}",
        server.url()
    ))
}

#[test]
fn two_servers_keep_to_one_rate_limit() {
    let server = RedisServer::start(Persistence::None, &["--requirepass", PASSWORD]).unwrap();
    let workspace = tempfile::tempdir().unwrap();
    let here = workspace.path();
    let limit = "{exec: {rateLimit: {calls: 3, windowMs: 3600000}}}";
    let machines = [with_tools(&server, limit), with_tools(&server, limit)];
    let serving = machines
        .each_ref()
        .map(|machine| Serving::start(machine, here));
    let pay = |by: &Serving, number: u32| {
        let command = format!("echo {number} >> ledger");
        let body = json!({"tool": "exec", "args": {"command": command}, "idempotencyKey": number.to_string()});
        by.ask("POST", "/tools/invoke", &body.to_string())
    };
    let answers: Vec<Answer> = (0..6)
        .map(|number| pay(&serving[number as usize % 2], number))
        .collect();
    for answer in &answers[..3] {
        assert_eq!(answer.status, 200, "{}", answer.text());
    }
    for answer in &answers[3..] {
        assert_eq!(answer.status, 429, "{}", answer.text());
        assert_eq!(answer.json()["error"]["code"], "rate_limited");
        let wait_s: u64 = answer.header("retry-after").unwrap().parse().unwrap();
        assert!((1..=1_200).contains(&wait_s), "{wait_s}");
    }
    let ledger = std::fs::read_to_string(here.join("ledger")).unwrap();
    assert_eq!(ledger, "0\n1\n2\n");
    // What is on record takes no place.
    assert_eq!(pay(&serving[1], 0).status, 200);
    let explained = machines[1].json(&["explain"], here).to_string();
    assert!(explained.contains("rate_limited"), "{explained}");
}

#[test]
fn a_rate_limit_that_can_not_be_is_named() {
    let server = RedisServer::start(Persistence::None, &["--requirepass", PASSWORD]).unwrap();
    let here = tempfile::tempdir().unwrap();
    for (limit, problem) in [
        ("{burst: 3}", "reliability.tools.exec.rateLimit.calls"),
        (
            "{calls: 2, burst: 3}",
            "reliability.tools.exec.rateLimit.burst",
        ),
    ] {
        let machine = with_tools(&server, &format!("{{exec: {{rateLimit: {limit}}}}}"));
        let output = machine.run(&["config", "check"], here.path());
        assert!(!output.status.success());
        let said = String::from_utf8_lossy(&output.stderr).into_owned()
            + &String::from_utf8_lossy(&output.stdout);
        assert!(said.contains(problem), "{said}");
    }
}

/// Also when nobody asked for a log.
#[test]
fn a_server_says_that_redis_is_gone_and_that_it_is_back() {
    let args = ["--requirepass", PASSWORD];
    let mut server = RedisServer::start(Persistence::None, &args).unwrap();
    let machine = Machine::on(&server.url());
    server.kill().unwrap();
    let here = tempfile::tempdir().unwrap();
    let said = here.path().join("said");
    let file = std::fs::File::create(&said).unwrap();
    let _serving = Serving::start_saying(&machine, here.path(), file.into());
    let says = |number: usize, text: &str| {
        let all = || std::fs::read_to_string(&said).unwrap();
        until(text, || all().lines().count() >= number);
        let line = all().lines().nth(number - 1).unwrap().to_owned();
        assert!(line.contains(text) && !line.contains(PASSWORD), "{line}");
    };
    says(1, "calls with effects are refused");
    server.run().unwrap();
    says(2, "Redis is back");
    server.kill().unwrap();
    says(3, "calls with effects are refused");
}
