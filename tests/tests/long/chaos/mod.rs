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
use std::time::Instant;
use summary::Summary;
use world::World;

/// Rounds that a server lives for: the books of a young server are quickly read.
const ROUNDS_OF_A_SERVER: u64 = 25;

#[test]
fn the_books_balance_after_every_fault() {
    let rounds = number("PG_RECUR_CHAOS_ROUNDS", 4);
    let seed = number("PG_RECUR_CHAOS_SEED", u64::from(std::process::id()));
    println!("PG_RECUR_CHAOS_SEED={seed} PG_RECUR_CHAOS_ROUNDS={rounds}");
    let mut summary = Summary::new(seed);
    summary.note_unavailable();
    let mut round = 0;
    while round < rounds {
        // A server's faults depend on the seed and on its first round only.
        let mut dice = Dice::new(seed.wrapping_add(round));
        let last = rounds.min(round + ROUNDS_OF_A_SERVER);
        let mut world = World::create(&mut dice);
        while round < last {
            round += 1;
            play(&mut world, &mut dice, &mut summary, round);
        }
        let version: String = world.session().value("SHOW server_version", &[]);
        summary.add(&version, &world.end());
        summary.write();
    }
    summary.print();
}

/// One fault, or two in a row, perhaps with a lighter one all the while; then everything that was due is done, and the
/// books are read.
fn play(world: &mut World, dice: &mut Dice, summary: &mut Summary, round: u64) {
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
    summary.count(&faults, settled, started.elapsed());
}

fn names(faults: &[Fault], beside: Option<Fault>) -> String {
    let names: Vec<&str> = faults.iter().map(|fault| fault.name()).collect();
    let beside = beside.map(|beside| format!(" beside {}", beside.name()));
    names.join(", then ") + &beside.unwrap_or_default()
}
