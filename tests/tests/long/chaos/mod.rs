//! Faults at random, under load, with consumers in three languages; after each round the books must balance.
//!
//! A few rounds by default; `make chaos` plays a thousand. `PG_RECUR_CHAOS_SEED` repeats the faults of a failed run.

mod audit;
mod faults;
mod load;
mod post;
mod summary;
mod world;

use crate::number;
use faults::Fault;
use pg_recur_tests::dice::Dice;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use summary::Summary;
use world::World;

/// Rounds that a server lives for: the books of a young server are quickly read.
const ROUNDS_OF_A_SERVER: u64 = 25;

#[test]
fn the_books_balance_after_every_fault() {
    let rounds = number("PG_RECUR_CHAOS_ROUNDS", 4);
    let servers = number("PG_RECUR_CHAOS_SERVERS", 1);
    let seed = number("PG_RECUR_CHAOS_SEED", u64::from(std::process::id()));
    println!("PG_RECUR_CHAOS_SEED={seed} PG_RECUR_CHAOS_ROUNDS={rounds}");
    let summary = Mutex::new(Summary::new(seed));
    lock(&summary).note_unavailable();
    let turns = Turns {
        rounds,
        next: AtomicU64::new(0),
    };
    thread::scope(|scope| {
        for _ in 0..servers {
            scope.spawn(|| {
                while let Some(turn) = turns.take() {
                    live(turn, seed, &summary, &turns);
                }
            });
        }
    });
    lock(&summary).print();
}

/// The rounds, handed out to servers that live at the same time.
struct Turns {
    rounds: u64,
    next: AtomicU64,
}

impl Turns {
    fn take(&self) -> Option<Range<u64>> {
        let first = self.next.fetch_add(ROUNDS_OF_A_SERVER, Ordering::Relaxed);
        (first < self.rounds).then(|| first..self.rounds.min(first + ROUNDS_OF_A_SERVER))
    }
}

/// A failure of one server is the end for the others too, as soon as they have played their rounds.
struct EndAll<'a>(&'a Turns);

impl Drop for EndAll<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.next.store(self.0.rounds, Ordering::Relaxed);
        }
    }
}

/// The life of a server. Its faults depend on the seed and on its first round only.
fn live(turn: Range<u64>, seed: u64, summary: &Mutex<Summary>, turns: &Turns) {
    let _guard = EndAll(turns);
    let mut dice = Dice::new(seed.wrapping_add(turn.start));
    let mut world = World::create(&mut dice);
    let mut played = Vec::new();
    for round in turn {
        played.push(play(&mut world, &mut dice, round + 1));
    }
    let version: String = world.session().value("SHOW server_version", &[]);
    let totals = world.end();
    let mut summary = lock(summary);
    for round in &played {
        summary.count(round);
    }
    summary.add(&version, &totals);
    summary.write();
}

fn lock(summary: &Mutex<Summary>) -> MutexGuard<'_, Summary> {
    summary.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a round was like.
struct Round {
    faults: Vec<Fault>,
    /// From the end of the last fault until everything that was due was done.
    settled: Duration,
    lasted: Duration,
}

/// One fault, or two in a row, perhaps with a lighter one all the while; then everything that was due is done, and the
/// books are read.
fn play(world: &mut World, dice: &mut Dice, round: u64) -> Round {
    let started = Instant::now();
    let beside = (dice.roll(3) == 0).then(|| Fault::beside(dice));
    let mut faults = vec![Fault::any(dice)];
    if dice.roll(3) == 0 {
        faults.push(Fault::any(dice));
    }
    // Printed first: it may be the last line.
    println!("round {round}: {}", names(&faults, beside));
    // At any moment of the second: this is when the fault happens, nothing is waited for.
    load::pause(dice.roll(600));
    let held = beside.map(|beside| beside.begin(world, dice));
    for fault in &faults {
        let ongoing = fault.begin(world, dice);
        load::pause(200 + dice.roll(600));
        ongoing.end(world);
    }
    if let Some(held) = held {
        held.end(world);
    }
    let recovered = Instant::now();
    let until = world.settle();
    let settled = recovered.elapsed();
    let totals = audit::check(world, until);
    println!(
        "round {round}: {:.1} s, settled after {:.1} s; {totals}",
        started.elapsed().as_secs_f64(),
        settled.as_secs_f64()
    );
    faults.extend(beside);
    Round {
        faults,
        settled,
        lasted: started.elapsed(),
    }
}

fn names(faults: &[Fault], beside: Option<Fault>) -> String {
    let names: Vec<&str> = faults.iter().map(|fault| fault.name()).collect();
    let beside = beside.map(|beside| format!(" beside {}", beside.name()));
    names.join(", then ") + &beside.unwrap_or_default()
}
