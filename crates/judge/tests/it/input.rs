//! What is read of the standard input that a text is given, and how much of it.

use holdfast_judge::limits::COMMANDS_MAX;
use holdfast_judge::{Context, judge_reading, read, read_with_input};

fn asks(text: &str, input: &str) -> bool {
    let context = Context {
        undoable: true,
        user_rules: None,
    };
    judge_reading(&read_with_input(text, input), &context).asks
}

#[test]
fn input_of_shells_is_read_once() {
    let reading = read_with_input("bash", &"bash\n".repeat(4_900));
    assert!(reading.commands.len() <= COMMANDS_MAX);
    assert!(!reading.unreadable.is_empty());
    let reading = read_with_input("bash; bash; sh -c bash", "bash\ngit push");
    assert_eq!(reading.commands.len(), 6, "{reading:?}");
}

#[test]
fn variables_make_a_bounded_number_of_words() {
    let many = "x ".repeat(9_000);
    for text in [
        format!("f() {{ $@; }}; f {many}"),
        format!("f() {{ $1 {many}; }}; f {}", "y ".repeat(200)),
        format!("x='{many}'; echo {}", "$x ".repeat(5_000)),
        format!("x='{many}'; sh -c \"{}\"", "$x".repeat(5_000)),
    ] {
        let reading = read(&text);
        assert!(reading.commands.len() <= COMMANDS_MAX);
        let words = reading.commands.iter().map(|it| it.words.len());
        assert!(words.sum::<usize>() < 500_000);
        assert!(!reading.unreadable.is_empty());
    }
}

#[test]
fn shell_with_arguments_reads_its_input() {
    for text in [
        "bash",
        "bash -s",
        "bash -s -- prod",
        "bash -s prod",
        "bash -es -- -c x",
        "bash -e -o pipefail",
        "bash /dev/stdin prod",
        "bash -",
        "sh +x $OPTIONS",
        ". /dev/stdin",
        "sudo -n true; env A=1 bash -s x",
    ] {
        assert!(asks(text, "npm publish"), "{text}");
    }
    for text in [
        "bash x.sh",
        "bash x.sh -s",
        "cat",
        "bash -c true",
        "python3 -",
    ] {
        assert!(!asks(text, "npm publish"), "{text}");
    }
    let context = Context {
        undoable: true,
        user_rules: None,
    };
    for text in [
        "bash -s -- prod <<E\nnpm publish\nE",
        "echo npm publish | bash -s x",
        "bash -s x <<< 'npm publish'",
    ] {
        assert!(judge_reading(&read(text), &context).asks, "{text}");
    }
}

#[test]
fn long_input_is_read_to_its_end() {
    let comments = "# a comment that is long enough\n".repeat(3_000);
    assert!(asks("bash", &format!("{comments}git push --force")));
    let numbers: Vec<_> = (0..20_000).map(|it| format!("# {it}")).collect();
    let numbers = numbers.join("\n");
    assert!(asks("bash", &format!("{numbers}\ngit push --force")));
    let blank = "#\n".repeat(40_000);
    assert!(asks("bash", &format!("{blank}git push --force")));
    assert!(asks("psql", &format!("{comments}drop table users")));
}

#[test]
fn input_of_unreadable_text_is_read() {
    assert!(asks("bash\r", "git push --force"));
    assert!(asks("true\r\npsql app", "drop table users"));
    assert!(!asks("bash\r", "git status"));
}
