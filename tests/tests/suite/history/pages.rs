//! The history of an action, page by page.

use pg_recur_tests::{Cluster, Session};
use uuid::Uuid;

#[test]
fn history_is_newest_first_and_pages_backwards() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let id: Uuid = session.value(
        "SELECT recur.create('n', '@hourly', 'p', 'a', starts_at => '2026-01-01Z', enabled => false)",
        &[],
    );
    // Half of them are finished.
    session.execute(
        "SELECT recur.backfill($1::uuid, '2026-01-01 01:00Z', '2026-01-01 20:00Z')",
        &[&id],
    );
    session.batch("SELECT recur.complete(id, attempt) FROM recur.claim(10)");
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
