//! `POST /v1/hooks/{source}`: what the source has signed becomes a dispatch, byte for byte.

use crate::api::{self, Problem, RequestId};
use crate::config::webhooks::Source;
use crate::db::{Failure, ToSql};
use crate::state::State;
use axum::Router;
use axum::body::Body;
use axum::extract::{self, Path};
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE, COOKIE, PROXY_AUTHORIZATION};
use axum::http::{HeaderMap, HeaderName, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use tokio::time::timeout;
use uuid::Uuid;

const RECEIVE: &str = include_str!("../../sql/webhooks/receive.sql");
/// What this is called in logs and metrics.
const RECEIVED: &str = "webhook.received";
/// Longer ids are remembered by their hash.
const LONGEST_ID: usize = 128;
/// Credentials: they prove who sent it, and are not stored.
const NOT_STORED: [HeaderName; 3] = [AUTHORIZATION, COOKIE, PROXY_AUTHORIZATION];

pub fn routes() -> Router<State> {
    Router::new().route("/v1/hooks/{source}", post(receive))
}

async fn receive(
    extract::State(state): extract::State<State>,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let request = RequestId::of(&headers);
    let started = Instant::now();
    let limit = state.config.limits.request_timeout;
    let source = state
        .config
        .sources
        .iter()
        .find(|source| source.name == name);
    let accepted = match source {
        // Anyone may send a body, and send it slowly.
        Some(source) => timeout(limit, accept(&state, source, &headers, body))
            .await
            .unwrap_or_else(|_| Err(Problem::unavailable("the request took too long"))),
        None => Err(Problem::new(
            StatusCode::NOT_FOUND,
            "there is no such source",
        )),
    };
    let response = match &accepted {
        Ok(id) => (
            StatusCode::ACCEPTED,
            axum::Json(json!({ "id": id.to_string() })),
        )
            .into_response(),
        Err(problem) => problem.respond(request.as_str()),
    };
    let took = started.elapsed();
    state.metrics.count(RECEIVED, response.status(), took);
    tracing::info!(
        event = RECEIVED,
        request_id = request.as_str(),
        source = name,
        status = response.status().as_u16(),
        milliseconds = took.as_secs_f64() * 1e3,
        reason = accepted.as_ref().err().map(Problem::reason),
    );
    request.mark(response)
}

/// What the sender can't help, a right that is missing or a database that is away, is no reason to give up.
fn not_stored(failure: Failure) -> Problem {
    let cause = failure.to_string();
    let problem = Problem::from(failure);
    match problem.status {
        StatusCode::PAYLOAD_TOO_LARGE
        | StatusCode::UNPROCESSABLE_ENTITY
        | StatusCode::TOO_MANY_REQUESTS => problem,
        _ => Problem::unavailable("it can not be stored now").with_cause(cause),
    }
}

async fn accept(
    state: &State,
    source: &Source,
    headers: &HeaderMap,
    body: Body,
) -> Result<Uuid, Problem> {
    let body = api::body(body, source.max_body).await?;
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
    let verified = source.verifier.verify(headers, &body, now);
    let verified =
        verified.map_err(|forgery| Problem::new(StatusCode::UNAUTHORIZED, forgery.to_string()))?;
    // Only what the source has signed counts: others can't use up what it may send.
    state.limiter.admit(&source.role)?;
    let Some(database) = &state.database else {
        return Err(Problem::unavailable("no database is configured"));
    };
    let memory = source.replay_window.zip(verified.id);
    let key = memory.as_ref().map(|(_, id)| dedup_key(&source.name, id));
    let seconds = memory.as_ref().map(|(window, _)| window.as_secs_f64());
    let content_type = headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok());
    let stored = stored_headers(headers, source.verifier.secret_header()).to_string();
    let body: &[u8] = &body;
    let parameters: [&(dyn ToSql + Sync); 9] = [
        &source.provider,
        &source.action_type,
        &body,
        &content_type,
        &stored,
        &source.namespace,
        &source.tenant,
        &key,
        &seconds,
    ];
    let rows = database.query(&source.role, RECEIVE, &parameters).await;
    let rows = rows.map_err(not_stored)?;
    Ok(rows[0].get("id"))
}

/// What the database knows a repeated delivery by. An id of any length and content has one.
fn dedup_key(source: &str, id: &str) -> String {
    let is_plain = |c: char| c.is_ascii_graphic() && !"{}".contains(c);
    if !id.is_empty() && id.len() <= LONGEST_ID && id.chars().all(is_plain) {
        return format!("hook:{source}:{id}");
    }
    let hash = Sha256::digest(id.as_bytes());
    let hash: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("hook:{source}:sha256:{hash}")
}

/// One text for each header; those that came more than once are joined.
fn stored_headers(headers: &HeaderMap, secret: Option<&HeaderName>) -> Value {
    let mut stored = Map::new();
    for name in headers.keys() {
        if NOT_STORED.contains(name) || secret == Some(name) {
            continue;
        }
        let values = headers.get_all(name).iter();
        let values: Vec<String> = values
            // A NUL can't stand in a header, and so in no text here.
            .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
            .collect();
        stored.insert(name.as_str().to_owned(), values.join(", ").into());
    }
    stored.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    #[test]
    fn every_id_has_a_key_of_its_own() {
        assert_eq!(dedup_key("a", "evt_1"), "hook:a:evt_1");
        let long = "x".repeat(LONGEST_ID + 1);
        let ids = ["", " ", "a b", "{{x}}", "é", "sha256:", long.as_str()];
        for id in ids {
            let key = dedup_key("a", id);
            assert!(key.len() < 200 && key.is_ascii(), "{key}");
        }
        let keys: std::collections::BTreeSet<String> =
            ids.iter().map(|id| dedup_key("a", id)).collect();
        assert_eq!(keys.len(), ids.len());
    }

    #[test]
    fn headers_are_stored_without_credentials() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("authorization", "Bearer x"),
            ("cookie", "a=b"),
            ("x-secret", "hunter2"),
            ("x-event", "push"),
            ("via", "one"),
            ("via", "two"),
        ] {
            headers.append(name, HeaderValue::from_static(value));
        }
        headers.append("x-binary", HeaderValue::from_bytes(b"a\xff").unwrap());
        let stored = stored_headers(&headers, Some(&HeaderName::from_static("x-secret")));
        let expected = json!({"x-event": "push", "via": "one, two", "x-binary": "a\u{fffd}"});
        assert_eq!(stored, expected);
    }
}
