//! Parsed schedules by their texts: a million actions share a few schedules.

use std::collections::HashMap;
use std::sync::Arc;

use crate::error::ScheduleError;
use crate::schedule::Schedule;

/// A bounded cache of parsed schedules.
///
/// The cache has two halves. A full recent half becomes the older half, whose schedules are dropped
/// unless they are looked up before the recent half is full again. So schedules in use stay.
///
/// # Examples
/// ```
/// use std::sync::Arc;
/// use recurrence::ScheduleCache;
///
/// let mut cache = ScheduleCache::new(1000);
/// let first = cache.parse("0 9 * * MON-FRI")?;
/// let second = cache.parse("0 9 * * MON-FRI")?;
/// assert!(Arc::ptr_eq(&first, &second));
/// assert_eq!(cache.len(), 1);
/// # Ok::<(), recurrence::ScheduleError>(())
/// ```
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

    /// The schedule of a text, parsed where the cache does not have it. Errors are not kept.
    ///
    /// # Errors
    /// When the text is no schedule.
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

    /// How many schedules the cache holds.
    pub fn len(&self) -> usize {
        self.recent.len() + self.older.len()
    }

    /// Whether the cache holds no schedule.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_parsed_once() {
        let mut cache = ScheduleCache::new(4);
        let first = cache.parse("0 9 * * *").unwrap();
        let second = cache.parse("0 9 * * *").unwrap();
        assert!(Arc::ptr_eq(&first, &second));
    }

    #[test]
    fn schedules_in_use_stay_and_the_capacity_holds() {
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
    fn errors_are_not_kept() {
        let mut cache = ScheduleCache::new(4);
        assert!(cache.parse("61 * * * *").is_err());
        assert!(cache.parse("61 * * * *").is_err());
        assert!(cache.is_empty());
    }
}
