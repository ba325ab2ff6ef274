//! What the server's parser makes of a text with SQL statements.

use super::bare;
use super::catch::{ServerError, catch};
use pgrx::memcxt::PgMemoryContexts;
use pgrx::pg_sys::{self, NodeTag};
use std::ffi::{CStr, CString};

/// A statement of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Statement {
    pub tag: NodeTag,
    /// Where it begins, in characters from 1.
    pub position: usize,
    /// COPY FROM STDIN, or TO STDOUT.
    pub copies_to_client: bool,
    /// The server refuses it inside of a transaction block.
    pub needs_own_transaction: bool,
}

/// Parses a text. Nothing is looked up: whether its tables exist shows when it runs.
pub fn statements(text: &str) -> Result<Vec<Statement>, Box<ServerError>> {
    let text = CString::new(text).unwrap_or_default();
    let mut memory = PgMemoryContexts::new("pg_recur parser");
    // SAFETY: the text ends with a zero byte. The parser changes nothing but memory, so that after its error there is
    // nothing to roll back; the tree lives in the memory context while it is read.
    unsafe {
        memory.switch_to(|_| {
            let list = catch(|| bare::pg_parse_query(text.as_ptr()))?;
            Ok(read(list, &text))
        })
    }
}

/// # Safety
/// The list must be what the parser made of the text.
pub(super) unsafe fn read(list: *mut pg_sys::List, text: &CStr) -> Vec<Statement> {
    // SAFETY: a parsed text is a list of raw statements, each with a node.
    unsafe {
        if list.is_null() {
            return Vec::new();
        }
        (0..(*list).length as usize)
            .map(|index| {
                let raw = (*(*list).elements.add(index))
                    .ptr_value
                    .cast::<pg_sys::RawStmt>();
                let node = (*raw).stmt;
                Statement {
                    tag: (*node).type_,
                    position: position(text, (*raw).stmt_location),
                    copies_to_client: copies_to_client(node),
                    needs_own_transaction: needs_own_transaction(node),
                }
            })
            .collect()
    }
}

/// The statement begins behind the spaces that follow the last one.
fn position(text: &CStr, location: i32) -> usize {
    let bytes = text.to_bytes();
    let from = usize::try_from(location).unwrap_or(0).min(bytes.len());
    let spaces = bytes[from..]
        .iter()
        .take_while(|byte| byte.is_ascii_whitespace())
        .count();
    String::from_utf8_lossy(&bytes[..from + spaces])
        .chars()
        .count()
        + 1
}

/// # Safety
/// `node` must be a statement of the parser.
unsafe fn copies_to_client(node: *mut pg_sys::Node) -> bool {
    // SAFETY: the tag of a node says which struct it is.
    unsafe {
        (*node).type_ == NodeTag::T_CopyStmt
            && (*node.cast::<pg_sys::CopyStmt>()).filename.is_null()
    }
}

/// # Safety
/// `node` must be a statement of the parser.
unsafe fn needs_own_transaction(node: *mut pg_sys::Node) -> bool {
    use NodeTag::*;
    // SAFETY: the tag of a node says which struct it is; names and lists of options are as the parser made them.
    unsafe {
        match (*node).type_ {
            T_CreatedbStmt
            | T_DropdbStmt
            | T_AlterSystemStmt
            | T_CreateTableSpaceStmt
            | T_DropTableSpaceStmt => true,
            T_VacuumStmt => (*node.cast::<pg_sys::VacuumStmt>()).is_vacuumcmd,
            T_IndexStmt => (*node.cast::<pg_sys::IndexStmt>()).concurrent,
            T_DropStmt => (*node.cast::<pg_sys::DropStmt>()).concurrent,
            T_ClusterStmt => (*node.cast::<pg_sys::ClusterStmt>()).relation.is_null(),
            T_DiscardStmt => {
                (*node.cast::<pg_sys::DiscardStmt>()).target == pg_sys::DiscardMode::DISCARD_ALL
            }
            T_AlterDatabaseStmt => has_option(
                (*node.cast::<pg_sys::AlterDatabaseStmt>()).options,
                c"tablespace",
            ),
            T_ReindexStmt => {
                use pg_sys::ReindexObjectType::*;
                let statement = &*node.cast::<pg_sys::ReindexStmt>();
                matches!(
                    statement.kind,
                    REINDEX_OBJECT_SCHEMA | REINDEX_OBJECT_SYSTEM | REINDEX_OBJECT_DATABASE
                ) || has_option(statement.params, c"concurrently")
            }
            _ => false,
        }
    }
}

/// # Safety
/// `options` must be NULL or a list of DefElems.
unsafe fn has_option(options: *mut pg_sys::List, name: &CStr) -> bool {
    // SAFETY: the caller promises DefElems, which have a name.
    unsafe {
        !options.is_null()
            && (0..(*options).length as usize).any(|index| {
                let element = (*(*options).elements.add(index))
                    .ptr_value
                    .cast::<pg_sys::DefElem>();
                CStr::from_ptr((*element).defname) == name
            })
    }
}
