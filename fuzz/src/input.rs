//! What a check works on: a text, and bytes to choose by.

/// One input of a target.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Input {
    /// The text under test; empty for targets that build what they test from choices alone.
    pub text: String,
    /// What the check chooses by: zones, instants, operations.
    pub choices: Vec<u8>,
}

const MARK: &str = "#choices ";

impl Input {
    /// A text, with choices.
    pub fn new(text: impl Into<String>, choices: Vec<u8>) -> Input {
        let text = text.into();
        Input { text, choices }
    }

    /// Reads a file of the corpus: the text, after a first line with the choices where there are any.
    pub fn from_file(contents: &str) -> Input {
        let Some(rest) = contents.strip_prefix(MARK) else {
            return Input::new(contents, Vec::new());
        };
        let (digits, text) = rest.split_once('\n').unwrap_or((rest, ""));
        let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
        let choices = digits.as_bytes().chunks(2).filter_map(byte).collect();
        Input::new(text, choices)
    }

    /// The contents of the input's file in the corpus.
    pub fn to_file(&self) -> String {
        if self.choices.is_empty() && !self.text.starts_with(MARK) {
            return self.text.clone();
        }
        let digits: String = self
            .choices
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        format!("{MARK}{digits}\n{}", self.text)
    }

    /// Reads the choices one after the other.
    pub fn choices(&self) -> Choices<'_> {
        Choices {
            rest: &self.choices,
        }
    }
}

/// Choices that are read one after the other. Behind the last byte all are zero, the simplest choice.
#[derive(Clone, Debug)]
pub struct Choices<'a> {
    rest: &'a [u8],
}

impl Choices<'_> {
    /// Is there nothing left to choose by?
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next byte.
    pub fn byte(&mut self) -> u8 {
        match self.rest.split_first() {
            Some((first, rest)) => {
                self.rest = rest;
                *first
            }
            None => 0,
        }
    }

    /// A number of up to eight bytes.
    pub fn number(&mut self, bytes: usize) -> u64 {
        (0..bytes).fold(0, |number, _| number << 8 | u64::from(self.byte()))
    }

    /// A number below a limit.
    pub fn below(&mut self, limit: usize) -> usize {
        let bytes = match limit {
            0..=256 => 1,
            257..=65_536 => 2,
            _ => 6,
        };
        (self.number(bytes) % limit.max(1) as u64) as usize
    }

    /// A number from the first to the last.
    pub fn within(&mut self, first: i64, last: i64) -> i64 {
        first + self.below((last - first + 1) as usize) as i64
    }

    /// True once in this number of times, on average.
    pub fn one_in(&mut self, times: usize) -> bool {
        // Zero, the simplest choice, is false.
        self.below(times) == times - 1
    }

    /// One of the values.
    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_hold_all_of_an_input() {
        for (text, choices) in [
            ("0 9 * * *", vec![]),
            ("0 9 * * *\n", vec![0, 255, 16]),
            ("#choices 12", vec![]),
            ("", vec![1]),
            ("", vec![]),
        ] {
            let input = Input::new(text, choices);
            assert_eq!(Input::from_file(&input.to_file()), input);
        }
    }
}
