//! The listener.

use crate::state::State;
use crate::{api, health, metrics, webhooks};
use axum::Router;
use axum::routing::get;
use std::net::SocketAddr;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

/// Serves until SIGTERM or SIGINT; requests that are under way are finished.
pub async fn serve(state: State) -> Result<(), String> {
    let listener = TcpListener::bind(state.config.listen)
        .await
        .map_err(|error| format!("listen = {}: {error}", state.config.listen))?;
    let address = listener.local_addr().map_err(|error| error.to_string())?;
    tracing::info!(event = "server.started", %address);
    let app = routes(state).into_make_service_with_connect_info::<SocketAddr>();
    axum::serve(listener, app)
        .with_graceful_shutdown(stopped())
        .await
        .map_err(|error| error.to_string())
}

pub fn routes(state: State) -> Router {
    Router::new()
        .route("/livez", get(health::livez))
        .route("/readyz", get(health::readyz))
        .route("/metrics", get(metrics::handle))
        .merge(api::routes())
        .merge(webhooks::ingress::routes())
        .fallback(api::not_found)
        .method_not_allowed_fallback(api::not_allowed)
        .with_state(state)
}

/// Until SIGTERM or SIGINT.
pub async fn stopped() {
    let (Ok(mut terminate), Ok(mut interrupt)) = (
        signal(SignalKind::terminate()),
        signal(SignalKind::interrupt()),
    ) else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    tracing::info!(event = "server.stopping");
}
