//! Enumerations that are stored as text, whose names stand once.

use crate::invalid::InvalidValue;

/// Defines an enumeration together with the text that stores each of its values.
macro_rules! choice {
    (
        $(#[$meta:meta])*
        pub enum $name:ident in $column:literal {
            $($(#[$value_meta:meta])* $value:ident = $text:literal,)+
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name {
            $($(#[$value_meta])* $value,)+
        }

        impl $name {
            /// Every value, in the order of [`NAMES`](Self::NAMES).
            pub const ALL: &'static [$name] = &[$($name::$value,)+];
            /// The text of every value.
            pub const NAMES: &'static [&'static str] = &[$($text,)+];

            /// The text that stores the value.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $($name::$value => $text,)+
                }
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::invalid::InvalidValue;

            fn from_str(text: &str) -> Result<$name, Self::Err> {
                match text {
                    $($text => Ok($name::$value),)+
                    _ => Err($crate::choice::unknown($column, text, $name::NAMES)),
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}
pub(crate) use choice;

/// The error of a text that is none of the names.
pub(crate) fn unknown(column: &'static str, text: &str, names: &[&str]) -> InvalidValue {
    InvalidValue::new(column, text, format!("must be {}", alternatives(names)))
}

/// `a, b or c`.
fn alternatives(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [only] => (*only).to_owned(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}
