//! Webhooks: endpoints, routing, claims, reports, and when an endpoint is left alone.

mod access;
mod breaker;
mod claims;
mod endpoints;
mod limits;
mod reports;
mod routing;
mod sending;

use pg_recur_tests::Session;
use uuid::Uuid;

/// Makes an endpoint of the session's role that gets these action types; its secret.
#[track_caller]
pub fn endpoint(session: &mut Session, name: &str, patterns: &str) -> String {
    session.value(
        "SELECT recur.create_endpoint($1, 'https://' || $1 || '.example/hook', $2::text::text[])",
        &[&name, &patterns],
    )
}

/// A webhook of this action type that is due.
#[track_caller]
pub fn send(session: &mut Session, action_type: &str) -> Uuid {
    session.value(
        "SELECT recur.enqueue_webhook(payload => '{\"n\": 1}', action_type => $1)",
        &[&action_type],
    )
}

/// A webhook for an endpoint.
#[track_caller]
pub fn send_to(session: &mut Session, endpoint: &str) -> Uuid {
    session.value("SELECT recur.enqueue_webhook(endpoint => $1)", &[&endpoint])
}

/// Routes what is due: (bound, split, children, unmatched).
#[track_caller]
pub fn route(session: &mut Session) -> (i32, i32, i32, i32) {
    let row = &session.rows(
        "SELECT bound, split, children, unmatched FROM recur.route_webhooks()",
        &[],
    )[0];
    (row.get(0), row.get(1), row.get(2), row.get(3))
}

/// Claims up to this many: (id, attempt, endpoint) of each.
#[track_caller]
pub fn claim(session: &mut Session, limit: i32) -> Vec<(Uuid, i32, String)> {
    let rows = session.rows(
        "SELECT id, attempt, endpoint FROM recur.claim_webhooks($1)",
        &[&limit],
    );
    rows.iter()
        .map(|row| (row.get(0), row.get(1), row.get(2)))
        .collect()
}

/// How many a claim gets for each endpoint, in the order of their names.
#[track_caller]
pub fn claimed_of_each(session: &mut Session, limit: i32) -> Vec<(String, i64)> {
    let rows = session.rows(
        "SELECT endpoint, count(*) FROM recur.claim_webhooks($1) GROUP BY 1 ORDER BY 1",
        &[&limit],
    );
    rows.iter().map(|row| (row.get(0), row.get(1))).collect()
}

/// Reports on an attempt: what the dispatch is now.
#[track_caller]
pub fn report(session: &mut Session, id: Uuid, attempt: i32, outcome: &str) -> String {
    session.value(
        "SELECT status FROM recur.report_webhook($1, $2, $3, reason => 'no luck')",
        &[&id, &attempt, &outcome],
    )
}

/// Claims one and reports on it.
#[track_caller]
pub fn deliver(session: &mut Session, outcome: &str) -> String {
    let claimed = claim(session, 1);
    let [(id, attempt, _)] = claimed.as_slice() else {
        panic!("{} were claimed", claimed.len());
    };
    report(session, *id, *attempt, outcome)
}

/// The state of an endpoint.
#[track_caller]
pub fn state(session: &mut Session, name: &str) -> String {
    session.value(
        "SELECT state FROM recur.webhook_endpoints WHERE name = $1",
        &[&name],
    )
}

/// What happened to endpoints, oldest first.
#[track_caller]
pub fn endpoint_events(session: &mut Session) -> Vec<String> {
    session.texts(
        "SELECT concat_ws(' ', kind, detail ->> 'endpoint') FROM recur.events WHERE kind LIKE 'endpoint.%' ORDER BY id",
        &[],
    )
}
