//! Dispatches to consume, made without waiting for a schedule.

use crate::session::Session;
use uuid::Uuid;

/// A pending dispatch, available now, that belongs to no action; `columns` are set as this SQL says, for instance
/// `"provider = 'mail', max_attempts = 1"`.
#[track_caller]
pub fn queue(session: &mut Session, columns: &str) -> Uuid {
    let id: Uuid = session.value(
        "INSERT INTO recur.live_dispatches (id, scheduled_at, trigger, provider, action_type)
         VALUES (recur._new_id(now()), now(), 'enqueue', 'test', 'noop') RETURNING id",
        &[],
    );
    if !columns.is_empty() {
        session.execute(
            &format!("UPDATE recur.live_dispatches SET {columns} WHERE id = $1"),
            &[&id],
        );
    }
    id
}

/// As many of them at once.
#[track_caller]
pub fn queue_many(session: &mut Session, number: i32) {
    session.execute(
        "INSERT INTO recur.live_dispatches (id, scheduled_at, trigger, provider, action_type, payload)
         SELECT recur._new_id(now()), now(), 'enqueue', 'test', 'noop', jsonb_build_object('n', n)
           FROM generate_series(1, $1) AS n",
        &[&number],
    );
}

/// An action that does not fire within any test, for dispatches to belong to.
#[track_caller]
pub fn idle_action(session: &mut Session, arguments: &str) -> Uuid {
    session.value(
        &format!(
            "SELECT id
               FROM recur.create('idle ' || gen_random_uuid(), 'at 2099-01-01T00:00:00', 'test', 'noop'{arguments})"
        ),
        &[],
    )
}

/// A dispatch of this action.
#[track_caller]
pub fn queue_for(session: &mut Session, action: Uuid) -> Uuid {
    queue(session, &format!("action_id = '{action}'"))
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
        "UPDATE recur.live_dispatches SET lease_expires_at = clock_timestamp() - interval '1 second' WHERE id = $1",
        &[&id],
    );
}
