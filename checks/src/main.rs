//! Checks the house rules and lists every place that breaks one.
//!
//! ```text
//! pg_recur-checks [--count] [CHECK…]
//! ```
//!
//! Without a name all checks run. `--count` prints how many places each check found, and none of the places. The exit
//! code is 1 when any place was found.

mod column_lists;
mod finding;
mod graph;
mod hidden_sql;
mod layers;
mod lengths;
mod modules;
mod rust;
mod safety;
mod sql;
mod tree;
mod words;

use finding::Finding;
use std::path::Path;
use std::process::ExitCode;
use tree::Tree;

struct Check {
    name: &'static str,
    rule: &'static str,
    run: fn(&Tree) -> Vec<Finding>,
}

const CHECKS: [Check; 8] = [
    Check {
        name: "layers",
        rule: "modules use only the layers to their left, in no cycle",
        run: layers::check,
    },
    Check {
        name: "width",
        rule: "a line has at most 120 columns",
        run: lengths::check_width,
    },
    Check {
        name: "functions",
        rule: "a function has at most 80 lines",
        run: lengths::check_functions,
    },
    Check {
        name: "files",
        rule: "a file has at most 500 lines",
        run: lengths::check_files,
    },
    Check {
        name: "hidden-sql",
        rule: "SQL stands in files under sql/",
        run: hidden_sql::check,
    },
    Check {
        name: "column-lists",
        rule: "a list of columns stands in one place",
        run: column_lists::check,
    },
    Check {
        name: "safety",
        rule: "every unsafe block, function and impl has a SAFETY comment",
        run: safety::check,
    },
    Check {
        name: "words",
        rule: "plain words",
        run: words::check,
    },
];

fn main() -> ExitCode {
    let mut count_only = false;
    let mut names = Vec::new();
    for argument in std::env::args().skip(1) {
        match argument.as_str() {
            "--count" => count_only = true,
            name if CHECKS.iter().any(|check| check.name == name) => names.push(argument),
            other => {
                let known: Vec<&str> = CHECKS.iter().map(|check| check.name).collect();
                eprintln!("no check {other:?}: expected --count or one of {known:?}");
                return ExitCode::from(2);
            }
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let tree = match Tree::read(&root) {
        Ok(tree) => tree,
        Err(error) => {
            eprintln!("{}: {error}", root.display());
            return ExitCode::from(2);
        }
    };
    let mut clean = true;
    for check in CHECKS
        .iter()
        .filter(|check| names.is_empty() || names.iter().any(|name| name == check.name))
    {
        let findings = (check.run)(&tree);
        clean &= findings.is_empty();
        println!("{:>5}  {}: {}", findings.len(), check.name, check.rule);
        if !count_only {
            for finding in findings {
                println!("       {finding}");
            }
        }
    }
    if clean {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
