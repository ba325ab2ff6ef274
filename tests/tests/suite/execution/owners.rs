//! As whom SQL runs, and who may write it.

use super::outcome;
use pg_recur_tests::{Cluster, Session, eventually};
use uuid::Uuid;

/// A role with a level; it may log in, and create tables.
fn role(session: &mut Session, name: &str, level: &str) {
    session.batch(&format!(
        "CREATE ROLE {name} LOGIN; GRANT CREATE ON SCHEMA public TO {name};
         SELECT recur.grant_access('{name}', '{level}');"
    ));
}

#[test]
fn sql_runs_as_its_owner() {
    let cluster = Cluster::preloaded("");
    let mut admin = cluster.database("app");
    role(&mut admin, "ann", "sql");
    let mut ann = cluster.session_as("ann", "app");
    let id: Uuid = ann.value(
        "SELECT recur.enqueue_sql('SELECT session_user, current_user, current_setting(''is_superuser'') AS s')",
        &[],
    );
    let (_, result, error) = outcome(&mut ann, id);
    assert_eq!(error, "");
    assert_eq!(
        result["rows"],
        serde_json::json!([{"session_user": "ann", "current_user": "ann", "s": "off"}])
    );
}

#[test]
fn only_the_level_sql_makes_the_database_run_something() {
    let cluster = Cluster::preloaded("");
    let mut admin = cluster.database("app");
    role(&mut admin, "ann", "author");
    role(&mut admin, "ben", "sql");
    admin.batch("GRANT ann TO ben; CREATE FUNCTION f(jsonb) RETURNS void LANGUAGE sql AS ''");
    let mut ann = cluster.session_as("ann", "app");
    for call in [
        "recur.create_sql('a', '@daily', 'SELECT 1')",
        "recur.enqueue_sql('SELECT 1')",
        "recur.set_handler('a', 'f(jsonb)')",
    ] {
        let (code, message, _) = ann.error(&format!("SELECT {call}"));
        assert_eq!(code, "42501", "{message}");
        assert!(message.contains("permission denied"), "{message}");
    }
    // Not by another way either.
    let payload = r#"'{"command": "SELECT 1"}'"#;
    for statement in [
        format!("SELECT recur.create('a', '@daily', 'sql', 'command', {payload})"),
        format!("SELECT recur.enqueue('sql', 'command', {payload})"),
        format!(
            "SELECT recur.create_many(ARRAY[jsonb_build_object(
                 'name', 'a', 'schedule', '@daily', 'provider', 'sql', 'action_type', 'command',
                 'payload', {payload}::jsonb)])"
        ),
        format!(
            "INSERT INTO recur.recurring_actions (name, schedule, provider, action_type, payload)
                 VALUES ('a', '@daily', 'sql', 'command', {payload})"
        ),
    ] {
        let (code, message, hint) = ann.error(&statement);
        assert_eq!(code, "42501", "{message}");
        assert!(
            message.contains("may not make the database run SQL"),
            "{message}"
        );
        assert!(hint.contains("grant_access"), "{hint}");
    }
    ann.batch("SELECT recur.create('mine', '@daily', 'app', 'a')");
    let (code, ..) = ann.error(&format!(
        "SELECT recur.update('mine', jsonb_build_object('provider', 'sql', 'action_type', 'command',
                                                       'payload', {payload}::jsonb))"
    ));
    assert_eq!(code, "42501");
    let (code, ..) = ann.error("SELECT recur.receive('sql', 'command', ''::bytea)");
    assert_eq!(code, "22023");
    // A member with the level may, for the owner.
    let mut ben = cluster.session_as("ben", "app");
    ben.batch("SELECT recur.set_handler('a', 'f(jsonb)', owner => 'ann')");
    let (code, ..) = ben.error("SELECT recur.set_handler('a', 'f(jsonb)', owner => 'postgres')");
    assert_eq!(code, "42501");
}

#[test]
fn the_command_of_an_action_is_its_authors() {
    let cluster = Cluster::preloaded("");
    let mut admin = cluster.database("app");
    role(&mut admin, "ann", "sql");
    role(&mut admin, "boss", "admin");
    let mut ann = cluster.session_as("ann", "app");
    ann.batch("SELECT recur.create_sql('a', '@daily', 'SELECT 1')");
    let mut boss = cluster.session_as("boss", "app");
    // An admin operates, but what runs as ann is written by those who may be ann.
    boss.batch(
        "SELECT recur.pause(id) FROM recur.list(owner => 'ann');
         SELECT recur.resume(id) FROM recur.list(owner => 'ann')",
    );
    for change in [
        r#"{"payload": {"command": "SELECT 2"}}"#,
        r#"{"payload": {"command": "SELECT 1", "timeout": "1 s"}}"#,
    ] {
        let (code, message, _) = boss.error(&format!(
            "SELECT recur.update(id, '{change}') FROM recur.list(owner => 'ann')"
        ));
        assert_eq!(code, "42501", "{message}");
    }
    let (code, message, _) = ann.error("SELECT recur.trigger('a', '{\"command\": \"SELECT 2\"}')");
    assert_eq!(code, "22023", "{message}");
}

#[test]
fn nothing_that_was_inserted_by_hand_runs() {
    let cluster = Cluster::preloaded("");
    let mut admin = cluster.database("app");
    role(&mut admin, "ann", "sql");
    admin.batch(
        "CREATE ROLE keeper LOGIN; ALTER DATABASE app OWNER TO keeper;
         CREATE TABLE seen (who name DEFAULT current_user); GRANT INSERT ON seen TO PUBLIC;",
    );
    let mut ann = cluster.session_as("ann", "app");
    let id: Uuid = ann.value(
        "SELECT recur.enqueue_sql('INSERT INTO seen DEFAULT VALUES')",
        &[],
    );
    outcome(&mut ann, id);
    assert_eq!(admin.count("recur_internal.armed_owners"), 1);
    // The owner of the database may insert rows, because a restore does.
    let mut keeper = cluster.session_as("keeper", "app");
    // Operators of its own do not decide what the extension does meanwhile.
    keeper.batch(
        "CREATE SCHEMA evil; GRANT USAGE ON SCHEMA evil TO PUBLIC;
         CREATE FUNCTION evil.no(a int, b int) RETURNS boolean LANGUAGE plpgsql AS
            $$ BEGIN RAISE 'called as %', current_user; END $$;
         CREATE OPERATOR evil.= (LEFTARG = int, RIGHTARG = int, FUNCTION = evil.no);
         SET search_path = evil, pg_catalog;
         INSERT INTO recur_internal.live_dispatches
                (id, scheduled_at, available_at, created_at, owner_id, priority, max_attempts, trigger, namespace,
                 tenant, provider, action_type, payload, in_database)
         SELECT gen_random_uuid(), now(), now(), now(), o.id, 0, 3, 'enqueue', 'default', 'default', 'sql', 'command',
                '{\"command\": \"INSERT INTO seen VALUES (''forged'')\"}', true
           FROM recur_internal.owners AS o WHERE o.name OPERATOR(pg_catalog.=) 'ann'",
    );
    assert_eq!(
        admin.count("recur_internal.armed_owners WHERE owner_id > 0"),
        0
    );
    // What ann writes now does not run either, before she has looked.
    let mine: Uuid = ann.value(
        "SELECT recur.enqueue_sql('INSERT INTO seen DEFAULT VALUES')",
        &[],
    );
    keeper.batch("SELECT recur.grant_access('keeper', 'admin')");
    let (code, ..) = keeper.error("SELECT recur.arm_sql('ann')");
    assert_eq!(code, "42501");
    ann.batch(
        "SELECT recur.cancel(id) FROM recur.dispatches WHERE status = 'pending' AND payload::text LIKE '%forged%';
         SELECT recur.arm_sql();",
    );
    outcome(&mut ann, mine);
    assert_eq!(admin.count("seen WHERE who = 'ann'"), 2);
    assert_eq!(admin.count("seen"), 2);
}

#[test]
fn a_dropped_role_stops_its_own_sql_and_nothing_else() {
    let cluster = Cluster::preloaded("");
    let mut admin = cluster.database("app");
    role(&mut admin, "ann", "sql");
    role(&mut admin, "ben", "sql");
    admin.batch("CREATE TABLE seen (who name DEFAULT current_user); GRANT INSERT, SELECT ON seen TO PUBLIC;");
    for name in ["ann", "ben"] {
        let mut session = cluster.session_as(name, "app");
        let command = "INSERT INTO seen DEFAULT VALUES";
        session.batch(&format!(
            "SELECT recur.create_sql('tick', 'every 1 second', '{command}')"
        ));
    }
    eventually("both run", || {
        admin.count("(SELECT DISTINCT who FROM seen) AS s") == 2
    });
    admin.batch("SELECT recur.revoke_access('ann'); DROP OWNED BY ann; DROP ROLE ann;");
    eventually("ann's action is paused, with an event", || {
        admin.count("recur.events WHERE kind = 'action.paused'") == 1
    });
    admin.batch("TRUNCATE seen");
    eventually("ben's goes on", || {
        admin.count("seen WHERE who = 'ben'") > 1
    });
}

#[test]
fn an_owner_without_login_runs_where_the_server_allows_it() {
    let cluster = Cluster::preloaded("");
    let mut session = cluster.database("app");
    session
        .batch("CREATE ROLE team NOLOGIN; SELECT recur.grant_access('team', 'sql'); SET ROLE team");
    let version: i32 = session.value("SELECT current_setting('server_version_num')::int", &[]);
    let call = "SELECT recur.enqueue_sql('SELECT session_user')";
    if version < 170_000 {
        let (code, message, hint) = session.error(call);
        assert_eq!(code, "55000", "{message}");
        assert!(message.contains("the role has no LOGIN"), "{message}");
        assert!(hint.starts_with("ALTER ROLE team LOGIN"), "{hint}");
        return;
    }
    let id: Uuid = session.value(call, &[]);
    let (_, result, error) = outcome(&mut session, id);
    assert_eq!(error, "");
    assert_eq!(
        result["rows"],
        serde_json::json!([{"session_user": "team"}])
    );
}

#[test]
fn an_owner_that_can_not_connect_is_refused_or_reported() {
    let cluster = Cluster::preloaded("");
    let mut admin = cluster.database("app");
    role(&mut admin, "ann", "sql");
    let mut ann = cluster.session_as("ann", "app");
    ann.batch("SELECT recur.create_sql('tick', 'every 1 second', 'SELECT 1')");
    eventually("it runs", || ann.count("recur.runs") > 0);
    admin.batch("REVOKE CONNECT ON DATABASE app FROM PUBLIC");
    let (code, message, hint) = ann.error("SELECT recur.enqueue_sql('SELECT 1')");
    assert_eq!(code, "55000", "{message}");
    assert!(hint.contains("GRANT CONNECT ON DATABASE"), "{hint}");
    let found: Vec<String> = admin.texts("SELECT finding FROM recur.doctor()", &[]);
    assert!(
        found.iter().any(|one| one.contains("can not connect")),
        "{found:?}"
    );
    // Others are served meanwhile, and it goes on when the right is back.
    assert_eq!(super::run(&mut admin, "SELECT 1", "").0, "completed");
    admin.batch("GRANT CONNECT ON DATABASE app TO PUBLIC");
    let before = ann.count("recur.runs WHERE outcome = 'completed'");
    eventually("it goes on", || {
        ann.count("recur.runs WHERE outcome = 'completed'") > before
    });
}

/// A dispatch of another owner, as a restore would insert it.
const FORGED: &str = "
    INSERT INTO recur_internal.live_dispatches
           (id, scheduled_at, available_at, created_at, owner_id, priority, max_attempts, trigger, namespace, tenant,
            provider, action_type, payload, in_database)
    SELECT gen_random_uuid(), now(), now(), now(), o.id, 0, 1, 'enqueue', 'default', 'default', 'sql', 'command',
           '{\"command\": \"INSERT INTO seen VALUES (''forged'')\"}', true
      FROM recur_internal.owners AS o WHERE o.name = 'ann'";

/// A database of `keeper`, who is no superuser, and a session of `ann`, who may run SQL.
fn kept_by_another() -> (Cluster, Session, Session, Session) {
    let cluster = Cluster::preloaded("recur.executors = 1");
    let mut admin = cluster.database("app");
    role(&mut admin, "ann", "sql");
    admin.batch(
        "CREATE ROLE keeper LOGIN; ALTER DATABASE app OWNER TO keeper;
         CREATE TABLE seen (who name DEFAULT current_user); GRANT INSERT ON seen TO PUBLIC;",
    );
    let keeper = cluster.session_as("keeper", "app");
    let ann = cluster.session_as("ann", "app");
    (cluster, admin, keeper, ann)
}

#[test]
fn an_executor_at_work_takes_nothing_that_was_inserted_by_hand() {
    let (_cluster, mut admin, mut keeper, mut ann) = kept_by_another();
    // It runs until the test lets it go on.
    admin.batch("SELECT pg_advisory_lock(1)");
    let id: Uuid = ann.value(
        "SELECT recur.enqueue_sql('SELECT pg_advisory_xact_lock(1)')",
        &[],
    );
    eventually("it runs", || {
        ann.count("recur.runs WHERE outcome = 'running'") == 1
    });
    keeper.batch(FORGED);
    admin.batch("SELECT pg_advisory_unlock(1)");
    assert_eq!(outcome(&mut ann, id).0, "completed");
    eventually("the executor has nothing to do", || {
        admin.count("recur.workers WHERE kind = 'executor' AND state <> 'idle'") == 0
    });
    assert_eq!(admin.count("seen"), 0);
    assert_eq!(
        admin.count("recur_internal.live_dispatches WHERE attempt = 0"),
        1
    );
}

#[test]
fn history_that_was_inserted_by_hand_is_not_brought_back_to_run() {
    let (_cluster, mut admin, mut keeper, mut ann) = kept_by_another();
    keeper.batch(
        "INSERT INTO recur_internal.finished_dispatches_0
                (id, scheduled_at, available_at, created_at, finished_at, owner_id, priority, max_attempts, attempt,
                 releases, cancel_requested, status, trigger, namespace, tenant, provider, action_type, payload,
                 partition)
         SELECT gen_random_uuid(), now(), now(), now(), now(), o.id, 0, 1, 1, 0, false, 'failed', 'enqueue',
                'default', 'default', 'sql', 'command', '{\"command\": \"INSERT INTO seen VALUES (''forged'')\"}', 0
           FROM recur_internal.owners AS o WHERE o.name = 'ann'",
    );
    admin.batch("CREATE FUNCTION f(jsonb) RETURNS void LANGUAGE sql AS ''");
    ann.batch("SELECT recur.set_handler('a', 'f(jsonb)')");
    assert_eq!(
        admin.count("recur_internal.armed_owners WHERE owner_id > 0"),
        0
    );
    let found: Vec<String> = admin.texts("SELECT finding FROM recur.doctor()", &[]);
    assert!(
        found
            .iter()
            .any(|one| one.contains("the SQL of role \"ann\" does not run"))
    );
}
