//! Command lines of a few signs that stand for much. Each is read to an end and said to be too much,
//! where reading all of it would take minutes or gigabytes.

use super::tests::judged;
use super::*;

fn is_too_much(command: &str, stdin: Option<&str>) -> bool {
    let found = reasons(&judged(command, stdin));
    found.iter().any(|it| it.code == "unreadable_command")
}

#[test]
fn a_long_list_is_not_kept_once_for_each_that_may_be_gone() {
    let list = "a ".repeat(30_000);
    for behind in [
        "ls ${@:2}",
        "shift; ls $@",
        "f() { ls; }; shift; f $@",
        "shift; sh -c ls x $@",
    ] {
        let command = format!("set -- '{list}'; {behind}");
        assert!(is_too_much(&command, None), "{behind}");
    }
}

#[test]
fn brackets_within_brackets_are_counted() {
    let deep = format!("{}{}", "(a;".repeat(260_000), ")".repeat(260_000));
    assert!(is_too_much("sh", Some(&deep)));
    let flat = "(a);".repeat(1000);
    assert!(!is_too_much(&flat, None));
}

#[test]
fn the_name_of_a_list_is_not_kept_once_for_each_of_its_lines() {
    let name = "a".repeat(500_000);
    let lines = format!("{name}=(\n{})", "a\n".repeat(250_000));
    assert!(is_too_much("sh", Some(&lines)));
    let values = format!("for {name} in {}; do :; done", "a ".repeat(250_000));
    assert!(is_too_much("sh", Some(&values)));
    assert!(!is_too_much("list=(\na\nb\n); for a in b c; do :; done", None));
}
