//! What takes long, and longer still when `make test-crash` asks for it: crashes, chaos, a large backlog.

mod chaos;
mod crash_rounds;
mod draining;
