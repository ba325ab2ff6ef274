//! Looking: schedules in words and dates, lists of actions, statistics and workers. Nothing here writes.

mod listing;
mod metrics;
mod operating;
mod preview;
mod words;
