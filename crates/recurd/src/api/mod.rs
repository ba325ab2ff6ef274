//! The REST API: every operation is one function of the database, called as the caller's role.

mod answer;
mod etag;
mod exchange;
mod fields;
mod inputs;
pub mod openapi;
mod operations;
mod problem;
mod process;
mod requests;

pub use problem::Problem;
pub use requests::{Limiter, RequestId, body};

use crate::auth;
use crate::config::Role;
use crate::state::State;
use axum::Router;
use axum::extract::{ConnectInfo, Request};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use axum::routing::{MethodFilter, on};
use exchange::{Exchange, Key, Outcome};
use operations::Operation;
use sha2::{Digest, Sha256};
use std::net::SocketAddr;
use std::time::Instant;

/// The longest Idempotency-Key.
const LONGEST_KEY: usize = 255;

pub fn routes() -> Router<State> {
    let mut router = Router::new();
    for operation in operations::all() {
        let filter = MethodFilter::try_from(operation.method.clone()).expect("a method of axum's");
        let handler = move |axum::extract::State(state): axum::extract::State<State>,
                            ConnectInfo(peer): ConnectInfo<SocketAddr>,
                            request: Request| async move {
            handle(operation, &state, peer, request).await
        };
        router = router.route(operation.path, on(filter, handler));
    }
    router
        .route("/v1/process", axum::routing::post(process::handle))
        .route("/v1/openapi.json", axum::routing::get(openapi::handle))
}

/// Runs an operation, and logs it under its name.
async fn handle(
    operation: &'static Operation,
    state: &State,
    peer: SocketAddr,
    request: Request,
) -> Response {
    let id = RequestId::of(request.headers());
    let started = Instant::now();
    let mut role = None;
    let limit = state.config.limits.request_timeout;
    let run = run(operation, state, peer, request, &mut role);
    let result = match tokio::time::timeout(limit, run).await {
        Ok(result) => result,
        Err(_) => Err(Problem::unavailable(
            "the request took too long and was given up",
        )),
    };
    let cause = result
        .as_ref()
        .err()
        .and_then(Problem::cause)
        .map(str::to_owned);
    let response = result.unwrap_or_else(|problem| problem.respond(id.as_str()));
    let took = started.elapsed();
    state.metrics.count(operation.id, response.status(), took);
    tracing::info!(
        event = operation.id,
        request_id = id.as_str(),
        role = role.as_ref().map(Role::as_str),
        status = response.status().as_u16(),
        milliseconds = took.as_secs_f64() * 1e3,
        cause,
    );
    id.mark(response)
}

async fn run(
    operation: &'static Operation,
    state: &State,
    peer: SocketAddr,
    request: Request,
    role_of_log: &mut Option<Role>,
) -> Result<Response, Problem> {
    let database = state
        .database
        .as_ref()
        .ok_or_else(|| Problem::unavailable("no database is configured"))?;
    let (head, body) = request.into_parts();
    let role = auth::identify(&state.config.auth, &head.headers, peer.ip())?;
    *role_of_log = Some(role.clone());
    state.limiter.admit(&role)?;
    let body = requests::body(body, state.config.limits.body_bytes).await?;
    let values = inputs::read(operation, &head.uri, &head.headers, &body)?;
    let key = key(operation, &head.headers, head.uri.path(), &body)?;
    if !operation.takes_version() && head.headers.contains_key(axum::http::header::IF_MATCH) {
        return Err(Problem::bad_request(
            "If-Match: this operation changes no version",
        ));
    }
    let exchange = Exchange {
        operation,
        values: &values,
        key: key.as_ref(),
    };
    let outcome = database.as_role(&role, &exchange).await;
    let outcome = outcome.map_err(|failure| Problem::from(failure).about_one())?;
    match outcome {
        Outcome::Rows(rows) => answer::of(operation, &values, &head.headers, &rows),
        Outcome::Replayed { status, body } => Ok(answer::replayed(operation, status, body)),
    }
}

/// The Idempotency-Key, with a hash of what is asked for under it.
fn key(
    operation: &Operation,
    headers: &HeaderMap,
    path: &str,
    body: &[u8],
) -> Result<Option<Key>, Problem> {
    let mut values = headers.get_all("idempotency-key").iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    if !operation.takes_key() {
        return Err(Problem::bad_request(
            "Idempotency-Key: this operation creates nothing",
        ));
    }
    let text = value.to_str().unwrap_or("");
    if text.is_empty() || text.len() > LONGEST_KEY || values.next().is_some() {
        return Err(Problem::new(
            StatusCode::BAD_REQUEST,
            format!("Idempotency-Key: expected one text of 1 to {LONGEST_KEY} ASCII characters"),
        )
        .with_hint("A UUID is a good key."));
    }
    let mut hash = Sha256::new();
    hash.update(operation.method.as_str());
    hash.update(path);
    hash.update([0]);
    hash.update(body);
    let fingerprint = hash
        .finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    Ok(Some(Key {
        text: text.to_owned(),
        fingerprint,
    }))
}

/// What no operation has.
pub async fn not_found(request: Request) -> Response {
    let id = RequestId::of(request.headers());
    let problem = Problem::new(
        StatusCode::NOT_FOUND,
        format!("there is nothing at {}", request.uri().path()),
    );
    id.mark(problem.respond(id.as_str()))
}

pub async fn not_allowed(request: Request) -> Response {
    let id = RequestId::of(request.headers());
    let detail = format!(
        "{} is no method of {}",
        request.method(),
        request.uri().path()
    );
    id.mark(Problem::new(StatusCode::METHOD_NOT_ALLOWED, detail).respond(id.as_str()))
}
