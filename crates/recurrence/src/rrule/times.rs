//! The times of day of a rule: every combination of its hours, minutes and seconds.

/// A set of times of day as three bit sets. Never empty.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    pub hours: u32,
    pub minutes: u64,
    pub seconds: u64,
}

pub(super) const ALL_HOURS: u32 = (1 << 24) - 1;
pub(super) const ALL_SIXTY: u64 = (1 << 60) - 1;

impl Times {
    pub fn count(self) -> i64 {
        i64::from(self.hours.count_ones() * self.minutes.count_ones() * self.seconds.count_ones())
    }

    /// How many times there are before this second of the day, up to 86,400 for all of them.
    pub fn count_before(self, time: i64) -> i64 {
        let (hour, minute, second) = split(time);
        let below = |set: u64, place: u32| i64::from((set & ((1 << place) - 1)).count_ones());
        let seconds = below(self.seconds, second);
        let minutes = below(self.minutes, minute) * i64::from(self.seconds.count_ones())
            + if bit(self.minutes, minute) {
                seconds
            } else {
                0
            };
        let in_hour = i64::from(self.minutes.count_ones() * self.seconds.count_ones());
        below(self.hours.into(), hour) * in_hour
            + if bit(self.hours.into(), hour) {
                minutes
            } else {
                0
            }
    }

    pub fn first(self) -> i64 {
        second_of_day(
            self.hours.trailing_zeros(),
            self.minutes.trailing_zeros(),
            self.seconds.trailing_zeros(),
        )
    }

    pub fn last(self) -> i64 {
        second_of_day(
            self.hours.ilog2(),
            self.minutes.ilog2(),
            self.seconds.ilog2(),
        )
    }

    /// The first time at or after this second of the day.
    pub fn at_or_after(self, time: i64) -> Option<i64> {
        let (hour, minute, second) = split(time);
        if bit(self.hours.into(), hour) {
            if bit(self.minutes, minute)
                && let Some(second) = first_from(self.seconds, second)
            {
                return Some(second_of_day(hour, minute, second));
            }
            if let Some(minute) = first_from(self.minutes, minute + 1) {
                return Some(second_of_day(hour, minute, self.seconds.trailing_zeros()));
            }
        }
        let hour = first_from(self.hours.into(), hour + 1)?;
        Some(second_of_day(
            hour,
            self.minutes.trailing_zeros(),
            self.seconds.trailing_zeros(),
        ))
    }

    /// The last time at or before this second of the day.
    pub fn at_or_before(self, time: i64) -> Option<i64> {
        let (hour, minute, second) = split(time);
        if bit(self.hours.into(), hour) {
            if bit(self.minutes, minute)
                && let Some(second) = last_below(self.seconds, second + 1)
            {
                return Some(second_of_day(hour, minute, second));
            }
            if let Some(minute) = last_below(self.minutes, minute) {
                return Some(second_of_day(hour, minute, self.seconds.ilog2()));
            }
        }
        let hour = last_below(self.hours.into(), hour)?;
        Some(second_of_day(
            hour,
            self.minutes.ilog2(),
            self.seconds.ilog2(),
        ))
    }

    /// The time at an index of the sorted set, which is less than [`Times::count`].
    pub fn nth(self, index: i64) -> i64 {
        let seconds = i64::from(self.seconds.count_ones());
        let minutes = i64::from(self.minutes.count_ones());
        second_of_day(
            nth_bit(self.hours.into(), index / seconds / minutes),
            nth_bit(self.minutes, index / seconds % minutes),
            nth_bit(self.seconds, index % seconds),
        )
    }
}

/// The index of the n-th set bit, counted from 0 at the lowest.
pub(super) fn nth_bit(mut set: u64, n: i64) -> u32 {
    for _ in 0..n {
        set &= set - 1;
    }
    set.trailing_zeros()
}

fn split(time: i64) -> (u32, u32, u32) {
    (
        (time / 3_600) as u32,
        (time / 60 % 60) as u32,
        (time % 60) as u32,
    )
}

fn second_of_day(hour: u32, minute: u32, second: u32) -> i64 {
    i64::from(hour * 3_600 + minute * 60 + second)
}

fn bit(set: u64, place: u32) -> bool {
    set >> place & 1 == 1
}

fn first_from(set: u64, place: u32) -> Option<u32> {
    let rest = set >> place;
    (rest != 0).then(|| place + rest.trailing_zeros())
}

fn last_below(set: u64, place: u32) -> Option<u32> {
    let rest = set & ((1 << place) - 1);
    (rest != 0).then(|| rest.ilog2())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn search_agrees_with_the_listed_set() {
        let times = Times {
            hours: 1 << 0 | 1 << 9 | 1 << 23,
            minutes: 1 << 0 | 1 << 59,
            seconds: 1 << 7 | 1 << 59,
        };
        let listed: Vec<i64> = (0..86_400)
            .filter(|time| {
                let (hour, minute, second) = split(*time);
                bit(times.hours.into(), hour)
                    && bit(times.minutes, minute)
                    && bit(times.seconds, second)
            })
            .collect();
        assert_eq!(times.count(), listed.len() as i64);
        assert_eq!(
            (times.first(), times.last()),
            (listed[0], listed[listed.len() - 1])
        );
        for (index, time) in listed.iter().enumerate() {
            assert_eq!(times.nth(index as i64), *time);
            assert_eq!(times.count_before(*time), index as i64);
            assert_eq!(times.count_before(*time + 1), index as i64 + 1);
        }
        assert_eq!(times.count_before(86_400), times.count());
        for time in 0..86_400 {
            assert_eq!(
                times.at_or_after(time),
                listed.iter().copied().find(|t| *t >= time)
            );
            assert_eq!(
                times.at_or_before(time),
                listed.iter().copied().rev().find(|t| *t <= time)
            );
        }
    }
}
