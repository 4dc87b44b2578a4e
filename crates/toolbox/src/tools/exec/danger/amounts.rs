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
    let code = format!("python3 -c 'system(\"{} rm -rf ..\")'", "(".repeat(100));
    assert!(is_too_much(&code, None));
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
    assert!(!is_too_much(
        "list=(\na\nb\n); for a in b c; do :; done",
        None
    ));
}

#[test]
fn commands_that_find_runs_are_counted_by_their_words() {
    assert!(is_too_much(&"find -exec ".repeat(11_000), None));
}

#[test]
fn long_commands_of_a_function_are_counted_each_time() {
    let words = "a ".repeat(50_000);
    let values: Vec<String> = (0..256).map(|it| it.to_string()).collect();
    let calls = "f $x; ".repeat(170);
    let values = values.join(" ");
    let command = format!("f(){{ echo {words}; }}; for x in {values}; do {calls} done");
    assert!(is_too_much(&command, None));
}

#[test]
fn each_word_counts_in_each_place() {
    let deep = "a/".repeat(15_000);
    let words = "x ".repeat(15_000);
    let command = format!("cd {deep}; cd b; cd c; cd d; cd e; cd f; rm {words}");
    assert!(is_too_much(&command, None));
    let command = format!("cd {deep}; cd b; cd c; cd d; cd e; cd f; xargs rm");
    assert!(is_too_much(&command, Some(&"x ".repeat(500_000))));
}

#[test]
fn files_that_are_written_to_are_counted() {
    let command = format!("echo {} {}", "a".repeat(50_000), ">/x ".repeat(19_000));
    assert!(is_too_much(&command, None));
}

#[test]
fn reasons_are_counted_by_the_command_they_are_given_for() {
    let long = "a".repeat(20_000);
    for repeated in ["sudo ", "env -S "] {
        let command = format!("{} {long}", repeated.repeat(100_000 / repeated.len()));
        assert!(is_too_much(&command, None), "{repeated}");
    }
    let command = format!("dd {} {long}", "of=/x ".repeat(17_000));
    assert!(is_too_much(&command, None));
}

/// A function that is called with each of 32 times 32 words, as often as two more loops go round.
fn in_many_ways(body: &str) -> String {
    let values: Vec<String> = ('a'..='z').chain('0'..='5').map(String::from).collect();
    let values = values.join(" ");
    let loops: String = ["a", "b", "c", "d"]
        .map(|name| format!("for {name} in {values}; do "))
        .concat();
    format!("f() {{ {body}\n}}\n{loops} f $a $b; done; done; done; done")
}

#[test]
fn what_commands_are_fed_is_counted_each_time() {
    let words = "x ".repeat(1500);
    let strings = "'${'\n".repeat(600);
    for (program, text) in [
        ("docker exec -i d psql $c $d", &words),
        ("python3 $c $d", &strings),
    ] {
        let command = in_many_ways(&format!("{program} <<'E'\n{text}\nE"));
        let judged = judge(&judged(&command, None));
        assert_eq!(judged.extent, Extent::Cut, "{program}");
        // It is what they are fed that is too much, long before there are too many of them.
        assert!(judged.judged_commands < 32 * 1024, "{program}");
    }
}

/// However many commands read it, also in a container.
#[test]
fn a_long_standard_input_is_read_once() {
    let text = "x ".repeat(512 * 1024);
    for part in [
        "mongosh;",
        "psql;",
        "make -f -;",
        "read x;",
        "ssh h mongosh;",
        "docker exec -i d mongosh;",
    ] {
        let command = part.repeat(16_000 / part.len());
        assert!(!is_too_much(&command, Some(&text)), "{part}");
    }
    let removes = format!("{text}; db.x.drop(); DROP TABLE x");
    for command in ["mongosh", "psql", "docker exec -i d mongosh"] {
        let found = reasons(&judged(command, Some(&removes)));
        let is_seen = found.iter().any(|it| it.code == "irreversible_command");
        assert!(is_seen, "{command}");
    }
}

#[test]
fn rules_within_rules_are_counted() {
    let nested = format!("make --eval='{}'", "$(shell ".repeat(16_000));
    assert!(is_too_much(&nested, None));
    let value = "b ".repeat(30);
    let rules = format!("A = {value}\nx:\n\techo {}\n", "$(A)".repeat(250_000));
    assert!(is_too_much("make -f -", Some(&rules)));
}

#[test]
fn strings_that_are_no_commands_are_counted() {
    let strings = "'a ${' ".repeat(20_000);
    let command = format!("python3 -c \"{}\"", strings.replace('$', "\\$"));
    assert!(is_too_much(&command, None));
}

/// All of it is looked through once, and not once for each name.
#[test]
fn names_that_may_run_a_text_are_counted() {
    let names = ".exec".repeat(24_000);
    assert!(!is_too_much(&format!("node -e 'stdin{names}'"), None));
    let few = ".exec".repeat(2000);
    let command = in_many_ways(&format!("node -e 'stdin{few}' $c $d"));
    assert_eq!(judge(&judged(&command, None)).extent, Extent::Cut);
}

/// Where a command may begin in many places, somebody is told so; ways that meet again are followed once.
#[test]
fn options_that_are_not_known_are_followed_to_an_end() {
    let options = "-a x ".repeat(20_000);
    assert!(!is_too_much(&format!("docker run {options} img ls"), None));
    let begun = format!("docker run --entrypoint sh {options} img ls");
    assert!(is_too_much(&begun, None));
    assert!(is_too_much(&format!("npx {}", "-a x ".repeat(9)), None));
}

/// An answer to one of them says nothing of another.
#[test]
fn what_is_too_much_is_bound_to_all_of_it() {
    let digest = |name: &str| {
        let body = "a;".repeat(20_000);
        let command = format!(
            "{name}(){{ eval '{body}'; }};{}",
            format!("{name};").repeat(100)
        );
        let found = reasons(&judged(&command, None));
        let cut = found.into_iter().find(|it| it.subject == "…");
        cut.expect("it is too much").digest
    };
    assert_ne!(digest("f"), digest("g"));
}
