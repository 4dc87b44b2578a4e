//! Arguments as words: `holdfast call read README.md` and `holdfast call read path=README.md`.

use serde_json::{Map, Value};

use crate::fail::{Failure, Outcome};

/// The arguments that the words give to a tool with this schema. A word `NAME=VALUE` gives the argument of
/// that name. Any other word gives the next required argument that no word names.
pub(super) fn arguments(
    tool: &str,
    schema: &Value,
    words: &[String],
) -> Outcome<Map<String, Value>> {
    let named = |word: &str| -> Option<(String, String)> {
        let (name, value) = word.split_once('=')?;
        schema["properties"].get(name)?;
        Some((name.to_owned(), value.to_owned()))
    };
    let mut given = Map::new();
    let mut unnamed = Vec::new();
    for word in words {
        let Some((name, value)) = named(word) else {
            unnamed.push(word);
            continue;
        };
        let value = typed(&schema["properties"][&name], &value);
        if given.insert(name.clone(), value).is_some() {
            return Err(Failure::usage(format!(
                "the argument {name} is given twice"
            )));
        }
    }
    let required = schema["required"].as_array().into_iter().flatten();
    let mut open = required
        .filter_map(Value::as_str)
        .filter(|name| !given.contains_key(*name))
        .map(str::to_owned)
        .collect::<Vec<_>>()
        .into_iter();
    for word in unnamed {
        let name = open.next().ok_or_else(|| too_many(tool, schema, word))?;
        let value = typed(&schema["properties"][&name], word);
        given.insert(name, value);
    }
    Ok(given)
}

fn too_many(tool: &str, schema: &Value, word: &str) -> Failure {
    let names: Vec<&str> = schema["properties"]
        .as_object()
        .into_iter()
        .flat_map(Map::keys)
        .map(String::as_str)
        .collect();
    Failure::usage(format!("{tool} does not know which argument {word:?} is")).hint(format!(
        "Write NAME=VALUE; {tool} takes {}. A value with spaces needs quotation marks.",
        names.join(", ")
    ))
}

/// A text stays a text where the schema wants one. Elsewhere it is read as JSON where it is JSON.
fn typed(schema: &Value, text: &str) -> Value {
    let wants_text = match &schema["type"] {
        Value::String(one) => one == "string",
        Value::Array(several) => several.iter().any(|one| one == "string"),
        _ => false,
    };
    if wants_text {
        return text.into();
    }
    serde_json::from_str(text).unwrap_or_else(|_| text.into())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn words_become_arguments_by_name_or_in_the_order_of_what_is_required() {
        let schema = json!({"type": "object", "required": ["path", "content"], "properties": {
            "path": {"type": "string"}, "content": {"type": ["string", "null"]}, "limit": {"type": "integer"}}});
        let read = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            arguments("write", &schema, &words).map(Value::Object)
        };
        let table = [
            (vec!["a.md", "x"], json!({"path": "a.md", "content": "x"})),
            (
                vec!["content=7", "a=b"],
                json!({"content": "7", "path": "a=b"}),
            ),
            (vec!["limit=7", "path=1"], json!({"limit": 7, "path": "1"})),
            (vec!["limit=many"], json!({"limit": "many"})),
            (vec![], json!({})),
        ];
        for (words, expected) in table {
            assert_eq!(read(&words).unwrap(), expected, "{words:?}");
        }
        let failure = read(&["a", "b", "c"]).unwrap_err();
        assert!(
            failure
                .hint
                .is_some_and(|hint| hint.contains("content, limit, path"))
        );
        assert!(read(&["path=a", "path=b"]).is_err());
    }
}
