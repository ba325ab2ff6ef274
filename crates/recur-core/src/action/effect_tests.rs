//! What follows from creating, pausing, resuming and deleting.

use std::time::Duration;

use recurrence::Zone;

use super::fixtures::{
    Text, action, arguments, at, changes, environment, json, now, paused, running, shown,
};
use super::{
    Changes, Code, Column, Environment, Interval, Invalid, Limits, Timer, Value, create, delete,
    is_resumable, pause, resume,
};

fn refused<const N: usize>(more: [(Column, Value<Text>); N]) -> Invalid {
    create(&arguments(more), now(), &environment()).unwrap_err()
}

#[track_caller]
fn refuses<const N: usize>(more: [(Column, Value<Text>); N], message: &str, hint: &str) {
    let invalid = refused(more);
    assert_eq!(invalid.code, Code::InvalidParameter);
    assert_eq!(invalid.message, message);
    assert_eq!(invalid.hint.unwrap_or_default(), hint, "{message}");
}

#[test]
fn the_defaults_are_those_of_the_table() {
    let created = create(&arguments([]), now(), &environment()).unwrap();
    let definition = &created.action.definition;
    let values: Vec<String> = definition
        .iter()
        .map(|(column, value)| format!("{}={}", column.name(), value.text()))
        .collect();
    assert_eq!(
        values.join("\n"),
        "name=n
namespace=default
tenant=default
subject=NULL
description=NULL
labels={}
schedule=0 9 * * *
timezone=UTC
starts_at=NULL
ends_at=NULL
max_runs=NULL
count_runs=dispatched
on_dst_gap=roll_forward
on_dst_fold=first
provider=p
action_type=a
payload={}
metadata={}
dedup_key=NULL
dedup_window=NULL
on_duplicate=merge
misfire=once
misfire_grace=NULL
catchup_limit=100
overlap=allow
jitter=00:00:00
horizon=NULL
horizon_count=NULL
max_attempts=3
retry_backoff={\"base\": \"30 seconds\", \"factor\": 2, \"cap\": \"1 hour\"}
lease=00:05:00
priority=0
lock_group=NULL
notify_channel=NULL
primary_agent=NULL
fallback_agent=NULL
fallback_after=00:05:00
contact=NULL
mute=false
mute_interval=NULL
error_threshold=NULL
record_events=NULL
late_after=NULL
max_runtime=NULL
max_silence=NULL
keep_history=all\nendpoint=NULL"
    );
    let tomorrow = at("2027-04-02T09:00:00Z");
    assert_eq!(
        created.action.timer,
        Timer {
            enabled: true,
            next_run_at: Some(tomorrow),
            due_at: Some(tomorrow),
            ..Timer::default()
        }
    );
    assert_eq!(
        (
            created.action.context,
            created.action.context_version,
            created.action.duplicate
        ),
        (None, 0, false)
    );
    assert_eq!(
        shown(&created.event),
        "action.created name=n, namespace=default, tenant=default, schedule=0 9 * * *, timezone=UTC, \
         next_run_at=2027-04-02 09:00:00+00"
    );
}

/// NULL is what SQL gives for an argument that is left out.
#[test]
fn null_means_the_default() {
    let required = [
        Column::Name,
        Column::Schedule,
        Column::Provider,
        Column::ActionType,
    ];
    let nulls = Column::ALL
        .iter()
        .filter(|column| !required.contains(column));
    let nulls = nulls.map(|column| (*column, Value::Null));
    let given = required.map(|column| (column, arguments([]).get(column).unwrap().clone()));
    let all: Changes<Text> = Changes::from_arguments(given.into_iter().chain(nulls)).unwrap();
    assert_eq!(
        create(&all, now(), &environment()),
        create(&arguments([]), now(), &environment())
    );
    for column in required {
        let message = format!("invalid {} \"NULL\": must have a value", column.name());
        refuses([(column, Value::Null)], &message, "");
    }
}

/// Defaults pass the checks that other values have to pass.
#[test]
fn defaults_are_valid() {
    let definition = action([]).definition;
    for (column, value) in definition.iter() {
        assert_eq!(
            super::checked(column, value, &environment()),
            Ok(value.clone())
        );
    }
}

#[test]
fn defaults_that_are_computed() {
    let environment = Environment {
        default_timezone: Zone::parse("Asia/Tokyo").unwrap(),
        ..environment()
    };
    let created = create(
        &arguments([(Column::Context, json("{}"))]),
        now(),
        &environment,
    )
    .unwrap();
    let definition = &created.action.definition;
    assert_eq!(definition.timezone(), "Asia/Tokyo");
    // Runs that build on each other must not overlap.
    assert_eq!(definition.get(Column::Overlap), &"skip".into());
    assert_eq!(
        (created.action.context, created.action.context_version),
        (Some(Text("{}".into())), 1)
    );
    let given = arguments([
        (Column::Context, json("{}")),
        (Column::Overlap, "allow".into()),
    ]);
    let created = create(&given, now(), &environment).unwrap();
    assert_eq!(
        created.action.definition.get(Column::Overlap),
        &"allow".into()
    );
}

#[test]
fn values_are_checked_and_canonical() {
    refuses(
        [(Column::Provider, " ".into())],
        "invalid provider \" \": must not be empty",
        "Give provider as a text of 1 to 255 characters.",
    );
    refuses(
        [(Column::Context, json("[]"))],
        "invalid context \"[]\": must be a JSON object",
        "Give context as an object such as '{\"key\": \"value\"}'.",
    );
    let created = create(
        &arguments([
            (Column::Schedule, " 0  9 * * mon ".into()),
            (Column::Timezone, "europe/berlin".into()),
        ]),
        now(),
        &environment(),
    )
    .unwrap();
    assert_eq!(created.action.definition.schedule(), "0 9 * * MON");
    assert_eq!(created.action.definition.timezone(), "Europe/Berlin");
    // 9:00 in Berlin, in summer.
    assert_eq!(
        created.action.timer.next_run_at,
        Some(at("2027-04-05T07:00:00Z"))
    );
}

const NO_END: &str = "Leave it out for no end.";

#[test]
fn an_action_must_fire_within_its_bounds() {
    let bounds = |start: &str, end: &str| {
        [
            (Column::StartsAt, at(start).into()),
            (Column::EndsAt, Value::<Text>::from(at(end))),
        ]
    };
    refuses(
        bounds("2100-01-02T00:00:00Z", "2100-01-01T00:00:00Z"),
        "invalid ends_at \"2100-01-01 00:00:00+00\": must not lie before starts_at, which is 2100-01-02 00:00:00+00",
        NO_END,
    );
    // Without a start as well.
    refuses(
        [(Column::EndsAt, at("2001-01-01T00:00:00Z").into())],
        "invalid ends_at \"2001-01-01 00:00:00+00\": must lie in the future",
        NO_END,
    );
    for end in ["2021-01-01T00:00:00Z", "2027-04-01T12:30:00Z"] {
        let shown = Value::<Text>::from(at(end)).text();
        let message = format!("invalid ends_at \"{shown}\": must lie in the future");
        refuses(bounds("2020-01-01T00:00:00Z", end), &message, NO_END);
    }
    let never = "recur.preview shows the occurrences of a schedule.";
    refuses(
        bounds("2100-01-01T10:00:00Z", "2100-01-02T08:00:00Z"),
        "invalid schedule \"0 9 * * *\": it has no occurrence within starts_at and ends_at",
        never,
    );
    // A paused action as well.
    refuses(
        [
            (Column::Schedule, "at 2020-01-01T00:00:00".into()),
            (Column::Enabled, false.into()),
        ],
        "invalid schedule \"at 2020-01-01T00:00:00\": its time has passed, it was 2020-01-01 00:00:00+00",
        "recur.enqueue makes a dispatch that is due at once.",
    );
    // Counted from half past twelve, it never comes to the fourth hour.
    let impossible = r#"{"every": 24, "unit": "hour", "between_hours": [3, 4]}"#;
    refuses(
        [(Column::Schedule, impossible.into())],
        "invalid schedule \"{\"every\":24,\"unit\":\"hour\",\"between_hours\":[3,4]}\": \
         it has no occurrence within starts_at and ends_at",
        never,
    );
    // Both bounds are inclusive.
    let edge = arguments(bounds("2100-01-01T09:00:00Z", "2100-01-01T09:00:00Z"));
    let created = create(&edge, now(), &environment()).unwrap();
    assert_eq!(
        created.action.timer.next_run_at,
        Some(at("2100-01-01T09:00:00Z"))
    );
}

#[test]
fn an_interval_without_a_start_runs_at_once() {
    let created = create(
        &arguments([(Column::Schedule, "1h".into())]),
        now(),
        &environment(),
    )
    .unwrap();
    assert_eq!(created.action.timer.next_run_at, Some(now()));
}

#[test]
fn a_start_in_the_past_is_not_made_up_for() {
    for schedule in ["0 9 * * *", "1d"] {
        let given = arguments([
            (Column::Schedule, schedule.into()),
            (Column::StartsAt, at("2020-01-01T09:00:00Z").into()),
        ]);
        let created = create(&given, now(), &environment()).unwrap();
        assert_eq!(
            created.action.timer.next_run_at,
            Some(at("2027-04-02T09:00:00Z"))
        );
    }
}

#[test]
fn occurrences_have_the_least_distance() {
    let environment = Environment {
        limits: Limits {
            min_interval: Duration::from_secs(1800),
            ..environment().limits
        },
        ..environment()
    };
    for (schedule, gap) in [
        ("*/10 * * * *", "600s"),
        ("0,5 9 * * *", "300s"),
        ("5m", "300s"),
    ] {
        let invalid = create(
            &arguments([(Column::Schedule, schedule.into())]),
            now(),
            &environment,
        )
        .unwrap_err();
        assert_eq!(
            invalid.message,
            format!(
                "invalid schedule \"{schedule}\": it can recur after {gap}, and recur.min_interval is 1800s"
            )
        );
        assert_eq!(
            invalid.hint.unwrap(),
            "Choose a schedule with longer pauses."
        );
    }
    for schedule in ["0,30 * * * *", "at 2100-01-01T00:00:00"] {
        create(
            &arguments([(Column::Schedule, schedule.into())]),
            now(),
            &environment,
        )
        .unwrap();
    }
}

#[test]
fn with_a_horizon_the_dispatcher_looks_at_once() {
    for ahead in [
        (
            Column::Horizon,
            Value::<Text>::from(Interval::seconds(3600)),
        ),
        (Column::HorizonCount, 2.into()),
    ] {
        let created = create(&arguments([ahead]), now(), &environment()).unwrap();
        assert_eq!(
            created.action.timer.next_run_at,
            Some(at("2027-04-02T09:00:00Z"))
        );
        assert_eq!(created.action.timer.due_at, Some(now()));
    }
}

#[test]
fn an_action_may_be_created_paused() {
    let given = arguments([
        (Column::Enabled, false.into()),
        (Column::PausedReason, "not yet".into()),
    ]);
    let created = create(&given, now(), &environment()).unwrap();
    assert_eq!(
        created.action.timer,
        Timer {
            paused_reason: Some("not yet".into()),
            ..Timer::default()
        }
    );
    assert!(!shown(&created.event).contains("next_run_at"));
    refuses(
        [(Column::PausedReason, "why".into())],
        "invalid paused_reason \"why\": the action is not paused",
        "recur.pause takes a reason.",
    );
}

#[test]
fn an_identity_fits_into_an_index() {
    let long = || "𝔘".repeat(255);
    let names = |subject: usize| {
        [
            (Column::Name, Value::<Text>::from(long())),
            (Column::Namespace, long().into()),
            (Column::Tenant, "t".repeat(255).into()),
            (Column::Subject, "s".repeat(subject).into()),
        ]
    };
    // 2 × 1,020 + 255 + 205.
    create(&arguments(names(205)), now(), &environment()).unwrap();
    let invalid = refused(names(206));
    assert!(
        invalid.message.ends_with(
            "…\": name, namespace, tenant and subject have 2501 bytes together, and at most 2500 are allowed"
        ),
        "{invalid}"
    );
    assert_eq!(invalid.hint.unwrap(), "Choose shorter names.");
}

#[test]
fn an_action_that_exists() {
    let named = action([(Column::Subject, "s".into())]).definition;
    let exists = Invalid::exists(&named);
    assert_eq!(exists.code, Code::UniqueViolation);
    assert_eq!(
        exists.message,
        "action \"n\" already exists in namespace \"default\", tenant \"default\", subject \"s\""
    );
    assert_eq!(
        exists.hint.unwrap(),
        "on_existing => 'upsert' changes it, 'add_another' puts another one beside it."
    );
    let taken = Invalid::is_taken(&action([]).definition);
    assert_eq!(
        taken.message,
        "action \"n\" already exists in namespace \"default\", tenant \"default\""
    );
    assert_eq!(
        taken.hint.unwrap(),
        "Choose another name, or delete that one first."
    );
}

#[test]
fn only_what_runs_is_paused_and_only_what_is_paused_is_resumed() {
    let asked = pause(&running([]), Some("holidays")).unwrap();
    assert_eq!(
        asked,
        changes([
            (Column::Enabled, false.into()),
            (Column::PausedReason, "holidays".into())
        ])
    );
    assert_eq!(
        pause(&running([]), None).unwrap().get(Column::PausedReason),
        Some(&Value::Null)
    );
    assert_eq!(
        resume(&paused([])).unwrap(),
        changes([(Column::Enabled, true.into())])
    );

    let mut ended = paused([]);
    ended.timer.ended_reason = Some("exhausted".into());
    let ended_hint =
        "It goes on when a change of max_runs, ends_at or the schedule leaves it a run.";
    for (action, message, hint) in [
        (
            paused([]),
            "action \"n\" is paused already",
            "recur.resume starts it again.",
        ),
        (ended, "action \"n\" has ended", ended_hint),
    ] {
        let invalid = pause(&action, None).unwrap_err();
        assert_eq!(invalid.code, Code::NotInPrerequisiteState);
        assert_eq!(invalid.message, message);
        assert_eq!(invalid.hint.unwrap(), hint);
    }
    let invalid = resume(&running([])).unwrap_err();
    assert_eq!(
        (invalid.code, invalid.message.as_str(), invalid.hint),
        (
            Code::NotInPrerequisiteState,
            "action \"n\" is not paused",
            None
        )
    );
}

#[test]
fn what_resume_all_resumes() {
    let resumable = |action| is_resumable(&action, now(), &environment());
    let in_bulk = |mut action: super::Action<Text>| {
        action.timer.paused_in_bulk = true;
        action
    };
    assert!(resumable(in_bulk(paused([]))));
    assert!(!resumable(paused([])), "it was paused by itself");
    assert!(!resumable(running([])));
    let mut ended = in_bulk(paused([]));
    ended.timer.ended_reason = Some("no_next".into());
    assert!(!resumable(ended));
    let mut exhausted = in_bulk(paused([(Column::MaxRuns, 3.into())]));
    exhausted.timer.run_count = 2;
    assert!(resumable(exhausted.clone()));
    exhausted.timer.run_count = 3;
    assert!(!resumable(exhausted));
    let over = (Column::EndsAt, at("2027-03-31T00:00:00Z").into());
    assert!(!resumable(in_bulk(paused([over]))));
}

#[test]
fn a_deletion_leaves_the_identity_to_the_next() {
    let mut action = action([(Column::Subject, "s".into())]);
    let deleted = delete(&action, 3);
    assert!(deleted.promotes_duplicate);
    assert_eq!(
        shown(&deleted.event),
        "action.deleted name=n, namespace=default, tenant=default, subject=s, schedule=0 9 * * *, timezone=UTC, \
         cancelled_dispatches=3"
    );
    action.duplicate = true;
    assert!(!delete(&action, 0).promotes_duplicate);
}
