//! An object put together from values that are JSON already. The bytes of the values are copied: they may be large, and
//! the server's own functions would make a tree of them first, of up to thirty times their size.
//!
//! The format is that of `utils/jsonb.h`, which PostgreSQL keeps across versions because it is what is on disk. An
//! object is a header with the number of pairs, an entry for each key and then for each value, the keys, the values. An
//! entry has a type and a length; every 32nd has the end of its value instead, counted from the first key.

use super::error::SqlError;
use super::jsonb::Jsonb;
use pgrx::prelude::PgSqlErrorCode;

const IS_OBJECT: u32 = 0x2000_0000;
const IS_SCALAR: u32 = 0x1000_0000;

const STRING: u32 = 0x0000_0000;
const NUMERIC: u32 = 0x1000_0000;
const CONTAINER: u32 = 0x5000_0000;
const TYPE_MASK: u32 = 0x7000_0000;
const LENGTH_MASK: u32 = 0x0fff_ffff;
const HAS_OFFSET: u32 = 0x8000_0000;
const OFFSET_STRIDE: usize = 32;

/// The length of the whole value stands before the root.
const LENGTH_WORD: usize = 4;

/// A value of an object.
pub enum Part {
    Json(Jsonb),
    Object(Vec<(&'static str, Part)>),
}

/// An object with these members; each key stands there once.
pub fn object(members: Vec<(&'static str, Part)>) -> Jsonb {
    let mut bytes = Vec::with_capacity(LENGTH_WORD + capacity(&members));
    bytes.extend([0; LENGTH_WORD]);
    write_object(&mut bytes, members);
    Jsonb::from_container(&bytes[LENGTH_WORD..])
}

/// At least the bytes that the object takes, so that nothing is moved while it is written.
fn capacity(members: &[(&'static str, Part)]) -> usize {
    let of_member = |(key, value): &(&str, Part)| {
        let value = match value {
            Part::Json(json) => json.container().len(),
            Part::Object(members) => capacity(members),
        };
        key.len() + value + 16
    };
    8 + members.iter().map(of_member).sum::<usize>()
}

/// Returns the type and the length of what it has written, as an entry.
fn write_object(bytes: &mut Vec<u8>, mut members: Vec<(&'static str, Part)>) -> u32 {
    // Short keys first, as the server looks them up.
    members.sort_by_key(|(key, _)| (key.len(), *key));
    let start = bytes.len();
    align(bytes);
    write_word(bytes, members.len() as u32 | IS_OBJECT);
    let first_entry = bytes.len();
    bytes.resize(first_entry + 8 * members.len(), 0);
    let first_key = bytes.len();
    let mut number = 0;
    let mut enter = |bytes: &mut Vec<u8>, entry: u32| {
        let end = checked(bytes.len() - first_key);
        let entry = match number % OFFSET_STRIDE {
            0 => entry & TYPE_MASK | end | HAS_OFFSET,
            _ => entry,
        };
        let at = first_entry + 4 * number;
        bytes[at..at + 4].copy_from_slice(&entry.to_ne_bytes());
        number += 1;
    };
    for (key, _) in &members {
        bytes.extend_from_slice(key.as_bytes());
        enter(bytes, STRING | checked(key.len()));
    }
    for (_, value) in members {
        let entry = match value {
            Part::Object(members) => write_object(bytes, members),
            Part::Json(json) => write_json(bytes, json.container()),
        };
        enter(bytes, entry);
    }
    CONTAINER | checked(bytes.len() - start)
}

/// Copies the root of a value. A scalar has a root of its own, an array of one, which is left out.
fn write_json(bytes: &mut Vec<u8>, root: &[u8]) -> u32 {
    let start = bytes.len();
    if read_word(root, 0) & IS_SCALAR == 0 {
        align(bytes);
        bytes.extend_from_slice(root);
        return CONTAINER | checked(bytes.len() - start);
    }
    let entry = read_word(root, 4);
    let length = (entry & LENGTH_MASK) as usize;
    if entry & TYPE_MASK == NUMERIC {
        align(bytes);
    }
    bytes.extend_from_slice(&root[8..8 + length]);
    entry & TYPE_MASK | checked(bytes.len() - start)
}

fn align(bytes: &mut Vec<u8>) {
    bytes.resize(bytes.len().next_multiple_of(4), 0);
}

fn write_word(bytes: &mut Vec<u8>, word: u32) {
    bytes.extend_from_slice(&word.to_ne_bytes());
}

fn read_word(bytes: &[u8], at: usize) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(&bytes[at..at + 4]);
    u32::from_ne_bytes(word)
}

/// Raises where the length does not fit into an entry.
fn checked(length: usize) -> u32 {
    match u32::try_from(length) {
        Ok(length) if length <= LENGTH_MASK => length,
        _ => SqlError::new(
            PgSqlErrorCode::ERRCODE_PROGRAM_LIMIT_EXCEEDED,
            "the JSON value is larger than PostgreSQL can store",
        )
        .raise(),
    }
}
