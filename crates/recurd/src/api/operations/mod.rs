//! What the API offers: one table, from which routes, decoding and the OpenAPI document derive.

mod consuming;
mod dispatches;
mod recurring;

use axum::http::Method;

/// An operation: a method on a path, and the statement behind it.
pub struct Operation {
    /// The name in logs and in the OpenAPI document.
    pub id: &'static str,
    pub method: Method,
    /// At most one segment is a parameter: `{id}`.
    pub path: &'static str,
    pub summary: &'static str,
    /// Bound in this order, each as text or NULL.
    pub inputs: &'static [Input],
    pub sql: &'static str,
    pub answer: Answer,
}

pub enum Answer {
    /// One object.
    One,
    /// An action with its ETag; `fields` may choose what is shown.
    Versioned,
    /// 201 with an object and its Location. An Idempotency-Key counts.
    Created {
        /// The path of what was created, before its id.
        location: &'static str,
        /// Reads what is returned, by id; None where the statement itself returns it.
        then: Option<&'static str>,
    },
    /// An action after a change, which `then` reads, with its new ETag. If-Match counts.
    Changed { then: &'static str },
    /// 204.
    Nothing,
    /// `{"items": […]}`.
    Items,
    /// `{"count": …, "items": […]}`: how many there are, and the first of them.
    Counted,
    /// `{"items": […], "next": …}`: one page. The last two inputs are the cursor and the limit.
    Page {
        /// Raises where the first page is empty because there is nothing of that id.
        exists: Option<&'static str>,
    },
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Place {
    Path,
    Query,
    Body,
    /// The body as a whole, of which the fields are the columns of an action.
    Definition,
    /// The same, as changes: nothing is required, and null clears.
    Changes,
    /// If-Match.
    Version,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Uuid,
    Text,
    Choice(&'static [&'static str]),
    Integer,
    /// An integer up to this one.
    UpTo(u32),
    Boolean,
    Instant,
    Interval,
    /// A JSON object.
    Object,
    /// A JSON object whose fields are columns of an action.
    Changes,
    /// Any JSON value.
    Any,
    /// An array of texts.
    Texts,
    /// How many items a page has.
    Limit,
    /// Names of fields, separated by commas: not bound, but applied to the answer.
    Fields,
}

pub struct Input {
    pub name: &'static str,
    pub place: Place,
    pub kind: Kind,
    pub required: bool,
    pub about: &'static str,
}

impl Input {
    const fn new(place: Place, name: &'static str, kind: Kind, about: &'static str) -> Input {
        Input {
            name,
            place,
            kind,
            required: false,
            about,
        }
    }

    const fn query(name: &'static str, kind: Kind, about: &'static str) -> Input {
        Input::new(Place::Query, name, kind, about)
    }

    const fn body(name: &'static str, kind: Kind, about: &'static str) -> Input {
        Input::new(Place::Body, name, kind, about)
    }

    const fn required(self) -> Input {
        Input {
            required: true,
            ..self
        }
    }
}

/// The id in the path.
const ID: Input = Input::new(Place::Path, "id", Kind::Uuid, "The id").required();
const LIMIT: Input = Input::query("limit", Kind::Limit, "How many items a page has");

pub const DEFAULT_LIMIT: u32 = 50;
pub const LARGEST_LIMIT: u32 = 500;

/// Names that users of other schedulers expect, and what they mean here.
pub const ALIASES: &[(&str, &str)] = &[
    ("action_template", "payload"),
    ("cron_expr", "schedule"),
    ("execution_count", "run_count"),
    ("next_execution_at", "next_run_at"),
    ("recurring_id", "action_id"),
];

/// The SQL name of a field.
pub fn sql_name(name: &str) -> &str {
    ALIASES
        .iter()
        .find(|(alias, _)| *alias == name)
        .map_or(name, |(_, name)| name)
}

/// All operations.
pub fn all() -> impl Iterator<Item = &'static Operation> {
    recurring::OPERATIONS
        .iter()
        .chain(dispatches::OPERATIONS)
        .chain(consuming::OPERATIONS)
}

impl Operation {
    pub fn takes_body(&self) -> bool {
        self.inputs.iter().any(|input| {
            matches!(
                input.place,
                Place::Body | Place::Definition | Place::Changes
            )
        })
    }

    pub fn needs_body(&self) -> bool {
        let whole = [Place::Definition, Place::Changes];
        self.inputs.iter().any(|input| {
            whole.contains(&input.place) || input.place == Place::Body && input.required
        })
    }

    pub fn takes_key(&self) -> bool {
        matches!(self.answer, Answer::Created { .. })
    }

    pub fn takes_version(&self) -> bool {
        self.inputs
            .iter()
            .any(|input| input.place == Place::Version)
    }
}
