//! Taking typed arguments out of the validated JSON.
//!
//! The stack has checked the arguments against the schema, but a library user may call a tool
//! directly, so a wrong type is still an answer and never a panic.

use holdfast_contract::ToolError;
use serde_json::Value;

pub(super) fn text<'a>(params: &'a Value, name: &str) -> Result<&'a str, ToolError> {
    optional_text(params, name)?.ok_or_else(|| wrong(name, "is required"))
}

/// Whether a text can be a path.
pub(super) fn path_text(field: &str, asked: &str) -> Result<(), ToolError> {
    let reason = if asked.is_empty() {
        "must not be empty"
    } else if asked.contains('\0') {
        "must not contain a NUL character"
    } else if asked.len() > super::beneath::PATH_BYTES_MAX {
        "is longer than a path can be"
    } else {
        return Ok(());
    };
    Err(ToolError::invalid(
        Some(&format!("/{field}")),
        format!("`{field}` {reason}"),
    ))
}

pub(super) fn optional_text<'a>(
    params: &'a Value,
    name: &str,
) -> Result<Option<&'a str>, ToolError> {
    match present(params, name) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(wrong(name, "has to be a string")),
    }
}

/// A whole number from 1 up.
pub(super) fn optional_count(params: &Value, name: &str) -> Result<Option<u64>, ToolError> {
    let Some(value) = present(params, name) else {
        return Ok(None);
    };
    value
        .as_u64()
        .or_else(|| value.as_f64().and_then(whole))
        .filter(|count| *count > 0)
        .map(Some)
        .ok_or_else(|| wrong(name, "has to be a whole number from 1 up"))
}

/// JSON Schema takes `2.0` for an integer, so it has to be taken here as well.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the range is checked and the fraction is zero"
)]
fn whole(number: f64) -> Option<u64> {
    let exact_max = 9_007_199_254_740_992.0;
    (number.fract() == 0.0 && (0.0..=exact_max).contains(&number)).then_some(number as u64)
}

pub(super) fn optional_flag(params: &Value, name: &str) -> Result<bool, ToolError> {
    match present(params, name) {
        None => Ok(false),
        Some(Value::Bool(flag)) => Ok(*flag),
        Some(_) => Err(wrong(name, "has to be true or false")),
    }
}

/// Models write `null` for an argument that they leave out.
fn present<'a>(params: &'a Value, name: &str) -> Option<&'a Value> {
    params.get(name).filter(|value| !value.is_null())
}

fn wrong(name: &str, reason: &str) -> ToolError {
    ToolError::invalid(Some(&format!("/{name}")), format!("`{name}` {reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn counts_take_whole_numbers_in_any_notation() {
        let params = json!({"a": 3, "b": 2.0, "c": 0, "d": 1.5, "e": -1, "f": null, "g": "1"});
        assert_eq!(optional_count(&params, "a"), Ok(Some(3)));
        assert_eq!(optional_count(&params, "b"), Ok(Some(2)));
        assert_eq!(optional_count(&params, "f"), Ok(None));
        assert_eq!(optional_count(&params, "absent"), Ok(None));
        for name in ["c", "d", "e", "g"] {
            assert!(optional_count(&params, name).is_err(), "{name}");
        }
    }

    #[test]
    fn a_wrong_type_names_the_field() {
        let error = text(&json!({"path": 1}), "path").unwrap_err();
        assert!(
            matches!(&error, ToolError::ValidationError { field: Some(field), .. } if field == "/path")
        );
        assert!(optional_flag(&json!({"all": "yes"}), "all").is_err());
    }
}
