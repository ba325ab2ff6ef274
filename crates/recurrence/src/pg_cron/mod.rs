//! Schedules as pg_cron reads them: what they mean there, and what means the same here.
//!
//! pg_cron has the reader of Vixie cron. It differs from this crate's in four ways: a day must match both
//! day fields where one of them begins with `*`, what follows the fifth field is ignored, and so is what
//! follows an item of a list, a step may be longer than its field, and a range may run backward, which
//! leaves no value. Intervals of 1 to 59 seconds and `$`, the last day of the month, are pg_cron's own.

mod field;
mod runs;
#[cfg(test)]
mod tests;

use crate::cron::FieldKind;
use crate::error::ScheduleError;
use crate::schedule::Schedule;
use crate::text::excerpt;
use field::List;

/// A schedule of pg_cron.
///
/// # Examples
/// ```
/// use recurrence::PgCron;
///
/// for (there, here) in [
///     ("30 seconds", "30s"),
///     ("0 3 $ * *", "0 3 L * *"),
///     ("0 0 1 * 1", "0 0 1 * MON"),
///     // A day field that begins with `*` is required in pg_cron, and an alternative here.
///     ("0 0 */2 * 1", "0 0 */2 * +MON"),
///     // Five fields are read, and nothing behind them.
///     ("*/10 * * * * *", "*/10 * * * *"),
/// ] {
///     assert_eq!(PgCron::parse(there)?.to_schedule()?.to_string(), here);
/// }
/// # Ok::<(), recurrence::ScheduleError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PgCron {
    kind: Kind,
    written: String,
    /// What follows the fifth field.
    ignored: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    /// The seconds from the start of one run to the next.
    Seconds(u8),
    Fields(Box<Fields>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Fields {
    minutes: List,
    hours: List,
    days: List,
    months: List,
    weekdays: List,
    last_day: bool,
}

const NICKNAMES: [(&str, &str); 7] = [
    ("yearly", "0 0 1 1 *"),
    ("annually", "0 0 1 1 *"),
    ("monthly", "0 0 1 * *"),
    ("weekly", "0 0 * * 0"),
    ("daily", "0 0 * * *"),
    ("midnight", "0 0 * * *"),
    ("hourly", "0 * * * *"),
];

impl PgCron {
    /// Reads a schedule as pg_cron does.
    ///
    /// # Errors
    /// When pg_cron refuses the text, and for `@reboot`, which is no time.
    pub fn parse(text: &str) -> Result<PgCron, ScheduleError> {
        let written = text.trim_matches([' ', '\t', '\n']);
        let read = |kind, ignored: &str| PgCron {
            kind,
            written: written.to_owned(),
            ignored: Some(ignored.to_owned()).filter(|ignored| !ignored.is_empty()),
        };
        if let Some(seconds) = seconds(written)? {
            return Ok(read(Kind::Seconds(seconds), ""));
        }
        if let Some(nickname) = written.strip_prefix('@') {
            let (name, ignored) = split_blank(nickname);
            let expression = expand_nickname(name)?;
            return Ok(read(Kind::Fields(Box::new(fields(expression)?.0)), ignored));
        }
        let (fields, ignored) = fields(written)?;
        Ok(read(Kind::Fields(Box::new(fields)), ignored))
    }

    /// The schedule of this crate that means the same.
    ///
    /// # Errors
    /// When pg_cron never runs it.
    pub fn to_schedule(&self) -> Result<Schedule, ScheduleError> {
        match &self.kind {
            Kind::Seconds(seconds) => Schedule::admit(&format!("{seconds}s")),
            Kind::Fields(fields) => Schedule::admit(&self.expression(fields)?),
        }
    }

    /// How often it runs, where that is all that it says.
    pub fn seconds(&self) -> Option<u8> {
        match self.kind {
            Kind::Seconds(seconds) => Some(seconds),
            Kind::Fields(_) => None,
        }
    }

    /// What pg_cron makes of the text that its author may not expect.
    pub fn remark(&self) -> Option<String> {
        let ignored = self.ignored.as_ref().map(|ignored| {
            format!(
                "pg_cron ignores \"{}\", which follows the fifth field",
                excerpt(ignored)
            )
        });
        let both = match &self.kind {
            Kind::Fields(fields) if fields.restricts_both_days() && fields.requires_both_days() => Some(
                "pg_cron requires both day fields, because one of them begins with *; + says so here"
                    .to_owned(),
            ),
            _ => None,
        };
        let remarks: Vec<String> = ignored.into_iter().chain(both).collect();
        (!remarks.is_empty()).then(|| remarks.join("; "))
    }

    fn expression(&self, fields: &Fields) -> Result<String, ScheduleError> {
        let never = |list: &List| {
            ScheduleError::new(format!(
                "pg_cron never runs \"{}\": its {} has no value",
                excerpt(&self.written),
                list.kind().name()
            ))
        };
        let text = |list: &List| list.to_text().ok_or_else(|| never(list));
        let (day, weekday) = match (fields.restricts_days(), fields.restricts_weekdays()) {
            (true, true) if fields.requires_both_days() => (
                text_of_days(fields).ok_or_else(|| never(&fields.days))?,
                format!("+{}", text(&fields.weekdays)?),
            ),
            // One of two alternatives may be empty.
            (true, true) => match (text_of_days(fields), fields.weekdays.to_text()) {
                (Some(day), Some(weekday)) => (day, weekday),
                (Some(day), None) => (day, "*".to_owned()),
                (None, Some(weekday)) => ("*".to_owned(), weekday),
                (None, None) => return Err(never(&fields.days)),
            },
            (false, true) if fields.requires_both_days() => {
                ("*".to_owned(), text(&fields.weekdays)?)
            }
            (true, false) if fields.requires_both_days() => (
                text_of_days(fields).ok_or_else(|| never(&fields.days))?,
                "*".to_owned(),
            ),
            // Every day is enough.
            _ => ("*".to_owned(), "*".to_owned()),
        };
        Ok(format!(
            "{} {} {day} {} {weekday}",
            text(&fields.minutes)?,
            text(&fields.hours)?,
            text(&fields.months)?
        ))
    }
}

impl Fields {
    /// A day must match both day fields where one of them begins with `*`, and else one of them.
    fn requires_both_days(&self) -> bool {
        self.days.begins_with_star() || self.weekdays.begins_with_star()
    }

    fn restricts_days(&self) -> bool {
        !self.days.has_all()
    }

    fn restricts_weekdays(&self) -> bool {
        !self.weekdays.has_all()
    }

    fn restricts_both_days(&self) -> bool {
        self.restricts_days() && self.restricts_weekdays()
    }
}

fn text_of_days(fields: &Fields) -> Option<String> {
    match fields.last_day {
        true => Some("L".to_owned()),
        false => fields.days.to_text(),
    }
}

/// `30 seconds`; the blank may be missing.
fn seconds(text: &str) -> Result<Option<u8>, ScheduleError> {
    let lower = text.to_ascii_lowercase();
    let digits = lower.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = lower.split_at(digits);
    if digits == 0 || !matches!(unit.trim_ascii_start(), "second" | "seconds") {
        return Ok(None);
    }
    match number.parse() {
        Ok(seconds @ 1..=59) => Ok(Some(seconds)),
        _ => Err(ScheduleError::new(format!(
            "pg_cron interval \"{}\" is out of range, expected 1 to 59 seconds",
            excerpt(text)
        ))),
    }
}

fn expand_nickname(name: &str) -> Result<&'static str, ScheduleError> {
    if let Some((_, expression)) = NICKNAMES.iter().find(|(nickname, _)| *nickname == name) {
        return Ok(expression);
    }
    Err(match name {
        "reboot" | "restart" => ScheduleError::new(format!("\"@{name}\" is not a time"))
            .with_hint("Call recur.trigger, or recur.enqueue_sql, after the server has started."),
        _ => ScheduleError::new(format!("pg_cron has no nickname \"@{}\"", excerpt(name))),
    })
}

/// Five fields, and what follows them.
fn fields(text: &str) -> Result<(Fields, &str), ScheduleError> {
    let mut rest = text;
    let mut field = |kind: FieldKind| {
        let (field, after) = split_blank(rest);
        rest = after;
        (kind, field)
    };
    let [minutes, hours] = [FieldKind::Minute, FieldKind::Hour].map(&mut field);
    let days = field(FieldKind::DayOfMonth);
    let [months, weekdays] = [FieldKind::Month, FieldKind::DayOfWeek].map(&mut field);
    let read = |(kind, field): (FieldKind, &str)| {
        List::parse(kind, field).ok_or_else(|| {
            ScheduleError::new(format!(
                "pg_cron reads no {} in \"{}\" of \"{}\"",
                kind.name(),
                excerpt(field),
                excerpt(text)
            ))
        })
    };
    let last_day = days.1 == "$";
    let fields = Fields {
        minutes: read(minutes)?,
        hours: read(hours)?,
        days: match last_day {
            true => List::empty(FieldKind::DayOfMonth),
            false => read(days)?,
        },
        months: read(months)?,
        weekdays: read(weekdays)?,
        last_day,
    };
    Ok((fields, rest.trim_ascii()))
}

/// The text up to the first blank, and the text after the blanks.
fn split_blank(text: &str) -> (&str, &str) {
    match text.split_once([' ', '\t', '\n']) {
        Some((word, rest)) => (word, rest.trim_start_matches([' ', '\t'])),
        None => (text, ""),
    }
}
