//! Runs a text with SQL statements as a session would: a single statement at the top level, so that it may begin and
//! end transactions; several in one transaction.

use super::catch::{ServerError, catch};
use super::{bare, parse};
use pgrx::memcxt::PgMemoryContexts;
use pgrx::pg_sys;
use pgrx::prelude::*;
use std::cell::Cell;
use std::ffi::{CStr, c_long, c_void};
use std::ptr;

/// What a statement did.
pub struct Completion {
    /// Such as `UPDATE`.
    pub tag: String,
    /// How many rows it concerned.
    pub rows: u64,
}

thread_local! {
    /// How many top-level transactions of this process have ended, and how many of them by a commit.
    static ENDED: Cell<(u64, u64)> = const { Cell::new((0, 0)) };
}

/// Counts the transactions of this process from now on. Once in a process.
pub fn count_transactions() {
    // SAFETY: the callback lives as long as the process.
    unsafe { pg_sys::RegisterXactCallback(Some(note_end), ptr::null_mut()) };
}

/// How many transactions have ended.
pub fn ended_transactions() -> u64 {
    ENDED.get().0
}

/// How many transactions were committed.
pub fn committed_transactions() -> u64 {
    ENDED.get().1
}

#[pg_guard]
extern "C-unwind" fn note_end(event: pg_sys::XactEvent::Type, _argument: *mut c_void) {
    use pg_sys::XactEvent::{XACT_EVENT_ABORT, XACT_EVENT_COMMIT, XACT_EVENT_PREPARE};
    let (ended, committed) = ENDED.get();
    match event {
        XACT_EVENT_COMMIT => ENDED.set((ended + 1, committed + 1)),
        XACT_EVENT_ABORT | XACT_EVENT_PREPARE => ENDED.set((ended + 1, committed)),
        _ => {}
    }
}

/// Must the transaction be committed before anything else happens in it?
pub fn needs_immediate_commit() -> bool {
    // SAFETY: a variable of this process.
    unsafe { pg_sys::MyXactFlags & pg_sys::XACT_FLAGS_NEEDIMMEDIATECOMMIT as i32 != 0 }
}

/// Runs the statements one after the other. Afterwards a transaction is open: the one that the text began in, or a
/// later one. After an error none is.
///
/// # Safety
/// The process must be in no transaction, and the receiver must live as long as the call.
pub unsafe fn run(
    text: &CStr,
    receiver: *mut pg_sys::DestReceiver,
    completed: impl FnMut(Completion),
) -> Result<(), Box<ServerError>> {
    // The trees must outlive transactions that a statement ends, and a rollback.
    let mut memory = PgMemoryContexts::new("pg_recur command");
    // SAFETY: the caller's promise is passed on.
    let outcome = unsafe { run_in(&mut memory, text, receiver, completed) };
    if outcome.is_err() {
        roll_back();
    }
    outcome
}

/// # Safety
/// As [`run`].
unsafe fn run_in(
    memory: &mut PgMemoryContexts,
    text: &CStr,
    receiver: *mut pg_sys::DestReceiver,
    mut completed: impl FnMut(Completion),
) -> Result<(), Box<ServerError>> {
    // SAFETY: the text ends with a zero byte; what the parser returns is a list of raw statements, which live as long
    // as the memory context. Nothing that is passed to `catch` has a destructor.
    unsafe {
        catch(|| bare::StartTransactionCommand())?;
        let trees = memory.value();
        let statements = memory.switch_to(|_| catch(|| bare::pg_parse_query(text.as_ptr())))?;
        let count = match statements.is_null() {
            true => 0,
            false => (*statements).length as usize,
        };
        // It has been checked when it was stored, unless it was restored.
        for statement in parse::read(statements, text) {
            if statement.tag == pg_sys::NodeTag::T_TransactionStmt || statement.copies_to_client {
                let message =
                    "a command must not control transactions, nor copy from or to a client";
                return Err(ServerError::new("0A000", message));
            }
        }
        for index in 0..count {
            let statement = (*(*statements).elements.add(index))
                .ptr_value
                .cast::<pg_sys::RawStmt>();
            let place = Place {
                is_last: index + 1 == count,
                are_several: count > 1,
            };
            let done = catch(|| step(statement, place, text, trees, receiver))?;
            let tag = CStr::from_ptr(pg_sys::GetCommandTagName(done.commandTag));
            completed(Completion {
                tag: tag.to_string_lossy().into_owned(),
                rows: done.nprocessed,
            });
        }
    }
    Ok(())
}

#[derive(Clone, Copy)]
struct Place {
    is_last: bool,
    are_several: bool,
}

/// One statement, as the server's main loop runs it.
///
/// # Safety
/// Called by [`catch`]: holds no value with a destructor.
unsafe fn step(
    statement: *mut pg_sys::RawStmt,
    place: Place,
    text: &CStr,
    trees: pg_sys::MemoryContext,
    receiver: *mut pg_sys::DestReceiver,
) -> pg_sys::QueryCompletion {
    // SAFETY: a transaction is open. The statement was parsed from the text, and the trees live in a memory context
    // that outlives it; the portal is dropped when it has run.
    unsafe {
        if place.are_several {
            bare::BeginImplicitTransactionBlock();
        }
        if pg_sys::InterruptPending != 0 {
            bare::ProcessInterrupts();
        }
        let tag = command_tag((*statement).stmt);
        let before = pg_sys::CurrentMemoryContext;
        pg_sys::CurrentMemoryContext = trees;
        let needs_snapshot = bare::analyze_requires_snapshot(statement);
        if needs_snapshot {
            bare::PushActiveSnapshot(bare::GetTransactionSnapshot());
        }
        let queries = bare::pg_analyze_and_rewrite_fixedparams(
            statement,
            text.as_ptr(),
            ptr::null(),
            0,
            ptr::null_mut(),
        );
        let plans = bare::pg_plan_queries(
            queries,
            text.as_ptr(),
            pg_sys::CURSOR_OPT_PARALLEL_OK as i32,
            ptr::null_mut(),
        );
        if needs_snapshot {
            bare::PopActiveSnapshot();
        }
        pg_sys::CurrentMemoryContext = before;
        let portal = bare::CreatePortal(c"".as_ptr(), true, true);
        (*portal).visible = false;
        bare::PortalDefineQuery(
            portal,
            ptr::null(),
            text.as_ptr(),
            tag,
            plans,
            ptr::null_mut(),
        );
        bare::PortalStart(portal, ptr::null_mut(), 0, ptr::null_mut());
        let mut done = pg_sys::QueryCompletion {
            commandTag: tag,
            nprocessed: 0,
        };
        run_portal(portal, receiver, &raw mut done);
        bare::PortalDrop(portal, false);
        if !place.is_last {
            bare::CommandCounterIncrement();
        } else if place.are_several {
            bare::EndImplicitTransactionBlock();
        }
        done
    }
}

/// # Safety
/// As [`step`].
unsafe fn run_portal(
    portal: pg_sys::Portal,
    receiver: *mut pg_sys::DestReceiver,
    done: *mut pg_sys::QueryCompletion,
) {
    const ALL_ROWS: c_long = c_long::MAX;
    // SAFETY: the portal has been started and not run. It is always the top level: what can't run inside a transaction
    // sees from the implicit block that it is in one.
    unsafe {
        #[cfg(not(feature = "pg18"))]
        bare::PortalRun(portal, ALL_ROWS, true, true, receiver, receiver, done);
        #[cfg(feature = "pg18")]
        bare::PortalRun(portal, ALL_ROWS, true, receiver, receiver, done);
    }
}

/// # Safety
/// As [`step`].
unsafe fn command_tag(node: *mut pg_sys::Node) -> pg_sys::CommandTag::Type {
    // SAFETY: the parser has made the node.
    unsafe { bare::CreateCommandTag(node) }
}

/// Begins a transaction with a snapshot, for what is no statement.
pub fn begin() -> Result<(), Box<ServerError>> {
    // SAFETY: no transaction is open; the snapshot is popped by [`commit`].
    unsafe {
        catch(|| {
            bare::StartTransactionCommand();
            bare::PushActiveSnapshot(bare::GetTransactionSnapshot());
        })
    }
}

/// Commits the open transaction.
pub fn commit() -> Result<(), Box<ServerError>> {
    // SAFETY: a transaction is open, and not inside a block.
    unsafe {
        catch(|| {
            while bare::ActiveSnapshotSet() {
                bare::PopActiveSnapshot();
            }
            bare::CommitTransactionCommand();
        })
    }
}

/// Rolls back whatever is open.
pub fn roll_back() {
    // SAFETY: may be called in any state.
    unsafe { pg_sys::AbortOutOfAnyTransaction() };
}
