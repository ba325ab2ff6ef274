//! Every input of the corpus, and some thousands of new ones.

use pg_recur_fuzz::run::{Options, execute, run};
use pg_recur_fuzz::{corpus, targets};

#[test]
fn the_whole_corpus_passes() {
    let mut failures = Vec::new();
    for target in targets::ALL {
        let inputs = corpus::read(target.name).expect("a readable corpus");
        assert!(!inputs.is_empty(), "{} has no corpus", target.name);
        for (file, input) in inputs {
            if let Err(message) = execute(target, &input) {
                failures.push(format!("{}/{file}: {message}", target.name));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn every_folder_of_the_corpus_has_a_target() {
    for entry in std::fs::read_dir(corpus::folder()).expect("a corpus") {
        let name = entry.expect("an entry").file_name();
        let name = name.to_string_lossy();
        assert!(
            targets::named(&name).is_some(),
            "corpus/{name} belongs to no target"
        );
    }
}

#[test]
fn new_inputs_pass() {
    let options = Options {
        executions: 20_000,
        seed: 2,
        threads: 2,
        stops_at_first: true,
    };
    let all: Vec<_> = targets::ALL.iter().collect();
    let outcomes = run(&all, options);
    let failures: Vec<_> = outcomes
        .iter()
        .flat_map(|outcome| &outcome.failures)
        .collect();
    assert!(failures.is_empty(), "{failures:#?}");
}

#[test]
fn a_seed_gives_the_same_run_on_any_number_of_threads() {
    let target = targets::named("interval").expect("a target");
    let novel = |threads| {
        let options = Options {
            executions: 4_000,
            seed: 3,
            threads,
            stops_at_first: false,
        };
        let mut outcome = run(&[target], options).remove(0);
        outcome.novel.sort_by_key(|input| input.to_file());
        outcome.novel
    };
    assert_eq!(novel(1), novel(3));
}
