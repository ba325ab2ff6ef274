//! When pg_cron runs a schedule: it reads the clock once a minute, and asks whether the fields match.

use super::{Fields, Kind, PgCron};
use crate::civil::{Civil, DAY, Date, days_in_month, iso_weekday};
use crate::zone::Zone;
use chrono::{DateTime, Utc};

const MINUTE: i64 = 60;
/// No clock is set by less.
const QUARTER: i64 = 15 * MINUTE;
/// No clock is set by more.
const LONGEST_CLOCK_CHANGE: i64 = 6 * 3600;
/// 29 February on a given weekday: at most 40 years apart.
const REACH: i64 = 41 * 366 * DAY;

impl PgCron {
    /// The next runs strictly after an instant, at most `count`. Intervals are counted from the instant.
    ///
    /// pg_cron does nothing about clock changes: a local time that is skipped is not run, and one that
    /// occurs twice is run twice.
    ///
    /// # Examples
    /// ```
    /// use recurrence::{PgCron, Zone};
    ///
    /// let berlin = Zone::parse("Europe/Berlin")?;
    /// let runs = PgCron::parse("30 2 * * *")?.runs_after("2027-03-27T12:00:00Z".parse()?, berlin, 1);
    /// // 02:30 does not exist on the 28th.
    /// assert_eq!(runs[0].to_string(), "2027-03-29 00:30:00 UTC");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn runs_after(&self, from: DateTime<Utc>, zone: Zone, count: usize) -> Vec<DateTime<Utc>> {
        let from = from.timestamp();
        let instants = match &self.kind {
            Kind::Seconds(seconds) => (1..=count as i64)
                .map(|number| from + number * i64::from(*seconds))
                .collect(),
            Kind::Fields(fields) => fields.runs_after(from, zone, count),
        };
        let shown = |instant| DateTime::from_timestamp(instant, 0);
        instants.into_iter().filter_map(shown).collect()
    }
}

impl Fields {
    fn runs_after(&self, from: i64, zone: Zone, count: usize) -> Vec<i64> {
        let mut runs = Vec::new();
        let mut at = (from.div_euclid(MINUTE) + 1) * MINUTE;
        while runs.len() < count && at < from + REACH {
            let civil = zone.table().civil_at(at);
            if !self.matches_date(civil) {
                at += until_midnight(civil);
                continue;
            }
            let minute = civil.second_of_day() / MINUTE;
            if self.minutes.has((minute % 60) as u16) && self.hours.has((minute / 60) as u16) {
                runs.push(at);
            }
            at += MINUTE;
        }
        runs
    }

    fn matches_date(&self, civil: Civil) -> bool {
        let Date { year, month, day } = civil.date();
        let is_last = self.last_day && day == days_in_month(year, month);
        let is_day = is_last || self.days.has(day.into());
        let is_weekday = self.weekdays.has(u16::from(iso_weekday(civil.days()) % 7));
        self.months.has(month.into())
            && match self.requires_both_days() {
                true => is_day && is_weekday,
                false => is_day || is_weekday,
            }
    }
}

/// So far the date is the same; slower where a clock change may come in between.
fn until_midnight(civil: Civil) -> i64 {
    let left = DAY - civil.second_of_day();
    match left > LONGEST_CLOCK_CHANGE + MINUTE {
        true => (left - LONGEST_CLOCK_CHANGE) / MINUTE * MINUTE,
        false => QUARTER - civil.second_of_day() % QUARTER,
    }
}
