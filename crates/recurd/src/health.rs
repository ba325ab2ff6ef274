//! Liveness and readiness.

use crate::state::State;
use axum::extract;
use axum::http::StatusCode;

/// This process answers.
pub async fn livez() -> &'static str {
    "ok\n"
}

/// The database answers, too: on any role of the allow-list, since the door takes no other.
pub async fn readyz(extract::State(state): extract::State<State>) -> (StatusCode, &'static str) {
    let Some(database) = &state.database else {
        return (
            StatusCode::SERVICE_UNAVAILABLE,
            "no database is configured\n",
        );
    };
    match database.ping().await {
        Ok(()) => (StatusCode::OK, "ok\n"),
        Err(failure) => {
            tracing::warn!(event = "ready.failed", %failure);
            (
                StatusCode::SERVICE_UNAVAILABLE,
                "the database does not answer\n",
            )
        }
    }
}
