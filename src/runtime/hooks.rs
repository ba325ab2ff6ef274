//! What the workers must know of utility commands.
//!
//! DROP DATABASE and its like need a database that nobody else is connected to. A waiting dispatcher would
//! block them, so it is asked to leave first and comes back afterwards. CREATE DATABASE and DROP EXTENSION
//! wake whom they concern.

use super::wakeup;
use crate::pg::compat;
use crate::pg::prepared::Name;
use pgrx::pg_sys;
use pgrx::prelude::*;
use std::ffi::{CStr, c_char};

static mut NEXT_HOOK: pg_sys::ProcessUtility_hook_type = None;

pub fn install() {
    unsafe {
        NEXT_HOOK = pg_sys::ProcessUtility_hook;
        pg_sys::ProcessUtility_hook = Some(process_utility);
    }
}

unsafe extern "C-unwind" {
    /// The server's own, not pgrx's wrapper around it, which would catch its errors and raise others in their stead.
    #[link_name = "standard_ProcessUtility"]
    fn plain_process_utility(
        statement: *mut pg_sys::PlannedStmt,
        query: *const c_char,
        read_only_tree: bool,
        context: pg_sys::ProcessUtilityContext::Type,
        params: pg_sys::ParamListInfo,
        environment: *mut pg_sys::QueryEnvironment,
        receiver: *mut pg_sys::DestReceiver,
        completion: *mut pg_sys::QueryCompletion,
    );
}

/// Every utility command of every session passes here, and most have nothing to do with us. Their errors must arrive as
/// they are, with their position, their context and the names of constraints, which pgrx does not carry over. So they
/// are not caught: they jump over this function, in which nothing waits to be dropped. What is ours is guarded, on its
/// own.
#[allow(clippy::too_many_arguments)]
unsafe extern "C-unwind" fn process_utility(
    statement: *mut pg_sys::PlannedStmt,
    query: *const c_char,
    read_only_tree: bool,
    context: pg_sys::ProcessUtilityContext::Type,
    params: pg_sys::ParamListInfo,
    environment: *mut pg_sys::QueryEnvironment,
    receiver: *mut pg_sys::DestReceiver,
    completion: *mut pg_sys::QueryCompletion,
) {
    unsafe {
        let effect = before(statement);
        let next = NEXT_HOOK.unwrap_or(plain_process_utility);
        next(
            statement,
            query,
            read_only_tree,
            context,
            params,
            environment,
            receiver,
            completion,
        );
        after(effect);
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn before(statement: *mut pg_sys::PlannedStmt) -> Effect {
    let effect = unsafe { Effect::of((*statement).utilityStmt) };
    match effect {
        Effect::NeedsAlone(database) => wakeup::vacate_until_end(database),
        Effect::Prepares(name) => wakeup::name_if_prepared(name),
        // Before, not after: then it has ended, and nothing of it is left to be seen.
        Effect::CommitsPrepared(name) if !name.is_marked() => return Effect::None,
        _ => {}
    }
    effect
}

#[pg_guard]
unsafe extern "C-unwind" fn after(effect: Effect) {
    match effect {
        Effect::None | Effect::NeedsAlone(_) | Effect::Prepares(_) => {}
        Effect::Drops => wakeup::workers_on_commit(),
        Effect::CommitsPrepared(_) => wakeup::anything_on_commit(),
        Effect::CreatesDatabase => wakeup::launcher_on_commit(),
    }
}

#[derive(Clone, Copy)]
#[repr(C)]
enum Effect {
    None,
    /// Something is dropped: perhaps the extension.
    Drops,
    CreatesDatabase,
    /// This transaction will take effect when it is committed by its name.
    Prepares(Name),
    /// Another transaction, prepared earlier, takes effect.
    CommitsPrepared(Name),
    /// The command wants this database for itself.
    NeedsAlone(pg_sys::Oid),
}

impl Effect {
    unsafe fn of(node: *mut pg_sys::Node) -> Effect {
        use pg_sys::NodeTag::*;
        unsafe {
            match (*node).type_ {
                T_DropStmt => Effect::Drops,
                T_TransactionStmt => {
                    use pg_sys::TransactionStmtKind::*;
                    let statement = node.cast::<pg_sys::TransactionStmt>();
                    let name = || Name::of(CStr::from_ptr((*statement).gid));
                    match (*statement).kind {
                        TRANS_STMT_PREPARE => Effect::Prepares(name()),
                        TRANS_STMT_COMMIT_PREPARED => Effect::CommitsPrepared(name()),
                        _ => Effect::None,
                    }
                }
                T_DropdbStmt => {
                    let statement = node.cast::<pg_sys::DropdbStmt>();
                    Effect::on_database((*statement).dbname)
                }
                T_CreatedbStmt => {
                    let statement = node.cast::<pg_sys::CreatedbStmt>();
                    // template1, the default, never has a worker.
                    match option_text((*statement).options, c"template") {
                        Some(template) => Effect::on_database(template),
                        None => Effect::CreatesDatabase,
                    }
                }
                T_RenameStmt => {
                    let statement = node.cast::<pg_sys::RenameStmt>();
                    if (*statement).renameType == pg_sys::ObjectType::OBJECT_DATABASE {
                        Effect::on_database((*statement).subname)
                    } else {
                        Effect::None
                    }
                }
                T_AlterDatabaseStmt => {
                    let statement = node.cast::<pg_sys::AlterDatabaseStmt>();
                    if option_text((*statement).options, c"tablespace").is_some() {
                        Effect::on_database((*statement).dbname)
                    } else {
                        Effect::None
                    }
                }
                _ => Effect::None,
            }
        }
    }

    /// An unknown name, or a right that is missing, is the command's own error to raise: nobody sends the
    /// workers away from a database that is not theirs.
    unsafe fn on_database(name: *const c_char) -> Effect {
        let database = unsafe { pg_sys::get_database_oid(name, true) };
        if database != pg_sys::InvalidOid && compat::owns_database(database) {
            Effect::NeedsAlone(database)
        } else {
            Effect::None
        }
    }
}

/// The string value of an option in a list of DefElems.
unsafe fn option_text(options: *mut pg_sys::List, name: &CStr) -> Option<*const c_char> {
    unsafe {
        if options.is_null() {
            return None;
        }
        (0..(*options).length as usize).find_map(|index| {
            let element = (*(*options).elements.add(index))
                .ptr_value
                .cast::<pg_sys::DefElem>();
            let found = CStr::from_ptr((*element).defname) == name && !(*element).arg.is_null();
            found.then(|| pg_sys::defGetString(element).cast_const())
        })
    }
}
