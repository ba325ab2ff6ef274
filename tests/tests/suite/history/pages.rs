//! The history of an action, page by page.

use pg_recur_tests::{Cluster, Session};
use uuid::Uuid;

#[test]
fn history_is_newest_first_and_pages_backwards() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let id: Uuid = session.value("SELECT id FROM recur.create('n', '@yearly', 'p', 'a')", &[]);
    session.execute(
        "INSERT INTO recur.live_dispatches (id, action_id, scheduled_at, trigger, provider, action_type)
         SELECT gen_random_uuid(), $1, timestamptz '2026-01-01Z' + i * interval '1 hour', 'schedule', 'p', 'a'
           FROM generate_series(11, 20) AS i",
        &[&id],
    );
    session.execute(
        "INSERT INTO recur.finished_dispatches
                (id, action_id, scheduled_at, trigger, namespace, tenant, owner, provider, action_type, payload,
                 metadata,
                 priority, status, attempt, releases, max_attempts, available_at, cancel_requested, created_at)
         SELECT gen_random_uuid(), $1, timestamptz '2026-01-01Z' + i * interval '1 hour', 'schedule', 'default',
                'default',
                'postgres', 'p', 'a', '{}', '{}', 0, 'completed', 1, 0, 3, now(), false, now()
                  FROM generate_series(1, 10) AS i",
        &[&id],
    );
    let hours = |session: &mut Session, arguments: &str| -> Vec<i32> {
        session.column(
            &format!(
                "SELECT extract(epoch FROM scheduled_at - '2026-01-01Z')::int / 3600
                   FROM recur.history('{id}'{arguments})"
            ),
            &[],
        )
    };
    let all: Vec<i32> = (1..=20).rev().collect();
    assert_eq!(hours(&mut session, ""), all);
    assert_eq!(hours(&mut session, ", 3"), [20, 19, 18]);
    assert_eq!(hours(&mut session, ", 3, '2026-01-01 12:00Z'"), [11, 10, 9]);
    assert_eq!(
        hours(&mut session, ", before => '2026-01-01 01:00Z'"),
        [0; 0]
    );
    session.assert_error(
        "SELECT recur.history('00000000-0000-0000-0000-000000000000')",
        "P0002",
        "no action has the id 00000000-0000-0000-0000-000000000000",
    );
}
