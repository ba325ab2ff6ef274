//! A second reader of intervals, with numbers that can't overflow.

use recurrence::interval::Interval;

/// Reads an interval in any notation; None where it is refused.
pub fn read(text: &str) -> Option<Interval> {
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    let is_every = words.len() > 1 && words[0].eq_ignore_ascii_case("every");
    let parts = match text.chars().next()? {
        'P' => iso(&text[1..])?,
        '-' | '+' => return None,
        _ if text.starts_with("every-") => hyphenated(&text[6..])?,
        _ if is_every => in_words(&words[1..])?,
        _ if words.len() > 1 => in_words(&words)?,
        '0'..='9' => shorthand(text)?,
        _ => preset(text)?,
    };
    build(parts)
}

fn preset(text: &str) -> Option<Parts> {
    Some(match text.to_ascii_lowercase().as_str() {
        "hourly" => [0, 0, 3_600],
        "daily" => [0, 1, 0],
        "weekly" => [0, 7, 0],
        "monthly" => [1, 0, 0],
        "yearly" => [12, 0, 0],
        _ => return None,
    })
}

/// Months, days and seconds.
type Parts = [u128; 3];

fn digits(text: &str) -> Option<(u128, &str)> {
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    // Eleven digits are more than any limit.
    let is_short = digits.trim_start_matches('0').len() <= 10;
    (end > 0 && is_short).then(|| (digits.parse().unwrap_or(0), rest))
}

fn shorthand(text: &str) -> Option<Parts> {
    let (number, unit) = digits(text)?;
    Some(match unit {
        "s" => [0, 0, number],
        "m" => [0, 0, number * 60],
        "h" => [0, 0, number * 3_600],
        "d" => [0, number, 0],
        "w" => [0, number * 7, 0],
        "mo" => [number, 0, 0],
        _ => return None,
    })
}

fn named(number: u128, unit: &str) -> Option<Parts> {
    let unit = unit.to_ascii_lowercase();
    Some(match unit.strip_suffix('s').unwrap_or(&unit) {
        "second" | "sec" => [0, 0, number],
        "minute" | "min" => [0, 0, number * 60],
        "hour" => [0, 0, number * 3_600],
        "day" => [0, number, 0],
        "week" => [0, number * 7, 0],
        "month" => [number, 0, 0],
        "year" => [number * 12, 0, 0],
        _ => return None,
    })
}

/// `30-minutes`, behind `every-`.
fn hyphenated(text: &str) -> Option<Parts> {
    let (number, rest) = digits(text)?;
    named(number, rest.strip_prefix('-')?)
}

/// `1 hour 30 minutes`, or `hour` alone.
fn in_words(words: &[&str]) -> Option<Parts> {
    if let [unit] = words {
        return named(1, unit).filter(|_| !unit.ends_with(['s', 'S']));
    }
    let mut total = [0; 3];
    for pair in words.chunks(2) {
        let [number, unit] = pair else { return None };
        let (number, rest) = digits(number)?;
        let parts = named(number, unit).filter(|_| rest.is_empty())?;
        for (sum, part) in total.iter_mut().zip(parts) {
            *sum += part;
        }
    }
    Some(total)
}

/// Behind the `P`.
fn iso(text: &str) -> Option<Parts> {
    if text.contains('-') {
        return None;
    }
    let (date, time) = match text.split_once('T') {
        Some((_, "")) => return None,
        Some((date, time)) => (date, time),
        None => (text, ""),
    };
    let date = designated(
        date,
        &[
            ('Y', [12, 0, 0]),
            ('M', [1, 0, 0]),
            ('W', [0, 7, 0]),
            ('D', [0, 1, 0]),
        ],
        time.is_empty(),
    )?;
    let time = designated(
        time,
        &[('H', [0, 0, 3_600]), ('M', [0, 0, 60]), ('S', [0, 0, 1])],
        true,
    )?;
    let total = [date[0] + time[0], date[1] + time[1], date[2] + time[2]];
    (!text.is_empty()).then_some(total)
}

fn designated(mut text: &str, units: &[(char, Parts)], is_end: bool) -> Option<Parts> {
    let mut total = [0; 3];
    let mut place = 0;
    while !text.is_empty() {
        let (number, mut rest) = digits(text)?;
        let mut fraction = None;
        if let Some(after) = rest.strip_prefix(['.', ',']) {
            let end = after
                .find(|c: char| !c.is_ascii_digit())
                .unwrap_or(after.len());
            fraction = Some(&after[..end]);
            rest = &after[end..];
        }
        let letter = rest.chars().next()?;
        let found = units[place..]
            .iter()
            .position(|(unit, _)| *unit == letter)?;
        let (_, unit) = units[place + found];
        place += found + 1;
        text = &rest[letter.len_utf8()..];
        if let Some(fraction) = fraction {
            let is_last = text.is_empty() && is_end;
            total[2] += whole_seconds(fraction, unit[2]).filter(|_| is_last)?;
        }
        for (sum, each) in total.iter_mut().zip(unit) {
            *sum += number * each;
        }
    }
    Some(total)
}

fn whole_seconds(digits: &str, unit: u128) -> Option<u128> {
    let is_read = (1..=9).contains(&digits.len()) && unit > 0;
    let scale = 10_u128.pow(digits.len().min(9) as u32);
    let scaled = digits.parse::<u128>().ok().filter(|_| is_read)? * unit;
    scaled.is_multiple_of(scale).then_some(scaled / scale)
}

fn build([months, days, seconds]: Parts) -> Option<Interval> {
    if months > 12_000 || days > 366_000 || seconds > u128::from(u32::MAX) {
        return None;
    }
    let [months, days, seconds] = [months, days, seconds].map(|part| part as u32);
    match (months > 0, days > 0, seconds > 0) {
        (true, false, false) => Some(Interval::Months(months)),
        (false, true, _) => Some(Interval::Days { days, seconds }),
        (false, false, true) => Some(Interval::Seconds(seconds)),
        _ => None,
    }
}
