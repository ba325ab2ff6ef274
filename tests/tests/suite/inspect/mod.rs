//! What people look at: lists, explanations, statistics, events.

mod doctor;
mod events;
mod explain;
mod list;
mod overview;
mod preview;
mod schedules;
mod statistics;
