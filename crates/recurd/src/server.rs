//! The listener. A client, known or not, holds a connection for a limited time.

use crate::state::State;
use crate::{api, health, metrics, webhooks};
use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::response::Response;
use axum::routing::get;
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use std::convert::Infallible;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::task::TaskTracker;
use tower_service::Service;

/// A client that has hung up already.
const ABORTED: [ErrorKind; 2] = [ErrorKind::ConnectionAborted, ErrorKind::ConnectionReset];
/// Where no connection can be accepted, for want of file descriptors most likely.
const PAUSE: Duration = Duration::from_secs(1);
/// Requests at the same time on one HTTP/2 connection.
const STREAMS: u32 = 64;
/// How long answers that are ready may take to be sent, once recurd stops.
const SENDING: Duration = Duration::from_secs(1);

/// Serves until it is stopped; requests that are under way are finished.
pub async fn serve(state: &State) -> Result<(), String> {
    let listener = TcpListener::bind(state.config.listen)
        .await
        .map_err(|error| format!("listen = {}: {error}", state.config.listen))?;
    let address = listener.local_addr().map_err(|error| error.to_string())?;
    tracing::info!(event = "server.started", %address);
    let permits = Arc::new(Semaphore::new(state.config.limits.connections));
    let app = routes(state.clone());
    let connections = TaskTracker::new();
    loop {
        // Further connections wait in the system's queue.
        let accepted = async {
            (
                Arc::clone(&permits).acquire_owned().await,
                listener.accept().await,
            )
        };
        let (permit, accepted) = tokio::select! {
            () = state.stop.cancelled() => break,
            accepted = accepted => accepted,
        };
        match accepted {
            Ok((stream, peer)) => {
                let (state, app) = (state.clone(), app.clone());
                connections.spawn(async move {
                    converse(&state, app, stream, peer).await;
                    drop(permit);
                });
            }
            Err(error) if ABORTED.contains(&error.kind()) => {}
            Err(error) => {
                tracing::warn!(event = "server.not_accepted", %error);
                sleep(PAUSE).await;
            }
        }
    }
    drop(listener);
    connections.close();
    let limit = state.config.limits.request_timeout + SENDING;
    if timeout(limit, connections.wait()).await.is_err() {
        tracing::warn!(event = "server.gave_up", connections = connections.len());
    }
    Ok(())
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

/// Answers the requests of a connection, until it is closed, idle for too long, or recurd stops.
async fn converse(state: &State, app: Router, stream: TcpStream, peer: SocketAddr) {
    let limits = &state.config.limits;
    let activity = Arc::new(Activity::new(limits.header_timeout, limits.idle_timeout));
    let service = hyper::service::service_fn(|request| {
        answer(app.clone(), request, peer, Arc::clone(&activity))
    });
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http2().max_concurrent_streams(STREAMS);
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
    let mut is_stopping = false;
    loop {
        // What ends a connection, a client that hangs up or talks nonsense, is no news.
        tokio::select! {
            _ = connection.as_mut() => return,
            () = activity.expired() => return,
            () = state.stop.cancelled(), if !is_stopping => {
                is_stopping = true;
                connection.as_mut().graceful_shutdown();
            }
        }
    }
}

async fn answer(
    mut app: Router,
    request: hyper::Request<Incoming>,
    peer: SocketAddr,
    activity: Arc<Activity>,
) -> Result<Response, Infallible> {
    let _busy = Busy::new(&activity);
    let mut request = request.map(Body::new);
    request.extensions_mut().insert(ConnectInfo(peer));
    app.call(request).await
}

/// Whether a connection is in use: it is idle from the end of a request to the headers of the next.
struct Activity {
    idle_timeout: Duration,
    now: Mutex<Now>,
}

struct Now {
    requests: usize,
    idle_until: Instant,
}

impl Activity {
    fn new(header_timeout: Duration, idle_timeout: Duration) -> Activity {
        let idle_until = Instant::now() + header_timeout;
        Activity {
            idle_timeout,
            now: Mutex::new(Now {
                requests: 0,
                idle_until,
            }),
        }
    }

    fn change(&self, change: impl FnOnce(&mut Now)) {
        change(&mut self.now.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// When it has been idle for too long. Requests have time limits of their own.
    async fn expired(&self) {
        loop {
            let mut wake = Instant::now();
            self.change(|now| {
                wake = match now.requests {
                    0 => now.idle_until,
                    _ => wake + self.idle_timeout,
                }
            });
            if wake <= Instant::now() {
                return;
            }
            sleep_until(wake).await;
        }
    }
}

/// While it lives, a request is under way.
struct Busy<'a>(&'a Activity);

impl Busy<'_> {
    fn new(activity: &Activity) -> Busy<'_> {
        activity.change(|now| now.requests += 1);
        Busy(activity)
    }
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.change(|now| {
            now.requests -= 1;
            now.idle_until = Instant::now() + self.0.idle_timeout;
        });
    }
}

/// Until SIGTERM or SIGINT.
pub async fn signalled() {
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

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Duration = Duration::from_secs(1);
    const LONG: Duration = Duration::from_secs(60);

    #[tokio::test(start_paused = true)]
    async fn a_connection_without_a_request_expires() {
        let started = Instant::now();
        Activity::new(SHORT, LONG).expired().await;
        assert_eq!(started.elapsed().as_secs(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_in_use_does_not_expire_and_an_idle_one_does() {
        let started = Instant::now();
        let activity = Activity::new(SHORT, LONG);
        let busy = Busy::new(&activity);
        assert!(timeout(10 * LONG, activity.expired()).await.is_err());
        drop(busy);
        activity.expired().await;
        assert_eq!(started.elapsed(), 11 * LONG);
    }
}
