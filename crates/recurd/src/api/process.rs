//! `POST /v1/process`: an external cron lets the database dispatch what is due, and webhooks be delivered.

use super::{Problem, RequestId};
use crate::auth;
use crate::state::State;
use crate::webhooks;
use axum::extract;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use std::time::Instant;

/// What this is called in logs and metrics.
const TICKED: &str = "process.tick";
const TICK: &str = include_str!("../../sql/tick.sql");

pub async fn handle(extract::State(state): extract::State<State>, headers: HeaderMap) -> Response {
    let id = RequestId::of(&headers);
    let started = Instant::now();
    let result = tick(&state, &headers).await;
    let cause = result
        .as_ref()
        .err()
        .and_then(Problem::cause)
        .map(str::to_owned);
    let response = result.unwrap_or_else(|problem| problem.respond(id.as_str()));
    let took = started.elapsed();
    state.metrics.count(TICKED, response.status(), took);
    tracing::info!(
        event = TICKED,
        request_id = id.as_str(),
        status = response.status().as_u16(),
        milliseconds = took.as_secs_f64() * 1e3,
        cause,
    );
    id.mark(response)
}

async fn tick(state: &State, headers: &HeaderMap) -> Result<Response, Problem> {
    let (Some(process), Some(database)) = (&state.config.process, &state.database) else {
        return Err(Problem::new(
            StatusCode::NOT_FOUND,
            "there is nothing at /v1/process",
        ));
    };
    let given = auth::bearer(headers).ok_or(auth::Refusal::Missing)?;
    if !auth::is_secret(process.secret.expose(), given) {
        return Err(auth::Refusal::Invalid.into());
    }
    let rows = database.query(&process.role, TICK, &[]).await?;
    if let Some(limit) = process.deliver {
        webhooks::deliver::for_a_while(state, limit)
            .await
            .map_err(Problem::unavailable)?;
    }
    let body: String = rows
        .first()
        .map_or_else(|| "{}".to_owned(), |row| row.get("body"));
    Ok(([(header::CONTENT_TYPE, "application/json")], body).into_response())
}
