//! What a run has shown: printed, and written into docs/reliability.md when `UPDATE_DOCS` is set.

use super::Round;
use super::audit::Totals;
use super::faults::Fault;
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::time::Duration;

const BEGIN: &str = "<!-- Written by make chaos UPDATE_DOCS=1: begin -->";
const END: &str = "<!-- Written by make chaos UPDATE_DOCS=1: end -->";

pub struct Summary {
    seed: u64,
    /// The server's version.
    version: String,
    rounds: u64,
    faults: Vec<u64>,
    totals: Totals,
    settled: Vec<Duration>,
    played: Duration,
}

impl Summary {
    pub fn new(seed: u64) -> Summary {
        Summary {
            seed,
            version: String::new(),
            rounds: 0,
            faults: vec![0; Fault::ALL.len()],
            totals: Totals::default(),
            settled: Vec::new(),
            played: Duration::ZERO,
        }
    }

    /// Says which faults can't happen here.
    pub fn note_unavailable(&self) {
        for fault in Fault::ALL {
            if let Some(reason) = fault.unavailable() {
                println!("left out: {}: {reason}", fault.name());
            }
        }
    }

    pub fn count(&mut self, round: &Round) {
        self.rounds += 1;
        for fault in &round.faults {
            self.faults[*fault as usize] += 1;
        }
        self.settled.push(round.settled);
        self.played += round.lasted;
    }

    /// A server of this version has come to its end.
    pub fn add(&mut self, version: &str, server: &Totals) {
        version.clone_into(&mut self.version);
        let totals = &mut self.totals;
        totals.due += server.due;
        totals.dispatched += server.dispatched;
        totals.skipped += server.skipped;
        totals.confirmed += server.confirmed;
        totals.found += server.found;
        totals.dispatches += server.dispatches;
        totals.completions += server.completions;
        totals.kept += server.kept;
        totals.entries += server.entries;
        totals.mails += server.mails;
        totals.repeated += server.repeated;
        totals.expired += server.expired;
    }

    pub fn print(&self) {
        println!("\n{}", self.markdown());
    }

    fn markdown(&self) -> String {
        let Totals {
            due,
            dispatched,
            skipped,
            confirmed,
            found,
            dispatches,
            completions,
            kept,
            entries,
            mails,
            repeated,
            expired,
        } = self.totals;
        let mut settled = self.settled.clone();
        settled.sort();
        let at = |share: f64| {
            let place = (settled.len() as f64 * share) as usize;
            settled
                .get(place.min(settled.len().saturating_sub(1)))
                .map_or(0.0, Duration::as_secs_f64)
        };
        let mut text = format!(
            "| | |\n| --- | ---: |\n\
             | PostgreSQL | {version} |\n\
             | seed | {seed} |\n\
             | rounds | {rounds} |\n\
             | seconds per round | {mean:.1} |\n\
             | occurrences that were due | {due} |\n\
             | dispatched | {dispatched} |\n\
             | skipped by a policy, each in an event | {skipped} |\n\
             | occurrences lost | {occurrences_lost} |\n\
             | dispatches by hand that a client saw committed | {confirmed} |\n\
             | of them lost | {letters_lost} |\n\
             | dispatches in all | {dispatches} |\n\
             | completions | {completions} |\n\
             | completions with their effect in one transaction | {kept} |\n\
             | such effects doubled | {entries_doubled} |\n\
             | effects outside the database | {mails} |\n\
             | of them repeated, each after an attempt that ended without a report | {repeated} |\n\
             | leases expired | {expired} |\n\
             | seconds from the fault's end until everything due is done: median, 99 %, longest | \
             {median:.1}, {most:.1}, {longest:.1} |\n\n\
             | fault | times |\n| --- | ---: |\n",
            occurrences_lost = due - dispatched - skipped,
            letters_lost = confirmed - found,
            entries_doubled = entries - kept,
            version = self.version,
            seed = self.seed,
            rounds = self.rounds,
            mean = self.played.as_secs_f64() / self.rounds.max(1) as f64,
            median = at(0.5),
            most = at(0.99),
            longest = at(1.0),
        );
        for (fault, times) in Fault::ALL.iter().zip(&self.faults) {
            let _ = writeln!(text, "| {} | {times} |", fault.name());
        }
        text
    }

    /// Replaces what an earlier run has written. After each server: a run may be ended early.
    pub fn write(&self) {
        if std::env::var_os("UPDATE_DOCS").is_none() {
            return;
        }
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/reliability.md");
        let page = fs::read_to_string(&path).expect("docs/reliability.md");
        let (before, rest) = page.split_once(BEGIN).expect("where the tables begin");
        let (_, after) = rest.split_once(END).expect("where the tables end");
        let page = format!("{before}{BEGIN}\n\n{}\n{END}{after}", self.markdown());
        fs::write(&path, page).expect("docs/reliability.md");
    }
}
