//! Functions of the server as they are, for [`catch`](super::catch): pgrx's bindings would turn an error into a panic
//! on the way, without its position and context.

use pgrx::pg_sys;
use std::ffi::{c_char, c_int, c_long};

unsafe extern "C-unwind" {
    pub fn StartTransactionCommand();
    pub fn CommitTransactionCommand();
    pub fn CommandCounterIncrement();
    pub fn BeginImplicitTransactionBlock();
    pub fn EndImplicitTransactionBlock();
    pub fn GetTransactionSnapshot() -> pg_sys::Snapshot;
    pub fn PushActiveSnapshot(snapshot: pg_sys::Snapshot);
    pub fn PopActiveSnapshot();
    pub fn ActiveSnapshotSet() -> bool;
    pub fn ProcessInterrupts();
    pub fn pg_parse_query(text: *const c_char) -> *mut pg_sys::List;
    pub fn analyze_requires_snapshot(statement: *mut pg_sys::RawStmt) -> bool;
    pub fn pg_analyze_and_rewrite_fixedparams(
        statement: *mut pg_sys::RawStmt,
        text: *const c_char,
        types: *const pg_sys::Oid,
        count: c_int,
        environment: *mut pg_sys::QueryEnvironment,
    ) -> *mut pg_sys::List;
    pub fn pg_plan_queries(
        queries: *mut pg_sys::List,
        text: *const c_char,
        options: c_int,
        parameters: pg_sys::ParamListInfo,
    ) -> *mut pg_sys::List;
    pub fn CreatePortal(
        name: *const c_char,
        allow_duplicate: bool,
        is_silent: bool,
    ) -> pg_sys::Portal;
    pub fn PortalDefineQuery(
        portal: pg_sys::Portal,
        statement_name: *const c_char,
        text: *const c_char,
        tag: pg_sys::CommandTag::Type,
        statements: *mut pg_sys::List,
        plan: *mut pg_sys::CachedPlan,
    );
    pub fn PortalStart(
        portal: pg_sys::Portal,
        parameters: pg_sys::ParamListInfo,
        flags: c_int,
        snapshot: pg_sys::Snapshot,
    );
    #[cfg(not(feature = "pg18"))]
    pub fn PortalRun(
        portal: pg_sys::Portal,
        count: c_long,
        is_top_level: bool,
        run_once: bool,
        receiver: *mut pg_sys::DestReceiver,
        alternative: *mut pg_sys::DestReceiver,
        completion: *mut pg_sys::QueryCompletion,
    ) -> bool;
    #[cfg(feature = "pg18")]
    pub fn PortalRun(
        portal: pg_sys::Portal,
        count: c_long,
        is_top_level: bool,
        receiver: *mut pg_sys::DestReceiver,
        alternative: *mut pg_sys::DestReceiver,
        completion: *mut pg_sys::QueryCompletion,
    ) -> bool;
    pub fn CreateCommandTag(statement: *mut pg_sys::Node) -> pg_sys::CommandTag::Type;
    pub fn jsonb_in(call: pg_sys::FunctionCallInfo) -> pg_sys::Datum;
    pub fn DirectFunctionCall1Coll(
        function: unsafe extern "C-unwind" fn(pg_sys::FunctionCallInfo) -> pg_sys::Datum,
        collation: pg_sys::Oid,
        argument: pg_sys::Datum,
    ) -> pg_sys::Datum;
    pub fn fmgr_info_cxt(
        function: pg_sys::Oid,
        info: *mut pg_sys::FmgrInfo,
        context: pg_sys::MemoryContext,
    );
    pub fn PortalDrop(portal: pg_sys::Portal, is_top_commit: bool);
}
