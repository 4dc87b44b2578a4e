//! The layer that checks arguments against the tool's schema.

use std::fmt::Write as _;
use std::sync::Arc;

use holdfast_contract::ErrorCode;
use holdfast_reliability::call::{Call, Failure, Judged, Reply};
use holdfast_reliability::guard::FailureKind;
use holdfast_reliability::service::Service;
use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{JsonType, ValidationError};
use serde_json::Value;

use crate::registry::{Registered, Registry};

/// Problems told at once; a model corrects the first few and sees the rest next time.
pub(crate) const PROBLEMS_MAX: usize = 5;
/// A field's schema is shown up to this length.
pub(crate) const SCHEMA_BYTES_MAX: usize = 1024;
/// A pointer to a field, and the list of unknown parameters, is shown up to this length: the names in
/// them are whatever was sent.
pub(crate) const POINTER_BYTES_MAX: usize = 256;

/// Checks arguments before anything is keyed or run.
pub struct Validate<S> {
    inner: S,
    registry: Arc<Registry>,
}

impl<S: Service> Validate<S> {
    /// Wraps everything that relies on valid arguments.
    pub fn new(inner: S, registry: Arc<Registry>) -> Self {
        Self { inner, registry }
    }
}

impl<S: Service> Service for Validate<S> {
    async fn call(&self, call: &mut Call) -> Reply {
        let problem = match self.registry.get(&call.envelope.tool_name) {
            Some(found) => problem_with(found, &call.envelope.payload.params),
            None => None,
        };
        match problem {
            None => self.inner.call(call).await,
            Some(problem) => Failure::before_start(
                ErrorCode::InvalidArguments,
                problem.message,
                Judged::Counts(FailureKind::Validation),
            )
            .with_field(problem.field)
            .into(),
        }
    }
}

/// What is wrong with arguments.
pub(crate) struct Problem {
    /// For the model: of each field the reason and its schema.
    pub(crate) message: String,
    /// The first field at fault, as a JSON pointer, unless it is the arguments as a whole.
    pub(crate) field: Option<String>,
}

/// What is wrong with the arguments, if anything is.
pub(crate) fn problem_with(found: &Registered, arguments: &Value) -> Option<Problem> {
    if found.validator.is_valid(arguments) {
        return None;
    }
    let mut all = Problem {
        message: String::new(),
        field: None,
    };
    for error in found.validator.iter_errors(arguments).take(PROBLEMS_MAX) {
        let one = describe(&error, &found.schema);
        if !all.message.is_empty() {
            all.message.push('\n');
        }
        all.message.push_str(&one.message);
        all.field = all.field.or(one.field);
    }
    Some(all)
}

fn describe(error: &ValidationError<'_>, schema: &Value) -> Problem {
    let path = error.instance_path().as_str();
    let name = field_name(path);
    let (mut text, field_pointer) = match error.kind() {
        ValidationErrorKind::Required { property } => {
            let missing = escaped(property.as_str().unwrap_or_default());
            let pointer = format!("{path}/{missing}");
            (
                format!("Missing required parameter: {}", field_name(&pointer)),
                pointer,
            )
        }
        // The name comes last: behind `token:` the redactor would take the reason for the token.
        ValidationErrorKind::Type { kind } => (
            format!(
                "Expected {} but received {} for parameter {name}",
                expected(kind),
                kind_of(error.instance())
            ),
            path.to_owned(),
        ),
        ValidationErrorKind::AdditionalProperties { unexpected } => (
            format!("Unknown parameter: {}", listed(unexpected)),
            String::new(),
        ),
        _ => (format!("{name}: {error}"), path.to_owned()),
    };
    if let Some(shown) = field_schema(schema, &field_pointer) {
        // Writing to a string can not fail.
        let _ = write!(text, ". Schema of {}: {shown}", field_name(&field_pointer));
    } else if let Some(names) = known_parameters(schema) {
        let _ = write!(text, ". Known parameters: {names}");
    }
    let at_fault = match error.kind() {
        ValidationErrorKind::AdditionalProperties { unexpected } => {
            let name = unexpected.first().map(|name| escaped(name));
            name.map(|name| format!("{path}/{name}"))
        }
        _ => Some(field_pointer),
    };
    Problem {
        message: text,
        field: at_fault
            .map(shortened)
            .filter(|pointer| !pointer.is_empty()),
    }
}

/// A name as a step of a JSON pointer (RFC 6901).
fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

fn unescaped(step: &str) -> String {
    step.replace("~1", "/").replace("~0", "~")
}

/// A pointer that is too long points to what is around, as far as there is room: one that was cut
/// within a name would point to something else.
fn shortened(mut pointer: String) -> String {
    while pointer.len() > POINTER_BYTES_MAX {
        pointer.truncate(pointer.rfind('/').unwrap_or(0));
    }
    pointer
}

/// As many of the names as there is room for.
fn listed(names: &[String]) -> String {
    let mut list = String::new();
    for (at, name) in names.iter().enumerate() {
        let between = if at == 0 { "" } else { ", " };
        if list.len() + between.len() + name.len() > POINTER_BYTES_MAX {
            let _ = write!(list, "{between}{} more", names.len() - at);
            break;
        }
        list.push_str(between);
        list.push_str(name);
    }
    list
}

fn field_name(pointer: &str) -> &str {
    if pointer.is_empty() {
        "arguments"
    } else {
        pointer.trim_start_matches('/')
    }
}

fn expected(kind: &TypeKind) -> String {
    match kind {
        TypeKind::Single(one) => one.to_string(),
        TypeKind::Multiple(several) => several
            .iter()
            .map(|one| one.to_string())
            .collect::<Vec<_>>()
            .join(" or "),
    }
}

fn kind_of(value: &Value) -> String {
    JsonType::from(value).to_string()
}

/// The schema of one field, found along `properties` and `items`.
fn field_schema(schema: &Value, pointer: &str) -> Option<String> {
    let mut part = schema;
    for step in pointer.split('/').skip(1) {
        part = match part
            .get("properties")
            .and_then(|properties| properties.get(unescaped(step)))
        {
            Some(found) => found,
            None => part.get("items")?,
        };
    }
    if std::ptr::eq(part, schema) {
        return None;
    }
    let text = part.to_string();
    (text.len() <= SCHEMA_BYTES_MAX).then_some(text)
}

fn known_parameters(schema: &Value) -> Option<String> {
    let properties = schema.get("properties")?.as_object()?;
    Some(properties.keys().cloned().collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_pointer_points_to_the_field_and_is_no_longer_than_it_may_be() {
        let schema = json!({
            "type": "object",
            "additionalProperties": false,
            "required": ["a/b~c"],
            "properties": {
                "a/b~c": {"type": "integer"},
                "in": {"type": "object", "additionalProperties": false}
            }
        });
        let validator = jsonschema::draft202012::new(&schema).expect("a schema");
        let long = "x".repeat(POINTER_BYTES_MAX);
        let table = [
            (json!({}), Some("/a~1b~0c")),
            (json!({"a/b~c": "x"}), Some("/a~1b~0c")),
            (json!({"a/b~c": 1, "d/e": 2}), Some("/d~1e")),
            (json!({"a/b~c": 1, long.clone(): 2}), None),
            (json!({"a/b~c": 1, "in": {long.clone(): 2}}), Some("/in")),
        ];
        for (arguments, expected) in table {
            let error = validator.iter_errors(&arguments).next().expect("a problem");
            let problem = describe(&error, &schema);
            assert_eq!(problem.field.as_deref(), expected, "{arguments}");
            assert!(problem.message.len() < 1024, "{}", problem.message);
            let is_known = expected == Some("/a~1b~0c");
            let shown = problem.message.contains("Schema of a~1b~0c");
            assert_eq!(shown, is_known, "{}", problem.message);
        }
        let many: Vec<String> = (0..1_000).map(|it| format!("name-{it}")).collect();
        let told = listed(&many);
        assert!(
            told.starts_with("name-0, name-1, ") && told.ends_with(" more"),
            "{told}"
        );
        assert!(told.len() < POINTER_BYTES_MAX + 16, "{told}");
    }
}
