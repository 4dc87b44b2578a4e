//! `holdfast config check` refuses what would not work, before a server does.

use crate::common::House;

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
