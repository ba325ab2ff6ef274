//! Patterns of action types: one grammar for claims, webhooks and handlers.
//!
//! | pattern | matches |
//! | --- | --- |
//! | `task:created` | that action type |
//! | `subscription:*` | every action type that begins with `subscription:` |
//! | `*` | every action type |

use crate::InvalidValue;
use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

/// The longest name, and so the longest pattern that can match one, in characters.
const LONGEST: usize = 255;

/// A pattern of action types.
///
/// Patterns are ordered by how specific they are: an exact one is greater than a prefix, a longer prefix greater than a
/// shorter one, and `*` is the least.
///
/// ```
/// use recur_core::pattern::Pattern;
///
/// let parse = |text| Pattern::parse("action_type", text).unwrap();
/// let (exact, prefix, all) = (parse("task:created"), parse("task:*"), parse("*"));
/// assert!(exact.matches("task:created") && !exact.matches("task:closed"));
/// assert!(prefix.matches("task:closed") && !prefix.matches("taskforce"));
/// assert!(exact > prefix && prefix > all);
/// assert_eq!(prefix.to_string(), "task:*");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Pattern(Kind);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Kind {
    Exact(String),
    /// What stands before the `*`, which may be nothing.
    Prefix(String),
}

impl Pattern {
    /// Reads a pattern; `argument` is what an error names.
    ///
    /// ```
    /// use recur_core::pattern::Pattern;
    ///
    /// let error = Pattern::parse("action_types", "task:*:created").unwrap_err();
    /// assert_eq!(
    ///     error.to_string(),
    ///     r#"invalid action_types "task:*:created": may have a * only at its end"#
    /// );
    /// ```
    ///
    /// # Errors
    /// When it is empty, longer than 255 characters, or has a `*` anywhere but at its end.
    pub fn parse(argument: &'static str, text: &str) -> Result<Pattern, InvalidValue> {
        let problem = if text.trim().is_empty() {
            "must not be empty"
        } else if text.chars().count() > LONGEST {
            "must not be longer than 255 characters"
        } else {
            let prefix = text.strip_suffix('*');
            if !prefix.unwrap_or(text).contains('*') {
                return Ok(Pattern(match prefix {
                    Some(prefix) => Kind::Prefix(prefix.to_owned()),
                    None => Kind::Exact(text.to_owned()),
                }));
            }
            "may have a * only at its end"
        };
        let error = InvalidValue::new(argument, text, problem);
        Err(error.with_hint(
            "Give an action type such as task:created, the beginning of some such as task:*, or * for all.",
        ))
    }

    /// Does an action type match?
    pub fn matches(&self, action_type: &str) -> bool {
        match &self.0 {
            Kind::Exact(exact) => exact == action_type,
            Kind::Prefix(prefix) => action_type.starts_with(prefix),
        }
    }

    /// The one action type that matches; none for a pattern with a `*`.
    pub fn exact(&self) -> Option<&str> {
        match &self.0 {
            Kind::Exact(exact) => Some(exact),
            Kind::Prefix(_) => None,
        }
    }

    /// What every matching action type begins with, empty for `*`; none for an exact pattern.
    pub fn prefix(&self) -> Option<&str> {
        match &self.0 {
            Kind::Exact(_) => None,
            Kind::Prefix(prefix) => Some(prefix),
        }
    }

    /// Does every action type match?
    pub fn is_all(&self) -> bool {
        self.prefix() == Some("")
    }

    /// The most specific of the patterns that match an action type.
    ///
    /// ```
    /// use recur_core::pattern::Pattern;
    ///
    /// let patterns = ["*", "task:*", "mail:sent"].map(|text| Pattern::parse("action_type", text).unwrap());
    /// let best = |action_type| Pattern::most_specific(&patterns, action_type).map(Pattern::to_string);
    /// assert_eq!(best("task:created").unwrap(), "task:*");
    /// assert_eq!(best("other").unwrap(), "*");
    /// ```
    pub fn most_specific<'a>(
        patterns: impl IntoIterator<Item = &'a Pattern>,
        action_type: &str,
    ) -> Option<&'a Pattern> {
        let matching = patterns
            .into_iter()
            .filter(|pattern| pattern.matches(action_type));
        matching.max()
    }
}

/// Patterns as a query asks for them: action types that match exactly, and beginnings of others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// Action types that match.
    pub exact: Vec<String>,
    /// Every action type matches that begins with one of them.
    pub prefixes: Vec<String>,
}

impl Selection {
    /// Sorts patterns by their kind; none where one of them matches every action type.
    ///
    /// ```
    /// use recur_core::pattern::Selection;
    ///
    /// let selection = Selection::parse("action_types", &["mail:sent", "task:*"]).unwrap().unwrap();
    /// assert_eq!((selection.exact, selection.prefixes), (vec!["mail:sent".into()], vec!["task:".into()]));
    /// assert_eq!(Selection::parse("action_types", &["mail:sent", "*"]), Ok(None));
    /// ```
    ///
    /// # Errors
    /// When one of them is no pattern.
    pub fn parse(
        argument: &'static str,
        patterns: &[impl AsRef<str>],
    ) -> Result<Option<Selection>, InvalidValue> {
        let mut selection = Selection::default();
        let mut is_all = false;
        for text in patterns {
            match Pattern::parse(argument, text.as_ref())?.0 {
                Kind::Exact(exact) => selection.exact.push(exact),
                Kind::Prefix(prefix) if prefix.is_empty() => is_all = true,
                Kind::Prefix(prefix) => selection.prefixes.push(prefix),
            }
        }
        Ok((!is_all).then_some(selection))
    }
}

impl FromStr for Pattern {
    type Err = InvalidValue;

    fn from_str(text: &str) -> Result<Pattern, InvalidValue> {
        Pattern::parse("pattern", text)
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Exact(exact) => f.write_str(exact),
            Kind::Prefix(prefix) => write!(f, "{prefix}*"),
        }
    }
}

impl Ord for Pattern {
    /// By how specific they are, then by text.
    fn cmp(&self, other: &Pattern) -> Ordering {
        match (&self.0, &other.0) {
            (Kind::Exact(one), Kind::Exact(other)) => one.cmp(other),
            (Kind::Exact(_), Kind::Prefix(_)) => Ordering::Greater,
            (Kind::Prefix(_), Kind::Exact(_)) => Ordering::Less,
            (Kind::Prefix(one), Kind::Prefix(other)) => {
                one.len().cmp(&other.len()).then_with(|| one.cmp(other))
            }
        }
    }
}

impl PartialOrd for Pattern {
    fn partial_cmp(&self, other: &Pattern) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str) -> Pattern {
        text.parse().unwrap()
    }

    #[test]
    fn each_kind_matches_what_it_says() {
        for (text, matching, other) in [
            (
                "task:created",
                &["task:created"][..],
                &["task:create", "task:created2", "Task:created", ""][..],
            ),
            (
                "task:*",
                &["task:", "task:created", "task:a:b"],
                &["task", "subtask:a", "Task:a"],
            ),
            ("ta*", &["ta", "task"], &["t", "at"]),
            ("*", &["task", ""], &[]),
        ] {
            for action_type in matching {
                assert!(pattern(text).matches(action_type), "{text} {action_type}");
            }
            for action_type in other {
                assert!(!pattern(text).matches(action_type), "{text} {action_type}");
            }
        }
    }

    #[test]
    fn what_a_query_needs() {
        for (text, exact, prefix, is_all) in [
            ("task:created", Some("task:created"), None, false),
            ("task:*", None, Some("task:"), false),
            ("*", None, Some(""), true),
        ] {
            let pattern = pattern(text);
            assert_eq!(
                (pattern.exact(), pattern.prefix(), pattern.is_all()),
                (exact, prefix, is_all)
            );
            assert_eq!(pattern.to_string(), text);
        }
    }

    #[test]
    fn a_selection_is_what_a_query_asks_for() {
        let parse = |texts: &[&str]| Selection::parse("action_types", texts);
        let strings =
            |texts: &[&str]| -> Vec<String> { texts.iter().map(|text| (*text).into()).collect() };
        let nothing = parse(&[]).unwrap().unwrap();
        assert_eq!(nothing, Selection::default());
        let some = parse(&["a", "b*", "c", "d:*"]).unwrap().unwrap();
        assert_eq!(
            (some.exact, some.prefixes),
            (strings(&["a", "c"]), strings(&["b", "d:"]))
        );
        assert_eq!(parse(&["*", "a"]), Ok(None));
        for wrong in [&["*", "a**"][..], &["a**", "*"]] {
            let error = parse(wrong).unwrap_err();
            assert_eq!((error.argument(), error.value()), ("action_types", "a**"));
        }
    }

    #[test]
    fn errors_say_what_is_wrong() {
        let long = "x".repeat(256);
        for (text, problem) in [
            ("", "must not be empty"),
            (" ", "must not be empty"),
            (long.as_str(), "must not be longer than 255 characters"),
            ("**", "may have a * only at its end"),
            ("*:created", "may have a * only at its end"),
            ("a*b*", "may have a * only at its end"),
        ] {
            let error = Pattern::parse("action_types", text).unwrap_err();
            assert_eq!(
                (error.argument(), error.value(), error.problem()),
                ("action_types", text, problem)
            );
            assert!(error.hint().is_some());
        }
        assert!("ü".repeat(255).parse::<Pattern>().is_ok());
    }

    #[test]
    fn the_most_specific_is_the_greatest() {
        let texts = ["*", "b*", "aa*", "task:*", "task:c*", "a", "task:created"];
        let sorted: Vec<Pattern> = texts.iter().map(|text| pattern(text)).collect();
        let mut shuffled: Vec<Pattern> = sorted.iter().rev().cloned().collect();
        shuffled.swap(0, 3);
        shuffled.sort();
        assert_eq!(shuffled, sorted);
        let best =
            |action_type| Pattern::most_specific(&sorted, action_type).map(Pattern::to_string);
        for (action_type, expected) in [
            ("task:created", "task:created"),
            ("task:closed", "task:c*"),
            ("task:", "task:*"),
            ("a", "a"),
            ("bb", "b*"),
            ("x", "*"),
        ] {
            assert_eq!(best(action_type).as_deref(), Some(expected));
        }
        assert_eq!(Pattern::most_specific(&sorted[1..], "x"), None);
    }
}
