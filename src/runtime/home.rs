//! Where this database is at home: in which cluster, under which oid, at which site. A copy of the database carries the
//! row that says so, finds itself elsewhere, and holds its fire until `recur.arm()` makes the new place its home.
//!
//! The first session that writes an action or a dispatch writes the row. CREATE EXTENSION does not: a restore creates
//! the extension first, and the row that it brings must be the only one. Where there are several rows, all of them must
//! name this place: rows of two databases were mixed otherwise.

use super::cached_table::CachedTable;
use super::{clock, engine, settings};
use crate::pg::error::SqlError;
use crate::pg::query::queries;
use crate::pg::{self, catalog, time};
use chrono::{DateTime, Utc};
use pgrx::prelude::*;
use std::cell::Cell;
use std::fmt;
use std::rc::Rc;

/// A place where a database can be at home.
#[derive(Clone, Eq, PartialEq)]
struct Place {
    /// The cluster's system identifier: a logical copy has another one, a physical copy has not.
    cluster: i64,
    /// Another database of the same cluster has another one.
    database: pg_sys::Oid,
    /// What the operator calls the server: it tells physical copies apart.
    site: String,
}

/// A row of `recur_internal.home`.
struct Home {
    place: Place,
    /// Until then the database may go on at another place by itself.
    move_until: Option<DateTime<Utc>>,
}

queries! {
    READ_HOME = "install/queries/home.sql" ();
    IS_HOMELESS = "install/queries/is_homeless.sql" ();
    FIRST_HOME = "install/queries/first_home.sql" (INT8OID, OIDOID, TEXTOID);
    MOVE_HOME = "install/queries/move_home.sql" (BOOLOID, INT8OID, OIDOID, TEXTOID);
}

thread_local! {
    static HOME: CachedTable<Rc<Vec<Home>>> = const { CachedTable::new(c"home", read) };
    static HAS_WARNED: Cell<bool> = const { Cell::new(false) };
}

impl Place {
    fn here() -> Place {
        Place {
            cluster: pg::system_identifier(),
            database: pg::my_database(),
            site: settings::site(),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (database, cluster) = (self.database.to_u32(), self.cluster);
        write!(f, "database {database} of cluster {cluster}")?;
        match self.site.as_str() {
            "" => Ok(()),
            site => write!(f, " at site \"{site}\""),
        }
    }
}

fn read() -> Rc<Vec<Home>> {
    let rows = READ_HOME.with(|query| {
        query.latest_rows(&[], |row| Home {
            place: Place {
                cluster: row.required(1),
                database: row.required(2),
                site: row.required(3),
            },
            move_until: row.instant(4),
        })
    });
    Rc::new(rows)
}

/// Why this database holds its fire.
pub struct Hold {
    message: String,
    detail: String,
}

pub const REMEDY: &str =
    "recur.arm() makes this place its home: then everything that is due fires.";

impl Hold {
    pub fn to_error(&self) -> SqlError {
        let code = PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE;
        SqlError::new(code, self.message.as_str())
            .with_detail(self.detail.as_str())
            .with_hint(REMEDY)
    }
}

impl fmt::Display for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}. {}", self.message, self.detail)
    }
}

/// What the rows say of this place.
enum State {
    Home,
    /// The database was announced to go on elsewhere.
    Arriving,
    /// None where no row says where the database is at home.
    Held(Option<Place>),
}

/// A test database needs no home: nothing fires there by itself.
fn state() -> State {
    let rows = HOME.with(CachedTable::get);
    let here = Place::here();
    let elsewhere = rows.iter().filter(|home| home.place != here);
    let is_expected = |home: &Home| home.move_until.is_some_and(|until| until > time::now());
    match elsewhere.clone().next() {
        None if rows.is_empty() && !clock::is_for_tests() => State::Held(None),
        None => State::Home,
        Some(_) if elsewhere.clone().all(is_expected) => State::Arriving,
        Some(home) => State::Held(Some(home.place.clone())),
    }
}

/// May occurrences be dispatched here, and dispatches be handed out? Needs a transaction that may write.
pub fn may_fire() -> bool {
    match state() {
        State::Home => true,
        State::Held(_) => false,
        State::Arriving => {
            let here = Place::here();
            log!(
                "pg_recur: the database has moved, as recur.expect_move said: it is at home in {here}"
            );
            settle();
            true
        }
    }
}

/// Why nothing fires here, if so. Nothing holds a database that has nothing to fire.
pub fn hold() -> Option<Hold> {
    let name = || catalog::database_name(pg::my_database()).unwrap_or_default();
    match state() {
        State::Home | State::Arriving => None,
        State::Held(Some(home)) => Some(Hold {
            message: format!("database \"{}\" is a copy and holds its fire", name()),
            detail: format!("It is at home in {home}, and this is {}.", Place::here()),
        }),
        State::Held(None) => is_homeless().then(|| Hold {
            message: format!("database \"{}\" was restored and holds its fire", name()),
            detail: "It has actions or dispatches, and no row says where it is at home.".to_owned(),
        }),
    }
}

/// Raises where nothing may be dispatched, and there is something to dispatch.
pub fn check() -> Result<(), SqlError> {
    match may_fire() {
        true => Ok(()),
        false => hold().map_or(Ok(()), |hold| Err(hold.to_error())),
    }
}

fn is_homeless() -> bool {
    let look = || IS_HOMELESS.with(|query| query.row(&[], |row| row.required(1)));
    let found = match engine::is_engine() {
        true => look(),
        false => engine::as_engine(look),
    };
    found.unwrap_or(false)
}

/// Warns a session, once, that it is handed nothing.
pub fn warn_once() {
    if HAS_WARNED.get() {
        return;
    }
    if let Some(hold) = hold() {
        HAS_WARNED.set(true);
        hold.to_error().warn();
    }
}

/// Before the first action or dispatch is written: from then on the database is at home here. As the engine.
pub fn settle_first() {
    if HOME.with(CachedTable::get).is_empty() && !clock::is_for_tests() {
        let here = Place::here();
        let arguments = [here.cluster.into(), here.database.into(), here.site.into()];
        FIRST_HOME.with(|query| query.execute(&arguments));
    }
}

/// Makes this place the home; a test database has none.
fn settle() {
    let here = Place::here();
    let arguments = [
        (!clock::is_for_tests()).into(),
        here.cluster.into(),
        here.database.into(),
        here.site.into(),
    ];
    let settle = || MOVE_HOME.with(|query| query.execute(&arguments));
    match engine::is_engine() {
        true => settle(),
        false => engine::as_engine(settle),
    };
}

/// `recur_internal.settle()`: makes this place the home.
#[pg_extern(sql = false, name = "settle")]
fn settle_by_hand() {
    settle();
}

/// `recur_internal.hold_reason()`: why nothing fires here; NULL if it does.
#[pg_extern(sql = false)]
fn hold_reason() -> Option<String> {
    hold().map(|hold| hold.to_string())
}
