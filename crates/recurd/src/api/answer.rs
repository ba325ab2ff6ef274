//! Answers: JSON texts of the database, put together without being read.

use super::etag;
use super::fields::selected;
use super::inputs::Values;
use super::operations::{Answer, Operation};
use super::problem::Problem;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use tokio_postgres::Row;

pub fn of(
    operation: &Operation,
    values: &Values,
    headers: &HeaderMap,
    rows: &[Row],
) -> Result<Response, Problem> {
    match &operation.answer {
        Answer::One => Ok(json(StatusCode::OK, body(one(rows)?))),
        Answer::Nothing => one(rows).map(|_| StatusCode::NO_CONTENT.into_response()),
        Answer::Created { location, .. } => {
            let row = one(rows)?;
            let mut response = json(StatusCode::CREATED, body(row));
            locate(&mut response, location, row.get("id"));
            Ok(response)
        }
        Answer::Versioned | Answer::Changed { .. } => {
            let row = one(rows)?;
            let body = shown(values, body(row));
            let tag = etag::of(row.get("version"), &body);
            let is_known =
                matches!(operation.answer, Answer::Versioned) && etag::is_known(headers, &tag);
            let mut response = if is_known {
                StatusCode::NOT_MODIFIED.into_response()
            } else {
                json(StatusCode::OK, body)
            };
            if let Ok(value) = HeaderValue::try_from(tag) {
                response.headers_mut().insert(header::ETAG, value);
            }
            Ok(response)
        }
        Answer::Items => Ok(json(
            StatusCode::OK,
            format!("{{\"items\":{}}}", items(values, rows)),
        )),
        Answer::Counted => {
            let count: i64 = rows.first().map_or(0, |row| row.get("count"));
            let items = items(values, rows);
            Ok(json(
                StatusCode::OK,
                format!("{{\"count\":{count},\"items\":{items}}}"),
            ))
        }
        Answer::Page { .. } => Ok(json(StatusCode::OK, page(values, rows))),
    }
}

/// The answer that an earlier request had.
pub fn replayed(operation: &Operation, status: i32, body: String) -> Response {
    let status = u16::try_from(status)
        .ok()
        .and_then(|status| StatusCode::from_u16(status).ok());
    let id = serde_json::from_str::<serde_json::Value>(&body).ok();
    let mut response = json(status.unwrap_or(StatusCode::CREATED), body);
    if let (Answer::Created { location, .. }, Some(id)) = (
        &operation.answer,
        id.as_ref().and_then(|body| body["id"].as_str()),
    ) {
        locate(&mut response, location, id);
    }
    response
        .headers_mut()
        .insert("idempotency-replayed", HeaderValue::from_static("true"));
    response
}

fn locate(response: &mut Response, location: &str, id: &str) {
    if let Ok(value) = HeaderValue::try_from(format!("{location}{id}")) {
        response.headers_mut().insert(header::LOCATION, value);
    }
}

fn json(status: StatusCode, body: impl Into<String>) -> Response {
    let headers = [
        (header::CONTENT_TYPE, "application/json"),
        (header::CACHE_CONTROL, "no-store"),
    ];
    (status, headers, body.into()).into_response()
}

fn one(rows: &[Row]) -> Result<&Row, Problem> {
    rows.first().ok_or_else(|| {
        Problem::new(
            StatusCode::NOT_FOUND,
            "there is nothing of this id, or the role may not see it",
        )
    })
}

fn body(row: &Row) -> &str {
    row.get("body")
}

fn shown(values: &Values, body: &str) -> String {
    if values.fields.is_empty() {
        body.to_owned()
    } else {
        selected(body, &values.fields)
    }
}

fn items(values: &Values, rows: &[Row]) -> String {
    let items: Vec<String> = rows.iter().map(|row| shown(values, body(row))).collect();
    format!("[{}]", items.join(","))
}

fn page(values: &Values, rows: &[Row]) -> String {
    let limit = values.limit.map_or(rows.len(), |limit| limit as usize);
    let shown = &rows[..rows.len().min(limit)];
    let next = match shown.last() {
        Some(last) if rows.len() > limit => serde_json::Value::from(last.get::<_, &str>("cursor")),
        _ => serde_json::Value::Null,
    };
    format!("{{\"items\":{},\"next\":{next}}}", items(values, shown))
}
