//! An older version becomes this one.

use super::dumps::{STILL, fires, prepare};
use pg_recur_tests::{Cluster, Session};
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

/// What a database knows of the extension's objects: definitions, comments, rights and owners.
fn catalog(session: &mut Session) -> Vec<String> {
    session.column(
            "SELECT concat_ws(' | ', 'function', p.oid::regprocedure, pg_get_functiondef(p.oid),
                              obj_description(p.oid, 'pg_proc'),
                              p.proacl::text, pg_get_userbyid(p.proowner))
               FROM pg_proc AS p WHERE p.pronamespace = 'recur'::regnamespace
             UNION ALL
             SELECT concat_ws(' | ', 'relation', c.relname, c.relkind, obj_description(c.oid, 'pg_class'),
                              c.relacl::text,
                              pg_get_userbyid(c.relowner), c.relrowsecurity)
               FROM pg_class AS c WHERE c.relnamespace = 'recur'::regnamespace
             UNION ALL
             SELECT concat_ws(' | ', 'column', a.attrelid::regclass, a.attname, format_type(a.atttypid, a.atttypmod),
                              a.attnotnull,
                              pg_get_expr(d.adbin, d.adrelid), col_description(a.attrelid, a.attnum))
               FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
               LEFT JOIN pg_attrdef AS d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
              WHERE c.relnamespace = 'recur'::regnamespace
             UNION ALL
             SELECT concat_ws(' | ', 'constraint', conrelid::regclass, conname, pg_get_constraintdef(oid))
               FROM pg_constraint WHERE connamespace = 'recur'::regnamespace
             UNION ALL
             SELECT concat_ws(' | ', 'index', indexrelid::regclass, pg_get_indexdef(indexrelid))
               FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid WHERE relnamespace = 'recur'::regnamespace
             UNION ALL
             SELECT concat_ws(' | ', 'trigger', tgrelid::regclass, pg_get_triggerdef(pg_trigger.oid))
               FROM pg_trigger JOIN pg_class ON pg_class.oid = tgrelid
              WHERE relnamespace = 'recur'::regnamespace AND NOT tgisinternal
             UNION ALL
             SELECT concat_ws(' | ', 'policy', polrelid::regclass, polname, pg_get_expr(polqual, polrelid))
               FROM pg_policy JOIN pg_class ON pg_class.oid = polrelid WHERE relnamespace = 'recur'::regnamespace
             ORDER BY 1",
            &[])
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
    fresh.batch("CREATE EXTENSION pg_recur");
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
             ALTER TABLE recur.tenants RENAME COLUMN changed_at TO touched_at;
             COMMENT ON COLUMN recur.tenants.touched_at IS 'old';
             ALTER TABLE recur_internal.definitions DROP CONSTRAINT definitions_max_attempts_positive;"
        ),
    );
    scripts.install(
        &format!("pg_recur--0.0.0-test--{version}.sql"),
        &format!(
            "{}\nALTER FUNCTION recur.revoke_access(name) OWNER TO @extowner@;
             REVOKE ALL ON FUNCTION recur.revoke_access(name) FROM PUBLIC;
             ALTER TABLE recur.tenants RENAME COLUMN touched_at TO changed_at;
             COMMENT ON COLUMN recur.tenants.changed_at IS 'When it got its latest action';
             ALTER TABLE recur_internal.definitions ADD CONSTRAINT definitions_max_attempts_positive CHECK (max_attempts > 0);",
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
        session.batch("SELECT recur.create('every second', '* * * * * *', 'p', 'a')");
        assert_ne!(catalog(&mut session), expected, "{from} is not older");
        let action: String =
            session.value("SELECT a::text FROM recur_internal.definitions AS a", &[]);
        session.batch("ALTER EXTENSION pg_recur UPDATE");
        assert_eq!(catalog(&mut session), expected, "from {from}");
        assert_eq!(
            session.value::<String>("SELECT a::text FROM recur_internal.definitions AS a", &[]),
            action
        );
        fires(&cluster);
        cluster.configure("recur.enabled = off");
        cluster.reload();
    }
}
