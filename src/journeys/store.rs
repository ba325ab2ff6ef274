//! The statements that read and write journeys. Everything here runs as the engine.

use crate::access::Visible;
use crate::pg::error::SqlError;
use crate::pg::jsonb::Jsonb;
use crate::pg::query::{Row, queries};
use crate::pg::time;
use chrono::{DateTime, Utc};
use pgrx::datum::DatumWithOid;
use recur_core::action::Json;
use recur_core::journey::Graph;

queries! {
    INSERT_JOURNEY = "journeys/queries/insert_journey.sql" (INT4OID, TEXTOID, TEXTOID, JSONBOID, TIMESTAMPTZOID);
    UPDATE_JOURNEY = "journeys/queries/update_journey.sql" (INT4OID, TEXTOID, TEXTOID, JSONBOID, TIMESTAMPTZOID);
    DELETE_JOURNEY = "journeys/queries/delete_journey.sql" (INT4OID, TEXTOID, TEXTOID);
    LOCK_TO_CHANGE = "journeys/queries/lock_journey.sql" {lock: "FOR UPDATE"} (INT4OID, TEXTOID, TEXTOID);
    LOCK_TO_SCHEDULE = "journeys/queries/lock_journey.sql" {lock: "FOR SHARE"} (INT4OID, TEXTOID, TEXTOID);
    FIND_JOURNEYS = "journeys/queries/find_journeys.sql" (TEXTOID, TEXTOID, INT4ARRAYOID, INT4ARRAYOID, INT4OID);
    SCHEDULES_OF_JOURNEY = "journeys/queries/schedules_of_journey.sql" (INT4OID, TEXTOID, TEXTOID, INT4OID);
}

/// How many schedules an error names.
const MOST_NAMED: i32 = 5;

/// What identifies a journey.
pub struct Key {
    pub owner_id: i32,
    pub name: String,
    pub version: String,
}

/// A journey of a name.
pub struct Found {
    pub owner_id: i32,
    pub version: String,
    pub is_own: bool,
    pub owner: Option<String>,
}

/// The schedules that start in a state.
pub struct Schedules {
    pub start_state: String,
    pub number: i64,
    /// The ids of some.
    pub ids: String,
}

/// The journeys of a name that a role sees, its own first: at most `most`.
pub fn find(
    name: &str,
    version: Option<&str>,
    own: Option<i32>,
    visible: &Visible,
    most: i32,
) -> Vec<Found> {
    let own: Vec<i32> = own.into_iter().collect();
    let arguments = [
        name.into(),
        version.into(),
        own.into(),
        visible.parameter().into(),
        most.into(),
    ];
    FIND_JOURNEYS.with(|query| {
        query.rows(&arguments, |row| Found {
            owner_id: row.required(1),
            version: row.required(2),
            is_own: row.required(3),
            owner: row.get(4),
        })
    })
}

impl Key {
    /// False if there is such a journey already.
    pub fn insert(&self, graph: &Graph, now: DateTime<Utc>) -> bool {
        INSERT_JOURNEY.with(|query| query.execute(&self.with_states(graph, now))) > 0
    }

    pub fn update(&self, graph: &Graph, now: DateTime<Utc>) {
        UPDATE_JOURNEY.with(|query| query.execute(&self.with_states(graph, now)));
    }

    pub fn delete(&self) {
        DELETE_JOURNEY.with(|query| query.execute(&self.parameters()));
    }

    /// Locks the journey, so that no action schedules it until this transaction ends. None if it does not exist.
    pub fn lock_to_change(&self) -> Option<Result<Graph, SqlError>> {
        LOCK_TO_CHANGE.with(|query| query.row(&self.parameters(), graph))
    }

    /// Keeps the journey as it is until this transaction ends. None if it does not exist.
    pub fn lock_to_schedule(&self) -> Option<Result<Graph, SqlError>> {
        LOCK_TO_SCHEDULE.with(|query| query.row(&self.parameters(), graph))
    }

    /// The schedules that are committed now: the journey is locked.
    pub fn schedules(&self) -> Vec<Schedules> {
        let [owner_id, name, version] = self.parameters();
        let arguments = [owner_id, name, version, MOST_NAMED.into()];
        SCHEDULES_OF_JOURNEY.with(|query| {
            query.latest_rows(&arguments, |row| Schedules {
                start_state: row.required(1),
                number: row.required(2),
                ids: row.required(3),
            })
        })
    }

    fn parameters(&self) -> [DatumWithOid<'_>; 3] {
        [
            self.owner_id.into(),
            self.name.as_str().into(),
            self.version.as_str().into(),
        ]
    }

    fn with_states(&self, graph: &Graph, now: DateTime<Utc>) -> [DatumWithOid<'_>; 5] {
        let [owner_id, name, version] = self.parameters();
        let states = Jsonb::from_text(&graph.to_json());
        [
            owner_id,
            name,
            version,
            states.into(),
            time::timestamptz(now).into(),
        ]
    }
}

/// Stored states are read like those that are given: what is not valid any more is an error.
fn graph(row: &Row) -> Result<Graph, SqlError> {
    let states: Option<Jsonb> = row.get(1);
    let text = states.map(|states| states.text()).unwrap_or_default();
    Ok(Graph::parse(&text)?)
}
