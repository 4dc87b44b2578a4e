//! Where to go on in a file, when an answer of `read` was cut on its way out.

use serde_json::{Value, json};

/// Makes an answer of `read` that was cut say where to go on: at the first line of which not all is
/// shown, and within it where it is the first one. Other answers stay as they are.
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
    let (Some(first), Some(text)) = (whole["first_line"].as_u64(), whole["content"].as_str())
    else {
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
    let next = first.saturating_add(lines);
    let column = whole["first_column"].as_u64().unwrap_or(1);
    let (column, note) = if lines == 0 {
        let column = column.saturating_add(chars);
        let note = format!("there is more; go on with offset {next} and column {column}");
        (json!(column), note)
    } else {
        let note = format!("there is more; go on with offset {next}");
        (Value::Null, note)
    };
    let Some(fields) = cut.as_object_mut() else {
        return;
    };
    fields.insert("truncated".to_owned(), true.into());
    fields.insert("next_offset".to_owned(), next.into());
    fields.insert("note".to_owned(), note.into());
    if column.is_null() {
        fields.remove("next_column");
    } else {
        fields.insert("next_column".to_owned(), column);
    }
}
