//! Consuming over HTTP, for those without a driver.

use super::{Answer, ID, Input, Kind, LARGEST_LIMIT, Operation};
use axum::http::Method;

const ATTEMPT: Input = Input::body(
    "attempt",
    Kind::Integer,
    "The attempt, as the claim returned it",
)
.required();
const LEASE: Input = Input::body(
    "lease",
    Kind::Interval,
    "How long, instead of the dispatch's lease",
);

pub const OPERATIONS: &[Operation] = &[
    Operation {
        id: "dispatch.claim",
        method: Method::POST,
        path: "/v1/claim",
        summary: "Takes pending dispatches, each to be reported before its lease expires",
        inputs: &[
            Input::body(
                "limit",
                Kind::UpTo(LARGEST_LIMIT),
                "How many at most; 1 without it",
            ),
            Input::body("providers", Kind::Texts, "Only of these providers"),
            Input::body(
                "action_types",
                Kind::Texts,
                "Only of these action types, or patterns such as task:*",
            ),
            Input::body("namespaces", Kind::Texts, "Only of these namespaces"),
            Input::body("tenants", Kind::Texts, "Only of these tenants"),
            LEASE,
            Input::body("consumer", Kind::Text, "What the consumer calls itself"),
            Input::body(
                "agent",
                Kind::Text,
                "As which agent; * takes those of every agent",
            ),
        ],
        sql: include_str!("../../../sql/dispatches/claim.sql"),
        answer: Answer::Items,
    },
    Operation {
        id: "dispatch.complete",
        method: Method::POST,
        path: "/v1/dispatches/{id}/complete",
        summary: "Reports that a claimed dispatch is done",
        inputs: &[
            ID,
            ATTEMPT,
            Input::body("result", Kind::Any, "What came of it"),
            Input::body("context", Kind::Object, "What is left for the next run"),
        ],
        sql: include_str!("../../../sql/dispatches/complete.sql"),
        answer: Answer::One,
    },
    Operation {
        id: "dispatch.fail",
        method: Method::POST,
        path: "/v1/dispatches/{id}/fail",
        summary: "Reports that an attempt has failed",
        inputs: &[
            ID,
            ATTEMPT,
            Input::body("reason", Kind::Text, "Why").required(),
            Input::body(
                "retry",
                Kind::Boolean,
                "Whether to try again, while attempts are left; true without it",
            ),
            Input::body(
                "retry_in",
                Kind::Interval,
                "After how long, instead of the back-off",
            ),
        ],
        sql: include_str!("../../../sql/dispatches/fail.sql"),
        answer: Answer::One,
    },
    Operation {
        id: "dispatch.extend",
        method: Method::POST,
        path: "/v1/dispatches/{id}/extend",
        summary: "Renews the lease of a claimed dispatch from now on",
        inputs: &[ID, ATTEMPT, LEASE],
        sql: include_str!("../../../sql/dispatches/extend.sql"),
        answer: Answer::One,
    },
    Operation {
        id: "dispatch.release",
        method: Method::POST,
        path: "/v1/dispatches/{id}/release",
        summary: "Gives a claimed dispatch back, undone; the attempt does not count",
        inputs: &[
            ID,
            ATTEMPT,
            Input::body(
                "delay",
                Kind::Interval,
                "After how long it may be claimed again; at once without it",
            ),
        ],
        sql: include_str!("../../../sql/dispatches/release.sql"),
        answer: Answer::One,
    },
];
