//! Every SQL block of the documentation runs, in the order in which a reader meets it.

use pg_recur_tests::Cluster;
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
            assert_eq!(
                session.count("recur.dispatches WHERE status = 'running'"),
                0
            );
            assert_eq!(
                session.count("recur.dispatches WHERE status = 'completed'"),
                1
            );
        }
        executed += 1;
    }
    assert!(executed > 0, "no document with SQL was found");
}
