//! Whose an action is: a role acts for the owners that it is a member of, and for no other.

use super::privileges::prepare;
use pg_recur_tests::actions::row;
use pg_recur_tests::queue::{NONE, claim_this, claimed, enqueue, idle_action, queue_for};
use pg_recur_tests::{Cluster, Session, eventually};
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
                format!("invalid owner \"{owner}\": author may not SET ROLE to this role"),
                "Leave it out to own it yourself.".to_owned()
            )
        );
    }
    author.batch(&insert("team"));
    // Nor given to one.
    author.assert_error(
        "UPDATE recur.recurring_actions SET owner = 'victim'",
        "42501",
        "invalid owner \"victim\": author may not SET ROLE to this role",
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
             AS $$ SELECT recur.trigger(id) $$;
         ALTER FUNCTION public.grab OWNER TO author",
    );
    cluster
        .session_as("stranger", "app")
        .batch("SELECT public.run()");
    for trigger in ["manual", "enqueue"] {
        let owner: String = admin.value(
            "SELECT owner::text FROM recur.dispatches WHERE trigger = $1 AND provider = 'p'",
            &[&trigger],
        );
        assert_eq!(owner, "victim", "{trigger}");
    }
    let grab = "SELECT public.grab(id) FROM recur.recurring_actions WHERE name = 'subscription'";
    assert_eq!(admin.error(grab).0, "P0002");
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
    // The owner is the role, whatever its name is.
    admin.batch("ALTER ROLE team RENAME TO crew");
    assert_eq!(
        author.count("recur.recurring_actions WHERE owner = 'crew'"),
        1
    );
    // A role that takes the name of another one does not get its actions.
    admin.batch("CREATE ROLE team; REVOKE crew FROM author; GRANT team TO author");
    assert_eq!(author.count("recur.recurring_actions"), 0);
    admin.batch("DROP ROLE crew; CREATE ROLE crew; GRANT crew TO author");
    assert_eq!(author.count("recur.recurring_actions"), 0);
    assert_eq!(admin.count("recur.recurring_actions WHERE name = 'n'"), 1);
}

/// A restore finds roles by name: the names in the tables follow those of the roles.
#[test]
fn a_dump_has_the_new_name_of_a_renamed_role() {
    let cluster = Cluster::start();
    let mut admin = prepare(&cluster);
    admin.batch("ALTER ROLE victim RENAME TO survivor");
    // The first dispatcher looks when it starts, and now and then; a maintenance process does the rest.
    let restart = "SELECT count(pg_terminate_backend(pid)) FROM recur.workers
                    WHERE database = current_database() AND kind = 'dispatcher'";
    eventually("the worker is there", || {
        admin.value::<i64>(restart, &[]) == 1
    });
    for table in ["owners", "levels"] {
        eventually("the new name is in the table", || {
            admin.count(&format!("recur_internal.{table} WHERE name = 'survivor'")) > 0
        });
        assert_eq!(
            admin.count(&format!("recur_internal.{table} WHERE name = 'victim'")),
            0
        );
    }
    let role: bool = admin.value(
        "SELECT role = 'survivor'::regrole FROM recur_internal.owners WHERE name = 'survivor'",
        &[],
    );
    assert!(role, "the owner is the same role");
}

/// From PostgreSQL 16 on, a membership says whether a member may act as the role, and whether it has the role's rights.
#[test]
fn a_member_without_the_set_option_can_not_act_as_the_owner() {
    let cluster = Cluster::start();
    let mut admin = prepare(&cluster);
    if admin.value::<i32>("SELECT current_setting('server_version_num')::int", &[]) < 160_000 {
        return;
    }
    admin.batch("CREATE ROLE team; GRANT team TO author WITH SET FALSE, INHERIT TRUE");
    let mut author = cluster.session_as("author", "app");
    assert_eq!(author.error(&insert("team")).0, "42501");
    admin.batch(&insert("team"));
    assert_eq!(author.count("recur.recurring_actions"), 1);
    admin.batch("GRANT team TO author WITH SET TRUE, INHERIT FALSE");
    assert_eq!(author.count("recur.recurring_actions"), 0);
    author.batch(&insert("team").replace("'n'", "'m'"));
    author.batch("SET ROLE team");
    assert_eq!(
        author.error("TABLE recur.recurring_actions").0,
        "42501",
        "the team has no level"
    );
}

/// An admin sees the rows of all owners: of two actions of a name its own is meant, and never that of a dropped role
/// whose name it bears.
#[test]
fn a_name_means_the_action_of_the_role_and_not_of_its_namesake() {
    let cluster = Cluster::start();
    let mut admin = prepare(&cluster);
    admin.batch("CREATE ROLE boss LOGIN; SELECT recur.grant_access('boss', 'admin')");
    let create = "SELECT recur.create('n', '@yearly', 'p', 'a')";
    let of_first: Uuid = cluster.session_as("boss", "app").value(create, &[]);
    let of_author: Uuid = cluster.session_as("author", "app").value(create, &[]);
    admin.batch(
        "SELECT recur.revoke_access('boss'); DROP ROLE boss; CREATE ROLE boss LOGIN;
         SELECT recur.grant_access('boss', 'admin')",
    );
    let mut second = cluster.session_as("boss", "app");
    assert_eq!(second.error("SELECT recur.id_of('n')").0, "P0003");
    let own: Uuid = second.value(create, &[]);
    let meant: Uuid = second.value("SELECT recur.id_of('n')", &[]);
    assert_eq!(meant, own);
    assert!(own != of_first && own != of_author);
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
         SELECT recur.grant_access('red', 'author'); SELECT recur.grant_access('blue', 'author')",
    );
    let mut author = cluster.session("app");
    author.batch("SET SESSION AUTHORIZATION red");
    let action = idle_action(
        &mut author,
        ", context => '{\"n\": 1}', max_attempts => 1, lock_group => 'shared'",
    );
    // Whoever triggers it, the dispatch belongs to the owner of the action.
    let of_red = [(); 5].map(|()| queue_for(&mut admin, action));
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
        "UPDATE recur_internal.progress SET context = '{}', context_version = 9",
        "UPDATE recur_internal.live_dispatches SET owner_id = 2",
        "UPDATE recur_internal.live_dispatches SET provider = 'p'",
        "DELETE FROM recur_internal.contexts",
    ] {
        // Nor on what belongs to a consumer's own owner, except by a report.
        for session in [&mut blue, &mut red] {
            assert_eq!(session.error(statement).0, "42501", "{statement}");
        }
    }
    let statement = format!(
        "SELECT FROM recur.complete_many(ARRAY['{running}'::uuid], ARRAY[1]) WHERE accepted"
    );
    assert_eq!(blue.rows(&statement, &[]).len(), 0);
    assert_eq!(red.rows(&statement, &[]).len(), 1);
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
    // A group is one of its owner's: what another owner calls the same is another group.
    admin.batch("SET ROLE blue");
    let other = enqueue(&mut admin, "lock_group => 'shared'");
    let next = enqueue(&mut admin, "lock_group => 'shared'");
    admin.batch("RESET ROLE");
    assert_eq!(claimed(&mut red, "10"), NONE);
    assert_eq!(claimed(&mut blue, "10"), [other]);
    assert_eq!(claimed(&mut blue, "10"), NONE);
    blue.execute("SELECT recur.complete($1, 1)", &[&other]);
    claim_this(&mut blue, next);

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
    for made in [
        format!("recur.trigger('{action}'::uuid)"),
        "recur.enqueue('p', 't')".to_owned(),
    ] {
        let id: Uuid = red.value(&format!("SELECT {made}"), &[]);
        let owner: String = red.value("SELECT owner FROM recur.dispatches WHERE id = $1", &[&id]);
        assert_eq!(owner, "run_red", "{made}");
    }
    let made: i64 = red.value(
        "SELECT count(*) FROM recur.backfill($1::uuid, '2026-01-01Z', '2026-01-01 05:00Z')",
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
    let untouched: i64 = admin.value(
        "SELECT count(*) FROM recur.dispatches WHERE action_id = $1",
        &[&action],
    );
    assert_eq!(untouched, 7);
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

#[test]
fn the_first_action_of_a_role_keeps_no_other_session_of_the_role_waiting() {
    let cluster = Cluster::quiet();
    let mut admin = cluster.database("app");
    admin.batch("CREATE ROLE newcomer LOGIN; SELECT recur.grant_access('newcomer', 'author')");
    let [mut first, mut second] = [0, 1].map(|_| cluster.session_as("newcomer", "app"));
    first.batch("BEGIN; SELECT recur.create('one', '@daily', 'p', 'a')");
    second.batch("SET lock_timeout = '30s'; SELECT recur.create('two', '@daily', 'p', 'a')");
    first.batch("COMMIT");
    assert_eq!(second.count("recur.recurring_actions"), 2);
}
