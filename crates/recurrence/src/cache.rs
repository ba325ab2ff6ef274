//! Parsed schedules by their text.
//!
//! A million actions share a few schedules; each text is parsed once.

use std::collections::HashMap;
use std::sync::Arc;

use crate::error::ScheduleError;
use crate::schedule::Schedule;

/// A bounded cache. When it is full the texts that were not asked for since it last filled up are
/// dropped, so a few schedules in steady use stay, whatever comes and goes beside them.
#[derive(Debug)]
pub struct ScheduleCache {
    /// At most half the capacity each.
    recent: HashMap<Box<str>, Arc<Schedule>>,
    older: HashMap<Box<str>, Arc<Schedule>>,
    capacity: usize,
}

impl ScheduleCache {
    /// A cache of at most `capacity` schedules, and at least two.
    pub fn new(capacity: usize) -> ScheduleCache {
        ScheduleCache {
            recent: HashMap::new(),
            older: HashMap::new(),
            capacity,
        }
    }

    /// The schedule that a text stands for. Errors are not kept.
    pub fn parse(&mut self, text: &str) -> Result<Arc<Schedule>, ScheduleError> {
        if let Some(schedule) = self.recent.get(text) {
            return Ok(Arc::clone(schedule));
        }
        let schedule = match self.older.remove(text) {
            Some(schedule) => schedule,
            None => Arc::new(Schedule::parse(text)?),
        };
        if self.recent.len() >= (self.capacity / 2).max(1) {
            self.older = std::mem::take(&mut self.recent);
        }
        self.recent.insert(text.into(), Arc::clone(&schedule));
        Ok(schedule)
    }

    pub fn len(&self) -> usize {
        self.recent.len() + self.older.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_text_gives_the_same_schedule() {
        let mut cache = ScheduleCache::new(4);
        let first = cache.parse("0 9 * * *").unwrap();
        let second = cache.parse("0 9 * * *").unwrap();
        assert!(Arc::ptr_eq(&first, &second));
    }

    #[test]
    fn it_stays_within_its_capacity_and_keeps_what_is_in_use() {
        let mut cache = ScheduleCache::new(8);
        let kept = cache.parse("@daily").unwrap();
        for minutes in 1..1000 {
            cache.parse(&format!("{minutes}m")).unwrap();
            let again = cache.parse("@daily").unwrap();
            assert!(Arc::ptr_eq(&kept, &again));
            assert!(cache.len() <= 8);
        }
    }

    #[test]
    fn errors_are_reported_each_time_and_not_kept() {
        let mut cache = ScheduleCache::new(4);
        assert!(cache.parse("61 * * * *").is_err());
        assert!(cache.parse("61 * * * *").is_err());
        assert!(cache.is_empty());
    }
}
