//! Where attacks happen: a database with the roles of the field.

use pg_recur_tests::workers::{dispatcher, dispatchers};
use pg_recur_tests::{Cluster, Session, database_error, eventually};

/// In everything of the victim that can hold a text.
pub const SECRET: &str = "TOP-SECRET";

const ROLES: &str = "
    CREATE ROLE dbo LOGIN; CREATE ROLE attacker LOGIN; CREATE ROLE victim LOGIN; CREATE ROLE stranger LOGIN;
    CREATE DATABASE app OWNER dbo TEMPLATE template0";

/// `victim` and `attacker` are unrelated owners, with the levels author and consumer. `dbo` owns the database without
/// being a superuser, and has installed the extension. `stranger` may connect and has no rights.
pub struct Field {
    pub cluster: Cluster,
    /// A superuser.
    pub root: Session,
}

impl Field {
    pub fn new() -> Field {
        Field::with("")
    }

    /// A field on a server with these settings.
    pub fn with(settings: &str) -> Field {
        let cluster = Cluster::preloaded(settings);
        let mut postgres = cluster.session("postgres");
        for statement in ROLES.split(';') {
            postgres.batch(statement);
        }
        cluster.session_as("dbo", "app").batch(
            "CREATE EXTENSION pg_recur;
             SELECT recur.grant_access(r, l)
               FROM unnest('{attacker,victim}'::name[]) AS r, unnest('{author,consumer}'::text[]) AS l",
        );
        let root = cluster.session("app");
        let mut victim = cluster.session_as("victim", "app");
        prepare(&mut victim);
        Field { cluster, root }
    }

    pub fn session(&self, role: &str) -> Session {
        self.cluster.session_as(role, "app")
    }

    /// The victim's actions fire, its consumers work, and no process has crashed.
    #[track_caller]
    pub fn assert_victim_works(&self) {
        self.assert_works_in(&mut self.session("victim"));
    }

    /// The same, seen from a session of the victim.
    #[track_caller]
    pub fn assert_works_in(&self, victim: &mut Session) {
        let fired = "recur.dispatches AS d JOIN recur.recurring_actions AS a ON a.id = d.action_id
                      WHERE a.name = 'heartbeat'";
        let before = victim.count(fired);
        eventually("the victim's action fires", || victim.count(fired) > before);
        victim.batch("SELECT recur.enqueue('job', 'noop')");
        let done = victim.rows(
            "SELECT recur.complete(id, attempt) FROM recur.claim(1000, providers => '{job,beat}')",
            &[],
        );
        assert!(!done.is_empty(), "the victim can claim and complete");
        self.assert_no_crash();
    }

    /// Lets new workers start, with the settings that the database and its roles have now.
    #[track_caller]
    pub fn restart_workers(&mut self) {
        let old = dispatcher(&mut self.root, "app");
        self.root.batch(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
              WHERE datname = 'app' AND backend_type IN ('pg_recur dispatcher', 'pg_recur maintenance')",
        );
        eventually("new workers have started", || {
            let running = dispatchers(&mut self.root, "app");
            !running.is_empty() && !running.contains(&old)
        });
    }

    /// No process of the server has ended by a signal, and none has panicked.
    #[track_caller]
    pub fn assert_no_crash(&self) {
        let log = self.cluster.log();
        for sign in [
            "terminated by signal",
            "panicked at",
            "PANIC",
            "abnormal server process exit",
            "reinitializing",
        ] {
            let line = log.lines().find(|line| line.contains(sign));
            assert!(line.is_none(), "{line:?}");
        }
    }
}

/// What there is to see, to take and to stop.
fn prepare(victim: &mut Session) {
    victim.batch(&format!(
        "SELECT recur.create('heartbeat', '* * * * * *', 'beat', 'noop', '{{\"k\": \"{SECRET}\"}}',
                             keep_history => 'all');
         SELECT recur.create('{SECRET}', 'at 2099-01-01T00:00:00', '{SECRET}', '{SECRET}', '{{\"k\": \"{SECRET}\"}}',
                             description => '{SECRET}', contact => '{SECRET}', labels => '{{\"k\": \"{SECRET}\"}}',
                             context => '{{\"k\": \"{SECRET}\"}}');
         SELECT recur.trigger(recur.id_of('{SECRET}'), overlap => 'allow') FROM generate_series(1, 4);
         SELECT recur.complete(id, attempt, '{{\"k\": \"{SECRET}\"}}', '{{\"k\": \"{SECRET}\"}}')
           FROM recur.claim(1, providers => '{{{SECRET}}}', consumer => '{SECRET}');
         SELECT recur.fail(id, attempt, '{SECRET}', retry => false)
           FROM recur.claim(1, providers => '{{{SECRET}}}', consumer => '{SECRET}');
         SELECT recur.claim(1, providers => '{{{SECRET}}}', consumer => '{SECRET}', lease => '1 day')"
    ));
}

/// Runs a statement that must be refused for missing rights.
#[track_caller]
pub fn assert_denied(session: &mut Session, statement: &str) {
    let (code, message, _) = session.error(statement);
    assert_eq!(code, "42501", "{statement}: {message}");
}

/// What a statement comes to: the SQLSTATE and the message of its error, if it is refused. Its effects are undone.
#[track_caller]
pub fn try_and_undo(session: &mut Session, statement: &str) -> Result<(), (String, String)> {
    session.batch("SAVEPOINT attempt");
    let outcome = session.0.simple_query(statement);
    let outcome = outcome.map(drop).map_err(|error| {
        let (code, message, _) = database_error(&error);
        (code, message)
    });
    session.batch("ROLLBACK TO attempt");
    outcome
}
