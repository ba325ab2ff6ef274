//! The arguments of `recur.create`: columns by their names.
//!
//! The signature of the SQL function is the only list of arguments. It is read from the catalog, once per session.

use super::values;
use crate::pg::error::SqlError;
use crate::pg::jsonb::Jsonb;
use pgrx::callconv::FcInfo;
use pgrx::pg_sys::{self, FunctionCallInfo};
use recur_core::action::{Changes, Column, OnExisting};
use std::cell::RefCell;
use std::ffi::CStr;
use std::rc::Rc;

const ON_EXISTING: &str = "on_existing";

#[derive(Clone, Copy)]
struct Argument {
    /// None for `on_existing`, the only argument that is no column.
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
    /// A function keeps its oid and its arguments for life.
    static KNOWN: RefCell<Option<Signature>> = const { RefCell::new(None) };
}

/// The arguments of the call. A NULL counts as left out.
pub fn read(call: FunctionCallInfo) -> Result<(Changes<Jsonb>, OnExisting), SqlError> {
    // SAFETY: pgrx passes the current call, which has its function.
    let (function, given) = unsafe { ((*(*call).flinfo).fn_oid, FcInfo::from_ptr(call)) };
    let Signature { arguments, .. } = signature(function);
    if arguments.len() != given.raw_args().len() {
        pgrx::error!(
            "pg_recur: recur.create was called with another number of arguments than it has"
        );
    }
    let mut columns = Vec::new();
    let mut on_existing = OnExisting::default();
    for (argument, given) in arguments
        .iter()
        .zip(given.raw_args())
        .filter(|(_, given)| !given.isnull)
    {
        let name = argument.column.map_or(ON_EXISTING, Column::name);
        // SAFETY: the server passes arguments of the types that the catalog has.
        let value = unsafe { values::value(name, argument.type_oid, Some(given.value)) }?;
        match argument.column {
            Some(column) => columns.push((column, value)),
            None => on_existing = OnExisting::parse(value.as_text())?,
        }
    }
    Ok((Changes::from_arguments(columns)?, on_existing))
}

fn signature(function: pg_sys::Oid) -> Signature {
    let known = KNOWN.with_borrow(|known| known.clone().filter(|known| known.function == function));
    known.unwrap_or_else(|| {
        let signature = Signature {
            function,
            arguments: look_up(function).into(),
        };
        KNOWN.set(Some(signature.clone()));
        signature
    })
}

fn look_up(function: pg_sys::Oid) -> Vec<Argument> {
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
            pgrx::error!("pg_recur: the arguments of recur.create have no names");
        }
        let argument = |index| {
            let name = CStr::from_ptr(*names.add(index))
                .to_str()
                .unwrap_or_default();
            let column = Column::named(name);
            if column.is_none() && name != ON_EXISTING {
                pgrx::error!("pg_recur: argument {name} of recur.create is no column of an action");
            }
            Argument {
                column,
                type_oid: *types.add(index),
            }
        };
        (0..count as usize).map(argument).collect()
    }
}
