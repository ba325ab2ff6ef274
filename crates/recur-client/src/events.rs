//! What the client logs. README.md lists the names and fields, which are stable.

use crate::{Error, Failure};
use std::time::Duration;
use tracing::{Level, Span, event, span};

const TARGET: &str = "recur_client";

/// Around everything that concerns one attempt, its handler included.
pub(crate) fn attempt(dispatch: &crate::Dispatch) -> Span {
    span!(
        target: TARGET,
        Level::INFO,
        "recur.attempt",
        dispatch_id = %dispatch.id,
        attempt = dispatch.attempt,
        action_type = %dispatch.action_type,
    )
}

pub(crate) fn connected(channel: Option<&str>) {
    event!(name: "recur.connected", target: TARGET, Level::INFO, channel, "connected");
}

pub(crate) fn disconnected(error: &Error) {
    event!(name: "recur.disconnected", target: TARGET, Level::WARN, error = %error, "connection lost");
}

pub(crate) fn connect_failed(error: &Error, retry_in: Duration) {
    event!(
        name: "recur.connect_failed",
        target: TARGET,
        Level::WARN,
        error = %error,
        retry_in_ms = milliseconds(retry_in),
        "no connection"
    );
}

pub(crate) fn claimed(count: usize) {
    event!(name: "recur.claimed", target: TARGET, Level::DEBUG, count, "claimed");
}

pub(crate) fn claim_failed(error: &Error) {
    event!(name: "recur.claim_failed", target: TARGET, Level::ERROR, error = %error, "claim failed");
}

pub(crate) fn completed() {
    event!(name: "recur.completed", target: TARGET, Level::DEBUG, "completed");
}

pub(crate) fn failed(failure: &Failure) {
    event!(
        name: "recur.failed",
        target: TARGET,
        Level::WARN,
        reason = failure.reason,
        retry = failure.retry,
        "failed"
    );
}

pub(crate) fn released() {
    event!(name: "recur.released", target: TARGET, Level::INFO, "released");
}

pub(crate) fn renewal_failed(error: &Error) {
    event!(
        name: "recur.renewal_failed",
        target: TARGET,
        Level::WARN,
        error = %error,
        "lease not renewed, trying again"
    );
}

pub(crate) fn lease_lost(error: &Error) {
    event!(
        name: "recur.lease_lost",
        target: TARGET,
        Level::WARN,
        error = %error,
        "lease lost, handler stopped"
    );
}

pub(crate) fn report_failed(error: &Error) {
    event!(
        name: "recur.report_failed",
        target: TARGET,
        Level::ERROR,
        error = %error,
        "outcome not reported"
    );
}

pub(crate) fn stopping(running: usize) {
    event!(name: "recur.stopping", target: TARGET, Level::INFO, running, "stopping");
}

pub(crate) fn stopped() {
    event!(name: "recur.stopped", target: TARGET, Level::INFO, "stopped");
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
