//! Lists of columns in queries, written once: in CREATE TABLE.
//!
//! A query names a table where it means all of its columns, and the list is filled in from the catalog when the query
//! is prepared:
//!
//! - `{{live_dispatches l}}` stands for `l.id, l.action_id, …`; without an alias, for the bare names;
//! - `{{live_dispatches l except status, error}}` leaves columns out;
//! - `{{public live_dispatches l}}` stands for the columns as the views of schema `recur` show them: an owner by its
//!   name.

use super::{catalog, compat};
use pgrx::pg_sys;
use std::ffi::{CStr, CString};

const SCHEMA: &CStr = c"recur_internal";
const LOCK: pg_sys::LOCKMODE = pg_sys::AccessShareLock as pg_sys::LOCKMODE;

/// The query with all lists filled in. Needs a transaction.
pub fn expand(sql: &str) -> String {
    let mut expanded = String::with_capacity(sql.len());
    let mut rest = sql;
    while let Some((before, from)) = rest.split_once("{{") {
        let Some((placeholder, after)) = from.split_once("}}") else {
            pgrx::error!("pg_recur: a list of columns does not end: {from}");
        };
        expanded.push_str(before);
        expanded.push_str(&List::parse(placeholder).text());
        rest = after;
    }
    expanded + rest
}

struct List<'a> {
    table: &'a str,
    alias: Option<&'a str>,
    except: Vec<&'a str>,
    is_public: bool,
}

impl<'a> List<'a> {
    fn parse(text: &'a str) -> List<'a> {
        let (what, except) = text.split_once(" except").unwrap_or((text, ""));
        let is_public = what.starts_with("public ");
        let mut words = what.trim_start_matches("public ").split_whitespace();
        List {
            table: words.next().unwrap_or_default(),
            alias: words.next(),
            except: except.split(',').map(str::trim).collect(),
            is_public,
        }
    }

    fn text(&self) -> String {
        let names = column_names(self.table);
        let kept = names
            .iter()
            .filter(|name| !self.except.contains(&name.as_str()));
        let columns: Vec<String> = kept.map(|name| self.column(name)).collect();
        columns.join(", ")
    }

    fn column(&self, name: &str) -> String {
        let qualified = match self.alias {
            Some(alias) => format!("{alias}.{name}"),
            None => name.to_owned(),
        };
        match self.is_public && name == "owner_id" {
            true => format!("recur_internal.owner_name({qualified})"),
            false => qualified,
        }
    }
}

/// The columns of a table of the extension, in order.
fn column_names(table: &str) -> Vec<String> {
    let name = CString::new(table).unwrap_or_default();
    let oid = catalog::schema(SCHEMA).and_then(|schema| catalog::relation(schema, &name));
    let Some(oid) = oid else {
        pgrx::error!("pg_recur: the table recur_internal.{table} does not exist");
    };
    // SAFETY: the relation is open while its descriptor is read; after an error, the transaction's end closes it.
    unsafe {
        let relation = pg_sys::relation_open(oid, LOCK);
        let descriptor = (*relation).rd_att;
        let names = (0..(*descriptor).natts as usize)
            .map(|column| compat::attribute(descriptor, column))
            .filter(|attribute| !attribute.attisdropped)
            .map(|attribute| {
                let name = CStr::from_ptr(attribute.attname.data.as_ptr());
                name.to_string_lossy().into_owned()
            })
            .collect();
        pg_sys::relation_close(relation, LOCK);
        names
    }
}
