//! Finds the action that a text means: an id, or a name.

use crate::access::{self, Visible};
use crate::pg::error::{OrRaise, SqlError, abbreviated, given};
use crate::pg::planner::PlannerPins;
use crate::pg::query::{pg_uuid, queries};
use crate::runtime::engine;
use pgrx::datum::Uuid as PgUuid;
use pgrx::prelude::*;
use recur_core::action::{Column, DefaultValue};
use recurrence::nearest_name;
use uuid::Uuid;

queries! {
    FIND_VISIBLE = "actions/queries/find_visible.sql" (UUIDOID, INT4ARRAYOID);
    FIND_NAMED = "actions/queries/find_named.sql" {subject: "d.subject = $5"}
        (TEXTOID, TEXTOID, TEXTOID, INT4ARRAYOID, TEXTOID, INT4ARRAYOID, INT4OID);
    FIND_NAMED_WITHOUT_SUBJECT = "actions/queries/find_named.sql" {subject: "d.subject IS NULL AND $5 IS NULL"}
        (TEXTOID, TEXTOID, TEXTOID, INT4ARRAYOID, TEXTOID, INT4ARRAYOID, INT4OID);
    NAMES_TO_SUGGEST = "actions/queries/names_to_suggest.sql" (TEXTOID, TEXTOID, TEXTOID, INT4ARRAYOID);
}

/// How many owners an error names.
const MOST_NAMED: i32 = 5;
const HINT: &str = "recur.list() shows the actions that you can see.";

/// `recur_internal.action_id(action, namespace, tenant, subject)`.
#[pg_extern(sql = false)]
fn action_id(
    action: Option<&str>,
    namespace: Option<&str>,
    tenant: Option<&str>,
    subject: Option<&str>,
) -> PgUuid {
    pg_uuid(resolve(action, namespace, tenant, subject).or_raise())
}

/// The id of the action that is meant, of those that the current role sees. NULL stands for the default namespace and
/// tenant.
pub fn resolve(
    action: Option<&str>,
    namespace: Option<&str>,
    tenant: Option<&str>,
    subject: Option<&str>,
) -> Result<Uuid, SqlError> {
    let text = given("action", action)?;
    let visible = access::visible();
    let _pins = PlannerPins::set();
    match Uuid::parse_str(text.trim()) {
        Ok(id) => engine::as_engine(|| find_visible(id, &visible)),
        Err(_) => Name {
            name: text,
            namespace: or_default(Column::Namespace, namespace),
            tenant: or_default(Column::Tenant, tenant),
            subject,
        }
        .find(&visible),
    }
}

/// Does the caller see an action of this name in the default namespace and tenant, without a subject?
pub fn is_name(text: &str) -> bool {
    let name = Name {
        name: text,
        namespace: or_default(Column::Namespace, None),
        tenant: or_default(Column::Tenant, None),
        subject: None,
    };
    let visible = access::visible();
    let _pins = PlannerPins::set();
    let found = engine::as_engine(|| name.look_up(Vec::new(), &visible));
    !found.is_empty()
}

/// The error for an id of which the caller sees no action.
pub fn unknown_id(id: &str) -> SqlError {
    SqlError::no_data_found(format!("no action has the id {id}")).with_hint(HINT)
}

/// The id, if the caller sees the action that has it.
pub fn find_visible(id: Uuid, visible: &Visible) -> Result<Uuid, SqlError> {
    let arguments = [pg_uuid(id).into(), visible.parameter().into()];
    let found = FIND_VISIBLE.with(|query| query.row(&arguments, |row| row.uuid(1)));
    found.ok_or_else(|| unknown_id(&id.to_string()))
}

fn or_default(column: Column, given: Option<&str>) -> &str {
    given.unwrap_or(match column.spec().default {
        DefaultValue::Text(default) => default,
        _ => "",
    })
}

struct Name<'a> {
    name: &'a str,
    namespace: &'a str,
    tenant: &'a str,
    subject: Option<&'a str>,
}

/// An action of the name.
struct Found {
    id: Uuid,
    is_own: bool,
    owner: Option<String>,
}

impl Name<'_> {
    /// Among the actions of several owners, the caller's own is meant.
    fn find(&self, visible: &Visible) -> Result<Uuid, SqlError> {
        let own = access::own_id_if_any().into_iter().collect();
        let found = engine::as_engine(|| self.look_up(own, visible));
        match found.as_slice() {
            [] => {
                let names = engine::as_engine(|| self.suggested(visible));
                let hint = match nearest_name(self.name, names.iter().map(String::as_str)) {
                    Some(name) => format!("Did you mean \"{name}\"? {HINT}"),
                    None => HINT.to_owned(),
                };
                Err(SqlError::no_data_found(format!("no {self}")).with_hint(hint))
            }
            [first, ..] if first.is_own => Ok(first.id),
            [only] => Ok(only.id),
            several => Err(self.ambiguous(several)),
        }
    }

    fn look_up(&self, own: Vec<i32>, visible: &Visible) -> Vec<Found> {
        let arguments = [
            self.name.into(),
            self.namespace.into(),
            self.tenant.into(),
            own.into(),
            self.subject.into(),
            visible.parameter().into(),
            (MOST_NAMED + 1).into(),
        ];
        let query = match self.subject {
            Some(_) => &FIND_NAMED,
            None => &FIND_NAMED_WITHOUT_SUBJECT,
        };
        query.with(|query| {
            query.rows(&arguments, |row| Found {
                id: row.uuid(1),
                is_own: row.required(2),
                owner: row.get(3),
            })
        })
    }

    fn suggested(&self, visible: &Visible) -> Vec<String> {
        let arguments = [
            self.name.into(),
            self.namespace.into(),
            self.tenant.into(),
            visible.parameter().into(),
        ];
        NAMES_TO_SUGGEST.with(|query| query.rows(&arguments, |row| row.required(1)))
    }

    fn ambiguous(&self, several: &[Found]) -> SqlError {
        let named = several.iter().take(MOST_NAMED as usize);
        let owners: Vec<&str> = named
            .map(|found| found.owner.as_deref().unwrap_or("?"))
            .collect();
        let more = if several.len() > owners.len() {
            ", …"
        } else {
            ""
        };
        let message = format!("several owners have an {self}: {}{more}", owners.join(", "));
        SqlError::new(PgSqlErrorCode::ERRCODE_TOO_MANY_ROWS, message)
            .with_hint("Give the id of the action instead.")
    }
}

impl std::fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        let Name {
            name,
            namespace,
            tenant,
            subject,
        } = self;
        write!(
            f,
            "action \"{}\" in namespace \"{}\", tenant \"{}\"",
            abbreviated(name),
            abbreviated(namespace),
            abbreviated(tenant)
        )?;
        match subject {
            Some(subject) => write!(f, ", subject \"{}\"", abbreviated(subject)),
            None => Ok(()),
        }
    }
}
