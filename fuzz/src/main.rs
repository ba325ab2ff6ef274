//! Runs the fuzzer.
//!
//! ```text
//! pg_recur-fuzz [--executions N] [--seed N] [--threads N] [--target NAME]… [--grow N] [--stop-at-first]
//! ```
//!
//! Without names all targets run. `--grow` adds up to N inputs with new signatures to the corpus of each target. A
//! failing input is stored in the corpus, and replayed from then on by `cargo test`.

use pg_recur_fuzz::input::Input;
use pg_recur_fuzz::run::{Failure, Options, Outcome, execute, run, silence_panics};
use pg_recur_fuzz::target::Target;
use pg_recur_fuzz::{corpus, targets};
use std::process::ExitCode;
use std::time::Instant;

struct Arguments {
    options: Options,
    targets: Vec<&'static Target>,
    grow: usize,
}

fn main() -> ExitCode {
    let arguments = match arguments() {
        Ok(arguments) => arguments,
        Err(problem) => {
            eprintln!("{problem}");
            return ExitCode::from(2);
        }
    };
    silence_panics();
    let begun = Instant::now();
    let outcomes = run(&arguments.targets, arguments.options);
    let seed = arguments.options.seed;
    println!(
        "{:<14}{:>12}{:>10}{:>10}{:>12}",
        "target", "executions", "seconds", "µs each", "signatures"
    );
    let mut failures = Vec::new();
    for (target, outcome) in arguments.targets.iter().zip(outcomes) {
        show(target.name, &outcome);
        failures.extend(outcome.failures.iter().cloned());
        if arguments.grow > 0 {
            grow(target, &outcome.novel, arguments.grow);
        }
    }
    println!(
        "seed {seed}, {:.1} s on {} threads",
        begun.elapsed().as_secs_f64(),
        arguments.options.threads
    );
    for failure in &failures {
        report(failure, seed);
    }
    match failures.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

fn show(name: &str, outcome: &Outcome) {
    let seconds = outcome.time.as_secs_f64();
    let each = seconds * 1e6 / outcome.executions.max(1) as f64;
    let signatures = outcome.signatures.len();
    println!(
        "{name:<14}{:>12}{seconds:>10.1}{each:>10.2}{signatures:>12}",
        outcome.executions
    );
}

fn report(failure: &Failure, seed: u64) {
    println!(
        "\nFAILED {} after {} executions of shard {}",
        failure.target, failure.execution, failure.shard
    );
    println!("  {}", failure.message);
    println!("  found:     {:?}", failure.found);
    println!("  minimized: {:?}", failure.minimized);
    // What fails without a search is in the corpus already.
    if failure.execution == 0 {
        return;
    }
    match corpus::store(failure.target, "failure-", &failure.minimized) {
        Ok(path) => println!("  stored:    {}", path.display()),
        Err(error) => println!("  not stored: {error}"),
    }
    println!(
        "  repeat:    scripts/fuzz.sh --seed {seed} --target {}",
        failure.target
    );
}

/// Stores the shortest inputs whose signatures the corpus lacks.
fn grow(target: &Target, novel: &[Input], most: usize) {
    let saved = corpus::read(target.name).unwrap_or_default();
    let mut known: Vec<_> = saved
        .iter()
        .filter_map(|(_, input)| execute(target, input).ok())
        .collect();
    let mut shortest: Vec<&Input> = novel.iter().collect();
    shortest.sort_by_key(|input| (input.text.len() + input.choices.len(), input.to_file()));
    let mut added = 0;
    for input in shortest {
        let Ok(signature) = execute(target, input) else {
            continue;
        };
        if added == most || input.text.len() > 400 || known.contains(&signature) {
            continue;
        }
        known.push(signature);
        added += usize::from(corpus::store(target.name, "", input).is_ok());
    }
}

fn arguments() -> Result<Arguments, String> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut options = Options {
        executions: 2_000_000,
        seed: 1,
        threads: cores,
        stops_at_first: false,
    };
    let mut chosen = Vec::new();
    let mut grow = 0;
    let mut given = std::env::args().skip(1);
    while let Some(argument) = given.next() {
        if argument == "--stop-at-first" {
            options.stops_at_first = true;
            continue;
        }
        let value = given
            .next()
            .ok_or_else(|| format!("{argument} needs a value"))?;
        let number = || {
            value
                .parse::<u64>()
                .map_err(|_| format!("{argument} {value:?} is no whole number"))
        };
        match argument.as_str() {
            "--executions" => options.executions = number()?,
            "--seed" => options.seed = number()?,
            "--threads" => options.threads = number()? as usize,
            "--grow" => grow = number()? as usize,
            "--target" => chosen.push(targets::named(&value).ok_or_else(|| unknown(&value))?),
            _ => {
                return Err(format!(
                    "{argument} is unknown, expected --executions, --seed, --threads, --grow or --target"
                ));
            }
        }
    }
    if chosen.is_empty() {
        chosen = targets::ALL.iter().collect();
    }
    Ok(Arguments {
        options,
        targets: chosen,
        grow,
    })
}

fn unknown(name: &str) -> String {
    let names: Vec<&str> = targets::ALL.iter().map(|target| target.name).collect();
    format!(
        "target {name:?} is unknown, expected one of {}",
        names.join(", ")
    )
}
