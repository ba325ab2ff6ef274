//! What follows from a change.

use super::fixtures::{
    all_shown, arguments, at, change, changes, environment, json, now, paused, refuses, running,
    update, withdrawing,
};
use super::{Change, Code, Column, Interval, Value, Withdrawn};

#[test]
fn only_what_is_named_changes_and_null_clears() {
    let before = running([
        (Column::Contact, "me".into()),
        (Column::Context, json("{\"c\": 1}")),
    ]);
    let update = update(
        &before,
        [
            (Column::Payload, json("{\"n\": 1e400}")),
            (Column::Priority, 5.into()),
            (Column::Contact, Value::Null),
            (Column::Context, Value::Null),
            (Column::Provider, "p".into()),
        ],
    )
    .unwrap();
    let mut expected = before.clone();
    expected
        .definition
        .set(Column::Payload, json("{\"n\": 1e400}"));
    expected.definition.set(Column::Priority, 5.into());
    expected.definition.set(Column::Contact, Value::Null);
    expected.context = None;
    expected.context_version = 2;
    assert_eq!(update.action, expected);
    // The provider has its value already.
    assert_eq!(
        update.changed,
        [
            Column::Payload,
            Column::Priority,
            Column::Contact,
            Column::Context
        ]
    );
    assert!(!update.promotes_duplicate && !update.changes_tenant && !update.changes_timer);
    assert_eq!(
        all_shown(&update.events),
        [
            "action.updated old={payload={}, priority=0, contact=me, context={\"c\": 1}, context_version=1}, \
          new={payload={\"n\": 1e400}, priority=5, contact=NULL, context=NULL, context_version=2}"
        ]
    );
}

#[test]
fn what_an_action_has_already_is_no_change() {
    let before = running([(Column::Timezone, "Europe/Berlin".into())]);
    for same in [
        changes([]),
        changes([(Column::Priority, 0.into()), (Column::Enabled, true.into())]),
        changes([(Column::Schedule, " 0  9 * * *".into())]),
        changes([(Column::Timezone, "EUROPE/berlin".into())]),
        changes([
            (Column::PausedReason, Value::Null),
            (Column::Context, Value::Null),
        ]),
    ] {
        assert_eq!(change(&before, &same), None, "{same:?}");
    }
    let same = changes([
        (Column::Enabled, false.into()),
        (Column::PausedReason, "holidays".into()),
    ]);
    assert_eq!(change(&paused([]), &same), None);
}

#[test]
fn values_are_checked_as_on_creation_of_paused_actions_too() {
    let started = || (Column::StartsAt, at("2027-03-01T00:00:00Z").into());
    for before in [running([started()]), paused([started()])] {
        for (column, value, message) in [
            (
                Column::Name,
                "".into(),
                "invalid name \"\": must not be empty",
            ),
            (
                Column::Lease,
                Value::Null,
                "invalid lease \"NULL\": must have a value",
            ),
            (
                Column::Enabled,
                Value::Null,
                "invalid enabled \"NULL\": must have a value",
            ),
            (
                Column::Context,
                json("[]"),
                "invalid context \"[]\": must be a JSON object",
            ),
            (
                Column::MaxRuns,
                0.into(),
                "invalid max_runs \"0\": must be at least 1",
            ),
            (
                Column::Schedule,
                "at 2020-01-01T00:00:00".into(),
                "invalid schedule \"at 2020-01-01T00:00:00\": its time has passed, it was 2020-01-01 00:00:00+00",
            ),
            (
                Column::EndsAt,
                at("2027-03-02T00:00:00Z").into(),
                "invalid ends_at \"2027-03-02 00:00:00+00\": must lie in the future",
            ),
            (
                Column::EndsAt,
                at("2001-01-01T00:00:00Z").into(),
                "invalid ends_at \"2001-01-01 00:00:00+00\": must not lie before starts_at, \
                 which is 2027-03-01 00:00:00+00",
            ),
        ] {
            let invalid = update(&before, [(column, value)]).unwrap_err();
            assert_eq!(invalid.message, message);
            assert_eq!(invalid.code, Code::InvalidParameter);
        }
        // What is there already is not checked again: rules may have become stricter.
        let mut odd = before.clone();
        odd.definition.set(Column::Lease, Interval::ZERO.into());
        update(&odd, [(Column::Priority, 1.into())]).unwrap();
    }
}

#[test]
fn the_next_run_follows_schedule_zone_and_bounds_and_nothing_else() {
    let mut behind = running([(Column::EndsAt, at("2028-01-01T00:00:00Z").into())]);
    let overdue = Some(at("2027-03-05T09:00:00Z"));
    behind.timer.next_run_at = overdue;
    behind.timer.due_at = overdue;
    for (column, value) in [
        (Column::Payload, json("{\"a\": 1}")),
        (Column::Name, "other".into()),
        (Column::Tenant, "other".into()),
        (Column::Misfire, "all".into()),
        (Column::Context, json("{}")),
        (Column::Lease, Interval::seconds(1).into()),
        (Column::Jitter, Interval::seconds(1).into()),
    ] {
        let timer = update(&behind, [(column, value)]).unwrap().action.timer;
        assert_eq!(timer, behind.timer, "{}", column.name());
    }
    for (column, value, next) in [
        (
            Column::Schedule,
            "0 10 * * *".into(),
            "2027-04-02T10:00:00Z",
        ),
        (
            Column::Timezone,
            "Asia/Tokyo".into(),
            "2027-04-02T00:00:00Z",
        ),
        (
            Column::StartsAt,
            at("2027-05-01T09:00:00Z").into(),
            "2027-05-01T09:00:00Z",
        ),
        (
            Column::StartsAt,
            at("2027-01-01T00:00:00Z").into(),
            "2027-04-02T09:00:00Z",
        ),
        (Column::EndsAt, Value::Null, "2027-04-02T09:00:00Z"),
        (Column::MaxRuns, 99.into(), "2027-04-02T09:00:00Z"),
        (Column::OnDstGap, "skip".into(), "2027-04-02T09:00:00Z"),
        (Column::OnDstFold, "both".into(), "2027-04-02T09:00:00Z"),
    ] {
        let update = update(&behind, [(column, value)]).unwrap();
        let timer = update.action.timer;
        assert_eq!(
            (timer.next_run_at, timer.due_at),
            (Some(at(next)), Some(at(next))),
            "{}",
            column.name()
        );
        assert!(update.changes_timer);
    }
    // An occurrence at the very moment of the change has its dispatch, or is not wanted any more.
    let update = update(&behind, [(Column::Schedule, "30 12 * * *".into())]).unwrap();
    assert_eq!(
        update.action.timer.next_run_at,
        Some(at("2027-04-02T12:30:00Z"))
    );
    assert_eq!(
        all_shown(&update.events),
        [
            "action.updated old={schedule=0 9 * * *, next_run_at=2027-03-05 09:00:00+00}, \
          new={schedule=30 12 * * *, next_run_at=2027-04-02 12:30:00+00}"
        ]
    );
}

#[test]
fn a_paused_action_stays_paused() {
    let timer = update(&paused([]), [(Column::Schedule, "@hourly".into())])
        .unwrap()
        .action
        .timer;
    assert_eq!(timer, paused([]).timer);
}

#[test]
fn runs_that_it_has_had_can_not_be_taken_back() {
    let mut before = running([]);
    before.timer.run_count = 4;
    refuses(
        &before,
        [(Column::MaxRuns, 4.into())],
        "invalid max_runs \"4\": the action has had 4 runs already",
        "Choose a higher number, or null for no limit.",
    );
    let update = update(&before, [(Column::MaxRuns, 5.into())]).unwrap();
    assert_eq!(update.action.definition.max_runs(), Some(5));
    // What was withdrawn has not run.
    let update = withdrawing(&before, [(Column::MaxRuns, 2.into())]);
    assert_eq!(update.action.timer.run_count, 1);
}

#[test]
fn under_another_identity_it_is_no_duplicate() {
    for column in [
        Column::Name,
        Column::Namespace,
        Column::Tenant,
        Column::Subject,
    ] {
        let mut before = running([]);
        let moved = update(&before, [(column, "other".into())]).unwrap();
        assert!(moved.promotes_duplicate, "{}", column.name());
        assert_eq!(moved.changes_tenant, column == Column::Tenant);
        before.duplicate = true;
        let moved = update(&before, [(column, "other".into())]).unwrap();
        assert!(!moved.promotes_duplicate && !moved.action.duplicate);
        assert!(
            all_shown(&moved.events)[0].contains("duplicate=true}"),
            "{:?}",
            moved.events
        );
    }
    let mut before = running([]);
    before.duplicate = true;
    let stays = update(&before, [(Column::Priority, 1.into())]).unwrap();
    assert!(stays.action.duplicate && !stays.promotes_duplicate);
}

/// The spacing is a matter of the schedule, not of every edit: the setting may have been raised since.
#[test]
fn the_least_distance_is_checked_where_the_schedule_changes() {
    let mut strict = environment();
    strict.limits.min_interval = std::time::Duration::from_secs(1_000_000);
    let withdrawn = Withdrawn {
        count: 1,
        last_run_at: None,
    };
    let edit = change(&running([]), &changes([(Column::Priority, 1.into())])).unwrap();
    edit.effect(withdrawn, now(), &strict).unwrap();
    let moved = change(
        &running([]),
        &changes([(Column::Timezone, "Asia/Tokyo".into())]),
    )
    .unwrap();
    let invalid = moved.effect(withdrawn, now(), &strict).unwrap_err();
    assert_eq!(
        invalid.message,
        "invalid schedule \"0 9 * * *\": it can recur after 86400s, and recur.min_interval is 1000000s"
    );
}

#[test]
fn an_edit_may_mend_what_failed() {
    let mut before = running([]);
    before.timer.error_count = 3;
    before.timer.next_run_at = Some(at("2027-04-01T09:00:00Z"));
    before.timer.due_at = Some(at("2027-04-01T13:00:00Z"));
    let timer = update(&before, [(Column::Description, "d".into())])
        .unwrap()
        .action
        .timer;
    assert_eq!(
        (timer.due_at, timer.error_count),
        (before.timer.next_run_at, 3)
    );
    // Without an error it is due when it is due.
    before.timer.error_count = 0;
    let timer = update(&before, [(Column::Description, "d".into())])
        .unwrap()
        .action
        .timer;
    assert_eq!(timer, before.timer);
}

#[test]
fn an_upsert_is_an_update() {
    let before = paused([
        (Column::Contact, "me".into()),
        (Column::Context, json("{\"c\": 1}")),
    ]);
    let given = arguments([(Column::Description, "two".into())]);
    let change = change(&before, &given.for_upsert()).unwrap();
    assert_eq!(change.definition().get(Column::Description), &"two".into());
    let upserted = change
        .effect(Withdrawn::default(), now(), &environment())
        .unwrap();
    assert_eq!(upserted.changed, [Column::Description, Column::Contact]);
    assert_eq!(upserted.action.timer, before.timer);
    assert_eq!(upserted.action.context, before.context);
    let again = given.for_upsert();
    assert_eq!(
        Change::new(upserted.action, &again, &environment()),
        Ok(None)
    );
}
