//! Journeys: graphs of states that a program runs through, and actions that schedule them.
//!
//! A scheduled run has no one to ask: no state that waits for input may be reachable from the one in which it starts.
//! Storing a journey and scheduling it check that, each against the other: both lock the journey, so that neither
//! misses what the other does.

mod define;
mod interactive;
mod schedule;
mod store;
