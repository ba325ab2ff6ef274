//! A cluster to measure on: default settings, every commit flushed.

use pg_recur_tests::{Cluster, Session, eventually};
use std::path::PathBuf;

/// What the tests' clusters have set otherwise, set back.
const DEFAULTS: &str = "
fsync = on
synchronous_commit = on
max_connections = 100
max_worker_processes = 8
recur.check_interval = '5s'
";

pub struct Server {
    pub cluster: Cluster,
}

impl Server {
    /// With pg_recur preloaded and created in the database `bench`.
    pub fn start(settings: &str) -> Server {
        let server = Server::plain(&format!(
            "shared_preload_libraries = 'pg_recur'\n{settings}"
        ));
        server.session("postgres").batch("CREATE DATABASE bench");
        server
            .session("bench")
            .batch("CREATE EXTENSION pg_recur; CREATE SCHEMA bench");
        server
    }

    pub fn plain(settings: &str) -> Server {
        Server {
            cluster: Cluster::with(&format!("{DEFAULTS}{settings}")),
        }
    }

    pub fn session(&self, database: &str) -> Session {
        self.cluster.session(database)
    }

    pub fn bench(&self) -> Session {
        self.session("bench")
    }

    /// The folder of its socket.
    pub fn sockets(&self) -> PathBuf {
        let data = self.cluster.data();
        data.parent().map(PathBuf::from).unwrap_or(data)
    }

    pub fn set(&self, name: &str, value: &str) {
        let mut session = self.session("postgres");
        session.batch(&format!("ALTER SYSTEM SET {name} = '{value}'"));
        session.batch("SELECT pg_reload_conf()");
    }

    /// Stops the workers, or starts them, and waits until it is so.
    pub fn enable(&self, enabled: bool, dispatchers: usize) {
        self.set("recur.dispatchers", &dispatchers.to_string());
        self.set("recur.enabled", if enabled { "on" } else { "off" });
        let expected = if enabled { dispatchers as i64 } else { 0 };
        let mut session = self.bench();
        eventually("as many dispatchers as wanted", || {
            let idle: i64 = session.value(
                "SELECT count(*) FROM recur.workers
                  WHERE database = 'bench' AND kind = 'dispatcher' AND state = 'sleeping'",
                &[],
            );
            let all: i64 = session.value(
                "SELECT count(*) FROM recur.workers WHERE database = 'bench' AND kind = 'dispatcher'",
                &[],
            );
            idle == expected && all == expected
        });
    }

    pub fn dispatcher_pids(&self) -> Vec<i32> {
        self.bench()
            .rows(
                "SELECT pid FROM recur.workers WHERE database = 'bench' AND kind = 'dispatcher'",
                &[],
            )
            .iter()
            .map(|row| row.get(0))
            .collect()
    }
}

/// Bytes of WAL written so far.
pub fn wal_position(session: &mut Session) -> f64 {
    session.value(
        "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::float8",
        &[],
    )
}

pub fn dispatched(session: &mut Session) -> i64 {
    session.value(
        "SELECT coalesce(sum(dispatched), 0)::bigint FROM recur.stats",
        &[],
    )
}

/// Statements one by one: VACUUM refuses to share a transaction.
pub fn each(session: &mut Session, statements: &str) {
    for statement in statements.split(';').filter(|one| !one.trim().is_empty()) {
        session.batch(statement);
    }
}
