//! `holdfast config check` refuses what would not work, before a server does.

use crate::common::{House, Ran};

#[test]
fn a_misspelt_tool_opens_no_gate() {
    let house = House::new();
    let yaml = "hooks:\n  admit: [{command: [\"true\"], tools: [exec, exce]}]\n  \
                before: [{command: [\"true\"], tools: [wirte]}]\n  \
                after: [{command: [\"true\"], tools: [sessions_spawn]}]\n\
                guard: {pollingTools: [raed, \" Exec \"]}\n";
    let config = house.file("wrong.yaml", yaml);
    let ran = house.run(&["config", "check", "--config", &config]);
    for says in [
        "hooks.admit[0].tools: there is no tool named \"exce\"",
        "hooks.before[0].tools: there is no tool named \"wirte\"",
        "guard.pollingTools: there is no tool named \"raed\"",
    ] {
        ran.bad_usage(says);
    }
    assert_eq!(ran.stderr.matches("there is no tool").count(), 3, "{ran:?}");
}

#[test]
fn a_limit_for_no_tool_is_told() {
    let house = House::new();
    let yaml = "tools:\n  enabled: [read, canvas]\n  result_limits: {reed: 5, read: 5, browser: 5, canvas: 5}\n";
    let config = house.file("executor.yaml", yaml);
    let ran = house.run(&["config", "check", &config]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let told = "tools.result_limits: there is no tool \"reed\"";
    assert!(ran.stderr.contains(told), "{ran:?}");
    assert_eq!(ran.stderr.matches("result_limits").count(), 1, "{ran:?}");
}

/// Every row is refused by both, and for the same reason.
#[test]
fn what_serve_refuses_is_refused() {
    let (house, other) = (House::new(), House::new());
    let table = [
        (
            "server: {listen: \"0.0.0.0:0\"}",
            "no token was configured for it",
        ),
        ("server: {tokenFile: /no/such/token}", "/no/such/token"),
        ("server: {adminTokenFile: /no/such/token}", "/no/such/token"),
        (
            "observability: {log: /no/such/folder/log}",
            "the log /no/such/folder/log can not be opened",
        ),
    ];
    for (number, (yaml, says)) in table.iter().enumerate() {
        let config = house.file(&format!("{number}.yaml"), yaml);
        let serve = ["serve", "--config", &config];
        other.run(&serve).bad_usage(says);
        house
            .run(&["config", "check", "--config", &config])
            .bad_usage(says);
    }
    // A hook that can not be started refuses every call.
    let hooks = [
        "hooks: {admit: [{command: [/no/such/hook]}]}",
        "hooks: {after: [{command: [no-such-hook-anywhere]}]}",
    ];
    for (number, yaml) in hooks.iter().enumerate() {
        let config = house.file(&format!("hook-{number}.yaml"), yaml);
        let checked = house.run(&["config", "check", "--config", &config]);
        checked.bad_usage("[0]: there is no program");
    }
    let config = house.file("right.yaml", "hooks: {admit: [{command: [\"true\"]}]}");
    let checked = house.run(&["config", "check", "--config", &config]);
    assert_eq!(checked.code, Some(0), "{checked:?}");
    // Looking makes nothing.
    assert!(!house.state().exists());
}

#[test]
fn what_can_not_be_read_is_said_in_the_words_of_its_author() {
    let house = House::new();
    let table = [
        (
            "guard:\n  maxIdenticalFailures: x\n",
            "line 2 column 25: it should be a whole number that is not negative",
        ),
        (
            "guard:\n  enabled: true\n  enabled: false\n",
            "line 3 column 3: enabled is there twice; keep one",
        ),
        (
            "guard: [1]\n",
            "line 1 column 8: it should be a section of `key: value` lines",
        ),
        (
            "guard:\n  enabled: perhaps\n",
            "line 2 column 12: it should be true or false",
        ),
        (
            "guard:\n  pollingTools: read\n",
            "line 2 column 17: it should be a list",
        ),
        ("garud: {}\n", "unknown field `garud`"),
    ];
    for (number, (yaml, says)) in table.iter().enumerate() {
        let config = house.file(&format!("{number}.yaml"), yaml);
        let ran = house.run(&["config", "check", "--config", &config]);
        ran.bad_usage(says);
        assert_eq!(ran.stderr.matches("error:").count(), 1, "{ran:?}");
        for inner in ["Options", "u32", "mapping start"] {
            assert!(!ran.stderr.contains(inner), "{inner}: {ran:?}");
        }
    }
}

/// Whoever corrects a file does not have to come again for every line of it.
#[test]
fn all_mistakes_are_told_at_once() {
    let house = House::new();
    let yaml = "garud: {}\nguard:\n  maxIdenticalFailures: x\n  enabled: perhaps\n  pollingTools: []\n\
                sessions:\n  # How many.\n  childrnMax: 3\n";
    let config = house.file("many.yaml", yaml);
    let ran = house.run(&["config", "check", "--config", &config]);
    for says in [
        "unknown field `garud`",
        "line 3 column 25: it should be a whole number that is not negative",
        "line 4 column 12: it should be true or false",
        "unknown field `childrnMax`",
    ] {
        ran.bad_usage(says);
    }
    assert_eq!(ran.stderr.matches("error:").count(), 1, "{ran:?}");
}

/// What only the environment can say is looked at too: what is not set may be set where it runs, and
/// what is wrong is refused, unless the file alone is meant.
#[test]
fn a_gateway_without_its_token_is_warned_of_and_a_webhook_that_is_none_refused() {
    let house = House::new();
    let gateway = house.file("gateway.yaml", "gateway: {url: 'http://127.0.0.1:1'}");
    let check = ["config", "check", "--config", &gateway];
    let ran = house.run(&check);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    for words in ["OPENCLAW_GATEWAY_TOKEN is not set", "gateway.tokenEnv"] {
        assert!(ran.stderr.contains(words), "{ran:?}");
    }
    let mut command = house.command(&check);
    command.env("OPENCLAW_GATEWAY_TOKEN", "a-token-of-this-test");
    let ran = Ran::of(&command.output().expect("runs"));
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{ran:?}");

    let hook = "channel: {kind: webhook}\npermissions: {approvals: {senders: [ann]}}\n";
    let webhook = house.file("webhook.yaml", hook);
    let check = ["config", "check", "--config", &webhook];
    let ran = house.run(&check);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(
        ran.stderr.contains("HOLDFAST_WEBHOOK_URL is not set"),
        "{ran:?}"
    );
    let with = |url: &str, more: &[&str]| {
        let mut command = house.command(&[&check[..], more].concat());
        command.env("HOLDFAST_WEBHOOK_URL", url);
        Ran::of(&command.output().expect("runs"))
    };
    let ran = with("ftp://chat.example/hook", &[]);
    ran.bad_usage("http: or https:");
    assert!(ran.stderr.contains("channel.urlEnv"), "{ran:?}");
    let offline = with("ftp://chat.example/hook", &["--offline"]);
    assert_eq!(offline.code, Some(0), "{offline:?}");
    let fine = with("https://chat.example/hook", &[]);
    assert_eq!((fine.code, fine.stderr.as_str()), (Some(0), ""), "{fine:?}");
}
