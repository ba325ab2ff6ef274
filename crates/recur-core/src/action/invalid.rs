//! Why a change is refused, as the client sees it.

use std::fmt;

use super::definition::Definition;
use super::value::Json;

/// How many characters of a value an error message shows.
const SHOWN: usize = 120;

/// The class of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// A value is wrong.
    InvalidParameter,
    /// The action is in a state that does not allow the change.
    NotInPrerequisiteState,
    /// Another action has the same identity.
    UniqueViolation,
}

impl Code {
    /// The five characters that clients know the class by.
    pub fn sqlstate(self) -> &'static str {
        match self {
            Code::InvalidParameter => "22023",
            Code::NotInPrerequisiteState => "55000",
            Code::UniqueViolation => "23505",
        }
    }
}

/// A refused change: the error's class and its texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invalid {
    /// The class of the error.
    pub code: Code,
    /// One sentence: which argument, its value, what was expected.
    pub message: String,
    /// Circumstances, where the message does not say all.
    pub detail: Option<String>,
    /// The remedy.
    pub hint: Option<String>,
}

impl Invalid {
    pub(super) fn new(code: Code, message: impl Into<String>) -> Invalid {
        Invalid {
            code,
            message: message.into(),
            detail: None,
            hint: None,
        }
    }

    /// `invalid provider "": must not be empty`: the argument, its value and the problem.
    pub fn argument(argument: &str, value: &str, problem: &str) -> Invalid {
        let message = format!("invalid {argument} \"{}\": {problem}", abbreviated(value));
        Invalid::new(Code::InvalidParameter, message)
    }

    /// NULL, or nothing, for an argument that must have a value.
    pub fn missing(argument: &str) -> Invalid {
        Invalid::argument(argument, "NULL", "must have a value")
    }

    /// An action that is to be created, and another one that has its identity.
    pub fn exists<J: Json>(definition: &Definition<J>) -> Invalid {
        taken(definition).with_hint(
            "on_existing => 'upsert' changes it, 'add_another' puts another one beside it.",
        )
    }

    /// An action that is to be renamed, and another one that has its new identity.
    pub fn is_taken<J: Json>(definition: &Definition<J>) -> Invalid {
        taken(definition).with_hint("Choose another name, or delete that one first.")
    }

    /// The same error with a remedy.
    pub fn with_hint(mut self, hint: impl Into<String>) -> Invalid {
        self.hint = Some(hint.into());
        self
    }

    pub(super) fn with_detail(mut self, detail: impl Into<String>) -> Invalid {
        self.detail = Some(detail.into());
        self
    }
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Invalid {}

fn taken<J: Json>(definition: &Definition<J>) -> Invalid {
    let subject = match definition.subject() {
        Some(subject) => format!(", subject \"{subject}\""),
        None => String::new(),
    };
    let message = format!(
        "action \"{}\" already exists in namespace \"{}\", tenant \"{}\"{subject}",
        definition.name(),
        definition.namespace(),
        definition.tenant(),
    );
    Invalid::new(Code::UniqueViolation, message)
}

/// A value as a message shows it: whole if short, cut if not.
fn abbreviated(value: &str) -> String {
    match value.char_indices().nth(SHOWN) {
        None => value.to_owned(),
        Some((end, _)) => format!("{}…", &value[..end]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_value_is_cut_in_characters() {
        let long = "ü".repeat(SHOWN + 1);
        let message = Invalid::argument("name", &long, "no").message;
        assert_eq!(
            message,
            format!("invalid name \"{}…\": no", "ü".repeat(SHOWN))
        );
        let shown = "ü".repeat(SHOWN);
        let message = Invalid::argument("name", &shown, "no").message;
        assert_eq!(message, format!("invalid name \"{shown}\": no"));
    }

    #[test]
    fn sqlstates() {
        assert_eq!(Code::InvalidParameter.sqlstate(), "22023");
        assert_eq!(Code::NotInPrerequisiteState.sqlstate(), "55000");
        assert_eq!(Code::UniqueViolation.sqlstate(), "23505");
    }
}
