//! The arguments of functions that create actions: columns by their names, `on_existing`, and few others.
//!
//! The signature of the SQL function is the only list of arguments. It is read from the catalog, once per session.

use super::values;
use crate::pg::error::SqlError;
use crate::pg::jsonb::Jsonb;
use pgrx::callconv::FcInfo;
use pgrx::pg_sys::{self, FunctionCallInfo};
use recur_core::action::{Column, Interval, OnExisting, Value};
use std::cell::RefCell;
use std::ffi::CStr;
use std::rc::Rc;

const ON_EXISTING: &str = "on_existing";

#[derive(Clone)]
struct Argument {
    name: String,
    /// None for an argument that is no column.
    column: Option<Column>,
    type_oid: pg_sys::Oid,
}

/// What a function takes.
#[derive(Clone)]
struct Signature {
    function: pg_sys::Oid,
    arguments: Rc<[Argument]>,
}

thread_local! {
    /// Of the functions that create actions: each keeps its oid and its arguments for life.
    static KNOWN: RefCell<Vec<Signature>> = const { RefCell::new(Vec::new()) };
}

/// The arguments of a call. A NULL counts as left out.
pub struct Arguments {
    pub columns: Vec<(Column, Value<Jsonb>)>,
    pub on_existing: OnExisting,
    /// Those that are neither.
    others: Vec<(String, Value<Jsonb>)>,
}

impl Arguments {
    /// A text that is no column.
    pub fn text(&self, name: &str) -> Option<&str> {
        let (_, value) = self.others.iter().find(|(other, _)| other == name)?;
        value.as_text()
    }

    /// An interval that is no column.
    pub fn interval(&self, name: &str) -> Option<Interval> {
        match self.others.iter().find(|(other, _)| other == name)? {
            (_, Value::Interval(parts)) => Some(*parts),
            _ => None,
        }
    }
}

/// The arguments that a function has besides columns by their names and `on_existing`.
pub struct Special {
    /// Columns under other names.
    pub renamed: &'static [(&'static str, Column)],
    /// Those that are no columns.
    pub others: &'static [&'static str],
}

impl Special {
    pub const NONE: Special = Special {
        renamed: &[],
        others: &[],
    };

    fn column(&self, name: &str) -> Option<Column> {
        let renamed = self.renamed.iter().find(|(other, _)| *other == name);
        renamed.map_or_else(|| Column::named(name), |(_, column)| Some(*column))
    }
}

/// The arguments of the call.
pub fn read(call: FunctionCallInfo, special: &Special) -> Result<Arguments, SqlError> {
    // SAFETY: pgrx passes the current call, which has its function.
    let (function, given) = unsafe { ((*(*call).flinfo).fn_oid, FcInfo::from_ptr(call)) };
    let Signature { arguments, .. } = signature(function, special);
    if arguments.len() != given.raw_args().len() {
        pgrx::error!(
            "pg_recur: a function was called with another number of arguments than it has"
        );
    }
    let mut read = Arguments {
        columns: Vec::new(),
        on_existing: OnExisting::default(),
        others: Vec::new(),
    };
    for (argument, given) in arguments
        .iter()
        .zip(given.raw_args())
        .filter(|(_, given)| !given.isnull)
    {
        let name = argument.name.as_str();
        // SAFETY: the server passes arguments of the types that the catalog has.
        let value = unsafe { values::value(name, argument.type_oid, Some(given.value)) }?;
        match argument.column {
            Some(column) => read.columns.push((column, value)),
            None if name == ON_EXISTING => read.on_existing = OnExisting::parse(value.as_text())?,
            None => read.others.push((name.to_owned(), value)),
        }
    }
    Ok(read)
}

fn signature(function: pg_sys::Oid, special: &Special) -> Signature {
    let known = KNOWN.with_borrow(|known| {
        let mut known = known.iter();
        known
            .find(|signature| signature.function == function)
            .cloned()
    });
    known.unwrap_or_else(|| {
        let signature = Signature {
            function,
            arguments: look_up(function, special).into(),
        };
        KNOWN.with_borrow_mut(|known| known.push(signature.clone()));
        signature
    })
}

fn look_up(function: pg_sys::Oid, special: &Special) -> Vec<Argument> {
    let cache = pg_sys::SysCacheIdentifier::PROCOID as i32;
    let (mut types, mut names, mut modes) = (
        std::ptr::null_mut(),
        std::ptr::null_mut(),
        std::ptr::null_mut(),
    );
    // SAFETY: the function exists, since it is being called; the server returns as many types and names as it says.
    unsafe {
        let tuple = pg_sys::SearchSysCache1(cache, pg_sys::Datum::from(function));
        if tuple.is_null() {
            pgrx::error!(
                "pg_recur: function {} is not in the catalog",
                function.to_u32()
            );
        }
        let count = pg_sys::get_func_arg_info(tuple, &mut types, &mut names, &mut modes);
        pg_sys::ReleaseSysCache(tuple);
        if names.is_null() {
            pgrx::error!("pg_recur: the arguments of a function have no names");
        }
        let argument = |index| {
            let name = CStr::from_ptr(*names.add(index))
                .to_str()
                .unwrap_or_default();
            let column = special.column(name);
            if column.is_none() && name != ON_EXISTING && !special.others.contains(&name) {
                pgrx::error!("pg_recur: argument {name} of a function is no column of an action");
            }
            Argument {
                name: name.to_owned(),
                column,
                type_oid: *types.add(index),
            }
        };
        (0..count as usize).map(argument).collect()
    }
}
