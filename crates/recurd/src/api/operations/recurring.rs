//! Operations on recurring actions.

use super::{Answer, ID, Input, Kind, LIMIT, Operation, Place};
use axum::http::Method;
use recur_core::action::columns::{ON_DST_FOLD, ON_DST_GAP, OVERLAP};

const FIELDS: Input = Input::query(
    "fields",
    Kind::Fields,
    "The fields to show, separated by commas; all without it",
);
const FROM: Input = Input::query(
    "from",
    Kind::Instant,
    "After this instant; the present without it",
);
const COUNT: Input = Input::query(
    "count",
    Kind::Integer,
    "How many occurrences; 10 without it",
);

const NAMESPACE: Input = Input::body("namespace", Kind::Text, "Only actions of this namespace");
const TENANT: Input = Input::body("tenant", Kind::Text, "Only actions of this tenant");
const LABELS: Input = Input::body(
    "labels",
    Kind::Object,
    "Only actions with all of these labels",
);

pub const OPERATIONS: &[Operation] = &[
    Operation {
        id: "recurring.create",
        method: Method::POST,
        path: "/v1/recurring",
        summary: "Creates an action",
        inputs: &[Input::new(
            Place::Definition,
            "definition",
            Kind::Object,
            "The action",
        )],
        sql: include_str!("../../../sql/recurring/create.sql"),
        answer: Answer::Created {
            location: "/v1/recurring/",
            then: Some(include_str!("../../../sql/recurring/created.sql")),
        },
    },
    Operation {
        id: "recurring.list",
        method: Method::GET,
        path: "/v1/recurring",
        summary: "Lists actions, without payload, context and metadata",
        inputs: &[
            Input::query("namespace", Kind::Text, "Only of this namespace"),
            Input::query("tenant", Kind::Text, "Only of this tenant"),
            Input::query(
                "enabled",
                Kind::Boolean,
                "Only enabled ones, or only disabled ones",
            ),
            Input::query(
                "labels",
                Kind::Object,
                "Only with all of these labels: a JSON object",
            ),
            Input::query("subject", Kind::Text, "Only of this subject"),
            Input::query("owner", Kind::Text, "Only of this owner"),
            Input::query(
                "search",
                Kind::Text,
                "Only with these words in name or description",
            ),
            Input::query(
                "order",
                Kind::Choice(&["name", "newest"]),
                "By name, or the newest first",
            ),
            Input::query("after", Kind::Uuid, "next of the page before"),
            LIMIT,
            FIELDS,
        ],
        sql: include_str!("../../../sql/recurring/list.sql"),
        answer: Answer::Page { exists: None },
    },
    Operation {
        id: "recurring.get",
        method: Method::GET,
        path: "/v1/recurring/{id}",
        summary: "Shows an action",
        inputs: &[ID, FIELDS],
        sql: include_str!("../../../sql/recurring/get.sql"),
        answer: Answer::Versioned,
    },
    Operation {
        id: "recurring.update",
        method: Method::PATCH,
        path: "/v1/recurring/{id}",
        summary: "Changes what is named and nothing else; null clears",
        inputs: &[
            ID,
            Input::new(Place::Changes, "changes", Kind::Object, "The changes"),
            Input::new(
                Place::Version,
                "If-Match",
                Kind::Text,
                "The ETag that the action must have",
            ),
        ],
        sql: include_str!("../../../sql/recurring/update.sql"),
        answer: Answer::Changed {
            then: include_str!("../../../sql/recurring/get.sql"),
        },
    },
    Operation {
        id: "recurring.delete",
        method: Method::DELETE,
        path: "/v1/recurring/{id}",
        summary: "Deletes an action; its pending dispatches are cancelled, its history stays",
        inputs: &[ID],
        sql: include_str!("../../../sql/recurring/delete.sql"),
        answer: Answer::Nothing,
    },
    Operation {
        id: "recurring.pause",
        method: Method::POST,
        path: "/v1/recurring/{id}/pause",
        summary: "Stops an action from firing until it is resumed",
        inputs: &[ID, Input::body("reason", Kind::Text, "Why")],
        sql: include_str!("../../../sql/recurring/pause.sql"),
        answer: Answer::One,
    },
    Operation {
        id: "recurring.resume",
        method: Method::POST,
        path: "/v1/recurring/{id}/resume",
        summary: "Lets a paused action fire again, from its next occurrence on",
        inputs: &[ID],
        sql: include_str!("../../../sql/recurring/resume.sql"),
        answer: Answer::One,
    },
    Operation {
        id: "recurring.trigger",
        method: Method::POST,
        path: "/v1/recurring/{id}/trigger",
        summary: "Dispatches an action now, beside its schedule",
        inputs: &[
            ID,
            Input::body("payload", Kind::Object, "A payload instead of the action's"),
            Input::body(
                "overlap",
                Kind::Choice(OVERLAP),
                "An overlap policy instead of the action's",
            ),
        ],
        sql: include_str!("../../../sql/recurring/trigger.sql"),
        answer: Answer::Created {
            location: "/v1/dispatches/",
            then: None,
        },
    },
    Operation {
        id: "recurring.preview",
        method: Method::GET,
        path: "/v1/recurring/{id}/preview",
        summary: "The next occurrences of an action",
        inputs: &[
            ID,
            Input::query(
                "timezone",
                Kind::Text,
                "As if the action had this time zone",
            ),
            FROM,
            COUNT,
        ],
        sql: include_str!("../../../sql/recurring/preview.sql"),
        answer: Answer::Items,
    },
    Operation {
        id: "recurring.compare",
        method: Method::POST,
        path: "/v1/recurring/{id}/compare",
        summary: "The next occurrences of an action as it is and as a change would make it",
        inputs: &[
            ID,
            Input::body("changes", Kind::Changes, "The changes, as for an update").required(),
            Input::body(
                "count",
                Kind::Integer,
                "How many occurrences; 10 without it",
            ),
        ],
        sql: include_str!("../../../sql/recurring/compare.sql"),
        answer: Answer::Items,
    },
    Operation {
        id: "recurring.explain",
        method: Method::GET,
        path: "/v1/recurring/{id}/explain",
        summary: "Whether and why an action fired at an instant, or did not",
        inputs: &[
            ID,
            Input::query("at", Kind::Instant, "The instant; the present without it"),
        ],
        sql: include_str!("../../../sql/recurring/explain.sql"),
        answer: Answer::One,
    },
    Operation {
        id: "recurring.history",
        method: Method::GET,
        path: "/v1/recurring/{id}/history",
        summary: "The dispatches of an action, the newest first",
        inputs: &[
            ID,
            Input::query("before", Kind::Text, "next of the page before"),
            LIMIT,
        ],
        sql: include_str!("../../../sql/recurring/history.sql"),
        answer: Answer::Page {
            exists: Some(include_str!("../../../sql/recurring/exists.sql")),
        },
    },
    Operation {
        id: "recurring.context",
        method: Method::GET,
        path: "/v1/recurring/{id}/context",
        summary: "The contexts that an action has had, the latest first",
        inputs: &[
            ID,
            Input::query(
                "count",
                Kind::Integer,
                "How many; 10 without it, 100 are kept",
            ),
        ],
        sql: include_str!("../../../sql/recurring/context.sql"),
        answer: Answer::Items,
    },
    Operation {
        id: "recurring.pause_all",
        method: Method::POST,
        path: "/v1/bulk/pause",
        summary: "Pauses every running action that the filters name, all without a filter; shows the first 500",
        inputs: &[
            NAMESPACE,
            TENANT,
            LABELS,
            Input::body("reason", Kind::Text, "Why"),
        ],
        sql: include_str!("../../../sql/recurring/pause_all.sql"),
        answer: Answer::Counted,
    },
    Operation {
        id: "recurring.resume_all",
        method: Method::POST,
        path: "/v1/bulk/resume",
        summary: "Resumes what a bulk pause has paused, and the filters name; shows the first 500",
        inputs: &[NAMESPACE, TENANT, LABELS],
        sql: include_str!("../../../sql/recurring/resume_all.sql"),
        answer: Answer::Counted,
    },
    Operation {
        id: "schedule.preview",
        method: Method::POST,
        path: "/v1/preview",
        summary: "The next occurrences of a schedule",
        inputs: &[
            Input::body("schedule", Kind::Text, "The schedule, in any notation").required(),
            Input::body("timezone", Kind::Text, "An IANA name; UTC without it"),
            Input::body(
                "from",
                Kind::Instant,
                "After this instant; the present without it",
            ),
            Input::body(
                "count",
                Kind::Integer,
                "How many occurrences; 10 without it",
            ),
            Input::body("starts_at", Kind::Instant, "Nothing fires before it"),
            Input::body("ends_at", Kind::Instant, "Nothing fires after it"),
            Input::body(
                "max_runs",
                Kind::Integer,
                "How many occurrences there are in all",
            ),
            Input::body(
                "on_dst_gap",
                Kind::Choice(ON_DST_GAP),
                "A local time that does not exist",
            ),
            Input::body(
                "on_dst_fold",
                Kind::Choice(ON_DST_FOLD),
                "A local time that exists twice",
            ),
        ],
        sql: include_str!("../../../sql/recurring/preview_schedule.sql"),
        answer: Answer::Items,
    },
];
