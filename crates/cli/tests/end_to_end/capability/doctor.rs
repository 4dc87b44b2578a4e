//! `holdfast doctor` says what is wrong, and what to do about it.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use holdfast_testkit::model::{ModelServer, Say};
use serde_json::Value;

use crate::common::{House, Ran};

fn check<'a>(report: &'a Value, name: &str) -> &'a Value {
    let checks = report["checks"].as_array().expect("a list");
    let found = checks.iter().find(|check| check["name"] == name);
    found.unwrap_or_else(|| panic!("no check of {name} in {report}"))
}

fn looked(house: &House, more: &[&str]) -> (Ran, Value) {
    let ran = house.run(&[&["doctor", "--json"], more].concat());
    let report = ran.json();
    (ran, report)
}

#[test]
fn a_house_in_order_is_well() {
    let house = House::new();
    house.exec("k", "echo x", &[]).success();
    let (ran, report) = looked(&house, &[]);
    assert_eq!(
        (ran.code, &report["ok"]),
        (Some(0), &true.into()),
        "{report}"
    );
    for name in [
        "configuration",
        "state",
        "confinement",
        "landlock",
        "seccomp",
    ] {
        assert_eq!(check(&report, name)["status"], "ok", "{name}: {report}");
    }
    // Not what the kernel says about itself, but what happened to a command.
    assert_eq!(
        check(&report, "a confined command")["status"],
        "ok",
        "{report}"
    );
    let text = house.run(&["doctor"]).stdout;
    assert!(text.contains("✓ landlock: version"), "{text}");
}

#[test]
fn what_is_wrong_is_named_with_what_to_do() {
    let house = House::new();
    let broken = house.file("broken.yaml", "confinement: {mode: sometimes}");
    let (ran, report) = looked(&house, &["--config", &broken]);
    assert_eq!((ran.code, &report["ok"]), (Some(1), &false.into()));
    assert_eq!(check(&report, "configuration")["status"], "bad");

    house.exec("k", "echo x", &[]).success();
    fs::set_permissions(house.state(), fs::Permissions::from_mode(0o755)).expect("set");
    fs::write(house.state().join("approver-token"), "x").expect("written");
    let (ran, report) = looked(&house, &[]);
    assert_eq!(ran.code, Some(1));
    let state = check(&report, "state");
    assert_eq!(state["status"], "bad");
    assert!(
        state["advice"]
            .as_str()
            .is_some_and(|text| text.contains("chmod 700"))
    );
    assert_eq!(check(&report, "tokens")["status"], "bad");

    let house = House::new();
    house.exec("k", "echo x", &[]).success();
    let (ran, report) = looked(&house, &[]);
    assert_eq!(ran.code, Some(0), "{report}");
    fs::hard_link(
        house.state().join("holdfast.db"),
        house.workspace().join("y"),
    )
    .expect("linked");
    let (ran, report) = looked(&house, &[]);
    assert_eq!(ran.code, Some(1), "{report}");
    let second = check(&report, "second names");
    assert!(
        second["found"]
            .as_str()
            .is_some_and(|it| it.contains("holdfast.db")),
        "{report}"
    );

    let house = House::new();
    let (ran, report) = looked(&house, &["--workspace", "/no/such/workspace"]);
    assert_eq!(ran.code, Some(1), "{report}");
    assert_eq!(check(&report, "workspace")["status"], "bad", "{report}");
    // Beside the workspace, however that is spelt.
    house.file("beside.yaml", "");
    let mut command = house.command(&["--config", "../beside.yaml", "doctor", "--json"]);
    command.current_dir(house.workspace());
    let report = Ran::of(&command.output().expect("runs")).json();
    assert!(
        !report.to_string().contains("beside.yaml lies in"),
        "{report}"
    );

    let house = House::new();
    let away = "reliability: {store: {kind: redis, redis: {url: 'redis://127.0.0.1:1'}}}";
    let config = house.file("redis.yaml", away);
    let (ran, report) = looked(&house, &["--config", &config]);
    assert_eq!(ran.code, Some(1), "{report}");
    assert_eq!(check(&report, "redis")["status"], "bad");
}

#[test]
fn what_is_open_is_said_to_be() {
    let house = House::new();
    let open = "confinement: {mode: 'off', unixSockets: allow}";
    let config = house.path("holdfast.yaml");
    fs::write(&config, open).expect("written");
    let config = config.to_str().expect("text");
    let (ran, report) = looked(&house, &["--config", config]);
    assert_eq!(ran.code, Some(0), "{report}");
    for name in ["confinement", "unix sockets", "workspace"] {
        assert_eq!(check(&report, name)["status"], "warn", "{name}: {report}");
    }
}

/// A kernel without some of its calls, for what is started behind it: they are answered as by one that
/// never had them.
const WITHOUT: &str = r#"
import ctypes, os, struct, sys
calls = [int(number) for number in sys.argv[1].split(",")]
steps = [(0x20, 0, 0, 0)]
for number in calls:
    steps += [(0x15, 0, 1, number), (0x06, 0, 0, 0x00050000 | 38)]
steps += [(0x06, 0, 0, 0x7fff0000)]
code = b"".join(struct.pack("HBBI", *step) for step in steps)
kept = ctypes.create_string_buffer(code)
program = ctypes.create_string_buffer(struct.pack("HL", len(steps), ctypes.addressof(kept)))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, program, 0, 0) == 0, ctypes.get_errno()
os.execv(sys.argv[2], sys.argv[2:])
"#;

/// What `doctor` reports on a kernel without Landlock, and without filters of one's own.
fn looked_on_an_old_kernel(house: &House, more: &[&str]) -> (Option<i32>, Value) {
    const LANDLOCK: i64 = 444;
    #[cfg(target_arch = "x86_64")]
    const SECCOMP: i64 = 317;
    #[cfg(not(target_arch = "x86_64"))]
    const SECCOMP: i64 = 277;
    let script = house.file("without.py", WITHOUT);
    let ours = house.command(&[&["doctor", "--json"], more].concat());
    let mut command = std::process::Command::new("python3");
    command
        .arg(script)
        .arg(format!("{LANDLOCK},{SECCOMP}"))
        .arg(ours.get_program())
        .args(ours.get_args())
        .current_dir(house.workspace())
        .env_clear();
    for (name, value) in ours.get_envs() {
        command.env(name, value.expect("a value"));
    }
    let output = command.output().expect("python3");
    let said = String::from_utf8_lossy(&output.stderr);
    let report = serde_json::from_slice(&output.stdout);
    (output.status.code(), report.expect(&said))
}

#[test]
fn a_kernel_that_can_not_hold_commands_is_said_to_be_one() {
    let house = House::new();
    let (code, report) = looked_on_an_old_kernel(&house, &[]);
    assert_eq!(code, Some(0), "{report}");
    for (name, says) in [
        ("landlock", "this kernel has no Landlock: commands can read"),
        ("seccomp", "this kernel filters no system calls"),
    ] {
        let check = check(&report, name);
        assert_eq!(check["status"], "warn", "{report}");
        let found = check["found"].as_str().expect("a text");
        assert!(found.starts_with(says), "{found}");
    }
    // Where it is insisted on, it is not well.
    let strict = house.file("strict.yaml", "confinement: {mode: required}");
    let (code, report) = looked_on_an_old_kernel(&house, &["--config", &strict]);
    assert_eq!((code, &report["ok"]), (Some(1), &false.into()), "{report}");
    for name in ["landlock", "seccomp"] {
        let check = check(&report, name);
        assert_eq!(check["status"], "bad", "{report}");
        let found = check["found"].as_str().expect("a text");
        assert!(found.ends_with("exec refuses to run"), "{found}");
    }
}

#[test]
fn the_servers_that_runs_need_are_asked() {
    let house = House::new();
    let (ran, report) = looked(&house, &[]);
    assert_eq!(ran.code, Some(0), "{report}");
    let found = check(&report, "model server")["found"].as_str();
    assert!(found.is_some_and(|found| found.starts_with("none is configured")));

    let model = ModelServer::says(Vec::new()).expect("starts");
    let (ran, report) = looked(&house, &["--model-url", &model.url()]);
    assert_eq!(ran.code, Some(0), "{report}");
    let answers = format!("{} answers", model.url());
    assert_eq!(check(&report, "model server")["found"], answers);

    // Nobody listens there.
    let away = "http://127.0.0.1:1";
    let (ran, report) = looked(&house, &["--model-url", away]);
    assert_eq!(ran.code, Some(1), "{report}");
    let model = check(&report, "model server");
    assert_eq!(model["status"], "bad");
    assert!(
        model["advice"]
            .as_str()
            .is_some_and(|it| it.contains("Start it"))
    );

    let file = house.file("holdfast.yaml", &format!("gateway: {{url: \"{away}\"}}\n"));
    let (ran, report) = looked(&house, &["--config", &file]);
    assert_eq!(ran.code, Some(1), "{report}");
    assert_eq!(check(&report, "gateway")["status"], "bad");
}

#[test]
fn searches_have_a_limit_that_nobody_has_to_set() {
    let house = House::new();
    let shown = |file: &str| house.run(&["--config", file, "config", "show"]).stdout;
    let plain = shown(&house.file("plain.yaml", ""));
    assert!(plain.contains("calls: 10"), "{plain}");
    let own = "reliability: {tools: {web_search: {rateLimit: {calls: 3}}}}\n";
    let own = shown(&house.file("own.yaml", own));
    assert!(
        own.contains("calls: 3") && !own.contains("calls: 10"),
        "{own}"
    );
}

#[test]
fn a_memory_that_is_not_whole_is_named_with_what_to_do() {
    let house = House::new();
    let remembered = house.run(&[
        "memory",
        "store",
        "--type",
        "fact",
        "The cat is called Ada.",
    ]);
    assert_eq!(remembered.code, Some(0), "{remembered:?}");
    let (ran, report) = looked(&house, &[]);
    assert_eq!(ran.code, Some(0), "{report}");
    assert_eq!(check(&report, "memory")["found"], "1 records");

    let file = house.state().join("memory.db");
    let whole = fs::read(&file).expect("a memory");
    let mut damaged = whole.clone();
    damaged[4096..].fill(0xAB);
    for content in [
        damaged,
        b"somebody's notes ".repeat(1_000),
        whole[..5_000].to_vec(),
    ] {
        fs::write(&file, &content).expect("written");
        let (ran, report) = looked(&house, &[]);
        assert_eq!(ran.code, Some(1), "{report}");
        let memory = check(&report, "memory");
        assert_eq!(memory["status"], "bad", "{report}");
        let advice = memory["advice"].as_str().expect("advice");
        assert!(advice.contains("memory import"), "{advice}");
        assert_eq!(
            fs::read(&file).expect("still there"),
            content,
            "it only looks"
        );
    }
}

#[test]
fn a_house_without_a_memory_gets_none() {
    let house = House::new();
    house.exec("k", "echo x", &[]).success();
    let (ran, report) = looked(&house, &[]);
    assert_eq!(ran.code, Some(0), "{report}");
    let checks = report["checks"].as_array().expect("a list");
    assert!(
        checks.iter().all(|check| check["name"] != "memory"),
        "{report}"
    );
    assert!(!house.state().join("memory.db").exists());
}

/// Each of a model's servers is looked at: the one that is away may be the one that is meant to answer.
#[test]
fn every_server_of_the_model_is_named() {
    let house = House::new();
    let model = ModelServer::says(vec![Say::says("Hello.")]).expect("starts");
    let there = model.url();
    let two = |second: &str| {
        let text =
            format!("executor:\n  gpt_oss_url: http://127.0.0.1:1\n  upstreams: [\"{second}\"]\n");
        house.file("executor.yaml", &text)
    };
    let found = |report: &Value| -> Vec<(String, String)> {
        let checks = report["checks"].as_array().expect("a list");
        let servers = checks.iter().filter(|it| it["name"] == "model server");
        let text = |it: &Value| it.as_str().unwrap_or_default().to_owned();
        servers
            .map(|it| (text(&it["status"]), text(&it["found"])))
            .collect()
    };
    let (ran, report) = looked(&house, &["--config", &two(&there)]);
    assert_eq!(ran.code, Some(0), "{report}");
    let [away, answers] = &found(&report)[..] else {
        panic!("{report}");
    };
    assert_eq!(away.0, "warn");
    assert!(away.1.starts_with("http://127.0.0.1:1 can not be asked: "));
    let well = ("ok".to_owned(), format!("{there} answers"));
    assert_eq!(*answers, well);
    let (ran, report) = looked(&house, &["--config", &two("http://127.0.0.1:2")]);
    assert_eq!(ran.code, Some(1), "{report}");
    let all = found(&report);
    assert!(all.iter().all(|(status, _)| status == "bad"), "{report}");
    assert!(all[0].1.contains("127.0.0.1:1") && all[1].1.contains("127.0.0.1:2"));
}
