//! An older version becomes this one.

use super::catalog::{catalog, differences};
use super::dumps::{STILL, fires, prepare};
use pg_recur_tests::Cluster;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Scripts that are installed for a test, and removed after it.
struct Scripts(Vec<PathBuf>);

impl Scripts {
    fn folder() -> PathBuf {
        let config = PathBuf::from(std::env::var_os("PG_RECUR_BIN").unwrap()).join("pg_config");
        let share = Command::new(config)
            .arg("--sharedir")
            .output()
            .expect("pg_config")
            .stdout;
        Path::new(String::from_utf8(share).unwrap().trim()).join("extension")
    }

    fn install(&mut self, name: &str, script: &str) {
        let path = Scripts::folder().join(name);
        fs::write(&path, script).expect("the extension folder of the private PostgreSQL is ours");
        self.0.push(path);
    }
}

impl Drop for Scripts {
    fn drop(&mut self) {
        for path in &self.0 {
            let _ = fs::remove_file(path);
        }
    }
}

/// The frozen scripts of earlier versions, each with its way to this one.
fn released() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../sql/upgrades");
    let mut versions: Vec<String> = fs::read_dir(folder)
        .expect("sql/upgrades")
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let version = name.strip_prefix("pg_recur--")?.strip_suffix(".sql")?;
            (!version.contains("--")).then(|| version.to_owned())
        })
        .collect();
    versions.sort();
    versions
}

/// From an older version to this one, by the database's owner, while actions exist. The older version is this one
/// without a function, a column and their like; should a release be frozen in sql/upgrades, it is tried as well.
#[test]
fn an_older_version_is_upgraded_in_place() {
    let cluster = Cluster::preloaded(STILL);
    prepare(&cluster, "dba");
    let mut fresh = cluster.session_as("dba", "app");
    fresh.batch("CREATE EXTENSION pg_recur; SELECT recur.grant_access('alice', 'author')");
    let expected = catalog(&mut fresh);
    let version: String = fresh.value(
        "SELECT extversion FROM pg_extension WHERE extname = 'pg_recur'",
        &[],
    );
    drop(fresh);

    let current = fs::read_to_string(Scripts::folder().join(format!("pg_recur--{version}.sql")))
        .expect("the script");
    let begin = current
        .find("CREATE FUNCTION recur.revoke_access")
        .expect("the function");
    let end = begin + current[begin..].find("COMMENT ON").unwrap();
    let end = end + current[end..].find(";\n").unwrap() + 2;
    let mut scripts = Scripts(Vec::new());
    scripts.install(
        "pg_recur--0.0.0-test.sql",
        &format!(
            "{current}\nDROP FUNCTION recur.revoke_access(name);
             ALTER TABLE recur_internal.tenants RENAME COLUMN changed_at TO touched_at;
             COMMENT ON COLUMN recur_internal.tenants.touched_at IS 'old';
             ALTER TABLE recur_internal.timers DROP CONSTRAINT timers_disabled_has_no_next;"
        ),
    );
    scripts.install(
        &format!("pg_recur--0.0.0-test--{version}.sql"),
        &format!(
            "{}\nREVOKE ALL ON FUNCTION recur.revoke_access(name) FROM PUBLIC;
             GRANT EXECUTE ON FUNCTION recur.revoke_access(name) TO pg_database_owner;
             ALTER TABLE recur_internal.tenants RENAME COLUMN touched_at TO changed_at;
             COMMENT ON COLUMN recur_internal.tenants.changed_at IS 'When the tenant got its latest action';
             ALTER TABLE recur_internal.timers ADD CONSTRAINT timers_disabled_has_no_next
                 CHECK (enabled OR next_run_at IS NULL);",
            &current[begin..end],
        ),
    );
    let mut versions = vec!["0.0.0-test".to_owned()];
    versions.extend(released());
    for from in versions {
        let mut admin = cluster.session("postgres");
        admin.batch("DROP DATABASE app WITH (FORCE)");
        admin.batch("CREATE DATABASE app OWNER dba");
        let mut session = cluster.session_as("dba", "app");
        session.batch(&format!("CREATE EXTENSION pg_recur VERSION '{from}'"));
        session.batch("SELECT recur.grant_access('alice', 'author')");
        let mut alice = cluster.session_as("alice", "app");
        alice.batch("SELECT recur.create('every second', '* * * * * *', 'p', 'a')");
        drop(alice);
        assert_ne!(catalog(&mut session), expected, "{from} is not older");
        let action: String =
            session.value("SELECT a::text FROM recur_internal.definitions AS a", &[]);
        session.batch("ALTER EXTENSION pg_recur UPDATE");
        let differences = differences(&expected, &catalog(&mut session));
        assert!(differences.is_empty(), "from {from}: {differences:#?}");
        assert_eq!(
            session.value::<String>("SELECT a::text FROM recur_internal.definitions AS a", &[]),
            action
        );
        fires(&cluster);
        cluster.configure("recur.enabled = off");
        cluster.reload();
    }
}

/// Each of these is a difference that an upgrade script could leave behind.
const DEVIATIONS: [&str; 20] = [
    "DO $$ BEGIN EXECUTE 'CREATE OR REPLACE VIEW recur.stats AS '
                         || regexp_replace(pg_get_viewdef('recur.stats'), 'errors,', 'errors + 0 AS errors,'); END $$",
    "ALTER VIEW recur.dispatches RESET (security_barrier)",
    "ALTER TABLE recur_internal.progress SET (fillfactor = 81)",
    "ALTER TABLE recur_internal.timers DISABLE TRIGGER wake_dispatcher",
    "DROP TRIGGER wake_dispatcher ON recur_internal.timers",
    "CREATE POLICY p ON recur_internal.timers USING (true)",
    "ALTER TABLE recur_internal.timers ENABLE ROW LEVEL SECURITY",
    "UPDATE pg_extension SET extconfig = extconfig[2:], extcondition = extcondition[2:] WHERE extname = 'pg_recur'",
    "UPDATE pg_extension SET extcondition[1] = 'WHERE false' WHERE extname = 'pg_recur'",
    "ALTER FUNCTION recur.doctor RESET ALL",
    "ALTER FUNCTION recur.doctor SECURITY INVOKER",
    "ALTER FUNCTION recur.id_of VOLATILE",
    "ALTER FUNCTION recur_internal.group_is_free COST 1",
    "GRANT SELECT ON recur_internal.timers TO alice",
    "GRANT SELECT (id) ON recur_internal.definitions TO alice",
    "ALTER TABLE recur_internal.timers OWNER TO alice",
    "COMMENT ON FUNCTION recur.doctor() IS 'x'",
    "DROP INDEX recur_internal.definitions_by_owner",
    "ALTER TABLE recur_internal.timers ALTER due_at SET STATISTICS 10",
    "ALTER EXTENSION pg_recur DROP FUNCTION recur.tzdata_version()",
];

#[test]
fn the_comparison_notices_every_kind_of_difference() {
    let cluster = Cluster::preloaded(STILL);
    prepare(&cluster, "dba");
    let mut session = cluster.session("app");
    session.batch("CREATE EXTENSION pg_recur; GRANT CREATE ON SCHEMA recur_internal TO alice");
    let expected = catalog(&mut session);
    for deviation in DEVIATIONS {
        session.batch(&format!("BEGIN; {deviation}"));
        let found = catalog(&mut session);
        assert!(!differences(&expected, &found).is_empty(), "{deviation}");
        session.batch("ROLLBACK");
        assert_eq!(catalog(&mut session), expected, "{deviation}");
    }
}
