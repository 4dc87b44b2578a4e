//! The `OpenAPI` document, made of the routes as they are declared and of the types on the wire.
//!
//! [`operations`] says what each route takes and gives; its access is the router's own word. A test
//! holds both against each other, so that no route is left out.

pub mod operations;

use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::access::Access;
use crate::routes::{Declared, declared};
use operations::{Answer, Operation, Takes, Use, Where};

/// Where schemas stand in the document.
const SCHEMAS: &str = "#/components/schemas";

/// The document.
pub fn document() -> Value {
    let mut schemas = Schemas::new();
    let mut paths: Map<String, Value> = Map::new();
    let all = operations::all();
    for route in declared() {
        let Some(operation) = all.iter().find(|it| it.is(&route)) else {
            continue;
        };
        let shown = shown(operation, &route, &mut schemas);
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        path[route.method] = shown;
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Holdfast",
            "version": env!("CARGO_PKG_VERSION"),
            "summary": "Tool calls that happen once, and a model with its tools.",
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "servers": [{"url": "/"}],
        "paths": paths,
        "components": {
            "schemas": schemas.taken(),
            "securitySchemes": {
                "caller": bearer("The token for tool calls."),
                "admin": bearer("The token for admin actions."),
                "approver": bearer("The token of whoever answers for people."),
                "client": bearer("The key of a client, where keys are configured."),
            },
        },
    })
}

fn bearer(what: &str) -> Value {
    json!({"type": "http", "scheme": "bearer", "description": what})
}

/// Types as they are sent and as they are read are described apart: what has a default need not be
/// sent, and is always there in an answer.
struct Schemas {
    read: SchemaGenerator,
    written: SchemaGenerator,
}

impl Schemas {
    fn new() -> Self {
        let mut settings = SchemaSettings::draft2020_12();
        SCHEMAS.clone_into(settings.definitions_path.to_mut());
        settings.meta_schema = None;
        Self {
            read: settings.clone().for_deserialize().into_generator(),
            written: settings.for_serialize().into_generator(),
        }
    }

    fn of(&mut self, schema: Use, is_answer: bool) -> Value {
        let generator = if is_answer {
            &mut self.written
        } else {
            &mut self.read
        };
        schema(generator).to_value()
    }

    fn taken(mut self) -> Value {
        let mut all = self.read.take_definitions(true);
        for (name, schema) in self.written.take_definitions(true) {
            all.entry(name).or_insert(schema);
        }
        Value::Object(all)
    }
}

fn shown(operation: &Operation, route: &Declared, schemas: &mut Schemas) -> Value {
    let mut shown = json!({
        "operationId": operation.id,
        "summary": operation.summary,
        "tags": [operation.tag],
        "security": security(route.access),
        "parameters": parameters(operation, route, schemas),
        "responses": responses(operation, route.access, schemas),
    });
    if let Takes::Body { schema, needed } = operation.takes {
        shown["requestBody"] = json!({
            "required": needed,
            "content": {"application/json": {"schema": schemas.of(schema, false)}},
        });
    }
    shown
}

/// Which tokens open it. An empty one says that none is needed in the usual case: on this machine,
/// without keys.
fn security(access: Access) -> Value {
    match access {
        Access::Open => json!([]),
        Access::Monitor => json!([{}, {"caller": []}, {"admin": []}]),
        Access::Client => json!([{}, {"client": []}, {"caller": []}]),
        Access::Caller => json!([{"caller": []}]),
        Access::Admin => json!([{"admin": []}]),
        Access::Approver => json!([{"approver": []}]),
    }
}

fn parameters(operation: &Operation, route: &Declared, schemas: &mut Schemas) -> Value {
    let mut all: Vec<Value> = Vec::new();
    for part in route.path.split('/') {
        if let Some(name) = part.strip_prefix('{').and_then(|it| it.strip_suffix('}')) {
            all.push(json!({"name": name, "in": "path", "required": true,
                            "schema": {"type": "string", "minLength": 1}}));
        }
    }
    for parameter in operation.parameters {
        let place = match parameter.place {
            Where::Query => "query",
            Where::Header => "header",
        };
        all.push(
            json!({"name": parameter.name, "in": place, "required": false,
                        "description": parameter.meaning,
                        "schema": schemas.of(parameter.schema, false)}),
        );
    }
    json!(all)
}

fn responses(operation: &Operation, access: Access, schemas: &mut Schemas) -> Value {
    let mut all: Map<String, Value> = Map::new();
    for (status, answer) in operation.answers(access) {
        let content = match answer {
            Answer::Json(schema) => {
                json!({"application/json": {"schema": schemas.of(schema, true)}})
            }
            Answer::JsonOrStream(schema) => json!({
                "application/json": {"schema": schemas.of(schema, true)},
                "text/event-stream": {},
            }),
            Answer::Stream => json!({"text/event-stream": {}}),
            Answer::Text(kind) => json!({kind: {"schema": {"type": "string"}}}),
        };
        let reason = http::StatusCode::from_u16(status).ok();
        let reason = reason.and_then(|it| it.canonical_reason());
        let mut response = json!({"description": reason.unwrap_or("Answer"), "content": content});
        if status == 429 || status == 503 {
            response["headers"] = json!({"Retry-After": {
                "description": "Seconds after which it may help to come again.",
                "schema": {"type": "integer", "minimum": 1}}});
        }
        all.insert(status.to_string(), response);
    }
    Value::Object(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_route_is_in_the_document_and_nothing_else() {
        let document = document();
        let mut told: Vec<(String, String)> = Vec::new();
        let paths = document["paths"].as_object().expect("paths");
        for (path, methods) in paths {
            for method in methods.as_object().expect("methods").keys() {
                told.push((path.clone(), method.clone()));
            }
        }
        let mut known: Vec<(String, String)> = declared()
            .iter()
            .map(|route| (route.path.to_owned(), route.method.to_owned()))
            .collect();
        told.sort();
        known.sort();
        assert_eq!(told, known);
        for operation in operations::all() {
            let uses = declared().iter().filter(|it| operation.is(it)).count();
            assert_eq!(uses, 1, "{} is described and not routed", operation.id);
        }
    }

    #[test]
    fn every_reference_leads_somewhere() {
        fn look(value: &Value, document: &Value) {
            if let Some(to) = value["$ref"].as_str() {
                let found = to.strip_prefix('#').and_then(|at| document.pointer(at));
                assert!(found.is_some(), "{to} leads nowhere");
            }
            match value {
                Value::Array(list) => list.iter().for_each(|it| look(it, document)),
                Value::Object(fields) => fields.values().for_each(|it| look(it, document)),
                _ => {}
            }
        }
        let document = document();
        look(&document, &document);
    }

    /// Types of one name that are read and written alike need one schema; others need two names.
    #[test]
    fn no_type_is_described_in_two_ways() {
        let mut schemas = Schemas::new();
        for operation in operations::all() {
            if let Takes::Body { schema, .. } = operation.takes {
                schemas.of(schema, false);
            }
            for (_, answer) in operation.answers(Access::Caller) {
                if let Answer::Json(schema) | Answer::JsonOrStream(schema) = answer {
                    schemas.of(schema, true);
                }
            }
        }
        let read = schemas.read.take_definitions(true);
        for (name, written) in schemas.written.take_definitions(true) {
            let same = read.get(&name).is_none_or(|it| *it == written);
            assert!(same, "{name} is read and written in different ways");
        }
    }
}
