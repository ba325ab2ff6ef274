//! What people look at: lists, explanations, statistics, events.

mod doctor;
mod errors;
mod events;
mod explain;
mod help;
mod list;
mod metrics;
mod named;
mod overview;
mod preview;
mod schedules;
mod statistics;
