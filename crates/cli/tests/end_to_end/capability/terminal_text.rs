//! What a caller chose to be called can not write on the terminal of whoever looks.

use crate::common::House;

const NAUGHTY: &str = "s\u{1b}[2J\u{7}\nroot  done";

#[test]
fn names_and_keys_are_shown_without_what_moves_the_cursor() {
    let house = House::new();
    let more = ["--session", NAUGHTY, "--actor", NAUGHTY, "--turn", NAUGHTY];
    let answer = house.exec(NAUGHTY, "echo hello", &more).success();
    let request = answer["requestId"].as_str().expect("an id");
    for (shown, lines) in [
        (&["dedupe", "list"][..], 2),
        (&["explain"], 2),
        (&["explain", request], 4),
        (&["sessions", "list"], 0),
    ] {
        let ran = house.run(shown);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let raw = ran.stdout.chars().find(|it| it.is_control() && *it != '\n');
        assert_eq!(raw, None, "{shown:?}: {:?}", ran.stdout);
        if lines > 0 {
            assert_eq!(ran.stdout.trim_end().lines().count(), lines, "{ran:?}");
        }
    }
    // What went wrong is told on the same terminal.
    let missing = house.run(&["dedupe", "list", "--config", "\u{1b}[2J"]);
    assert!(!missing.stderr.contains('\u{1b}'), "{missing:?}");
}
