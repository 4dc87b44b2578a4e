//! Where to go on, when an answer of `read` or `web_fetch` was cut on its way out.

use serde_json::Value;

/// Makes an answer of `read` that was cut say where to go on: at the first line of which not all is
/// shown, and within it where it is the first one; and one of `web_fetch` at the first character that is
/// not shown. Other answers stay as they are.
///
/// ```
/// use holdfast_toolbox::tools::read_on::say_where;
/// use serde_json::json;
///
/// let whole = json!({"content": "one\ntwo\nthree\n", "first_line": 5, "truncated": false});
/// let mut cut = json!({"content": "one\ntw\n[… 7 bytes cut …]\n", "first_line": 5, "truncated": false});
/// say_where(&whole, &mut cut);
/// assert_eq!((&cut["next_offset"], &cut["truncated"]), (&json!(6), &json!(true)));
/// ```
pub fn say_where(whole: &Value, cut: &mut Value) {
    let Some(text) = whole["content"].as_str() else {
        return;
    };
    let Some(kept) = cut["content"].as_str() else {
        return;
    };
    if kept == text {
        return;
    }
    let same = |(left, right): &(char, char)| left == right;
    let shown = text.chars().zip(kept.chars()).take_while(same);
    let (mut chars, mut lines) = (0_u64, 0_u64);
    for (sign, _) in shown {
        chars += 1;
        lines += u64::from(sign == '\n');
    }
    let (next, column) = if let Some(first) = whole["first_line"].as_u64() {
        let column = whole["first_column"].as_u64().unwrap_or(1);
        let within = (lines == 0).then(|| column.saturating_add(chars));
        (first.saturating_add(lines), within)
    } else if let (Some(first), true) = (whole["offset"].as_u64(), whole["total_chars"].is_u64()) {
        (first.saturating_add(chars), None)
    } else {
        return;
    };
    let within = column.map_or_else(String::new, |column| format!(" and column {column}"));
    let note = format!("there is more; go on with offset {next}{within}");
    let Some(fields) = cut.as_object_mut() else {
        return;
    };
    fields.insert("truncated".to_owned(), true.into());
    fields.insert("next_offset".to_owned(), next.into());
    fields.insert("note".to_owned(), note.into());
    match column {
        Some(column) => fields.insert("next_column".to_owned(), column.into()),
        None => fields.remove("next_column"),
    };
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// What is left of a page on its way says where to go on itself, also where all of it was fetched.
    #[test]
    fn a_page_that_is_cut_goes_on_at_the_first_character_that_is_not_shown() {
        let text = "äbcdefgh".repeat(10);
        let whole = json!({"content": text, "offset": 100, "total_chars": 180, "truncated": false});
        let mut cut = whole.clone();
        cut["content"] = json!("äbcdef\n[… 70 bytes cut …]\ngh");
        say_where(&whole, &mut cut);
        assert_eq!(
            (&cut["next_offset"], &cut["truncated"]),
            (&json!(106), &json!(true))
        );
        assert_eq!(cut["note"], "there is more; go on with offset 106");
        let other = json!({"content": text, "offset": 1});
        let mut kept = json!({"content": "ä"});
        say_where(&other, &mut kept);
        assert_eq!(kept, json!({"content": "ä"}), "not one of theirs");
    }
}
