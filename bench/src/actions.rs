//! Actions by the hundred thousand: with real schedules in real zones.

use crate::report::progress;
use crate::server::each;
use pg_recur_tests::Session;

/// Adds actions up to this number, none of them due before next year.
pub fn fill(session: &mut Session, count: i64) {
    let have: i64 = session.value("SELECT count(*) FROM recur_internal.timers", &[]);
    let mut from = have + 1;
    while from <= count {
        let until = (from + 99_999).min(count);
        progress(&format!("actions {from}–{until}"));
        session.execute(
            "SELECT count(recur.create(
                        'action ' || n,
                        (ARRAY['0 * * * *', '30 * * * *', '30 2 * * *', '0 9 * * MON-FRI', '15 8-18 * * *', '0 0 1 * *',
                               '15 10 * * MON', '0 12 * * 5#2'])[1 + n % 8],
                        'bench', 'noop', jsonb_build_object('n', n, 'text', repeat('x', 270)),
                        timezone => (ARRAY['UTC', 'America/New_York', 'Europe/Berlin', 'Asia/Tokyo', 'Australia/Sydney',
                                           'America/Sao_Paulo', 'Asia/Kolkata'])[1 + n % 7],
                        starts_at => '2024-01-01'))
               FROM generate_series($1::bigint, $2) AS n",
            &[&from, &until],
        );
        from = until + 1;
    }
    session.execute(
        "UPDATE recur_internal.timers SET due_at = now() + interval '1 year', next_run_at = now() + interval '1 year'",
        &[],
    );
    each(
        session,
        "VACUUM ANALYZE recur_internal.definitions; VACUUM ANALYZE recur_internal.timers;
         VACUUM ANALYZE recur_internal.progress",
    );
}

/// The latest occurrence of each pair of schedule and zone: what is due since then has missed nothing else.
pub const LATEST: &str = "
DROP TABLE IF EXISTS bench.latest;
CREATE TABLE bench.latest AS
SELECT p.schedule, p.timezone,
       (SELECT max(o.occurrence) FROM recur.preview(p.schedule, p.timezone, now() - interval '40 days', 2000) AS o
         WHERE o.occurrence <= now()) AS at
  FROM (SELECT DISTINCT d.schedule::text, d.timezone::text FROM recur_internal.definitions AS d) AS p;
ANALYZE bench.latest;
";

/// Makes every action of recur_internal.timers, or of a copy of it, due.
pub fn make_due(timers: &str) -> String {
    format!(
        "UPDATE {timers} AS t
            SET due_at = l.at, next_run_at = l.at, last_run_at = NULL, run_count = 0
           FROM recur_internal.definitions AS d
           JOIN bench.latest AS l ON l.schedule = d.schedule::text AND l.timezone = d.timezone::text
          WHERE d.id = t.action_id"
    )
}
