//! A target: a generator of inputs and a check of the code under test.

use crate::input::Input;
use crate::random::{Random, hash};

/// What kind of answer an input got.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Signature(pub u64);

impl Signature {
    /// The shape of a text: runs of digits and of letters count as one each, so that values make no difference.
    pub fn of_shape(kind: u8, text: &str) -> Signature {
        let mut shape = vec![kind];
        for byte in text.bytes().take(60) {
            let class = match byte {
                b'0'..=b'9' => b'0',
                b'a'..=b'z' | b'A'..=b'Z' => b'a',
                other => other,
            };
            if shape.last() != Some(&class) || !class.is_ascii_alphanumeric() {
                shape.push(class);
            }
        }
        Signature(hash(&shape))
    }

    /// The words of an error, without the values that it quotes.
    pub fn of_error(error: impl std::fmt::Display) -> Signature {
        let text = error.to_string();
        let (first, last) = (
            text.split('"').next().unwrap_or(""),
            text.rsplit('"').next().unwrap_or(""),
        );
        let words: String = [first, last]
            .concat()
            .chars()
            .filter(|c| !c.is_ascii_digit())
            .collect();
        Signature(hash(words.as_bytes()) ^ 1)
    }

    /// Some small numbers.
    pub fn of_numbers(numbers: &[usize]) -> Signature {
        let bytes: Vec<u8> = numbers
            .iter()
            .map(|number| (*number).min(255) as u8)
            .collect();
        Signature(hash(&bytes))
    }
}

/// A part of the code under test.
pub struct Target {
    /// The folder of its corpus.
    pub name: &'static str,
    /// Which part of a million executions it gets. Cheap targets get more.
    pub share: u32,
    /// Makes an input that is likely to be valid, or nearly so.
    pub generate: fn(&mut Random) -> Input,
    /// Panics where the code under test is wrong.
    pub check: fn(&Input) -> Signature,
}
