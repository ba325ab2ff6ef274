//! The workers of a server, seen from a session.

use crate::actions::EVERY_SECOND;
use crate::cluster::Cluster;
use crate::session::Session;
use crate::wait::{eventually, eventually_some};

/// The processes that dispatch in this database.
#[track_caller]
pub fn dispatchers(session: &mut Session, database: &str) -> Vec<i32> {
    session.column(
        "SELECT pid FROM pg_stat_activity WHERE backend_type = 'pg_recur dispatcher' AND datname = $1 ORDER BY pid",
        &[&database],
    )
}

/// One of them, as soon as there is one.
#[track_caller]
pub fn dispatcher(session: &mut Session, database: &str) -> i32 {
    eventually_some("a dispatcher", || {
        dispatchers(session, database).first().copied()
    })
}

/// Creates an action that runs every second, and returns when the database has a dispatch.
#[track_caller]
pub fn starts_to_fire(session: &mut Session, name: &str) {
    session.execute(
        "SELECT recur.create($1, $2, 'p', 'a')",
        &[&name, &EVERY_SECOND],
    );
    eventually("it fires", || session.count("recur.dispatches") > 0);
}

/// A session in a server that restarts its processes because this one was killed. They end all at once, but not this
/// instant: until then a session may be let in that is about to be ended.
#[track_caller]
pub fn session_after_kill(cluster: &Cluster, database: &str, killed: i32) -> Session {
    eventually_some("the server is back", || {
        let mut session = cluster.try_connect(database)?;
        let survivors = "SELECT count(*) FROM pg_stat_activity WHERE pid = $1";
        let survivors = session.0.query_one(survivors, &[&killed]).ok()?;
        (survivors.get::<_, i64>(0) == 0).then_some(session)
    })
}
