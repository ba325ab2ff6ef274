//! A second reader of spans that are whole numbers with units.

/// Months, days and microseconds of a text such as `1 hour -30 minutes`; None where the model lacks the form.
pub fn read(text: &str) -> Option<(i64, i64, i64)> {
    let words: Vec<&str> = text.split(' ').collect();
    let (mut months, mut days, mut micros) = (0, 0, 0);
    let mut seen = Vec::new();
    if !words.len().is_multiple_of(2) {
        return None;
    }
    for pair in words.chunks(2) {
        let number = pair[0].strip_prefix('+').unwrap_or(pair[0]);
        let digits = number.strip_prefix('-').unwrap_or(number);
        let is_whole =
            (1..=7).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
        let is_signed_once = !(pair[0].starts_with('+') && number.starts_with('-'));
        let number: i64 = number.parse().ok().filter(|_| is_whole && is_signed_once)?;
        let unit = pair[1].strip_suffix('s').unwrap_or(pair[1]);
        match unit {
            "year" => months += 12 * number,
            "month" | "mon" => months += number,
            "week" => days += 7 * number,
            "day" => days += number,
            "hour" => micros += number * 3_600_000_000,
            "minute" => micros += number * 60_000_000,
            "second" => micros += number * 1_000_000,
            "millisecond" => micros += number * 1_000,
            "microsecond" => micros += number,
            _ => return None,
        }
        // A unit that comes twice is refused, and not modelled.
        let unit = if unit == "mon" { "month" } else { unit };
        if seen.contains(&unit) {
            return None;
        }
        seen.push(unit);
    }
    Some((months, days, micros))
}
