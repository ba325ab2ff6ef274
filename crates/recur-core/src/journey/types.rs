//! Which types of states wait for a person or another system.

use crate::InvalidValue;
use crate::pattern::Pattern;

/// The types of states in which a journey waits for input from outside: texts and beginnings such as `wait` and
/// `approval:*`. Upper and lower case are the same, so that no spelling gets past the check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InteractiveTypes(Vec<Pattern>);

impl InteractiveTypes {
    /// The setting that has them.
    pub const SETTING: &'static str = "recur.interactive_state_types";
    /// The default of the setting.
    pub const DEFAULT: &'static str = "wait, webhook";

    /// Reads a list that is separated by commas; an empty text is a list of none.
    ///
    /// ```
    /// use recur_core::journey::InteractiveTypes;
    ///
    /// let types = InteractiveTypes::parse("wait, approval:*").unwrap();
    /// assert!(types.includes("Wait") && types.includes("approval:manager"));
    /// assert!(!types.includes("task"));
    /// ```
    ///
    /// # Errors
    /// When an entry is empty, too long, or has a `*` anywhere but at its end.
    pub fn parse(list: &str) -> Result<InteractiveTypes, InvalidValue> {
        if list.trim().is_empty() {
            return Ok(InteractiveTypes(Vec::new()));
        }
        let entries = list
            .split(',')
            .map(|entry| Pattern::parse(Self::SETTING, &entry.trim().to_lowercase()));
        entries.collect::<Result<_, _>>().map(InteractiveTypes)
    }

    /// Does a state of this type wait for input?
    pub fn includes(&self, kind: &str) -> bool {
        let kind = kind.trim().to_lowercase();
        self.0.iter().any(|pattern| pattern.matches(&kind))
    }
}
