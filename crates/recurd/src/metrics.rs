//! `/metrics`: what the database counts, and what this process does, in the text format of Prometheus.

use crate::api::{Problem, RequestId};
use crate::auth::{self, Refusal};
use crate::state::State;
use axum::extract;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio_postgres::Row;

const METRICS: &str = include_str!("../sql/metrics.sql");
/// However many scrape: the database is asked once in this time.
const FRESH_FOR: Duration = Duration::from_secs(5);

/// What this process counts, and the latest answer of the database.
#[derive(Default)]
pub struct Metrics {
    requests: Mutex<BTreeMap<Kind, Requests>>,
    scraped: Arc<tokio::sync::Mutex<Option<Scraped>>>,
}

/// The operation and the status.
type Kind = (&'static str, u16);

#[derive(Default)]
struct Requests {
    count: u64,
    seconds: f64,
}

struct Scraped {
    at: Instant,
    /// None where the database did not answer.
    text: Option<String>,
}

impl Metrics {
    pub fn count(&self, operation: &'static str, status: StatusCode, took: Duration) {
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        let of_kind = requests.entry((operation, status.as_u16())).or_default();
        of_kind.count += 1;
        of_kind.seconds += took.as_secs_f64();
    }

    fn own(&self) -> String {
        let requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        let mut text = String::new();
        head(
            &mut text,
            "recurd_requests_total",
            "counter",
            "Requests by operation and status",
        );
        for ((operation, status), Requests { count, .. }) in requests.iter() {
            let _ = writeln!(
                text,
                "recurd_requests_total{{operation=\"{operation}\",status=\"{status}\"}} {count}"
            );
        }
        let name = "recurd_request_seconds_total";
        head(&mut text, name, "counter", "How long requests took in all");
        for ((operation, status), Requests { seconds, .. }) in requests.iter() {
            let _ = writeln!(
                text,
                "{name}{{operation=\"{operation}\",status=\"{status}\"}} {seconds}"
            );
        }
        text
    }
}

pub async fn handle(extract::State(state): extract::State<State>, headers: HeaderMap) -> Response {
    let id = RequestId::of(&headers);
    match scrape(&state, &headers).await {
        Ok(text) => (
            [(
                header::CONTENT_TYPE,
                "text/plain; version=0.0.4; charset=utf-8",
            )],
            text,
        )
            .into_response(),
        Err(problem) => id.mark(problem.respond(id.as_str())),
    }
}

async fn scrape(state: &State, headers: &HeaderMap) -> Result<String, Problem> {
    let (Some(config), Some(_)) = (&state.config.metrics, &state.database) else {
        return Err(Problem::new(
            StatusCode::NOT_FOUND,
            "there is nothing at /metrics",
        ));
    };
    if let Some(expected) = &config.token {
        let given = auth::bearer(headers).ok_or(Refusal::Missing)?;
        if !auth::is_digest(expected, given) {
            return Err(Refusal::Invalid.into());
        }
    }
    let answer = answer(state).await;
    let mut text = state.metrics.own();
    head(
        &mut text,
        "recurd_database_up",
        "gauge",
        "1 if the database has answered the latest scrape",
    );
    let _ = writeln!(text, "recurd_database_up {}", u8::from(answer.is_some()));
    text.push_str(answer.as_deref().unwrap_or_default());
    Ok(text)
}

/// The latest answer of the database. Scrapes at the same time wait for one.
async fn answer(state: &State) -> Option<String> {
    let mut scraped = Arc::clone(&state.metrics.scraped).lock_owned().await;
    let is_fresh = |scraped: &Scraped| scraped.at.elapsed() < FRESH_FOR;
    if !scraped.as_ref().is_some_and(is_fresh) {
        let state = state.clone();
        // A task of its own: where this scrape hangs up, the answer is there for the next one.
        let asked = tokio::spawn(async move {
            *scraped = Some(ask(&state).await);
            scraped
        });
        scraped = asked.await.ok()?;
    }
    scraped.as_ref()?.text.clone()
}

async fn ask(state: &State) -> Scraped {
    let text = match (&state.config.metrics, &state.database) {
        (Some(config), Some(database)) => database.query(&config.role, METRICS, &[]).await,
        _ => Ok(Vec::new()),
    };
    let text = text
        .inspect_err(|failure| tracing::warn!(event = "metrics.failed", %failure))
        .map(|rows| rendered(&rows));
    // Fresh from now on: where the answer took long, it is not asked for again at once.
    Scraped {
        at: Instant::now(),
        text: text.ok(),
    }
}

fn rendered(rows: &[Row]) -> String {
    let mut text = String::new();
    let mut family = String::new();
    for row in rows {
        let (name, kind): (&str, &str) = (row.get("name"), row.get("kind"));
        let (labels, value): (Option<&str>, f64) = (row.get("labels"), row.get("value"));
        let this = if kind == "histogram" {
            histogram(name)
        } else {
            name
        };
        if this != family {
            head(&mut text, this, kind, row.get("help"));
            family = this.to_owned();
        }
        let _ = match labels {
            Some(labels) => writeln!(text, "{name}{{{labels}}} {value}"),
            None => writeln!(text, "{name} {value}"),
        };
    }
    text
}

/// The name of the histogram that a sample belongs to.
fn histogram(sample: &str) -> &str {
    ["_bucket", "_sum", "_count"]
        .iter()
        .find_map(|end| sample.strip_suffix(end))
        .unwrap_or(sample)
}

fn head(text: &mut String, name: &str, kind: &str, help: &str) {
    let help = help.replace('\\', "\\\\").replace('\n', "\\n");
    let _ = write!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
}
