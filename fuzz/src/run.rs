//! Runs targets: generate or mutate, check, keep what is new, and report what fails.

use crate::corpus;
use crate::input::Input;
use crate::minimize::minimize;
use crate::mutate::mutate;
use crate::random::Random;
use crate::target::{Signature, Target};
use std::cell::RefCell;
use std::collections::HashSet;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Each target is split into this number of shards, whatever the number of cores, so that a seed gives the same run.
pub const SHARDS: u64 = 8;
/// A shard keeps at most this number of inputs with signatures of their own.
const MOST_KEPT: usize = 1_000;
/// No input may take longer.
const TIME_LIMIT: Duration = Duration::from_millis(500);

/// What is asked of a run.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// How many inputs are checked, over all targets.
    pub executions: u64,
    /// Decides about all inputs.
    pub seed: u64,
    /// How many threads check.
    pub threads: usize,
    /// Is the whole run over as soon as one target fails?
    pub stops_at_first: bool,
}

/// An input that fails.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The target.
    pub target: &'static str,
    /// The shard.
    pub shard: u64,
    /// How many inputs the shard had checked, this one included.
    pub execution: u64,
    /// What is wrong.
    pub message: String,
    /// The input as it was found.
    pub found: Input,
    /// The smallest input that fails.
    pub minimized: Input,
}

/// What became of a target.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// How many inputs were checked.
    pub executions: u64,
    /// The time of all shards together.
    pub time: Duration,
    /// Inputs with signatures that no input before them had, in any shard.
    pub novel: Vec<Input>,
    /// The signatures of all shards.
    pub signatures: HashSet<Signature>,
    /// The first failure of each shard that has one.
    pub failures: Vec<Failure>,
}

thread_local! {
    static MESSAGE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Keeps panics of checks for the report, instead of printing each.
pub fn silence_panics() {
    panic::set_hook(Box::new(|info| {
        let text = match (
            info.payload().downcast_ref::<&str>(),
            info.payload().downcast_ref::<String>(),
        ) {
            (Some(text), _) => (*text).to_owned(),
            (None, Some(text)) => text.clone(),
            (None, None) => "panic".to_owned(),
        };
        let place = info
            .location()
            .map_or(String::new(), |at| format!("{}:{}: ", at.file(), at.line()));
        MESSAGE.with_borrow_mut(|message| *message = Some(format!("{place}{text}")));
    }));
}

/// Checks one input.
///
/// # Errors
/// What the check found, or that it took too long.
pub fn execute(target: &Target, input: &Input) -> Result<Signature, String> {
    let begun = Instant::now();
    let answer = panic::catch_unwind(AssertUnwindSafe(|| (target.check)(input)));
    let signature = answer.map_err(|_| {
        let message = MESSAGE.with_borrow_mut(Option::take);
        message.unwrap_or_else(|| "panic".to_owned())
    })?;
    if begun.elapsed() > TIME_LIMIT && is_slow(target, input) {
        return Err(format!(
            "took {:?}, expected at most {TIME_LIMIT:?}",
            begun.elapsed()
        ));
    }
    Ok(signature)
}

/// The machine may have been busy: only an input that is slow three times more is.
fn is_slow(target: &Target, input: &Input) -> bool {
    (0..3).all(|_| {
        let begun = Instant::now();
        (target.check)(input);
        begun.elapsed() > TIME_LIMIT
    })
}

/// Runs all targets, and returns what became of each, in the same order.
pub fn run(targets: &[&Target], options: Options) -> Vec<Outcome> {
    let shares: u64 = targets.iter().map(|target| u64::from(target.share)).sum();
    let outcomes: Vec<Mutex<Outcome>> = targets.iter().map(|_| Mutex::default()).collect();
    let next = AtomicUsize::new(0);
    let stops = AtomicBool::new(false);
    let units = targets.len() * SHARDS as usize;
    std::thread::scope(|scope| {
        for _ in 0..options.threads.max(1) {
            scope.spawn(|| {
                loop {
                    let unit = next.fetch_add(1, Ordering::Relaxed);
                    if unit >= units || stops.load(Ordering::Relaxed) {
                        return;
                    }
                    // The first shards of all targets come first.
                    let (index, shard) = (unit % targets.len(), (unit / targets.len()) as u64);
                    let target = targets[index];
                    let of_all = options.executions * u64::from(target.share);
                    let of_target = of_all.div_ceil(shares.max(1));
                    let executions = of_target / SHARDS + u64::from(shard < of_target % SHARDS);
                    let outcome = run_shard(target, options.seed, shard, executions, &stops);
                    if options.stops_at_first && !outcome.failures.is_empty() {
                        stops.store(true, Ordering::Relaxed);
                    }
                    let mut all = outcomes[index]
                        .lock()
                        .unwrap_or_else(|poisoned| poisoned.into_inner());
                    merge(&mut all, outcome);
                }
            });
        }
    });
    let inner = |outcome: Mutex<Outcome>| {
        outcome
            .into_inner()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    };
    outcomes.into_iter().map(inner).collect()
}

fn merge(all: &mut Outcome, one: Outcome) {
    all.executions += one.executions;
    all.time += one.time;
    all.signatures.extend(one.signatures);
    all.novel.extend(one.novel);
    all.failures.extend(one.failures);
}

fn run_shard(
    target: &Target,
    seed: u64,
    shard: u64,
    executions: u64,
    stops: &AtomicBool,
) -> Outcome {
    let begun = Instant::now();
    let mut random = Random::of_part(seed, target.name, shard);
    let mut outcome = Outcome::default();
    let mut kept: Vec<Input> = Vec::new();
    let saved = corpus::read(target.name).unwrap_or_default();
    for input in saved.into_iter().map(|(_, input)| input) {
        match execute(target, &input) {
            Ok(signature) => drop(outcome.signatures.insert(signature)),
            // One shard is enough to tell.
            Err(message) if shard == 0 => outcome.failures.push(Failure {
                target: target.name,
                shard,
                execution: 0,
                message,
                found: input.clone(),
                minimized: input.clone(),
            }),
            Err(_) => {}
        }
        kept.push(input);
    }
    for execution in 1..=executions {
        let input = match random.below(4) {
            0 | 1 if !kept.is_empty() => {
                let (one, other) = (random.below(kept.len()), random.below(kept.len()));
                mutate(&mut random, &kept[one], &kept[other])
            }
            2 if execution % 2 == 0 => {
                let one = (target.generate)(&mut random);
                mutate(&mut random, &one, kept.first().unwrap_or(&one))
            }
            _ => (target.generate)(&mut random),
        };
        outcome.executions += 1;
        match execute(target, &input) {
            Ok(signature) => {
                if outcome.signatures.len() < MOST_KEPT && outcome.signatures.insert(signature) {
                    outcome.novel.push(input.clone());
                    kept.push(input);
                }
            }
            Err(message) => {
                let minimized = minimize(&input, |input| execute(target, input).is_err());
                let failure = Failure {
                    target: target.name,
                    shard,
                    execution,
                    message,
                    found: input,
                    minimized,
                };
                outcome.failures.push(failure);
                break;
            }
        }
        if execution % 1_024 == 0 && stops.load(Ordering::Relaxed) {
            break;
        }
    }
    outcome.time = begun.elapsed();
    outcome
}
