//! Every SQL block of the documentation runs, in the order in which a reader meets it.

use pg_recur_tests::{Cluster, eventually};
use std::fs;
use std::path::{Path, PathBuf};

fn sql_blocks(markdown: &str) -> String {
    let mut blocks = String::new();
    let mut inside = false;
    for line in markdown.lines() {
        match line.trim() {
            "```sql" => inside = true,
            "```" => inside = false,
            _ if inside => {
                blocks.push_str(line);
                blocks.push('\n');
            }
            _ => {}
        }
    }
    blocks
}

fn documents() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    [root.to_path_buf(), root.join("docs")]
        .iter()
        .filter_map(|folder| fs::read_dir(folder).ok())
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
        .collect()
}

#[test]
fn every_documented_statement_runs() {
    let cluster = Cluster::start();
    let mut admin = cluster.session("postgres");
    let mut executed = 0;
    for (number, document) in documents().iter().enumerate() {
        let sql = sql_blocks(&fs::read_to_string(document).unwrap());
        if sql.is_empty() {
            continue;
        }
        let database = format!("docs{number}");
        admin.batch(&format!("CREATE DATABASE {database}"));
        // Each document stands for itself; the README shows how to create the extension, the others rely on it.
        if !sql.contains("CREATE EXTENSION") {
            cluster
                .session(&database)
                .batch("CREATE EXTENSION pg_recur");
        }
        let output = cluster.psql(&database, &sql);
        assert!(
            output.status.success(),
            "{}:\n{}",
            document.display(),
            String::from_utf8_lossy(&output.stderr)
        );
        if document.ends_with("README.md") {
            let mut session = cluster.session(&database);
            assert_eq!(session.count("recur.recurring_actions"), 0);
            // What the database itself runs may be over by now, or not.
            let of_consumers = "recur.dispatches WHERE provider = 'mailer'";
            for (status, expected) in [("running", 0), ("completed", 1)] {
                assert_eq!(
                    session.count(&format!("{of_consumers} AND status = '{status}'")),
                    expected,
                    "{status}"
                );
            }
        }
        executed += 1;
    }
    assert!(executed > 0, "no document with SQL was found");
}

/// What docs/sql.md tells people to schedule does not only get stored: it works.
#[test]
fn every_job_of_the_guide_runs() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/sql.md");
    let cluster = Cluster::preloaded("max_worker_processes = 20");
    cluster.session("postgres").batch("CREATE DATABASE guide");
    let output = cluster.psql("guide", &sql_blocks(&fs::read_to_string(path).unwrap()));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let mut session = cluster.session("guide");
    session.batch(
        "INSERT INTO orders (at, amount) SELECT now() - n * interval '1 hour', n FROM generate_series(1, 20000) AS n;
         SELECT recur.trigger(id, overlap => 'allow') FROM recur.recurring_actions;",
    );
    eventually("all have run", || {
        session.count(
            "recur.dispatches WHERE in_database AND finished_at IS NULL AND available_at <= now()",
        ) == 0
    });
    let failed: Vec<String> = session
        .rows(
            "SELECT DISTINCT action || ': ' || message FROM recur.runs WHERE outcome IN ('failed', 'retrying')",
            &[],
        )
        .iter()
        .map(|row| row.get(0))
        .collect();
    assert_eq!(failed, ["close the day: division by zero (SQLSTATE 22012)"]);
    let actions = session.count("recur.recurring_actions");
    assert_eq!(
        session.count(
            "(SELECT DISTINCT action_id FROM recur.runs WHERE action_id IS NOT NULL) AS run"
        ),
        actions
    );
    assert_eq!(
        session.count("recur.runs WHERE message LIKE '% orders archived'"),
        1
    );
}
