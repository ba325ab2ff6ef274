//! Operations on dispatches, for those who watch and operate.

use super::{Answer, ID, Input, Kind, LIMIT, Operation};
use axum::http::Method;

const PROVIDER: Input = Input::query("provider", Kind::Text, "Only of this provider");
const ACTION_TYPE: Input = Input::query("action_type", Kind::Text, "Only of this action type");
const NAMESPACE: Input = Input::query("namespace", Kind::Text, "Only of this namespace");
const TENANT: Input = Input::query("tenant", Kind::Text, "Only of this tenant");
const BEFORE: Input = Input::query("before", Kind::Uuid, "next of the page before");
const STATUS: &[&str] = &["pending", "running", "completed", "failed", "cancelled"];

pub const OPERATIONS: &[Operation] = &[
    Operation {
        id: "dispatch.enqueue",
        method: Method::POST,
        path: "/v1/dispatches",
        summary: "Enqueues a dispatch that belongs to no action",
        inputs: &[
            Input::body("provider", Kind::Text, "Who performs it").required(),
            Input::body("action_type", Kind::Text, "What is to be done").required(),
            Input::body("payload", Kind::Any, "The arguments"),
            Input::body(
                "run_at",
                Kind::Instant,
                "When it may be claimed; at once without it",
            ),
            Input::body("namespace", Kind::Text, "A part of the application"),
            Input::body("tenant", Kind::Text, "A customer of the application"),
            Input::body("subject", Kind::Text, "What it is about"),
            Input::body(
                "dedup_key",
                Kind::Text,
                "A pending dispatch with this key takes it over",
            ),
            Input::body("dedup_window", Kind::Interval, "For how long"),
            Input::body("metadata", Kind::Object, "Strings for the consumer"),
            Input::body("priority", Kind::Integer, "Higher ones are claimed first"),
            Input::body(
                "lock_group",
                Kind::Text,
                "At most one dispatch of a group runs at a time",
            ),
            Input::body("notify_channel", Kind::Text, "Where it is announced"),
            Input::body("max_attempts", Kind::Integer, "How often it may be claimed"),
            Input::body(
                "retry_backoff",
                Kind::Object,
                "The pause before a retry: base, factor, cap",
            ),
            Input::body(
                "lease",
                Kind::Interval,
                "How long a consumer may work on it",
            ),
            Input::body("name", Kind::Text, "What it is called"),
            Input::body("labels", Kind::Object, "Strings to find it by"),
        ],
        sql: include_str!("../../../sql/dispatches/enqueue.sql"),
        answer: Answer::Created {
            location: "/v1/dispatches/",
            then: None,
        },
    },
    Operation {
        id: "dispatch.list",
        method: Method::GET,
        path: "/v1/dispatches",
        summary: "Lists dispatches, the newest first, without payload, metadata, context, result and errors",
        inputs: &[
            Input::query("status", Kind::Choice(STATUS), "Only of this status"),
            Input::query("action_id", Kind::Uuid, "Only of this action"),
            PROVIDER,
            ACTION_TYPE,
            NAMESPACE,
            TENANT,
            Input::query("subject", Kind::Text, "Only of this subject"),
            BEFORE,
            LIMIT,
        ],
        sql: include_str!("../../../sql/dispatches/list.sql"),
        answer: Answer::Page { exists: None },
    },
    Operation {
        id: "dispatch.get",
        method: Method::GET,
        path: "/v1/dispatches/{id}",
        summary: "Shows a dispatch",
        inputs: &[ID],
        sql: include_str!("../../../sql/dispatches/get.sql"),
        answer: Answer::One,
    },
    Operation {
        id: "dispatch.cancel",
        method: Method::POST,
        path: "/v1/dispatches/{id}/cancel",
        summary: "Cancels a pending dispatch; a running one is asked to stop",
        inputs: &[ID, Input::body("reason", Kind::Text, "Why")],
        sql: include_str!("../../../sql/dispatches/cancel.sql"),
        answer: Answer::One,
    },
    Operation {
        id: "dispatch.retry",
        method: Method::POST,
        path: "/v1/dispatches/{id}/retry",
        summary: "Lets a dispatch that has failed for good, or was cancelled, be claimed once more",
        inputs: &[ID],
        sql: include_str!("../../../sql/dispatches/retry.sql"),
        answer: Answer::One,
    },
    Operation {
        id: "dispatch.dead_letters",
        method: Method::GET,
        path: "/v1/dead-letters",
        summary: "Lists dispatches that have failed for good, the newest first, without payload and errors",
        inputs: &[PROVIDER, ACTION_TYPE, NAMESPACE, TENANT, BEFORE, LIMIT],
        sql: include_str!("../../../sql/dispatches/dead_letters.sql"),
        answer: Answer::Page { exists: None },
    },
];
