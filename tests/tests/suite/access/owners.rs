//! Whose an action is: a role acts for the owners that it is a member of, and for no other.

use super::privileges::prepare;
use pg_recur_tests::actions::row;
use pg_recur_tests::queue::{NONE, claim_this, claimed, idle_action, queue, queue_for};
use pg_recur_tests::{Cluster, Session};
use serde_json::json;
use uuid::Uuid;

/// Creates an action in the name of this owner.
fn insert(owner: &str) -> String {
    format!(
        "INSERT INTO recur.recurring_actions (name, schedule, provider, action_type, owner)
         VALUES ('n', '@yearly', 'p', 'a', '{owner}')"
    )
}

#[test]
fn an_action_can_not_be_made_in_the_name_of_a_role_that_one_is_no_member_of() {
    let cluster = Cluster::start();
    let mut admin = prepare(&cluster);
    admin.batch("CREATE ROLE team; GRANT team TO author");
    let mut author = cluster.session_as("author", "app");
    for owner in ["victim", "postgres", "nobody"] {
        assert_eq!(
            author.error(&insert(owner)),
            (
                "42501".to_owned(),
                format!("invalid owner \"{owner}\": author is not a member of this role"),
                "Leave it out to own the action yourself.".to_owned()
            )
        );
    }
    author.batch(&insert("team"));
    author.assert_error(
        "UPDATE recur.recurring_actions SET owner = 'author'",
        "22023",
        "invalid change \"owner\": this column is maintained by pg_recur",
    );
    // A superuser who acts as a role is that role.
    admin.batch("SET ROLE author");
    assert_eq!(admin.error(&insert("victim")).0, "42501");
    admin.batch("RESET ROLE");
}

/// Whichever role calls it.
#[test]
fn a_function_that_runs_as_its_owner_acts_in_the_name_of_its_owner() {
    let cluster = Cluster::start();
    let mut admin = prepare(&cluster);
    admin.batch(
        "CREATE FUNCTION public.subscribe() RETURNS uuid LANGUAGE sql SECURITY DEFINER
             AS $$ SELECT recur.create('subscription', '@yearly', 'p', 'a') $$;
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
    // So do its manual runs and what it enqueues. It sees no more than its owner does, even when an admin calls it.
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
    for trigger in ["manual", "enqueue"] {
        let owner: String = admin.value(
            "SELECT owner::text FROM recur.dispatches WHERE trigger = $1",
            &[&trigger],
        );
        assert_eq!(owner, "victim", "{trigger}");
    }
    let grabbed: Option<uuid::Uuid> = admin.value(
        "SELECT public.grab(id) FROM recur.recurring_actions WHERE name = 'subscription'",
        &[],
    );
    assert_eq!(grabbed, None);
}

/// Membership is looked up each time, in the same session too.
#[test]
fn a_role_that_leaves_a_team_no_longer_sees_its_actions() {
    let cluster = Cluster::start();
    let mut admin = prepare(&cluster);
    admin.batch("CREATE ROLE team; GRANT team TO author");
    let mut author = cluster.session_as("author", "app");
    author.batch(&insert("team"));
    assert_eq!(author.count("recur.recurring_actions"), 1);
    admin.batch("REVOKE team FROM author");
    assert_eq!(author.count("recur.recurring_actions"), 0);
    admin.batch("GRANT team TO author");
    assert_eq!(author.count("recur.recurring_actions"), 1);
    admin.batch("ALTER ROLE team RENAME TO crew");
    assert_eq!(author.count("recur.recurring_actions"), 0);
}

/// A database in which `red` has an action with five dispatches, and a consumer of each of `red` and `blue`.
struct Teams {
    cluster: Cluster,
    admin: Session,
    red: Session,
    blue: Session,
    action: Uuid,
    of_red: [Uuid; 5],
}

fn teams() -> Teams {
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
    let of_red = [(); 5].map(|()| queue_for(&mut admin, action));
    admin.batch(
        "UPDATE recur_internal.live_dispatches SET owner = 'red', lock_group = 'shared', max_attempts = 1",
    );
    let mut red = cluster.session("app");
    red.batch("SET ROLE red_worker");
    let mut blue = cluster.session("app");
    blue.batch("SET ROLE blue_worker");
    Teams {
        cluster,
        admin,
        red,
        blue,
        action,
        of_red,
    }
}

#[test]
fn a_consumer_touches_only_what_belongs_to_its_owners() {
    let Teams {
        mut red,
        mut blue,
        of_red,
        cluster: _cluster,
        ..
    } = teams();
    assert_eq!(claimed(&mut blue, "10"), NONE);
    let running = of_red[0];
    claim_this(&mut red, running);
    for report in [
        format!("complete('{running}', 1)"),
        format!("fail('{running}', 1, 'x')"),
        format!("extend('{running}', 1)"),
        format!("release('{running}', 1)"),
        format!("cancel('{running}')"),
        format!("retry('{running}')"),
    ] {
        let code = blue.error(&format!("SELECT recur.{report}")).0;
        assert_eq!(code, "P0002", "{report}");
    }
    for statement in [
        "SELECT recur.recover('0')",
        "SELECT recur.purge('0')",
        "SELECT recur_internal.expire_leases(now(), 1)",
        "INSERT INTO recur_internal.live_dispatches (id, scheduled_at, trigger, provider, action_type, owner)
         VALUES (gen_random_uuid(), now(), 'enqueue', 'p', 'a', 'red')",
    ] {
        assert_eq!(blue.error(statement).0, "42501", "{statement}");
    }
    for statement in [
        "UPDATE recur_internal.live_dispatches SET owner = 'blue'",
        "UPDATE recur_internal.live_dispatches SET provider = 'p'",
        "DELETE FROM recur.contexts",
    ] {
        assert_eq!(red.error(statement).0, "42501", "{statement}");
    }
    let touched = blue.execute(
        "UPDATE recur_internal.progress SET context = '{}', context_version = 9",
        &[],
    );
    assert_eq!(touched, 0);
}

#[test]
fn a_consumer_can_do_everything_for_its_owners() {
    let Teams {
        mut admin,
        mut red,
        mut blue,
        action,
        of_red: ids,
        cluster: _cluster,
    } = teams();
    claim_this(&mut red, ids[0]);
    // A group is one for all owners: blue does not see who runs, and waits all the same.
    let other = queue(&mut admin, "owner = 'blue', lock_group = 'shared'");
    assert_eq!(claimed(&mut blue, "10"), NONE);

    red.execute("SELECT recur.extend($1, 1)", &[&ids[0]]);
    red.execute(
        "SELECT recur.complete($1, 1, '{}', '{\"n\": 2}')",
        &[&ids[0]],
    );
    claim_this(&mut red, ids[1]);
    red.execute("SELECT recur.release($1, 1)", &[&ids[1]]);
    for id in [ids[2], ids[3], ids[4]] {
        assert_eq!(claim_this(&mut red, id), 1);
        let ended: String = red.value(
            "SELECT status FROM recur.fail_many(ARRAY[$1::uuid], ARRAY[1], ARRAY['x'])",
            &[&id],
        );
        assert_eq!(ended, "failed");
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
    let action = row(&mut admin, action);
    assert_eq!(action["completed_count"], 2);
    assert_eq!(action["failed_count"], 3);
    assert_eq!(action["context"], json!({"n": 2}));
}

#[test]
fn a_role_can_not_run_the_actions_of_another() {
    let cluster = Cluster::quiet();
    let mut admin = cluster.database("app");
    admin.batch(
        "CREATE ROLE run_red LOGIN; CREATE ROLE run_blue LOGIN; CREATE ROLE run_reader LOGIN;
         SELECT recur.grant_access('run_red', 'author'), recur.grant_access('run_blue', 'author'),
                recur.grant_access('run_reader', 'reader')",
    );
    let mut red = cluster.session_as("run_red", "app");
    let action: Uuid = red.value(
        "SELECT recur.create('a', '@hourly', 'p', 't', starts_at => '2026-01-01Z')",
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
    // The internal functions, which run as the extension's owner, check again.
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
