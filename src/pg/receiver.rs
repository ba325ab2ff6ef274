//! The first rows of a result, as JSON, and how many there are. Whatever the rows are, what is kept is bounded.

use super::catch::catch;
use super::{bare, compat};
use pgrx::memcxt::PgMemoryContexts;
use pgrx::prelude::*;
use pgrx::{direct_function_call_as_datum, pg_sys};
use std::collections::HashSet;
use std::ffi::{CStr, CString, c_int};

/// A larger value is left out.
const LARGEST_VALUE: usize = 16 * 1024;
/// What is kept of all rows together.
const MOST_BYTES: usize = 64 * 1024;

/// A receiver of rows, and what it has kept of the last result.
#[repr(C)]
pub struct RowReceiver {
    /// The server knows only this part.
    base: pg_sys::DestReceiver,
    most_rows: usize,
    kept: Kept,
    /// The row type of the result.
    descriptor: pg_sys::TupleDesc,
    memory: Option<PgMemoryContexts>,
}

/// What is kept of a result.
#[derive(Clone, Debug, Default)]
pub struct Kept {
    /// The first rows, as JSON objects.
    pub rows: Vec<String>,
    /// How many rows there were.
    pub count: u64,
    /// True if a row, or a value of one, was too large to keep.
    pub is_cut: bool,
    bytes: usize,
}

impl RowReceiver {
    /// A receiver that keeps the first rows. It has one place as long as the server may use it.
    pub fn new(most_rows: usize) -> Box<RowReceiver> {
        Box::new(RowReceiver {
            base: pg_sys::DestReceiver {
                receiveSlot: Some(receive),
                rStartup: Some(start),
                rShutdown: Some(ignore),
                rDestroy: Some(ignore),
                mydest: pg_sys::CommandDest::DestNone,
            },
            most_rows,
            kept: Kept::default(),
            descriptor: std::ptr::null_mut(),
            memory: None,
        })
    }

    pub fn as_receiver(&mut self) -> *mut pg_sys::DestReceiver {
        (&raw mut *self).cast()
    }

    /// What the last result was; None if no statement returned rows.
    pub fn take(&mut self) -> Option<Kept> {
        let had_result = self.memory.take().is_some();
        had_result.then(|| std::mem::take(&mut self.kept))
    }

    /// A new result begins. Columns of one name would be one member of a JSON object.
    ///
    /// # Safety
    /// The descriptor must be valid.
    unsafe fn start(&mut self, descriptor: pg_sys::TupleDesc) {
        self.kept = Kept::default();
        // It outlives the memory of the statement, in which the server calls.
        // SAFETY: nothing but the new memory context is made there.
        let mut memory = unsafe {
            PgMemoryContexts::TopMemoryContext.switch_to(|_| PgMemoryContexts::new("pg_recur rows"))
        };
        // SAFETY: the copy is changed before it is used, and lives as long as the memory context beside it.
        unsafe {
            self.descriptor = memory.switch_to(|_| {
                let copy = pg_sys::CreateTupleDescCopy(descriptor);
                let mut names = HashSet::new();
                for column in 0..(*copy).natts as usize {
                    name_once(copy, column, &mut names);
                }
                pg_sys::BlessTupleDesc(copy)
            });
        }
        self.memory = Some(memory);
    }

    /// # Safety
    /// The slot must hold a row of the result.
    unsafe fn keep(&mut self, slot: *mut pg_sys::TupleTableSlot) {
        self.kept.count += 1;
        if self.kept.rows.len() >= self.most_rows || self.kept.bytes >= MOST_BYTES {
            return;
        }
        let mut memory = PgMemoryContexts::new("pg_recur row");
        let (descriptor, mut is_cut) = (self.descriptor, false);
        // SAFETY: the slot has as many values as the descriptor has columns. What is made of a row is freed with the
        // memory context.
        let row = unsafe { memory.switch_to(|_| json(slot, descriptor, &mut is_cut)) };
        self.kept.is_cut |= is_cut;
        match row {
            Some(row) if self.kept.bytes + row.len() <= MOST_BYTES => {
                self.kept.bytes += row.len();
                self.kept.rows.push(row);
            }
            _ => {
                self.kept.is_cut = true;
                self.kept.bytes = MOST_BYTES;
            }
        }
    }
}

/// # Safety
/// The descriptor must be valid, and not used yet.
unsafe fn name_once(descriptor: pg_sys::TupleDesc, column: usize, names: &mut HashSet<String>) {
    // SAFETY: the caller promises a valid descriptor; a name has room for NAMEDATALEN bytes.
    unsafe {
        let attribute = compat::attribute_mut(descriptor, column);
        let name = CStr::from_ptr(attribute.attname.data.as_ptr())
            .to_string_lossy()
            .into_owned();
        let numbered = (2..).map(|number| format!("{name}_{number}"));
        let free = std::iter::once(name.clone())
            .chain(numbered)
            .find(|name| !names.contains(name));
        let free = free.unwrap_or_default();
        if free != name {
            let room = attribute.attname.data.len() - 1;
            let bytes = free.bytes().chain(std::iter::repeat(0)).take(room + 1);
            for (place, byte) in attribute.attname.data.iter_mut().zip(bytes) {
                *place = byte as std::ffi::c_char;
            }
            attribute.attname.data[room] = 0;
        }
        names.insert(free);
    }
}

/// A row as a JSON object.
///
/// # Safety
/// The slot must hold a row of the descriptor.
unsafe fn json(
    slot: *mut pg_sys::TupleTableSlot,
    descriptor: pg_sys::TupleDesc,
    is_cut: &mut bool,
) -> Option<String> {
    // SAFETY: the slot has as many values as the descriptor has columns; a value of variable length has its length in
    // its header. row_to_json takes a row, and returns a text.
    unsafe {
        pg_sys::slot_getallattrs(slot);
        let columns = (*descriptor).natts as usize;
        let mut values = std::slice::from_raw_parts((*slot).tts_values, columns).to_vec();
        let mut nulls = std::slice::from_raw_parts((*slot).tts_isnull, columns).to_vec();
        for column in 0..columns {
            let is_variable = compat::attribute(descriptor, column).attlen == -1;
            if is_variable
                && !nulls[column]
                && pg_sys::toast_raw_datum_size(values[column]) > LARGEST_VALUE
            {
                nulls[column] = true;
                *is_cut = true;
            }
        }
        let tuple = pg_sys::heap_form_tuple(descriptor, values.as_mut_ptr(), nulls.as_mut_ptr());
        let row = pg_sys::heap_copy_tuple_as_datum(tuple, descriptor);
        let text = direct_function_call_as_datum(pg_sys::row_to_json, &[Some(row)])?;
        let text = String::from_datum(text, false)?;
        // A value of type json may be one that jsonb does not hold.
        let zero_ended = CString::new(text.as_str()).ok()?;
        let datum = pg_sys::Datum::from(zero_ended.as_ptr());
        let is_kept =
            catch(|| bare::DirectFunctionCall1Coll(bare::jsonb_in, pg_sys::InvalidOid, datum));
        is_kept.ok().map(|_| text)
    }
}

/// # Safety
/// Only the server may call it, with a receiver that [`RowReceiver::new`] made.
#[pg_guard]
unsafe extern "C-unwind" fn start(
    receiver: *mut pg_sys::DestReceiver,
    _operation: c_int,
    descriptor: pg_sys::TupleDesc,
) {
    // SAFETY: the receiver is the first part of the value; the server passes the descriptor of the result.
    unsafe { (*receiver.cast::<RowReceiver>()).start(descriptor) };
}

/// # Safety
/// Only the server may call it, with a receiver that [`RowReceiver::new`] made.
#[pg_guard]
unsafe extern "C-unwind" fn receive(
    slot: *mut pg_sys::TupleTableSlot,
    receiver: *mut pg_sys::DestReceiver,
) -> bool {
    // SAFETY: the receiver is the first part of the value; the server passes a row of the result.
    unsafe { (*receiver.cast::<RowReceiver>()).keep(slot) };
    true
}

/// # Safety
/// Only the server may call it.
unsafe extern "C-unwind" fn ignore(_receiver: *mut pg_sys::DestReceiver) {}
