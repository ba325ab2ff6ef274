//! The filters of a structured rule.

use super::{Hours, Parity, Weekdays};
use crate::civil::{Civil, DAY, iso_week, iso_weekday};

/// The restrictions of a rule, which must all hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Filter {
    pub days_of_week: Option<Weekdays>,
    pub week_parity: Option<Parity>,
    pub between_hours: Option<Hours>,
}

const HOUR: i64 = 3600;

impl Filter {
    pub const NONE: Filter = Filter {
        days_of_week: None,
        week_parity: None,
        between_hours: None,
    };

    pub fn is_empty(&self) -> bool {
        self.days_of_week.is_none() && self.week_parity.is_none() && self.between_hours.is_none()
    }

    pub fn passes(&self, civil: Civil) -> bool {
        self.passes_hour(civil) && self.passes_date(civil.days())
    }

    pub fn passes_hour(&self, civil: Civil) -> bool {
        self.between_hours
            .is_none_or(|hours| hours.contains((civil.second_of_day() / HOUR) as u8))
    }

    fn passes_date(&self, days: i64) -> bool {
        self.days_of_week
            .is_none_or(|set| set.contains(iso_weekday(days)))
            && self
                .week_parity
                .is_none_or(|parity| parity.matches(iso_week(days).1))
    }

    /// The range of readings around `civil` of which all pass or none does: from the first up to, not
    /// including, the second.
    pub fn span(&self, civil: Civil) -> (Civil, Civil) {
        let midnight = Civil::new(civil.days(), 0);
        let (mut first, mut end) = (midnight.0, midnight.0 + DAY);
        if let Some(hours) = self.between_hours {
            for hour in [hours.start, hours.end] {
                let edge = midnight.0 + i64::from(hour) * HOUR;
                if edge <= civil.0 {
                    first = first.max(edge);
                } else {
                    end = end.min(edge);
                }
            }
        }
        (Civil(first), Civil(end))
    }
}

impl Parity {
    const fn matches(self, week: u8) -> bool {
        match self {
            Parity::Odd => week % 2 == 1,
            Parity::Even => week.is_multiple_of(2),
        }
    }
}
