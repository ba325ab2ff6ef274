//! The error of a value that is refused.

use std::fmt;

/// The number of characters of a value that a message shows.
const SHOWN_CHARACTERS: usize = 120;

/// A value that was refused: which argument, its value, what was expected, and where there is more to say, the exact
/// place and a hint with the remedy.
///
/// ```
/// use recur_core::InvalidValue;
///
/// let error = InvalidValue::new("limit", "0", "must be at least 1").with_hint("Leave it out to take one.");
/// assert_eq!(error.to_string(), r#"invalid limit "0": must be at least 1"#);
/// assert_eq!(error.hint(), Some("Leave it out to take one."));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidValue {
    argument: &'static str,
    value: String,
    problem: String,
    detail: Option<String>,
    hint: Option<String>,
}

impl InvalidValue {
    /// Says that the value of an argument is refused because of a problem.
    pub fn new(
        argument: &'static str,
        value: impl Into<String>,
        problem: impl Into<String>,
    ) -> InvalidValue {
        InvalidValue {
            argument,
            value: value.into(),
            problem: problem.into(),
            detail: None,
            hint: None,
        }
    }

    /// Adds which part of the value is wrong.
    #[must_use]
    pub fn with_detail(mut self, detail: impl Into<String>) -> InvalidValue {
        self.detail = Some(detail.into());
        self
    }

    /// Adds what to do about it.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> InvalidValue {
        self.hint = Some(hint.into());
        self
    }

    /// The argument, setting or column that has the value.
    pub fn argument(&self) -> &'static str {
        self.argument
    }

    /// The whole value, which a message may show cut.
    pub fn value(&self) -> &str {
        &self.value
    }

    /// What is expected of the value.
    pub fn problem(&self) -> &str {
        &self.problem
    }

    /// Which part of the value is wrong, if it has parts.
    pub fn detail(&self) -> Option<&str> {
        self.detail.as_deref()
    }

    /// What to do about it, if there is something to say.
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }
}

impl fmt::Display for InvalidValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cut = self.value.char_indices().nth(SHOWN_CHARACTERS);
        let (shown, ellipsis) = match cut {
            Some((end, _)) => (&self.value[..end], "…"),
            None => (self.value.as_str(), ""),
        };
        write!(
            f,
            "invalid {} \"{shown}{ellipsis}\": {}",
            self.argument, self.problem
        )
    }
}

impl std::error::Error for InvalidValue {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_long_values_cut() {
        let long = "ü".repeat(SHOWN_CHARACTERS);
        let shown = |value: &str| InvalidValue::new("name", value, "is wrong").to_string();
        assert_eq!(shown(&long), format!("invalid name \"{long}\": is wrong"));
        assert_eq!(
            shown(&format!("{long}x")),
            format!("invalid name \"{long}…\": is wrong")
        );
    }
}
