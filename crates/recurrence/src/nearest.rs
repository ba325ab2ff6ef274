//! The name that was probably meant.

/// No name that is looked for is this long, and comparing takes the product of both lengths.
const LONGEST: usize = 64;

/// The candidate that is nearest to a misspelt name, if one is near.
///
/// # Examples
/// ```
/// use recurrence::nearest_name;
///
/// let keys = ["every", "unit", "days_of_week"];
/// assert_eq!(nearest_name("day_of_weeks", keys), Some("days_of_week"));
/// assert_eq!(nearest_name("colour", keys), None);
/// ```
pub fn nearest_name<'a>(
    name: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    if name.len() > LONGEST {
        return None;
    }
    // A third of the letters may differ: with more, any short name is near to any other.
    let tolerated = name.chars().count() / 3;
    candidates
        .into_iter()
        .map(|candidate| (distance(name, candidate), candidate))
        .filter(|(distance, _)| *distance <= tolerated)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// How many letters must be added, removed or replaced.
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (taken, letter) in left.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = taken + 1;
        for (column, other) in right.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != *other);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(row[column] + 1).min(diagonal + 1);
        }
    }
    row[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        for (left, right, expected) in [
            ("", "", 0),
            ("", "abc", 3),
            ("abc", "", 3),
            ("kitten", "sitting", 3),
            ("schedul", "schedule", 1),
            ("shcedule", "schedule", 2),
            ("üm", "um", 1),
        ] {
            assert_eq!(distance(left, right), expected, "{left} {right}");
        }
    }

    #[test]
    fn only_what_is_near() {
        let candidates = ["name", "namespace", "schedule", "start", "starts_at"];
        for (name, expected) in [
            ("schedul", Some("schedule")),
            ("shcedule", Some("schedule")),
            ("Name", Some("name")),
            ("start_at", Some("starts_at")),
            ("x", None),
            ("", None),
            ("frequency", None),
            (&"schedule".repeat(9), None),
        ] {
            assert_eq!(nearest_name(name, candidates), expected, "{name}");
        }
    }
}
