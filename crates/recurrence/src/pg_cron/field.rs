//! A field of a schedule, as pg_cron's reader takes it apart.

use crate::cron::FieldKind;

/// The items of a field, and their values as bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct List {
    kind: FieldKind,
    items: Vec<Item>,
    /// Bit `v` is value `v`; Sunday is bit 0.
    bits: u64,
    begins_with_star: bool,
}

/// `first-last/step`, where nothing is left of a range that runs backward.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Item {
    first: u16,
    last: u16,
    step: u16,
    is_star: bool,
}

const MONTHS: [&str; 12] = [
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
];
const WEEKDAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

impl List {
    pub fn empty(kind: FieldKind) -> List {
        List {
            kind,
            items: Vec::new(),
            bits: 0,
            begins_with_star: false,
        }
    }

    /// None where pg_cron refuses the field. A list ends at the first item that something other than a comma
    /// follows; the rest of the field is ignored.
    pub fn parse(kind: FieldKind, text: &str) -> Option<List> {
        let mut rest = text;
        let mut items = Vec::new();
        loop {
            let (item, after) = Item::parse(kind, rest)?;
            items.push(item);
            match after.strip_prefix(',') {
                Some(after) => rest = after,
                None => break,
            }
        }
        let mut bits = items.iter().fold(0, |bits, item| bits | item.bits());
        if kind == FieldKind::DayOfWeek {
            bits = (bits | bits >> 7) & 0x7f;
        }
        Some(List {
            kind,
            items,
            bits,
            begins_with_star: text.starts_with('*'),
        })
    }

    pub fn kind(&self) -> FieldKind {
        self.kind
    }

    pub fn begins_with_star(&self) -> bool {
        self.begins_with_star
    }

    pub fn has(&self, value: u16) -> bool {
        self.bits & 1 << value != 0
    }

    pub fn has_all(&self) -> bool {
        self.bits.count_ones() == u32::from(self.kind.size())
    }

    /// The field in the notation of this crate; None if no value is left.
    pub fn to_text(&self) -> Option<String> {
        if self.has_all() && self.items.iter().any(|item| item.is_star && item.step == 1) {
            return Some("*".to_owned());
        }
        let items = self.items.iter().filter(|item| item.first <= item.last);
        let texts: Vec<String> = items.map(|item| item.to_text()).collect();
        (!texts.is_empty()).then(|| texts.join(","))
    }
}

impl Item {
    fn parse(kind: FieldKind, text: &str) -> Option<(Item, &str)> {
        let (min, max) = kind.range();
        let is_star = text.starts_with('*');
        let (first, last, rest) = match text.strip_prefix('*') {
            Some(rest) => (min, max, rest),
            None => {
                let (first, rest) = value(kind, text)?;
                match rest.strip_prefix('-') {
                    Some(rest) => {
                        let (last, rest) = value(kind, rest)?;
                        (first, last, rest)
                    }
                    // A step needs a range.
                    None if rest.starts_with('/') => return None,
                    None => (first, first, rest),
                }
            }
        };
        let (step, rest) = match rest.strip_prefix('/') {
            Some(rest) => number(rest).filter(|(step, _)| *step > 0)?,
            None => (1, rest),
        };
        let is_in_range = |value| (min..=max).contains(&value);
        (is_in_range(first) && is_in_range(last)).then_some((
            Item {
                first,
                last,
                step,
                is_star,
            },
            rest,
        ))
    }

    fn bits(self) -> u64 {
        (self.first..=self.last)
            .step_by(usize::from(self.step))
            .fold(0, |bits, value| bits | 1 << value)
    }

    fn to_text(self) -> String {
        let Item {
            first,
            last,
            step,
            is_star,
        } = self;
        // Only the first value is left; this crate has no steps that are longer than their field.
        if step > last - first {
            return first.to_string();
        }
        match (is_star, step) {
            (true, step) => format!("*/{step}"),
            (false, 1) => format!("{first}-{last}"),
            (false, step) => format!("{first}-{last}/{step}"),
        }
    }
}

/// A number, or the name of a month or a weekday.
fn value(kind: FieldKind, text: &str) -> Option<(u16, &str)> {
    let (word, rest) = word(text);
    let names: &[&str] = match kind {
        FieldKind::Month => &MONTHS,
        FieldKind::DayOfWeek => &WEEKDAYS,
        _ => &[],
    };
    let named = names
        .iter()
        .position(|name| word.eq_ignore_ascii_case(name));
    match named {
        Some(index) => Some((index as u16 + kind.range().0, rest)),
        None => number(text),
    }
}

/// Letters and digits make a word; a number has digits only.
fn number(text: &str) -> Option<(u16, &str)> {
    let (word, rest) = word(text);
    let is_number = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    // A larger number is out of every range, and longer than every step.
    is_number.then(|| (word.parse().unwrap_or(u16::MAX), rest))
}

fn word(text: &str) -> (&str, &str) {
    let length = text.bytes().take_while(u8::is_ascii_alphanumeric).count();
    text.split_at(length)
}
