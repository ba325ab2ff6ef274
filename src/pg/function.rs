//! Functions of the catalog, and calls of them.

use super::catch::{ServerError, catch};
use super::jsonb::Jsonb;
use super::{bare, catalog, compat};
use pgrx::pg_sys;
use pgrx::prelude::*;
use recur_core::action::Json;
use std::ffi::CStr;
use std::mem::offset_of;

/// What a function takes and returns.
pub struct Function {
    pub oid: pg_sys::Oid,
    /// Its name with its schema, and the types of its arguments.
    pub signature: String,
    /// The role that it belongs to.
    pub owner: String,
    pub arguments: Vec<pg_sys::Oid>,
    pub returns: Returned,
    pub returns_set: bool,
    pub is_strict: bool,
    /// Neither a procedure nor an aggregate nor a window function.
    pub is_plain: bool,
}

/// What a call returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Returned {
    Json,
    Nothing,
    /// A row with columns `result` and `context`, or one of them.
    Row,
    Other,
}

impl Returned {
    pub fn is_handled(self) -> bool {
        self != Returned::Other
    }
}

/// What a handler returned.
#[derive(Clone, Debug)]
pub struct Answer<Value> {
    pub result: Option<Value>,
    pub context: Option<Value>,
}

impl<Value> Default for Answer<Value> {
    fn default() -> Self {
        Answer {
            result: None,
            context: None,
        }
    }
}

impl Function {
    /// Takes one to three jsonb, and returns jsonb, a row of `result` and `context`, or nothing.
    pub fn is_handler(&self) -> bool {
        self.is_plain
            && !self.is_strict
            && !self.returns_set
            && self.returns.is_handled()
            && (1..=3).contains(&self.arguments.len())
            && self.arguments.iter().all(|oid| *oid == pg_sys::JSONBOID)
    }
}

/// The function with this oid; None if there is none.
pub fn look_up(oid: pg_sys::Oid) -> Option<Function> {
    let cache = pg_sys::SysCacheIdentifier::PROCOID as i32;
    // SAFETY: the row of a function begins with its form, and is released after it was read; the vector of types has as
    // many elements as the form says.
    unsafe {
        let tuple = pg_sys::SearchSysCache1(cache, pg_sys::Datum::from(oid));
        if tuple.is_null() {
            return None;
        }
        let form = &*pg_sys::GETSTRUCT(tuple).cast::<pg_sys::FormData_pg_proc>();
        let arguments = form
            .proargtypes
            .values
            .as_slice(form.pronargs as usize)
            .to_vec();
        let (returns_set, is_strict) = (form.proretset, form.proisstrict);
        let is_plain = form.prokind == pg_sys::PROKIND_FUNCTION as i8;
        let (returned, owner) = (form.prorettype, form.proowner);
        pg_sys::ReleaseSysCache(tuple);
        let signature = pg_sys::format_procedure_qualified(oid);
        Some(Function {
            oid,
            signature: CStr::from_ptr(signature).to_string_lossy().into_owned(),
            owner: catalog::role_name(owner).unwrap_or_default(),
            arguments,
            returns: returned_by(oid, returned),
            returns_set,
            is_strict,
            is_plain,
        })
    }
}

fn returned_by(function: pg_sys::Oid, returned: pg_sys::Oid) -> Returned {
    match returned {
        pg_sys::JSONBOID => Returned::Json,
        pg_sys::VOIDOID => Returned::Nothing,
        _ if row_columns(function).is_some() => Returned::Row,
        _ => Returned::Other,
    }
}

/// The places of `result` and `context` in the row that a function returns; None if it has other columns.
fn row_columns(function: pg_sys::Oid) -> Option<[Option<usize>; 2]> {
    let mut descriptor = std::ptr::null_mut();
    // SAFETY: the function exists; the server fills in a descriptor where the function returns rows of a known type.
    unsafe {
        let class = pg_sys::get_func_result_type(function, std::ptr::null_mut(), &mut descriptor);
        if class != pg_sys::TypeFuncClass::TYPEFUNC_COMPOSITE || descriptor.is_null() {
            return None;
        }
        let mut found = [None, None];
        for column in 0..(*descriptor).natts as usize {
            let attribute = compat::attribute(descriptor, column);
            if attribute.attisdropped {
                continue;
            }
            let name = CStr::from_ptr(attribute.attname.data.as_ptr());
            let place = [c"result", c"context"]
                .iter()
                .position(|one| *one == name)?;
            if attribute.atttypid != pg_sys::JSONBOID {
                return None;
            }
            found[place] = Some(column);
        }
        found.iter().any(Option::is_some).then_some(found)
    }
}

/// The function that a signature names; None if there is none.
pub fn named(signature: &str) -> Option<pg_sys::Oid> {
    // SAFETY: the function takes a text, and returns an oid or NULL.
    unsafe { pgrx::direct_function_call(pg_sys::to_regprocedure, &[signature.into_datum()]) }
}

/// A function that is called several times.
pub struct Callable {
    function: Function,
    info: *mut pg_sys::FmgrInfo,
}

impl Callable {
    /// Lives as long as the memory context that is current now.
    pub fn new(function: Function) -> Result<Callable, Box<ServerError>> {
        // SAFETY: there is room for what the server fills in.
        unsafe {
            let info = pg_sys::palloc0(size_of::<pg_sys::FmgrInfo>()).cast::<pg_sys::FmgrInfo>();
            let home = pg_sys::CurrentMemoryContext;
            catch(|| bare::fmgr_info_cxt(function.oid, info, home))?;
            Ok(Callable { function, info })
        }
    }

    pub fn takes(&self) -> usize {
        self.function.arguments.len()
    }

    /// Calls a handler with its arguments. Errors are the function's own. The answer lives as long as the memory
    /// context that is current now.
    ///
    /// # Safety
    /// The function must take as many jsonb as there are arguments, and return what it says.
    pub unsafe fn call(&self, arguments: &[Jsonb]) -> Result<Answer<Jsonb>, Box<ServerError>> {
        // SAFETY: the caller promises a function of these arguments; the call's memory has room for them, and lives as
        // long as the memory context. The values that come back are read as what the function returns.
        unsafe {
            let size = offset_of!(pg_sys::FunctionCallInfoBaseData, args)
                + arguments.len() * size_of::<pg_sys::NullableDatum>();
            let call = pg_sys::palloc0(size).cast::<pg_sys::FunctionCallInfoBaseData>();
            (*call).flinfo = self.info;
            (*call).nargs = arguments.len() as i16;
            let slots = (*call).args.as_mut_slice(arguments.len());
            for (slot, argument) in slots.iter_mut().zip(arguments) {
                slot.value = argument.into_datum().unwrap_or(pg_sys::Datum::null());
            }
            let Some(address) = (*self.info).fn_addr else {
                return Ok(Answer::default());
            };
            let returned = catch(|| address(call))?;
            match self.function.returns {
                _ if (*call).isnull => Ok(Answer::default()),
                Returned::Json => Ok(Answer {
                    result: Jsonb::from_datum(returned, false),
                    context: None,
                }),
                Returned::Row => row(self.function.oid, returned),
                Returned::Nothing | Returned::Other => Ok(Answer::default()),
            }
        }
    }
}

/// Calls a handler once. The answer is text: it outlives the memory of the call.
///
/// # Safety
/// As [`Callable::call`].
pub unsafe fn call(
    function: Function,
    arguments: &[Jsonb],
) -> Result<Answer<String>, Box<ServerError>> {
    // SAFETY: the caller's promise is passed on.
    let answer = unsafe { Callable::new(function)?.call(arguments)? };
    Ok(Answer {
        result: answer.result.map(|json| json.text()),
        context: answer.context.map(|json| json.text()),
    })
}

/// # Safety
/// The datum must be a row that the function returned.
unsafe fn row(
    function: pg_sys::Oid,
    datum: pg_sys::Datum,
) -> Result<Answer<Jsonb>, Box<ServerError>> {
    let Some(places) = row_columns(function) else {
        return Ok(Answer::default());
    };
    // SAFETY: a row has its type in its header, and as many columns as that type.
    unsafe {
        let header =
            pg_sys::pg_detoast_datum(datum.cast_mut_ptr()).cast::<pg_sys::HeapTupleHeaderData>();
        let read = |place: Option<usize>| {
            let mut is_null = true;
            let number = i16::try_from(place? + 1).ok()?;
            let value = pg_sys::GetAttributeByNum(header, number, &raw mut is_null);
            Jsonb::from_datum(value, is_null)
        };
        Ok(Answer {
            result: read(places[0]),
            context: read(places[1]),
        })
    }
}
