//! Utility commands that concern the workers.
//!
//! DROP DATABASE and similar commands need a database without other connections. A waiting dispatcher would block them,
//! so the dispatcher is asked to leave first and returns afterwards. CREATE DATABASE wakes the launcher, and DROP
//! EXTENSION the workers of its database.

use super::{table_locks, wakeup};
use crate::pg::prepared::Name;
use crate::pg::{catalog, compat};
use pgrx::pg_sys;
use pgrx::prelude::*;
use std::cell::Cell;
use std::ffi::{CStr, c_char};

static mut NEXT_HOOK: pg_sys::ProcessUtility_hook_type = None;

thread_local! {
    /// How many utility commands this process has run.
    static COMMANDS: Cell<u64> = const { Cell::new(0) };
}

/// How many utility commands this process has run: what may leave something in the session, such as SET, PREPARE or
/// SET CONSTRAINTS, but no query.
pub fn utility_commands() -> u64 {
    COMMANDS.get()
}

/// Only while the library is being preloaded.
pub fn install() {
    // SAFETY: variables of the postmaster, which has one thread; each process inherits them.
    unsafe {
        NEXT_HOOK = pg_sys::ProcessUtility_hook;
        pg_sys::ProcessUtility_hook = Some(process_utility);
    }
}

unsafe extern "C-unwind" {
    /// The server's own function: pgrx's wrapper would catch an error and raise another one in its place.
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

/// Every utility command of every session passes here, and few concern the extension. Errors of commands must reach the
/// client unchanged, with position, context and names of constraints, which pgrx does not carry over. So errors are not
/// caught: they jump over this function, which holds no value with a destructor. `before` and `after`, the extension's
/// own part, are guarded.
///
/// # Safety
/// Only the server may call it, with the arguments of a utility command.
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
    // SAFETY: the arguments are passed on as the server passed them. The hook is written before any session starts.
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

/// # Safety
/// `statement` must be a utility command.
#[pg_guard]
unsafe extern "C-unwind" fn before(statement: *mut pg_sys::PlannedStmt) -> Effect {
    COMMANDS.set(COMMANDS.get() + 1);
    // SAFETY: the caller promises a utility command, which has a statement.
    let effect = unsafe {
        let node = (*statement).utilityStmt;
        if (*node).type_ == pg_sys::NodeTag::T_LockStmt {
            table_locks::check(node.cast());
        }
        Effect::of(node)
    };
    match effect {
        Effect::NeedsAlone(database) => wakeup::vacate_until_end(database),
        Effect::Prepares(name) => wakeup::name_if_prepared(name),
        // The mark is gone once the prepared transaction has been committed: look before.
        Effect::CommitsPrepared(name) if !name.is_marked() => return Effect::None,
        _ => {}
    }
    effect
}

#[pg_guard]
extern "C-unwind" fn after(effect: Effect) {
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
    /// An object is dropped: perhaps the extension.
    Drops,
    CreatesDatabase,
    /// This transaction takes effect when it is committed under its name.
    Prepares(Name),
    /// Another transaction, prepared earlier, takes effect.
    CommitsPrepared(Name),
    /// The command needs this database without other connections.
    NeedsAlone(pg_sys::Oid),
}

impl Effect {
    /// # Safety
    /// `node` must be the statement of a utility command.
    unsafe fn of(node: *mut pg_sys::Node) -> Effect {
        use pg_sys::NodeTag::*;
        // SAFETY: the tag of a node says which struct it is; the parser fills in the names that are read here.
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

    /// Only the owner of a database may send its workers away. For an unknown name and for a missing right the command
    /// itself raises its error.
    ///
    /// # Safety
    /// `name` must end with a zero byte.
    unsafe fn on_database(name: *const c_char) -> Effect {
        // SAFETY: the caller promises a name.
        let name = unsafe { CStr::from_ptr(name) };
        match catalog::database(name) {
            Some(database) if compat::owns_database(database) => Effect::NeedsAlone(database),
            _ => Effect::None,
        }
    }
}

/// The text of an option.
///
/// # Safety
/// `options` must be NULL or a list of DefElems.
unsafe fn option_text(options: *mut pg_sys::List, name: &CStr) -> Option<*const c_char> {
    // SAFETY: a list has as many elements as its length says, and the caller promises that they are DefElems, which
    // have a name and perhaps an argument.
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
