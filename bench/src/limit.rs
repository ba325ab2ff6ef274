//! What plain SQL can do: one statement a batch that locks due rows, inserts the same dispatch rows into a table with
//! the same columns and indexes, advances the timers by a constant and sends one NOTIFY. It parses no schedule, knows
//! no policy and isolates no error.

use crate::actions;
use pg_recur_tests::Session;

pub const TABLES: &str = "
DROP TABLE IF EXISTS bench.timers, bench.definitions, bench.dispatches;
CREATE TABLE bench.definitions (LIKE recur_internal.definitions INCLUDING ALL);
CREATE TABLE bench.timers (LIKE recur_internal.timers INCLUDING ALL);
CREATE TABLE bench.dispatches (LIKE recur_internal.live_dispatches INCLUDING ALL);
INSERT INTO bench.definitions SELECT * FROM recur_internal.definitions;
INSERT INTO bench.timers SELECT * FROM recur_internal.timers;
VACUUM ANALYZE bench.definitions;
VACUUM ANALYZE bench.timers;
";

// A dispatch's id is its action's: as random as ours, and computed for nothing.
const BATCH: &str = "
WITH due AS (
    SELECT t.action_id, t.due_at FROM bench.timers AS t
     WHERE t.due_at <= now() ORDER BY t.due_at LIMIT 1000 FOR UPDATE SKIP LOCKED
), advanced AS (
    UPDATE bench.timers AS t
       SET due_at = t.due_at + interval '1 year', next_run_at = t.next_run_at + interval '1 year',
           last_run_at = u.due_at, run_count = t.run_count + 1
      FROM due AS u WHERE t.action_id = u.action_id
), inserted AS (
    INSERT INTO bench.dispatches
           (id, action_id, scheduled_at, trigger, namespace, tenant, owner_id, subject, provider, action_type, payload,
            metadata, primary_agent, fallback_agent, priority, lock_group, notify_channel, max_attempts, lease,
            available_at)
    SELECT d.id, d.id, u.due_at, 'schedule', d.namespace, d.tenant, d.owner_id, d.subject, d.provider, d.action_type,
           d.payload,
           d.metadata || jsonb_build_object('_recurring_dispatch', 'true', '_recurring_id', d.id),
           d.primary_agent, d.fallback_agent, d.priority, d.lock_group, d.notify_channel, d.max_attempts, d.lease,
           u.due_at
      FROM due AS u JOIN bench.definitions AS d ON d.id = u.action_id
    RETURNING id
)
SELECT c.number, CASE WHEN c.number > 0 THEN pg_notify('bench', c.number::text) END::text
  FROM (SELECT count(*) AS number FROM inserted) AS c
";

pub fn make_due() -> String {
    actions::make_due("bench.timers")
}

/// Dispatches until nothing is due.
pub fn drain(session: &mut Session) {
    let statement = session.0.prepare(BATCH).expect("a plan");
    loop {
        let row = session.0.query_one(&statement, &[]).expect("a batch");
        if row.get::<_, i64>(0) == 0 {
            return;
        }
    }
}
