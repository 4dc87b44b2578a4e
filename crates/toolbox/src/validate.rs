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
            Some(message) => Failure::before_start(
                ErrorCode::InvalidArguments,
                message,
                Judged::Counts(FailureKind::Validation),
            )
            .into(),
        }
    }
}

/// What is wrong with the arguments, for the model: the field, the reason, the field's schema.
pub(crate) fn problem_with(found: &Registered, arguments: &Value) -> Option<String> {
    if found.validator.is_valid(arguments) {
        return None;
    }
    let mut message = String::new();
    for error in found.validator.iter_errors(arguments).take(PROBLEMS_MAX) {
        let problem = describe(&error, &found.schema);
        if !message.is_empty() {
            message.push('\n');
        }
        message.push_str(&problem);
    }
    Some(message)
}

fn describe(error: &ValidationError<'_>, schema: &Value) -> String {
    let path = error.instance_path().as_str();
    let name = field_name(path);
    let (mut text, field_pointer) = match error.kind() {
        ValidationErrorKind::Required { property } => {
            let missing = property.as_str().unwrap_or_default();
            let whole = if path.is_empty() {
                missing.to_owned()
            } else {
                format!("{name}/{missing}")
            };
            (
                format!("Missing required parameter: {whole}"),
                format!("{path}/{missing}"),
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
            format!("Unknown parameter: {}", unexpected.join(", ")),
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
    text
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
            .and_then(|properties| properties.get(step))
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
