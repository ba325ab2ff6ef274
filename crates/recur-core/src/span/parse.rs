//! The reader of spans. Errors are the second half of a message: what is wrong, with the part that is.

use super::{MICROS_PER_HOUR, MICROS_PER_MINUTE, MICROS_PER_SECOND, Span};

type Problem = String;

/// Fractions are read to nine digits, which is finer than a microsecond of anything shorter than a year.
const SCALE: i128 = 1_000_000_000;
const SCALE_DIGITS: usize = 9;
/// More digits than this are more than any part of a span can hold.
const MOST_DIGITS: usize = 18;

pub(super) fn parse(text: &str) -> Result<Span, Problem> {
    let mut reader = Reader {
        rest: text.trim(),
        sum: Sum::default(),
    };
    if reader.rest.is_empty() {
        return Err("is empty, expected a span such as \"30 seconds\"".to_owned());
    }
    match reader.rest.strip_prefix(['P', 'p']) {
        Some(rest) => {
            reader.rest = rest;
            reader.iso()?;
        }
        None => reader.words()?,
    }
    reader.sum.span()
}

/// A unit of time, as a number of one of the parts of a span.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unit {
    Micros(i64),
    Days(i32),
    Months(i32),
}

const MICROSECOND: Unit = Unit::Micros(1);
const MILLISECOND: Unit = Unit::Micros(1_000);
const SECOND: Unit = Unit::Micros(MICROS_PER_SECOND);
const MINUTE: Unit = Unit::Micros(MICROS_PER_MINUTE);
const HOUR: Unit = Unit::Micros(MICROS_PER_HOUR);
const DAY: Unit = Unit::Days(1);
const WEEK: Unit = Unit::Days(7);
const MONTH: Unit = Unit::Months(1);
const YEAR: Unit = Unit::Months(12);

impl Unit {
    fn named(name: &str) -> Option<Unit> {
        Some(match name.to_ascii_lowercase().as_str() {
            "us" | "usec" | "usecs" | "microsecond" | "microseconds" => MICROSECOND,
            "ms" | "msec" | "msecs" | "millisecond" | "milliseconds" => MILLISECOND,
            "s" | "sec" | "secs" | "second" | "seconds" => SECOND,
            "m" | "min" | "mins" | "minute" | "minutes" => MINUTE,
            "h" | "hr" | "hrs" | "hour" | "hours" => HOUR,
            "d" | "day" | "days" => DAY,
            "w" | "week" | "weeks" => WEEK,
            "mo" | "mon" | "mons" | "month" | "months" => MONTH,
            "y" | "yr" | "yrs" | "year" | "years" => YEAR,
            "decade" | "decades" => Unit::Months(120),
            "century" | "centuries" => Unit::Months(1_200),
            _ => return None,
        })
    }

    /// The unit of a designator of ISO 8601, before or after the `T`.
    fn designated(letter: char, is_time: bool) -> Option<Unit> {
        Some(match (letter.to_ascii_uppercase(), is_time) {
            ('Y', false) => YEAR,
            ('M', false) => MONTH,
            ('W', false) => WEEK,
            ('D', false) => DAY,
            ('H', true) => HOUR,
            ('M', true) => MINUTE,
            ('S', true) => SECOND,
            _ => return None,
        })
    }
}

/// The parts read so far.
#[derive(Default)]
struct Sum {
    months: i128,
    days: i128,
    micros: i128,
    units: Vec<Unit>,
}

impl Sum {
    /// Adds a number, scaled by [`SCALE`], of a unit. A fraction flows into the next smaller part, as in PostgreSQL.
    fn add(&mut self, number: i128, unit: Unit) {
        match unit {
            Unit::Micros(micros) => self.micros += rounded(number * i128::from(micros), SCALE),
            Unit::Days(days) => self.add_days(number * i128::from(days)),
            Unit::Months(1) => {
                self.months += number / SCALE;
                self.add_days(number % SCALE * 30);
            }
            Unit::Months(months) => self.months += rounded(number * i128::from(months), SCALE),
        }
    }

    fn add_days(&mut self, scaled: i128) {
        self.days += scaled / SCALE;
        self.micros += rounded(scaled % SCALE * i128::from(24 * MICROS_PER_HOUR), SCALE);
    }

    fn note_unit(&mut self, unit: Unit, part: &str) -> Result<(), Problem> {
        if self.units.contains(&unit) {
            return Err(format!("\"{part}\" repeats a unit"));
        }
        self.units.push(unit);
        Ok(())
    }

    fn span(&self) -> Result<Span, Problem> {
        let too_long = |_| "is too long".to_owned();
        Ok(Span {
            months: i32::try_from(self.months).map_err(too_long)?,
            days: i32::try_from(self.days).map_err(too_long)?,
            micros: i64::try_from(self.micros).map_err(too_long)?,
        })
    }
}

/// The nearest whole number, halves away from zero.
fn rounded(number: i128, scale: i128) -> i128 {
    (number + number.signum() * scale / 2) / scale
}

struct Reader<'a> {
    rest: &'a str,
    sum: Sum,
}

impl<'a> Reader<'a> {
    /// Numbers with units, and a time.
    fn words(&mut self) -> Result<(), Problem> {
        while !self.rest.is_empty() {
            let start = self.rest;
            let (is_negative, number) = self.number()?;
            if self.rest.starts_with(':') {
                self.time(start, is_negative, number)?;
            } else {
                self.rest = self.rest.trim_start();
                let name = self.take_while(|c| c.is_alphabetic());
                let part = part(start, self.rest);
                if name.is_empty() {
                    return Err(no_unit(part));
                }
                let unit =
                    Unit::named(name).ok_or_else(|| format!("\"{name}\" is no unit of time"))?;
                self.sum.note_unit(unit, part)?;
                self.sum.add(number, unit);
            }
            self.rest = self.rest.trim_start();
        }
        Ok(())
    }

    /// `HH:MM` or `HH:MM:SS`, of which the hours have been read.
    fn time(&mut self, start: &'a str, is_negative: bool, hours: i128) -> Result<(), Problem> {
        let mut fields = [hours, 0, 0];
        let mut is_sound = hours % SCALE == 0;
        for (field, digits) in fields.iter_mut().skip(1).zip([2, 2]) {
            let Some(rest) = self.rest.strip_prefix(':') else {
                continue;
            };
            self.rest = rest;
            let whole = rest.bytes().take_while(u8::is_ascii_digit).count();
            let (negative, number) = self.number()?;
            *field = if is_negative { -number } else { number };
            is_sound &= !negative && whole == digits && number < 60 * SCALE;
        }
        let [hours, minutes, seconds] = fields;
        // Only seconds have a fraction.
        is_sound &= minutes % SCALE == 0;
        let is_over = self.rest.is_empty() || self.rest.starts_with(char::is_whitespace);
        if !is_sound || !is_over {
            let part = part(start, self.rest);
            return Err(format!("\"{part}\" is no time such as \"02:30:00\""));
        }
        let part = part(start, self.rest);
        for (number, unit) in [(hours, HOUR), (minutes, MINUTE), (seconds, SECOND)] {
            self.sum.note_unit(unit, part)?;
            self.sum.add(number, unit);
        }
        Ok(())
    }

    /// Designators of ISO 8601, after the `P`.
    fn iso(&mut self) -> Result<(), Problem> {
        let mut is_time = false;
        let mut has_unit = false;
        while !self.rest.is_empty() {
            let start = self.rest;
            if let Some(rest) = self.rest.strip_prefix(['T', 't']).filter(|_| !is_time) {
                (self.rest, is_time, has_unit) = (rest, true, false);
                continue;
            }
            let (_, number) = self.number()?;
            let letter = self.rest.chars().next();
            let unit = letter.and_then(|letter| Unit::designated(letter, is_time));
            let Some((letter, unit)) = letter.zip(unit) else {
                let part = part(start, self.rest);
                return Err(format!("\"{part}\" has no designator, as in \"PT30S\""));
            };
            self.rest = &self.rest[letter.len_utf8()..];
            has_unit = true;
            self.sum.note_unit(unit, part(start, self.rest))?;
            self.sum.add(number, unit);
        }
        match has_unit {
            true => Ok(()),
            false => Err("ends where a number is expected, as in \"PT30S\"".to_owned()),
        }
    }

    /// A decimal number, scaled, and whether it has a minus.
    fn number(&mut self) -> Result<(bool, i128), Problem> {
        let start = self.rest;
        let is_negative = start.starts_with('-');
        self.rest = start.strip_prefix(['-', '+']).unwrap_or(start);
        let whole = self.take_while(|c| c.is_ascii_digit());
        let mut fraction = "";
        if let Some(rest) = self.rest.strip_prefix('.') {
            self.rest = rest;
            fraction = self.take_while(|c| c.is_ascii_digit());
        }
        if whole.is_empty() && fraction.is_empty() {
            let word = start.split_whitespace().next().unwrap_or(start);
            return Err(format!(
                "\"{word}\" is no number, expected a span such as \"30 seconds\""
            ));
        }
        let whole = whole.trim_start_matches('0');
        if whole.len() > MOST_DIGITS {
            return Err("is too long".to_owned());
        }
        let digit = |number: i128, digit: u8| number * 10 + i128::from(digit - b'0');
        let mut number = whole.bytes().fold(0, digit);
        let fraction = fraction.bytes().chain(std::iter::repeat(b'0'));
        number = fraction.take(SCALE_DIGITS).fold(number, digit);
        Ok((is_negative, if is_negative { -number } else { number }))
    }

    fn take_while(&mut self, belongs: impl Fn(char) -> bool) -> &'a str {
        let end = self.rest.find(|c| !belongs(c)).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at(end);
        self.rest = rest;
        taken
    }
}

/// What lies between a start and the rest that follows it.
fn part<'a>(start: &'a str, rest: &str) -> &'a str {
    start[..start.len() - rest.len()].trim_end()
}

fn no_unit(number: &str) -> Problem {
    format!("\"{number}\" has no unit, as in \"{number} seconds\"")
}
