//! What an operator allows: how many actions, with which bounds, and how many pending dispatches.

use pg_recur_tests::{Cluster, Session};

const CREATE: &str =
    "SELECT recur.create($1, '@daily', 'p', 'a', tenant => $2, subject => $3::text,
                         on_existing => 'add_another')";

fn full(session: &mut Session, tenant: &str, subject: Option<&str>, message: &str) {
    let (code, text, _) = session.error_with(CREATE, &[&"n", &tenant, &subject]);
    assert_eq!((code.as_str(), text.as_str()), ("53400", message));
}

#[test]
fn a_quota_differs_by_tenant_and_bounds_each_subject() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    session.batch(
        "SELECT recur.set_quota('small', max_actions => 1);
         SELECT recur.set_quota('large', max_actions => 3, max_actions_per_subject => 2);
         SELECT recur.set_quota(NULL, max_actions_per_subject => 1)",
    );
    let make = |session: &mut Session, tenant: &str, subject: Option<&str>| {
        session.execute(CREATE, &[&"n", &tenant, &subject]);
    };
    make(&mut session, "small", None);
    full(
        &mut session,
        "small",
        None,
        "tenant \"small\" has all of the 1 actions that it may have",
    );
    make(&mut session, "large", Some("s"));
    make(&mut session, "large", Some("s"));
    let of_subject = "subject \"s\" of tenant \"large\" has all of the 2 actions that it may have";
    full(&mut session, "large", Some("s"), of_subject);
    make(&mut session, "large", Some("t"));
    full(
        &mut session,
        "large",
        None,
        "tenant \"large\" has all of the 3 actions that it may have",
    );
    // A change of the subject counts like a creation.
    session.assert_error(
        "UPDATE recur.recurring_actions SET subject = 's', name = 'm' WHERE subject = 't'",
        "53400",
        of_subject,
    );
    // Other tenants have what is left to all.
    make(&mut session, "other", Some("s"));
    make(&mut session, "other", None);
    make(&mut session, "other", None);
    full(
        &mut session,
        "other",
        Some("s"),
        "subject \"s\" of tenant \"other\" has all of the 1 actions that it may have",
    );
    // A raised quota holds at once, also for sessions that have seen the old one.
    session.batch("SELECT recur.set_quota('small', 2)");
    make(&mut session, "small", None);
    session.batch("SELECT recur.set_quota('small'); SELECT recur.set_quota(NULL)");
    make(&mut session, "small", None);
    let left = session.texts("SELECT tenant FROM recur.quotas", &[]);
    assert_eq!(left, ["large"]);
    session.assert_error(
        "SELECT recur.set_quota('t', -1)",
        "22023",
        "invalid max_actions \"-1\": must be 0 or more",
    );
}

#[test]
fn a_namespace_may_demand_bounds_and_a_context() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    session.batch("SELECT recur.create('before', '@daily', 'p', 'a')");
    session.batch(
        "SELECT recur.set_setting('require_bounds', 'on');
         SELECT recur.set_setting('require_context', 'on', namespace => 'journeys');
         SELECT recur.set_setting('require_bounds', 'off', namespace => 'free')",
    );
    assert_eq!(
        session.error("SELECT recur.create('n', '@daily', 'p', 'a')"),
        (
            "22023".to_owned(),
            "invalid max_runs \"NULL\": an action of namespace \"default\" must have an end"
                .to_owned(),
            "Give max_runs or ends_at. recur.require_bounds demands it.".to_owned()
        )
    );
    session.assert_error(
        "INSERT INTO recur.recurring_actions (name, schedule, provider, action_type, namespace, max_runs)
         VALUES ('n', '@daily', 'p', 'a', 'journeys', 3)",
        "22023",
        "invalid context \"NULL\": an action of namespace \"journeys\" must have a context",
    );
    session.batch(
        "SELECT recur.create('n', '@daily', 'p', 'a', max_runs => 3);
         SELECT recur.create('n', '@daily', 'p', 'a', namespace => 'free');
         SELECT recur.create('n', '@daily', 'p', 'a', namespace => 'journeys', max_runs => 3, context => '{}');
         SELECT recur.create('once', 'at 2099-01-01T09:00:00', 'p', 'a')",
    );
    session.assert_error(
        "SELECT recur.update('n', '{\"max_runs\": null}')",
        "22023",
        "invalid max_runs \"NULL\": an action of namespace \"default\" must have an end",
    );
    // What was there before may be changed otherwise.
    session.batch("SELECT recur.update('before', '{\"priority\": 1}')");
}

#[test]
fn an_owner_has_no_more_pending_dispatches_than_allowed() {
    let cluster = Cluster::preloaded("recur.max_pending_per_owner = 20\nrecur.enabled = off");
    let mut session = cluster.database("app");
    session.batch("SELECT recur.create('n', '@daily', 'p', 'a')");
    for _ in 0..10 {
        session.batch("SELECT recur.enqueue('p', 'a'); SELECT recur.trigger('n')");
    }
    let message = "the owner has all of the 20 pending dispatches that it may have";
    for call in [
        "SELECT recur.enqueue('p', 'a')",
        "SELECT recur.receive('p', 'a', '')",
        "SELECT recur.trigger('n')",
    ] {
        session.assert_error(call, "53400", message);
    }
    assert_eq!(session.count("recur.dispatches"), 20);
    // Another owner is not concerned, nor is the schedule.
    session.batch(
        "CREATE ROLE other; SELECT recur.grant_access('other', 'author'); SET ROLE other;
         SELECT recur.enqueue('p', 'a'); RESET ROLE;
         UPDATE recur_internal.timers SET next_run_at = now(), due_at = now();
         SELECT recur.tick()",
    );
    assert_eq!(session.count("recur.dispatches"), 22);
    session.batch("SELECT recur.complete(id, attempt) FROM recur.claim(10)");
    session.batch("SELECT recur.enqueue('p', 'a')");
}
