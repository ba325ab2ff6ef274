//! Spans of time, as PostgreSQL stores them.

use std::cmp::Ordering;
use std::fmt;

use super::invalid::Invalid;

const SECOND: i64 = 1_000_000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;
const DAY: i128 = 24 * HOUR as i128;
/// The shortest day is one on which clocks are set forward.
const SHORTEST_DAY: i128 = 23 * HOUR as i128;

/// How many days 0 to 11 consecutive months have at least.
const FEWEST_DAYS: [i128; 12] = [0, 28, 59, 89, 120, 150, 181, 212, 242, 273, 303, 334];

/// A span of time in three parts that are added one after the other.
///
/// Two intervals are equal where all parts are; [`compare`](Interval::compare) takes a month for 30 days.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Interval {
    /// Calendar months.
    pub months: i32,
    /// Calendar days.
    pub days: i32,
    /// Microseconds.
    pub micros: i64,
}

impl Interval {
    /// No time at all.
    pub const ZERO: Interval = Interval::seconds(0);

    /// The longest that is allowed: a deadline must lie within the calendar.
    pub const LONGEST: Interval = Interval {
        months: 1200,
        days: 0,
        micros: 0,
    };

    /// [`LONGEST`](Self::LONGEST) in words.
    pub const LONGEST_TEXT: &'static str = "100 years";

    /// A number of seconds.
    pub const fn seconds(seconds: i64) -> Interval {
        Interval {
            months: 0,
            days: 0,
            micros: seconds * SECOND,
        }
    }

    /// Which of the two is longer, by PostgreSQL's own comparison: a month is 30 days, a day 24 hours.
    pub fn compare(self, other: Interval) -> Ordering {
        self.span().cmp(&other.span())
    }

    fn span(self) -> i128 {
        (i128::from(self.months) * 30 + i128::from(self.days)) * DAY + i128::from(self.micros)
    }

    /// The time that passes at least: a negative part can turn a short month or a short day below zero.
    fn shortest_span(self) -> i128 {
        if self.months >= 0 && self.days >= 0 && self.micros >= 0 {
            return self.span();
        }
        let months = self.months.unsigned_abs() as usize;
        let days_of_months = match self.months {
            0.. => i128::from(self.months / 12) * 365 + FEWEST_DAYS[months % 12],
            // The longest that the negative part can be.
            _ => -i128::from(self.months.unsigned_abs()) * 31,
        };
        let days = days_of_months + i128::from(self.days);
        let day = if days > 0 { SHORTEST_DAY } else { DAY };
        days * day + i128::from(self.micros)
    }

    fn has_a_part_beyond_100_years(self) -> bool {
        (self.months / 12).unsigned_abs() > 100
            || self.days.unsigned_abs() > 36_600
            || (self.micros / HOUR).unsigned_abs() > 878_400
    }

    /// What is wrong with the interval as a time to wait, if anything.
    pub(super) fn problem(self, may_be_zero: bool) -> Option<String> {
        let least = match may_be_zero {
            true => "zero or longer",
            false => "longer than nothing",
        };
        let is_too_short = |span: i128| span < 0 || (span == 0 && !may_be_zero);
        if is_too_short(self.span()) {
            return Some(format!("must be {least}"));
        }
        // The parts are added one after the other, and none of the sums may leave the calendar.
        if self.compare(Interval::LONGEST).is_gt() || self.has_a_part_beyond_100_years() {
            return Some(format!(
                "must not be longer than {}, nor have a part that is",
                Interval::LONGEST_TEXT
            ));
        }
        if is_too_short(self.shortest_span()) {
            return Some(format!(
                "must be {least}, also in the shortest month and on the shortest day"
            ));
        }
        None
    }

    /// Refuses an interval that can't be waited for: a negative one, one of more than 100 years, or none at all.
    pub fn check(self, argument: &str, may_be_zero: bool) -> Result<(), Invalid> {
        match self.problem(may_be_zero) {
            None => Ok(()),
            Some(problem) => Err(Invalid::argument(argument, &self.to_string(), &problem)
                .with_hint(format!(
                    "Give {argument} as an interval such as '5 minutes'."
                ))),
        }
    }
}

/// As PostgreSQL prints it with `intervalstyle = postgres`.
impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.months, self.days, self.micros) {
            (i32::MAX, i32::MAX, i64::MAX) => return f.write_str("infinity"),
            (i32::MIN, i32::MIN, i64::MIN) => return f.write_str("-infinity"),
            _ => {}
        }
        let mut separator = "";
        // A positive part has a sign only behind a negative one.
        let mut follows_negative = false;
        for (number, unit) in [
            (self.months / 12, "year"),
            (self.months % 12, "mon"),
            (self.days, "day"),
        ] {
            if number != 0 {
                let sign = if follows_negative && number > 0 {
                    "+"
                } else {
                    ""
                };
                let plural = if number == 1 { "" } else { "s" };
                write!(f, "{separator}{sign}{number} {unit}{plural}")?;
                separator = " ";
                follows_negative = number < 0;
            }
        }
        if self.micros == 0 && !separator.is_empty() {
            return Ok(());
        }
        let sign = match self.micros {
            ..0 => "-",
            _ if follows_negative => "+",
            _ => "",
        };
        let micros = self.micros.unsigned_abs();
        let [hour, minute, second] = [HOUR, MINUTE, SECOND].map(i64::unsigned_abs);
        let (hours, minutes, seconds) = (
            micros / hour,
            micros % hour / minute,
            micros % minute / second,
        );
        write!(f, "{separator}{sign}{hours:02}:{minutes:02}:{seconds:02}")?;
        match micros % second {
            0 => Ok(()),
            fraction => write!(f, ".{}", format!("{fraction:06}").trim_end_matches('0')),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(months: i32, days: i32, micros: i64) -> Interval {
        Interval {
            months,
            days,
            micros,
        }
    }

    #[test]
    fn printed_as_the_server_prints() {
        // As printed by PostgreSQL 15, and infinity by 17.
        for (value, text) in [
            (Interval::ZERO, "00:00:00"),
            (Interval::LONGEST, Interval::LONGEST_TEXT),
            (Interval::seconds(300), "00:05:00"),
            (Interval::seconds(-1), "-00:00:01"),
            (interval(0, 0, 1), "00:00:00.000001"),
            (interval(0, 0, -1_500_000), "-00:00:01.5"),
            (interval(1, 0, 0), "1 mon"),
            (
                interval(14, 3, 14_706_789_000),
                "1 year 2 mons 3 days 04:05:06.789",
            ),
            (interval(-14, -3, 0), "-1 years -2 mons -3 days"),
            (interval(-1, 3, 0), "-1 mons +3 days"),
            (interval(0, -1, HOUR), "-1 days +01:00:00"),
            (interval(0, 1, -HOUR), "1 day -01:00:00"),
            (interval(-1, 0, HOUR), "-1 mons +01:00:00"),
            (interval(1200, 0, SECOND), "100 years 00:00:01"),
            (
                interval(12_000_000, -359_990_000, 0),
                "1000000 years -359990000 days",
            ),
            (interval(0, 0, 1000 * HOUR), "1000:00:00"),
            (interval(0, 0, i64::MIN), "-2562047788:00:54.775808"),
            (interval(i32::MAX, i32::MAX, i64::MAX), "infinity"),
            (interval(i32::MIN, i32::MIN, i64::MIN), "-infinity"),
        ] {
            assert_eq!(value.to_string(), text);
        }
    }

    #[test]
    fn compared_with_months_of_30_days() {
        assert_eq!(
            interval(1, 0, 0).compare(interval(0, 30, 0)),
            Ordering::Equal
        );
        assert_eq!(
            interval(12, 0, 0).compare(interval(0, 365, 0)),
            Ordering::Less
        );
        assert_eq!(
            interval(0, 1, 0).compare(interval(0, 0, 24 * HOUR)),
            Ordering::Equal
        );
        assert_eq!(
            Interval::ZERO.compare(Interval::seconds(-1)),
            Ordering::Greater
        );
        assert_ne!(interval(1, 0, 0), interval(0, 30, 0));
    }

    const NOTHING: &str = "must be longer than nothing";
    const NEGATIVE: &str = "must be zero or longer";
    const TOO_LONG: &str = "must not be longer than 100 years, nor have a part that is";
    const SOMETIMES_NOTHING: &str =
        "must be longer than nothing, also in the shortest month and on the shortest day";
    const SOMETIMES_NEGATIVE: &str =
        "must be zero or longer, also in the shortest month and on the shortest day";

    #[test]
    fn good_intervals() {
        for good in [
            interval(0, 0, 1),
            Interval::seconds(300),
            interval(1200, 0, 0),
            interval(0, 36_000, 0),
            interval(0, 0, 864_000 * HOUR),
            // What a subtraction leaves behind.
            interval(0, 1, -HOUR),
            interval(1, -1, 0),
            interval(1, -27, -HOUR),
            interval(3, -88, 0),
            interval(12, -359, 0),
            interval(0, -1, 25 * HOUR),
            interval(-1, 32, 0),
        ] {
            assert_eq!(good.problem(false), None, "{good}");
            assert_eq!(good.problem(true), None, "{good}");
        }
        assert_eq!(Interval::ZERO.problem(true), None);
        assert_eq!(interval(1, -28, 0).problem(true), None);
    }

    #[test]
    fn bad_intervals() {
        for (bad, if_zero_is_allowed, if_not) in [
            (Interval::ZERO, None, NOTHING),
            (interval(1, -30, 0), Some(SOMETIMES_NEGATIVE), NOTHING),
            (Interval::seconds(-1), Some(NEGATIVE), NOTHING),
            (
                interval(i32::MIN, i32::MIN, i64::MIN),
                Some(NEGATIVE),
                NOTHING,
            ),
            (interval(1200, 0, 1), Some(TOO_LONG), TOO_LONG),
            (interval(0, 36_000, 1), Some(TOO_LONG), TOO_LONG),
            (
                interval(i32::MAX, i32::MAX, i64::MAX),
                Some(TOO_LONG),
                TOO_LONG,
            ),
            (
                interval(12_000_000, -359_990_000, 0),
                Some(TOO_LONG),
                TOO_LONG,
            ),
            (interval(1212, -36_000, 0), Some(TOO_LONG), TOO_LONG),
            (interval(-1200, 36_601, 0), Some(TOO_LONG), TOO_LONG),
            (
                interval(0, -36_000, 878_401 * HOUR),
                Some(TOO_LONG),
                TOO_LONG,
            ),
            (interval(1, -28, 0), None, SOMETIMES_NOTHING),
            (
                interval(1, -29, 0),
                Some(SOMETIMES_NEGATIVE),
                SOMETIMES_NOTHING,
            ),
            // 12 months compare as 360 days.
            (interval(12, -361, 0), Some(NEGATIVE), NOTHING),
            (interval(0, 1, -23 * HOUR), None, SOMETIMES_NOTHING),
            (
                interval(0, 1, -24 * HOUR + 1),
                Some(SOMETIMES_NEGATIVE),
                SOMETIMES_NOTHING,
            ),
            (interval(-1, 31, 0), None, SOMETIMES_NOTHING),
        ] {
            assert_eq!(bad.problem(true).as_deref(), if_zero_is_allowed, "{bad}");
            assert_eq!(bad.problem(false).as_deref(), Some(if_not), "{bad}");
        }
    }

    #[test]
    fn a_refusal_names_the_argument_and_an_example() {
        let refused = Interval::seconds(-1).check("jitter", true).unwrap_err();
        assert_eq!(
            refused.message,
            "invalid jitter \"-00:00:01\": must be zero or longer"
        );
        assert_eq!(
            refused.hint.unwrap(),
            "Give jitter as an interval such as '5 minutes'."
        );
    }
}
