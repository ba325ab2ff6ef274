//! Lists of columns in queries, written once: in CREATE TABLE.
//!
//! A query names a table where it means all of its columns, and the list is filled in from the catalog when the query
//! is prepared:
//!
//! - `{{live_dispatches l}}` stands for `l.id, l.action_id, …`; without an alias, for the bare names;
//! - `{{live_dispatches l except status, error}}` leaves columns out;
//! - `{{$4 definitions}}` stands for parameters, one for each column: `$4, $5, …`;
//! - `{{public live_dispatches l}}` stands for the columns as the views of schema `recur` show them: an owner by its
//!   name, and the default where NULL is stored for it.

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
    /// The number of the first parameter, for a list of parameters.
    first_parameter: Option<usize>,
}

impl<'a> List<'a> {
    fn parse(text: &'a str) -> List<'a> {
        let (what, except) = text.split_once(" except").unwrap_or((text, ""));
        let is_public = what.starts_with("public ");
        let mut words = what
            .trim_start_matches("public ")
            .split_whitespace()
            .peekable();
        let number = |word: &&str| {
            word.strip_prefix('$')
                .and_then(|number| number.parse().ok())
        };
        let first_parameter = words.peek().and_then(number);
        if first_parameter.is_some() {
            words.next();
        }
        List {
            table: words.next().unwrap_or_default(),
            alias: words.next(),
            except: except.split(',').map(str::trim).collect(),
            is_public,
            first_parameter,
        }
    }

    fn text(&self) -> String {
        let names = column_names(self.table);
        let kept = names
            .iter()
            .filter(|name| !self.except.contains(&name.as_str()));
        let columns: Vec<String> = match self.first_parameter {
            Some(first) => kept
                .enumerate()
                .map(|(index, _)| format!("${}", first + index))
                .collect(),
            None => kept.map(|name| self.column(name)).collect(),
        };
        columns.join(", ")
    }

    fn column(&self, name: &str) -> String {
        match self.alias {
            Some(alias) if self.is_public => shown(alias, name),
            Some(alias) => format!("{alias}.{name}"),
            None => name.to_owned(),
        }
    }
}

/// A column as the views of schema `recur` show it.
pub fn shown(alias: &str, name: &str) -> String {
    let expression = match name {
        "owner_id" => include_str!("../../sql/queue/queries/shown_owner.sql"),
        "lease" => include_str!("../../sql/queue/queries/shown_lease.sql"),
        "name" => include_str!("../../sql/queue/queries/shown_name.sql"),
        "updated_at" => include_str!("../../sql/queue/queries/shown_updated_at.sql"),
        "metadata" => include_str!("../../sql/queue/queries/shown_metadata.sql"),
        _ => return format!("{alias}.{name}"),
    };
    expression.trim_end().replace("{{row}}", alias)
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
