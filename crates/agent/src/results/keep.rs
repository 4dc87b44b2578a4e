//! Which part of a long result a model sees: for each tool the part that matters.

use holdfast_contract::names::at_home;
use holdfast_toolbox::tools::read_on;
use serde_json::Value;

/// Lines of a file that are kept, at its beginning and at its end.
const LINES_KEPT: (usize, usize) = (100, 20);
/// Lists of an answer that are shortened one after the other before its texts are.
const LISTS_SHORTENED_MAX: usize = 8;
/// A text in an answer is not cut to less than this many characters.
const TEXT_CHARS_MIN: usize = 64;
/// Room for the words that say how much was left out.
const MARK_CHARS: usize = 60;

/// Which part is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// The beginning: pages, and lists with the best first.
    Beginning,
    /// The first and the last lines: files.
    Lines,
    /// Half of the limit at the beginning and a quarter at the end: what commands print.
    Output,
    /// Two thirds at the beginning, a third at the end.
    Ends,
}

impl Keep {
    /// What is kept of this tool's results.
    pub fn of(tool: &str) -> Self {
        match at_home(tool) {
            "web_search" | "web_fetch" | "browser" => Self::Beginning,
            "read" => Self::Lines,
            "exec" => Self::Output,
            _ => Self::Ends,
        }
    }

    /// Characters at the beginning and at the end.
    fn parts(self, chars_max: usize) -> (usize, usize) {
        match self {
            Self::Beginning => (chars_max, 0),
            Self::Output => (chars_max / 2, chars_max / 4),
            Self::Lines | Self::Ends => (chars_max - chars_max / 3, chars_max / 3),
        }
    }

    /// A text, or what is kept of it and in between how much was left out.
    pub fn text(self, text: &str, chars_max: usize) -> String {
        let chars = text.chars().count();
        if chars <= chars_max {
            return text.to_owned();
        }
        if self == Self::Lines
            && let Some(kept) = first_and_last_lines(text)
            && kept.chars().count() <= chars_max
        {
            return kept;
        }
        let (head, tail) = self.parts(chars_max);
        let left_out = chars - head - tail;
        format!(
            "{}\n[… {left_out} of {chars} characters left out …]\n{}",
            &text[..at(text, head)],
            &text[at(text, chars - tail)..]
        )
    }

    /// An answer as text. Its long texts and lists are shortened, so that what it says beside them
    /// is still there: an exit code, an address, where to go on reading.
    pub fn value(self, value: &Value, chars_max: usize) -> String {
        if let Value::String(text) = value {
            return self.text(text, chars_max);
        }
        let mut value = value.clone();
        let mut written = value.to_string();
        for _ in 0..LISTS_SHORTENED_MAX {
            let chars = written.chars().count();
            if chars <= chars_max {
                return written;
            }
            if !shorten_list(&mut value, chars - chars_max) {
                break;
            }
            written = value.to_string();
        }
        if written.chars().count() <= chars_max {
            return written;
        }
        self.with_short_texts(&value, chars_max)
            .unwrap_or_else(|| self.text(&written, chars_max))
    }

    /// The answer with no text longer than it has to be for all of it to fit: what is long gives
    /// way to what is short. What counts is the text as it is written, where a line's end is two
    /// characters.
    fn with_short_texts(self, value: &Value, chars_max: usize) -> Option<String> {
        let cut_to = |limit: usize| {
            let mut cut = value.clone();
            self.shorten_texts(&mut cut, limit);
            say_truncated(&mut cut);
            read_on::say_where(value, &mut cut);
            let written = cut.to_string();
            (written.chars().count() <= chars_max).then_some(written)
        };
        let mut best = cut_to(TEXT_CHARS_MIN)?;
        let (mut fits, mut too_long) = (TEXT_CHARS_MIN, chars_max.max(TEXT_CHARS_MIN) + 1);
        while too_long - fits > 1 {
            let limit = usize::midpoint(fits, too_long);
            match cut_to(limit) {
                Some(written) => (best, fits) = (written, limit),
                None => too_long = limit,
            }
        }
        Some(best)
    }

    fn shorten_texts(self, value: &mut Value, limit: usize) {
        match value {
            // What says how much is missing may be longer than what is missing.
            Value::String(text) if text.chars().count() > limit + MARK_CHARS => {
                *text = self.text(text, limit);
            }
            Value::Array(list) => list.iter_mut().for_each(|it| self.shorten_texts(it, limit)),
            Value::Object(members) => members
                .values_mut()
                .for_each(|it| self.shorten_texts(it, limit)),
            _ => {}
        }
    }
}

/// An answer that says whether it is whole says so truly.
fn say_truncated(value: &mut Value) {
    if let Some(truncated) = value.get_mut("truncated").filter(|it| it.is_boolean()) {
        *truncated = true.into();
    }
}

/// Takes the last entries off a list in the answer, and says how many.
fn shorten_list(value: &mut Value, excess: usize) -> bool {
    let Value::Object(members) = value else {
        return false;
    };
    let mut lists = members.values_mut().filter_map(Value::as_array_mut);
    let Some(list) = lists.find(|list| list.len() > 1) else {
        return false;
    };
    let (mut saved, mut gone) = (0, 0_u64);
    while saved < excess + MARK_CHARS && list.len() > 1 {
        saved += list
            .pop()
            .map_or(0, |last| last.to_string().chars().count() + 1);
        gone += 1;
    }
    let already = members.get("left_out").and_then(Value::as_u64).unwrap_or(0);
    members.insert("left_out".to_owned(), (already + gone).into());
    gone > 0
}

fn first_and_last_lines(text: &str) -> Option<String> {
    let (first, last) = LINES_KEPT;
    let lines: Vec<&str> = text.lines().collect();
    let left_out = lines
        .len()
        .checked_sub(first + last)
        .filter(|count| *count > 0)?;
    Some(format!(
        "{}\n[… {left_out} of {} lines left out …]\n{}",
        lines[..first].join("\n"),
        lines.len(),
        lines[lines.len() - last..].join("\n")
    ))
}

/// Where the character with this number begins.
fn at(text: &str, count: usize) -> usize {
    text.char_indices()
        .nth(count)
        .map_or(text.len(), |(place, _)| place)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn each_tool_keeps_what_matters() {
        let page = "x".repeat(4000);
        let kept = Keep::of("web_fetch").text(&page, 3000);
        assert!(
            kept.starts_with(&"x".repeat(3000)) && kept.contains("1000 of 4000"),
            "{kept}"
        );
        let printed = format!("{}{}", "a".repeat(5000), "z".repeat(5000));
        let kept = Keep::of("exec").text(&printed, 2000);
        assert!(kept.starts_with(&format!("{}\n", "a".repeat(1000))));
        assert!(kept.ends_with(&format!("\n{}", "z".repeat(500))));
        let file: Vec<String> = (1..=1000).map(|line| format!("line {line}")).collect();
        let kept = Keep::of("read").text(&file.join("\n"), 5000);
        assert!(
            kept.contains("line 100\n[… 880 of 1000 lines left out …]\nline 981\n"),
            "{kept}"
        );
        assert!(kept.ends_with("line 1000"));
    }

    #[test]
    fn what_an_answer_says_beside_its_texts_stays() {
        let ran = json!({"exit_code": 3, "stdout": "a".repeat(9000), "stderr": "b".repeat(4000),
                         "truncated": false});
        let kept = Keep::of("exec").value(&ran, 2000);
        let read: Value = serde_json::from_str(&kept).unwrap();
        assert_eq!(read["exit_code"], 3);
        assert!(kept.chars().count() <= 2000, "{}", kept.len());
        let hits: Vec<Value> = (0..20)
            .map(|n| json!({"title": n, "url": "u".repeat(90)}))
            .collect();
        let kept = Keep::of("web_search").value(&json!({"query": "q", "results": hits}), 1000);
        let read: Value = serde_json::from_str(&kept).unwrap();
        assert_eq!(read["results"][0]["title"], 0);
        let shown = read["results"].as_array().unwrap().len() as u64;
        assert_eq!(read["left_out"].as_u64().unwrap() + shown, 20);
    }

    /// What is written as more than one character must not take the place of what is shown.
    #[test]
    fn lines_and_quotes_cost_no_more_than_themselves() {
        let numbers: Vec<String> = (1..=30_000).map(|n| n.to_string()).collect();
        let quotes = "\"name\": \"value\",\n".repeat(2000);
        for (printed, least) in [(numbers.join("\n"), 1300), (quotes, 900)] {
            let ran = json!({"exit_code": 0, "stdout": printed, "stderr": "", "truncated": false});
            let kept = Keep::of("exec").value(&ran, 2000);
            let read: Value = serde_json::from_str(&kept).unwrap();
            let shown = read["stdout"].as_str().unwrap();
            assert!(shown.chars().count() >= least, "{}: {shown}", shown.len());
            assert!(
                printed.starts_with(&shown[..400])
                    && printed.ends_with(&shown[shown.len() - 200..])
            );
            assert_eq!(read["truncated"], true);
        }
        let file = json!({"content": numbers.join("\n"), "truncated": false});
        let kept = Keep::of("read").value(&file, 5000);
        let read: Value = serde_json::from_str(&kept).unwrap();
        let shown = read["content"].as_str().unwrap();
        assert!(
            shown.contains("\n100\n[… 29880 of 30000 lines left out …]\n29981\n"),
            "{shown}"
        );
    }

    /// Where to go on is the first line that was left out, also when its end is shown.
    #[test]
    fn what_was_left_out_of_a_file_is_where_it_goes_on() {
        let lines: Vec<String> = (1..=1000).map(|line| format!("line {line}")).collect();
        let file = json!({"content": lines.join("\n"), "first_line": 1, "lines": 1000,
                          "truncated": false});
        let kept = Keep::of("read").value(&file, 5000);
        let read: Value = serde_json::from_str(&kept).unwrap();
        assert_eq!(read["next_offset"], 101);
        let kept = Keep::of("read").value(&file, 600);
        let read: Value = serde_json::from_str(&kept).unwrap();
        let next = read["next_offset"].as_u64().unwrap();
        let shown = read["content"].as_str().unwrap();
        assert!(shown.contains(&format!("line {}\n", next - 1)), "{shown}");
        assert!(
            !shown.contains(&format!("line {next}\n")),
            "{next}: {shown}"
        );
    }

    #[test]
    fn a_short_text_is_not_cut_for_a_long_one() {
        let why = "error: the file is missing\n".repeat(4);
        let ran = json!({"exit_code": 1, "stdout": "a\n".repeat(9000), "stderr": why});
        let kept = Keep::of("exec").value(&ran, 2000);
        let read: Value = serde_json::from_str(&kept).unwrap();
        assert_eq!(read["stderr"], why);
        assert!(read["stdout"].as_str().unwrap().len() > 900);
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            ".{0,300}".prop_map(Value::from),
            any::<i64>().prop_map(Value::from)
        ];
        leaf.prop_recursive(3, 32, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::btree_map("[a-z]{1,5}", inner, 0..6)
                    .prop_map(|it| Value::Object(it.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn no_answer_is_much_longer_than_its_limit(
            value in values(), chars_max in 0..400_usize, tool in "exec|read|web_search|other",
        ) {
            let kept = Keep::of(&tool).value(&value, chars_max);
            prop_assert!(kept.chars().count() <= chars_max + MARK_CHARS, "{}", kept);
        }
    }
}
