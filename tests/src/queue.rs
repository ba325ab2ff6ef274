//! Dispatches to consume, made without waiting for a schedule.

use crate::session::Session;
use uuid::Uuid;

/// A pending dispatch that belongs to no action; `arguments` are those of recur.enqueue that matter, for instance
/// `"provider => 'mail', max_attempts => 1"`.
#[track_caller]
pub fn enqueue(session: &mut Session, arguments: &str) -> Uuid {
    session.value(&format!("SELECT {}", enqueue_call(arguments)), &[])
}

/// The call of recur.enqueue with these arguments, and with those that can't be left out.
fn enqueue_call(arguments: &str) -> String {
    let required = [("provider", "'test'"), ("action_type", "'noop'")];
    let missing = required
        .iter()
        .filter(|(name, _)| !arguments.contains(&format!("{name} => ")))
        .map(|(name, value)| format!("{name} => {value}"));
    let all: Vec<String> = missing
        .chain((!arguments.is_empty()).then(|| arguments.to_owned()))
        .collect();
    format!("recur.enqueue({})", all.join(", "))
}

/// As many of them at once; `n` in the arguments is the number of each.
#[track_caller]
pub fn enqueue_many(session: &mut Session, number: i32, arguments: &str) {
    let call = enqueue_call(arguments);
    session.execute(
        &format!("SELECT count({call}) FROM generate_series(1, $1) AS n"),
        &[&number],
    );
}

/// A pending dispatch with columns that recur.enqueue would not set so: `columns` are SQL, for instance
/// `"lease = '1000000 years'"`.
#[track_caller]
pub fn queue(session: &mut Session, columns: &str) -> Uuid {
    let id: Uuid = session.value("SELECT recur.enqueue('test', 'noop')", &[]);
    if !columns.is_empty() {
        session.execute(
            &format!("UPDATE recur_internal.live_dispatches SET {columns} WHERE id = $1"),
            &[&id],
        );
    }
    id
}

/// Pending dispatches whose payloads number them from 1 on.
#[track_caller]
pub fn queue_many(session: &mut Session, number: i32) {
    enqueue_many(session, number, "payload => jsonb_build_object('n', n)");
}

/// An action that does not fire within any test, for dispatches to belong to.
#[track_caller]
pub fn idle_action(session: &mut Session, arguments: &str) -> Uuid {
    session.value(
        &format!(
            "SELECT recur.create('idle ' || gen_random_uuid(), 'at 2099-01-01T00:00:00', 'test', 'noop'{arguments})"
        ),
        &[],
    )
}

/// A dispatch of this action.
#[track_caller]
pub fn queue_for(session: &mut Session, action: Uuid) -> Uuid {
    session.value(
        "SELECT recur.trigger($1::uuid, overlap => 'allow')",
        &[&action],
    )
}

/// The state of a dispatch, wherever it is.
#[track_caller]
pub fn status(session: &mut Session, id: Uuid) -> String {
    session.value("SELECT status FROM recur.dispatches WHERE id = $1", &[&id])
}

/// The ids of what `recur.claim` gives with these arguments.
#[track_caller]
pub fn claimed(session: &mut Session, arguments: &str) -> Vec<Uuid> {
    session.column(&format!("SELECT id FROM recur.claim({arguments})"), &[])
}

/// Nothing claimed.
pub const NONE: [Uuid; 0] = [];

/// Claims one and expects it to be this one; its attempt.
#[track_caller]
pub fn claim_this(session: &mut Session, id: Uuid) -> i32 {
    let rows = session.rows("SELECT id, attempt FROM recur.claim(1)", &[]);
    assert_eq!(rows.len(), 1, "one can be claimed");
    assert_eq!(rows[0].get::<_, Uuid>(0), id);
    rows[0].get(1)
}

/// Lets the lease of a running dispatch be over.
#[track_caller]
pub fn let_lease_run_out(session: &mut Session, id: Uuid) {
    session.execute(
        "UPDATE recur_internal.live_dispatches SET lease_expires_at = clock_timestamp() - interval '1 second'
          WHERE id = $1",
        &[&id],
    );
}
