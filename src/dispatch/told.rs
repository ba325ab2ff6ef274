//! Of a herd, the first are told at once and the rest when it has been counted: how many that is. No server is needed to say so.

use chrono::{DateTime, Utc};

/// Dispatches that share a channel and a provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnnouncedGroup {
    pub channel: Option<String>,
    pub provider: String,
    pub dispatches: i64,
    /// How many of them are first attempts at an occurrence, and since when the first of those is available.
    pub scheduled: i64,
    pub since: Option<DateTime<Utc>>,
}

/// What is left to be told of all that are there, when these have been told before.
///
/// Some have been claimed between the two counts, and nobody knows of which: those that are there may be fewer than those that were
/// told, and there may be some among them that were not. So of each group that has any, at least one is told. The counts are hints,
/// but a group that is not told of at all waits until somebody asks.
pub fn untold(mut all: Vec<AnnouncedGroup>, told: &[AnnouncedGroup]) -> Vec<AnnouncedGroup> {
    for group in &mut all {
        let is_same = |told: &&AnnouncedGroup| {
            told.channel == group.channel && told.provider == group.provider
        };
        if let Some(told) = told.iter().find(is_same) {
            group.dispatches = (group.dispatches - told.dispatches).max(1);
            group.scheduled = (group.scheduled - told.scheduled).max(0);
        }
    }
    all
}
