//! The OpenAPI 3.1 document, derived from the table of operations. docs/openapi.json is this text.

use super::operations::{
    self, ALIASES, Answer, DEFAULT_LIMIT, Input, Kind, LARGEST_LIMIT, Operation, Place,
};
use super::{Problem, RequestId};
use crate::auth;
use crate::state::State;
use axum::extract::{self, ConnectInfo};
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use recur_core::action::columns::{self, Column, DefaultValue, MAINTAINED};
use serde_json::{Map, Value, json};
use std::net::SocketAddr;

/// The document, for callers with an identity.
pub async fn handle(
    extract::State(state): extract::State<State>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    headers: HeaderMap,
) -> Response {
    let id = RequestId::of(&headers);
    let response = match auth::identify(&state.config.auth, &headers, peer.ip()) {
        Ok(_) => ([(header::CONTENT_TYPE, "application/json")], text()).into_response(),
        Err(refusal) => Problem::from(refusal).respond(id.as_str()),
    };
    id.mark(response)
}

pub fn text() -> String {
    let mut text = serde_json::to_string_pretty(&document()).unwrap_or_default();
    text.push('\n');
    text
}

fn document() -> Value {
    let mut paths = Map::new();
    for operation in operations::all() {
        let path = paths.entry(operation.path).or_insert_with(|| json!({}));
        path[operation.method.as_str().to_lowercase()] = describe(operation);
    }
    paths.insert("/v1/process".to_owned(), process());
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "recurd",
            "version": env!("CARGO_PKG_VERSION"),
            "summary": "HTTP beside pg_recur",
            "description": format!(
                "Each operation is a function of the database, called as the caller's role. Accepted as well: {}.",
                aliases()
            ),
            "license": {"name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0"}
        },
        "servers": [{"url": "/"}],
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": schemas(),
            "responses": {
                "Problem": {
                    "description": "What went wrong",
                    "headers": {"x-request-id": {"schema": {"type": "string"}}},
                    "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
                }
            }
        }
    })
}

fn aliases() -> String {
    let pairs: Vec<String> = ALIASES
        .iter()
        .map(|(alias, name)| format!("{alias} for {name}"))
        .collect();
    pairs.join(", ")
}

fn describe(operation: &Operation) -> Value {
    let parameters: Vec<Value> = operation
        .inputs
        .iter()
        .filter_map(parameter)
        .chain(key(operation))
        .collect();
    let mut described = json!({
        "operationId": operation.id,
        "summary": operation.summary,
        "tags": [operation.id.split('.').next()],
        "parameters": parameters,
        "responses": responses(operation),
    });
    if operation.takes_body() {
        described["requestBody"] = json!({
            "required": operation.needs_body(),
            "content": {"application/json": {"schema": body(operation)}}
        });
    }
    described
}

fn parameter(input: &Input) -> Option<Value> {
    let place = match input.place {
        Place::Path => "path",
        Place::Query => "query",
        Place::Version => "header",
        Place::Body | Place::Definition | Place::Changes => return None,
    };
    let mut described = json!({
        "name": input.name, "in": place, "required": input.required, "description": input.about,
    });
    // A JSON value in a query is a text.
    match input.kind {
        Kind::Object => {
            described["content"] = json!({"application/json": {"schema": schema(input.kind)}});
        }
        kind => described["schema"] = schema(kind),
    }
    Some(described)
}

fn key(operation: &Operation) -> Option<Value> {
    operation.takes_key().then(|| {
        json!({
            "name": "Idempotency-Key", "in": "header", "required": false,
            "description": "The request happens once, however often it is sent under this key",
            "schema": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$"},
        })
    })
}

fn schema(kind: Kind) -> Value {
    match kind {
        Kind::Uuid => json!({"type": "string", "format": "uuid"}),
        Kind::Text | Kind::Fields => json!({"type": "string"}),
        Kind::Choice(values) => json!({"type": "string", "enum": values}),
        Kind::Integer => json!({"type": "integer", "format": "int32"}),
        Kind::Boolean => json!({"type": "boolean"}),
        Kind::Instant => json!({"type": "string", "format": "date-time"}),
        Kind::Interval => json!({"type": "string", "examples": ["90 seconds", "PT5M"]}),
        Kind::UpTo(most) => json!({"type": "integer", "maximum": most}),
        Kind::Changes => reference("changes"),
        Kind::Object => json!({"type": "object"}),
        Kind::Any => json!({}),
        Kind::Texts => json!({"type": "array", "items": {"type": "string"}}),
        Kind::Limit => {
            json!({"type": "integer", "minimum": 1, "maximum": LARGEST_LIMIT, "default": DEFAULT_LIMIT})
        }
    }
}

fn body(operation: &Operation) -> Value {
    if let Some(input) = operation
        .inputs
        .iter()
        .find(|input| input.place == Place::Definition)
    {
        return reference(input.name);
    }
    if let Some(input) = operation
        .inputs
        .iter()
        .find(|input| input.place == Place::Changes)
    {
        return reference(input.name);
    }
    let mut properties = Map::new();
    let fields = operation
        .inputs
        .iter()
        .filter(|input| input.place == Place::Body);
    let required: Vec<&str> = fields
        .clone()
        .filter(|input| input.required)
        .map(|input| input.name)
        .collect();
    for input in fields {
        let mut described = schema(input.kind);
        described["description"] = input.about.into();
        properties.insert(input.name.to_owned(), described);
    }
    json!({"type": "object", "additionalProperties": false, "required": required, "properties": properties})
}

fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

fn responses(operation: &Operation) -> Value {
    let object = json!({"type": "object"});
    let is_action = matches!(operation.answer, Answer::Versioned | Answer::Changed { .. });
    let (status, schema) = match operation.answer {
        Answer::Nothing => ("204", None),
        Answer::Created { .. } => (
            "201",
            Some(json!({
                "type": "object", "required": ["id"],
                "properties": {
                    "id": {"type": "string", "format": "uuid"},
                    "next_run_at": {"type": ["string", "null"], "format": "date-time"}
                }
            })),
        ),
        Answer::Items => (
            "200",
            Some(json!({
                "type": "object", "required": ["items"], "properties": {"items": {"type": "array", "items": object}}
            })),
        ),
        Answer::Counted => (
            "200",
            Some(json!({
                "type": "object", "required": ["count", "items"],
                "properties": {
                    "count": {"type": "integer", "description": "How many there are"},
                    "items": {"type": "array", "items": object, "description": "The first 500 of them"}
                }
            })),
        ),
        Answer::Page { .. } => (
            "200",
            Some(json!({
                "type": "object", "required": ["items", "next"],
                "properties": {
                    "items": {"type": "array", "items": object},
                    "next": {"type": ["string", "null"], "description": "What the next page is asked for with"}
                }
            })),
        ),
        _ if is_action => ("200", Some(reference("action"))),
        _ => ("200", Some(object)),
    };
    let mut good = json!({"description": operation.summary});
    if let Some(schema) = schema {
        good["content"] = json!({"application/json": {"schema": schema}});
    }
    if is_action {
        good["headers"] = json!({"ETag": {"schema": {"type": "string"}}});
    }
    let mut responses = Map::new();
    responses.insert(status.to_owned(), good);
    if matches!(operation.answer, Answer::Versioned) {
        responses.insert(
            "304".to_owned(),
            json!({"description": "What If-None-Match names, unchanged"}),
        );
    }
    for status in [
        "400", "401", "403", "404", "409", "412", "413", "415", "422", "429", "503",
    ] {
        responses.insert(
            status.to_owned(),
            json!({"$ref": "#/components/responses/Problem"}),
        );
    }
    Value::Object(responses)
}

fn process() -> Value {
    json!({
        "post": {
            "operationId": "process",
            "summary": "Dispatches what is due, for an external cron. The bearer token is the secret of its own",
            "tags": ["process"],
            "responses": {
                "200": {
                    "description": "How many were dispatched, skipped, ended and failed",
                    "content": {"application/json": {"schema": {"type": "object"}}}
                },
                "401": {"$ref": "#/components/responses/Problem"},
                "403": {"$ref": "#/components/responses/Problem"},
                "404": {"$ref": "#/components/responses/Problem"},
                "503": {"$ref": "#/components/responses/Problem"}
            }
        }
    })
}

fn schemas() -> Value {
    let mut definition = Map::new();
    let mut changes = Map::new();
    let mut action = Map::new();
    for column in Column::ALL {
        let spec = column.spec();
        definition.insert(
            spec.name.to_owned(),
            or_null(column_schema(spec.kind, true)),
        );
        changes.insert(
            spec.name.to_owned(),
            or_null(column_schema(spec.kind, true)),
        );
        action.insert(
            spec.name.to_owned(),
            or_null(column_schema(spec.kind, false)),
        );
    }
    let is_required = |column: &&Column| column.spec().default == DefaultValue::Required;
    let required: Vec<&str> = Column::ALL
        .iter()
        .filter(is_required)
        .map(|column| column.name())
        .collect();
    for name in &required {
        definition.insert(
            (*name).to_owned(),
            json!({"type": "string", "minLength": 1, "maxLength": 255}),
        );
    }
    definition.insert(
        "schedule".to_owned(),
        json!({"type": "string", "examples": ["0 9 * * MON-FRI", "90m"]}),
    );
    definition.insert(
        "on_existing".to_owned(),
        json!({"enum": ["fail", "upsert", "add_another", null]}),
    );
    changes.insert("owner".to_owned(), json!({"type": "string"}));
    for name in MAINTAINED {
        action.insert((*name).to_owned(), json!({}));
    }
    json!({
        "definition": {
            "type": "object", "additionalProperties": false, "required": required, "properties": definition
        },
        "changes": {"type": "object", "additionalProperties": false, "properties": changes},
        "action": {"type": "object", "properties": action},
        "Problem": {
            "type": "object",
            "required": ["type", "title", "status", "detail", "request_id"],
            "properties": {
                "type": {"type": "string"},
                "title": {"type": "string"},
                "status": {"type": "integer"},
                "detail": {"type": "string", "description": "What is wrong, in the database's words"},
                "hint": {"type": "string", "description": "What to do about it"},
                "code": {"type": "string", "description": "The SQLSTATE"},
                "request_id": {"type": "string", "description": "What the logs call the request"}
            }
        }
    })
}

/// What a column takes, or shows.
fn column_schema(kind: columns::Kind, is_input: bool) -> Value {
    match kind {
        columns::Kind::Name if is_input => {
            json!({"type": "string", "minLength": 1, "maxLength": 255})
        }
        columns::Kind::Choice(values) => json!({"type": "string", "enum": values}),
        columns::Kind::Instant => json!({"type": "string", "format": "date-time"}),
        columns::Kind::Count { min } => json!({"type": "integer", "minimum": min}),
        columns::Kind::Int => json!({"type": "integer", "format": "int32"}),
        columns::Kind::Bool => json!({"type": "boolean"}),
        columns::Kind::JsonObject | columns::Kind::Backoff => json!({"type": "object"}),
        columns::Kind::Labels => {
            json!({"type": "object", "additionalProperties": {"type": "string"}})
        }
        columns::Kind::Interval { .. } => {
            json!({"type": "string", "examples": ["90 seconds", "PT5M"]})
        }
        _ => json!({"type": "string"}),
    }
}

/// NULL stands for the default, or for nothing.
fn or_null(schema: Value) -> Value {
    json!({"anyOf": [schema, {"type": "null"}]})
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `UPDATE_DOCS=1 cargo test -p recurd openapi` writes it.
    #[test]
    fn the_committed_document_is_current() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/openapi.json");
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::write(path, text()).unwrap();
        }
        let committed = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            committed == text(),
            "docs/openapi.json is not current: UPDATE_DOCS=1 cargo test -p recurd openapi"
        );
    }

    #[test]
    fn every_operation_has_a_name_and_a_place_of_its_own() {
        let mut names: Vec<_> = operations::all().map(|operation| operation.id).collect();
        let mut places: Vec<_> = operations::all()
            .map(|operation| (operation.path, operation.method.as_str()))
            .collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        places.sort_unstable();
        places.dedup();
        assert_eq!((names.len(), places.len()), (count, count));
    }

    #[test]
    fn statements_have_a_parameter_for_each_input() {
        for operation in operations::all() {
            let count = operation
                .inputs
                .iter()
                .filter(|input| input.kind != Kind::Fields)
                .count();
            let is_used = |at: usize| operation.sql.contains(&format!("${at}::text"));
            assert!((1..=count).all(is_used), "{}", operation.id);
            assert!(!is_used(count + 1), "{}", operation.id);
        }
    }
}
