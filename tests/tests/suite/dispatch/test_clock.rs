//! The clock of a test database, and why no other database can be ticked ahead of its time.

use pg_recur_tests::{Cluster, Session, eventually};
use uuid::Uuid;

const MARK: &str = "SELECT recur.mark_test_database()";

fn sign_up(session: &mut Session) -> Uuid {
    session.value(
        "SELECT recur.create('welcome', 'at 2040-03-04T09:00:00Z', 'mail', 'send', starts_at => recur.clock())",
        &[],
    )
}

#[test]
fn a_tick_ahead_of_time_is_refused_and_changes_nothing() {
    let cluster = Cluster::shared();
    let mut session = cluster.database("live");
    session.batch("SELECT recur.create('report', '@daily', 'mail', 'send')");
    let next = "SELECT next_run_at::text FROM recur.recurring_actions";
    let before: String = session.value(next, &[]);
    let (code, message, hint) = session.error("SELECT * FROM recur.tick('2100-01-01 00:00+00')");
    assert_eq!(code, "22023");
    assert!(message.starts_with("invalid at \"2100-01-01"), "{message}");
    assert!(message.ends_with("must not lie in the future"), "{message}");
    assert!(hint.contains("recur.mark_test_database()"), "{hint}");
    assert_eq!(session.value::<String>(next, &[]), before);
    assert_eq!(session.count("recur.dispatches"), 0);
    // The present and the past are fine.
    session.batch("SELECT recur.tick(now()), recur.tick(), recur.tick('2000-01-01 00:00+00')");
}

#[test]
fn three_days_later_takes_milliseconds() {
    let cluster = Cluster::shared();
    let mut session = cluster.test_database("app");
    session.batch("SELECT recur.set_clock('2040-03-01 09:00:00+00'::timestamptz)");
    let created: String = session.value(
        "SELECT recur.create('welcome', '3 days', 'mail', 'send',
                             starts_at => recur.clock() + interval '3 days')::text",
        &[],
    );
    let at = |session: &mut Session, column: &str| -> String {
        let sql = format!(
            "SELECT to_char({column} AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS') FROM recur.recurring_actions"
        );
        session.value(&sql, &[])
    };
    assert_eq!(at(&mut session, "created_at"), "2040-03-01 09:00:00");
    assert_eq!(at(&mut session, "next_run_at"), "2040-03-04 09:00:00");
    let preview: String = session.value(
        "SELECT min(occurrence AT TIME ZONE 'UTC')::text FROM recur.preview('@daily')",
        &[],
    );
    assert_eq!(preview, "2040-03-02 00:00:00");
    assert_eq!(
        session.value::<i64>("SELECT dispatched FROM recur.tick()", &[]),
        0
    );

    session.batch("SELECT recur.set_clock(recur.clock() + interval '3 days')");
    assert_eq!(
        session.value::<i64>("SELECT dispatched FROM recur.tick()", &[]),
        1
    );
    let claimed = "SELECT action_id::text, to_char(started_at AT TIME ZONE 'UTC', 'DD HH24:MI'),
                          to_char(lease_expires_at AT TIME ZONE 'UTC', 'DD HH24:MI')
                     FROM recur.claim(1, lease => '10 minutes')";
    let row = &session.rows(claimed, &[])[0];
    let claimed: (String, String, String) = (row.get(0), row.get(1), row.get(2));
    assert_eq!(claimed, (created, "04 09:00".into(), "04 09:10".into()));

    // The lease ends with the clock, and so does the pause before the retry.
    session.batch("SELECT recur.set_clock('2040-03-04 09:11+00')");
    session.batch("SELECT recur.tick()");
    assert_eq!(
        session.count("recur.dispatches WHERE status = 'pending'"),
        1
    );
    session.batch("SELECT recur.set_clock('2040-03-05 09:11+00')");
    assert_eq!(session.count("recur.claim(1)"), 1);
    let enqueued: Uuid = session.value(
        "SELECT recur.enqueue('mail', 'send', '{}', run_at => '2040-03-06 00:00+00')",
        &[],
    );
    assert_eq!(
        session.count("recur.claim(1)"),
        0,
        "{enqueued} is not available yet"
    );
    session.batch("SELECT recur.set_clock('2040-03-06 00:00+00')");
    assert_eq!(session.count("recur.claim(1)"), 1);
}

#[test]
fn every_session_sees_the_clock_and_only_from_its_commit_on() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let mut other = cluster.session("app");
    let year = "SELECT extract(year FROM recur.clock())::int";
    let this_year: i32 = other.value(year, &[]);
    session.batch("BEGIN; SELECT recur.set_clock('2040-03-01 09:00+00')");
    assert_eq!(session.value::<i32>(year, &[]), 2040);
    assert_eq!(other.value::<i32>(year, &[]), this_year);
    session.batch("ROLLBACK");
    assert_eq!(session.value::<i32>(year, &[]), this_year);
    session.batch("SELECT recur.set_clock('2040-03-01 09:00+00')");
    assert_eq!(other.value::<i32>(year, &[]), 2040);
    // An interval lets the clock go, ahead of the server's; NULL takes it back.
    session.batch("SELECT recur.set_clock('100 years')");
    assert!(other.value::<i32>(year, &[]) >= this_year + 100);
    let before: String = other.value("SELECT recur.clock()::text", &[]);
    eventually("the clock goes", || {
        other.value::<bool>("SELECT recur.clock() > $1::text::timestamptz", &[&before])
    });
    session.batch("SELECT recur.set_clock(NULL::interval)");
    assert_eq!(other.value::<i32>(year, &[]), this_year);
}

#[test]
fn only_a_database_without_actions_becomes_a_test_database() {
    let cluster = Cluster::shared();
    let mut session = cluster.database("live");
    let (code, message, hint) = session.error("SELECT recur.set_clock('1 day')");
    assert_eq!(code, "55000");
    assert!(message.contains("is not a test database"), "{message}");
    assert!(hint.contains("recur.mark_test_database()"), "{hint}");
    let action = sign_up(&mut session);
    let (code, message, _) = session.error(MARK);
    assert_eq!(code, "55000");
    assert!(message.contains("has actions or dispatches"), "{message}");
    session.rows("SELECT recur.delete($1::uuid)", &[&action]);
    session.batch("SELECT recur.enqueue('mail', 'send')");
    assert_eq!(session.error(MARK).0, "55000");
}

#[test]
fn two_sessions_mark_a_database_one_after_the_other() {
    let cluster = Cluster::shared();
    let mut first = cluster.database("app");
    let mut second = cluster.session("app");
    let pid = second.pid();
    first.batch("BEGIN");
    first.batch(MARK);
    let waiting = std::thread::spawn(move || second.batch(MARK));
    eventually("the second one waits", || first.is_blocked(pid));
    // What the first one writes in the same transaction conflicts with a lock that both could hold.
    sign_up(&mut first);
    first.batch("COMMIT");
    // Nor does the second one take it for a database that had actions before.
    waiting.join().expect("the second one finds it marked");
    assert_eq!(first.count("recur.recurring_actions"), 1);
}

#[test]
fn nothing_fires_by_itself_in_a_test_database() {
    let cluster = Cluster::start();
    let mut marked = cluster.test_database("marked");
    let mut live = cluster.database("live");
    for session in [&mut marked, &mut live] {
        session.batch("SELECT recur.create('now', '1h', 'mail', 'send')");
    }
    // Both were due at once. A dispatcher of the marked database has looked since: it reports that it sleeps.
    eventually("the other database has fired", || {
        live.count("recur.dispatches") == 1
    });
    let seen = "recur.workers WHERE database = 'marked' AND kind LIKE 'dispatcher%' AND state = 'sleeping'";
    eventually("the dispatcher sleeps", || marked.count(seen) == 1);
    assert_eq!(marked.count("recur.dispatches"), 0);
    assert_eq!(
        marked.value::<i64>("SELECT dispatched FROM recur.tick()", &[]),
        1
    );
}

#[test]
fn a_dump_does_not_carry_the_mark() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    session.batch("SELECT recur.set_clock('2040-03-01 09:00+00')");
    sign_up(&mut session);
    let dump = cluster.dump("app");
    cluster.empty_database("copy", "");
    cluster.run_script("copy", &dump);
    let mut copy = cluster.session("copy");
    assert_eq!(copy.count("recur.recurring_actions"), 1);
    assert_eq!(copy.error("SELECT recur.set_clock('1 day')").0, "55000");
}

#[test]
fn the_doctor_knows_a_test_database() {
    let cluster = Cluster::start();
    let mut session = cluster.test_database("app");
    session.batch("SET timezone = 'UTC'; SELECT recur.set_clock('2040-03-01 09:00+00')");
    let findings = session.texts(
        "SELECT severity || ': ' || finding FROM recur.doctor()",
        &[],
    );
    let expected = "note: this is a test database, whose clock says 2040-03-01 09:00:00+00: nothing fires by itself";
    assert_eq!(findings, [expected]);
}
