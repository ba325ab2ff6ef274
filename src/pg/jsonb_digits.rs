//! How long the numbers of a JSON value are as text. The server stores `1e131071` in twelve bytes and prints 131,072
//! digits: a megabyte of such numbers would be ten gigabytes of text.
//!
//! The format is that of `utils/jsonb.h` and of `numeric.c`; jsonb_object.rs describes the former. A number has a word
//! with its length, two bytes with its sign and its decimal places, and, in the long form, two bytes with its weight:
//! the digits before the point in groups of four, less one.

const COUNT_MASK: u32 = 0x0fff_ffff;
const IS_OBJECT: u32 = 0x2000_0000;

const NUMERIC: u32 = 0x1000_0000;
const CONTAINER: u32 = 0x5000_0000;
const TYPE_MASK: u32 = 0x7000_0000;
const LENGTH_MASK: u32 = 0x0fff_ffff;
const HAS_OFFSET: u32 = 0x8000_0000;

const WORD: usize = 4;
const IS_SHORT: u16 = 0x8000;
/// Of the short form: six bits for the decimal places, then the sign, then seven bits for the weight.
const SHORT_DECIMALS: u16 = 0x1f80;
const SHORT_DECIMALS_SHIFT: u32 = 7;
const SHORT_WEIGHT_IS_NEGATIVE: u16 = 0x0040;
const SHORT_WEIGHT: u16 = 0x003f;
const LONG_DECIMALS: u16 = 0x3fff;

/// An upper bound of the characters that all numbers of a value take as text. `root` is the value without the length in
/// front. None if the value can't be read.
pub fn characters(root: &[u8]) -> Option<usize> {
    let mut total: usize = 0;
    let mut containers = vec![root];
    while let Some(container) = containers.pop() {
        let header = word(container, 0)?;
        let values = (header & COUNT_MASK) as usize * if header & IS_OBJECT == 0 { 1 } else { 2 };
        let data = container.get(WORD + WORD * values..)?;
        let mut end = 0;
        for number in 0..values {
            let start = end;
            let entry = word(container, WORD + WORD * number)?;
            let length = (entry & LENGTH_MASK) as usize;
            end = if entry & HAS_OFFSET == 0 {
                start + length
            } else {
                length
            };
            let aligned = || data.get(start.next_multiple_of(WORD)..end);
            match entry & TYPE_MASK {
                NUMERIC => total = total.saturating_add(of_number(aligned()?)?),
                CONTAINER => containers.push(aligned()?),
                _ => {}
            }
        }
    }
    Some(total)
}

fn of_number(number: &[u8]) -> Option<usize> {
    let header = half_word(number, WORD)?;
    let (weight, decimals) = if header & IS_SHORT == 0 {
        let weight = half_word(number, WORD + 2)? as i16;
        (usize::try_from(weight).unwrap_or(0), header & LONG_DECIMALS)
    } else {
        let weight = match header & SHORT_WEIGHT_IS_NEGATIVE {
            0 => header & SHORT_WEIGHT,
            _ => 0,
        };
        let decimals = (header & SHORT_DECIMALS) >> SHORT_DECIMALS_SHIFT;
        (usize::from(weight), decimals)
    };
    let sign_and_point = 2;
    Some((weight + 1) * 4 + usize::from(decimals) + sign_and_point)
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at + WORD)?;
    Some(u32::from_ne_bytes(bytes.try_into().ok()?))
}

fn half_word(bytes: &[u8], at: usize) -> Option<u16> {
    let bytes = bytes.get(at..at + 2)?;
    Some(u16::from_ne_bytes(bytes.try_into().ok()?))
}
