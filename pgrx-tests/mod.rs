//! Tests that run inside the server, each in a transaction that is rolled back. Workers never see their rows:
//! what workers do is tested from outside, in `tests/`.

mod catalog;
mod definitions;
mod schedules;
mod ticks;
mod vectors;
