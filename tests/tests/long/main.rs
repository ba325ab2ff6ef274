//! What takes long, and longer still when `make test-crash` or `make chaos` ask for it: crashes, chaos, a large
//! backlog.

mod chaos;
mod consumers;
mod crash_rounds;
mod databases;
mod draining;
mod executors;
mod hostile;

/// A number from the environment.
fn number(variable: &str, otherwise: u64) -> u64 {
    std::env::var(variable).map_or(otherwise, |text| {
        text.parse()
            .unwrap_or_else(|_| panic!("{variable} is not a number"))
    })
}
