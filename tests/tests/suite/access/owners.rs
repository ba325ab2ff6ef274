//! Whose an action is: a role acts for the owners that it is a member of, and for nobody else.

use super::privileges::prepare;
use pg_recur_tests::Cluster;
use pg_recur_tests::queue::{claim_this, idle_action, queue, queue_for};
use serde_json::{Value, json};
use uuid::Uuid;

/// An owner is a role that one is a member of: no action can be made in another's name.
#[test]
fn nobody_acts_in_the_name_of_others() {
    let cluster = Cluster::start();
    let mut admin = prepare(&cluster);
    admin.batch("CREATE ROLE team; GRANT team TO author");
    let mut author = cluster.session_as("author", "app");
    let insert = |owner: &str| {
        format!(
            "INSERT INTO recur.recurring_actions (name, schedule, provider, action_type, owner)
             VALUES ('n', '@yearly', 'p', 'a', {owner})"
        )
    };
    for owner in ["'victim'", "'postgres'", "'nobody'"] {
        let (code, message, hint) = author.error(&insert(owner));
        assert_eq!(code, "42501");
        assert_eq!(
            message,
            format!(
                "invalid owner \"{}\": author is not a member of this role",
                owner.trim_matches('\'')
            )
        );
        assert_eq!(hint, "Leave it out to own the action yourself.");
    }
    author.batch(&insert("'team'"));
    author.assert_error(
        "UPDATE recur.recurring_actions SET owner = 'author'",
        "22023",
        "invalid change \"owner\": this column is maintained by pg_recur",
    );
    // A superuser who acts as a role is that role.
    admin.batch("SET ROLE author");
    assert_eq!(admin.error(&insert("'victim'")).0, "42501");
    admin.batch("RESET ROLE");
    // A function that runs as its owner creates in its owner's name, whoever calls it.
    admin.batch(
        "CREATE FUNCTION public.subscribe() RETURNS uuid LANGUAGE sql SECURITY DEFINER
             AS $$ SELECT id FROM recur.create('subscription', '@yearly', 'p', 'a') $$;
         ALTER FUNCTION public.subscribe OWNER TO victim",
    );
    cluster
        .session_as("stranger", "app")
        .batch("SELECT public.subscribe()");
    let row = &admin.rows(
        "SELECT a.owner::text, e.actor::text FROM recur.recurring_actions AS a
           JOIN recur.events AS e ON e.action_id = a.id WHERE a.name = 'subscription'",
        &[],
    )[0];
    assert_eq!(
        (row.get::<_, String>(0), row.get::<_, String>(1)),
        ("victim".into(), "stranger".into())
    );
    // So do its manual runs and what it enqueues. The other way round, what runs as its owner sees no more than he does,
    // even when an admin calls it.
    admin.batch(
        "CREATE FUNCTION public.run() RETURNS void LANGUAGE sql SECURITY DEFINER
             AS $$ SELECT recur.trigger(recur.id_of('subscription')); SELECT recur.enqueue('p', 'by function') $$;
         ALTER FUNCTION public.run OWNER TO victim;
         CREATE FUNCTION public.grab(id uuid) RETURNS uuid LANGUAGE sql SECURITY DEFINER
             AS $$ SELECT recur._dispatch_by_hand(id, NULL) $$;
         ALTER FUNCTION public.grab OWNER TO author",
    );
    cluster
        .session_as("stranger", "app")
        .batch("SELECT public.run()");
    let owners: Vec<String> = admin
        .rows(
            "SELECT owner::text FROM recur.dispatches WHERE trigger IN ('manual', 'enqueue') ORDER BY trigger",
            &[],
        )
        .iter()
        .map(|row| row.get(0))
        .filter(|owner| owner == "victim")
        .collect();
    assert!(owners.len() >= 2, "{owners:?}");
    let grabbed: Option<uuid::Uuid> = admin.value(
        "SELECT public.grab(id) FROM recur.recurring_actions WHERE name = 'subscription'",
        &[],
    );
    assert_eq!(grabbed, None);
    // Membership is looked at afresh: who leaves the team sees nothing of it any more, in the same session.
    assert_eq!(author.count("recur.recurring_actions"), 1);
    admin.batch("REVOKE team FROM author");
    assert_eq!(author.count("recur.recurring_actions"), 0);
    admin.batch("GRANT team TO author");
    assert_eq!(author.count("recur.recurring_actions"), 1);
    admin.batch("ALTER ROLE team RENAME TO crew");
    assert_eq!(author.count("recur.recurring_actions"), 0);
}

#[test]
fn a_consumer_touches_only_what_belongs_to_its_owners() {
    let cluster = Cluster::start();
    let mut admin = cluster.database("app");
    admin.batch(
        "CREATE ROLE red; CREATE ROLE blue; CREATE ROLE red_worker IN ROLE red; CREATE ROLE blue_worker IN ROLE blue;
         SELECT recur.grant_access('red_worker', 'consumer'); SELECT recur.grant_access('blue_worker', 'consumer');
         SELECT recur.grant_access('red', 'author')",
    );
    let mut author = cluster.session("app");
    author.batch("SET SESSION AUTHORIZATION red");
    let action = idle_action(&mut author, ", context => '{\"n\": 1}', max_attempts => 1");
    let mut mine = || {
        let id = queue_for(&mut admin, action);
        admin.execute("UPDATE recur.live_dispatches SET owner = 'red', lock_group = 'shared', max_attempts = 1
                        WHERE id = $1", &[&id]);
        id
    };
    let ids = [mine(), mine(), mine(), mine(), mine()];
    let mut red = cluster.session("app");
    red.batch("SET ROLE red_worker");
    let mut blue = cluster.session("app");
    blue.batch("SET ROLE blue_worker");

    assert_eq!(blue.rows("SELECT FROM recur.claim(10)", &[]).len(), 0);
    claim_this(&mut red, ids[0]);
    for report in [
        "complete(%, 1)",
        "fail(%, 1, 'x')",
        "extend(%, 1)",
        "release(%, 1)",
        "cancel(%)",
        "retry(%)",
    ] {
        let sql = format!(
            "SELECT recur.{}",
            report.replace('%', &format!("'{}'", ids[0]))
        );
        assert_eq!(blue.error(&sql).0, "P0002", "{sql}");
    }
    assert_eq!(blue.error("SELECT recur.recover('0')").0, "42501");
    assert_eq!(blue.error("SELECT recur.purge('0')").0, "42501");
    assert_eq!(
        blue.error("SELECT recur._expire_leases(now(), 1)").0,
        "42501"
    );
    assert_eq!(blue.error("INSERT INTO recur.live_dispatches (id, scheduled_at, trigger, provider, action_type,
                                                              owner) VALUES (gen_random_uuid(), now(), 'enqueue',
                                                                     'p', 'a', 'red')").0, "42501");
    assert_eq!(
        red.error("UPDATE recur.live_dispatches SET owner = 'blue'")
            .0,
        "42501"
    );
    assert_eq!(
        red.error("UPDATE recur.live_dispatches SET provider = 'p'")
            .0,
        "42501"
    );
    assert_eq!(red.error("DELETE FROM recur.contexts").0, "42501");
    assert_eq!(
        blue.execute(
            "UPDATE recur.progress SET context = '{}', context_version = 9",
            &[]
        ),
        0
    );

    // A group is one for all owners: blue does not see who runs, and waits all the same.
    let other = queue(&mut admin, "owner = 'blue', lock_group = 'shared'");
    assert_eq!(blue.rows("SELECT FROM recur.claim(10)", &[]).len(), 0);

    // Everything that red's consumer needs it can do.
    red.execute("SELECT recur.extend($1, 1)", &[&ids[0]]);
    red.execute(
        "SELECT recur.complete($1, 1, '{}', '{\"n\": 2}')",
        &[&ids[0]],
    );
    claim_this(&mut red, ids[1]);
    red.execute("SELECT recur.release($1, 1)", &[&ids[1]]);
    for (number, id) in [ids[2], ids[3], ids[4]].into_iter().enumerate() {
        assert_eq!(claim_this(&mut red, id), 1);
        let ended: String = red.value(
            "SELECT status FROM recur.fail_many(ARRAY[$1::uuid], ARRAY[1], ARRAY['x'])",
            &[&id],
        );
        assert_eq!(ended, "failed", "{number}");
    }
    red.execute("SELECT recur.retry($1)", &[&ids[2]]);
    red.execute("SELECT recur.cancel($1, 'enough')", &[&ids[2]]);
    assert_eq!(claim_this(&mut red, ids[1]), 2);
    let done: bool = red.value(
        "SELECT accepted FROM recur.complete_many(ARRAY[$1::uuid], ARRAY[2])",
        &[&ids[1]],
    );
    assert!(done);
    assert_eq!(claim_this(&mut blue, other), 1);
    assert_eq!(
        admin.count("recur.events WHERE kind = 'owner.notified' AND owner = 'red'"),
        1
    );
    let row = &admin.rows(
        "SELECT completed_count, failed_count, context FROM recur.recurring_actions WHERE id = $1",
        &[&action],
    )[0];
    assert_eq!(
        (
            row.get::<_, i64>(0),
            row.get::<_, i64>(1),
            row.get::<_, Value>(2)
        ),
        (2, 3, json!({"n": 2}))
    );
}

#[test]
fn nobody_runs_what_is_not_his() {
    let cluster = Cluster::quiet();
    let mut admin = cluster.database("app");
    admin.batch(
        "CREATE ROLE run_red LOGIN; CREATE ROLE run_blue LOGIN; CREATE ROLE run_reader LOGIN;
         SELECT recur.grant_access('run_red', 'author'), recur.grant_access('run_blue', 'author'),
                recur.grant_access('run_reader', 'reader')",
    );
    let mut red = cluster.session_as("run_red", "app");
    let action: Uuid = red.value(
        "SELECT id FROM recur.create('a', '@hourly', 'p', 't', starts_at => '2026-01-01Z')",
        &[],
    );
    let owner: String = red.value("SELECT owner::text FROM recur.trigger($1)", &[&action]);
    assert_eq!(owner, "run_red");
    let owner: String = red.value("SELECT owner::text FROM recur.enqueue('p', 't')", &[]);
    assert_eq!(owner, "run_red");
    let made: i64 = red.value(
        "SELECT count(*) FROM recur.backfill($1, '2026-01-01Z', '2026-01-01 05:00Z')",
        &[&action],
    );
    assert_eq!(made, 6);
    let mut blue = cluster.session_as("run_blue", "app");
    for statement in [
        format!("SELECT recur.trigger('{action}')"),
        format!("SELECT recur.backfill('{action}', '2026-01-01Z', '2026-01-02Z')"),
        format!("SELECT recur.explain('{action}', '2026-01-01Z')"),
    ] {
        blue.assert_error(
            &statement,
            "P0002",
            &format!("no action has the id {action}"),
        );
    }
    // Past the door that looks: what has the work done by the extension's owner looks again.
    let sneaked: Option<Uuid> = blue.value("SELECT recur._dispatch_by_hand($1, NULL)", &[&action]);
    assert_eq!(sneaked, None);
    let sneaked: Option<Vec<Uuid>> = blue.value(
        "SELECT recur._dispatch_missing($1, '2026-01-01Z', '2026-01-02Z', 10)",
        &[&action],
    );
    assert_eq!(sneaked, None);
    let mut reader = cluster.session_as("run_reader", "app");
    for statement in [
        format!("SELECT recur.trigger('{action}')"),
        "SELECT recur.enqueue('p', 't')".to_owned(),
        "SELECT recur.receive('p', 't', '')".to_owned(),
        "SELECT recur.tick()".to_owned(),
    ] {
        assert_eq!(reader.error(&statement).0, "42501", "{statement}");
    }
}
