//! Columns that get a value because of another one: starts_at and misfire_grace. One that needs another: dedup_window.

use super::fixtures::*;
use super::{Action, Column, Interval, Value, create};

const MINUTE: Interval = Interval::seconds(60);

fn created<const N: usize>(more: [(Column, Value<Text>); N], column: Column) -> Value<Text> {
    let created = create(&arguments(more), now(), &environment()).unwrap();
    created.action.get(column)
}

#[test]
fn only_a_schedule_that_is_counted_from_its_start_gets_one() {
    for (schedule, expected) in [
        ("0 9 * * *", Value::Null),
        ("@daily", Value::Null),
        ("at 2030-01-01T00:00:00", Value::Null),
        ("90m", now().into()),
        ("RRULE:FREQ=DAILY", now().into()),
        (r#"{"every": 2, "unit": "day"}"#, now().into()),
    ] {
        let start = created([(Column::Schedule, schedule.into())], Column::StartsAt);
        assert_eq!(start, expected, "{schedule}");
    }
    let given = at("2028-01-01T00:00:00Z");
    let both = [
        (Column::Schedule, "90m".into()),
        (Column::StartsAt, given.into()),
    ];
    assert_eq!(created(both, Column::StartsAt), given.into());
}

#[test]
fn a_schedule_that_comes_to_need_a_start_is_counted_from_the_change() {
    let update = update(&running([]), [(Column::Schedule, "1h".into())]).unwrap();
    assert_eq!(update.action.get(Column::StartsAt), now().into());
    assert_eq!(
        update.action.timer.next_run_at,
        Some(at("2027-04-01T13:30:00Z"))
    );
    assert_eq!(
        all_shown(&update.events),
        [
            "action.updated old={schedule=0 9 * * *, starts_at=NULL, next_run_at=2027-04-02 09:00:00+00}, \
             new={schedule=1h, starts_at=2027-04-01 12:30:00+00, next_run_at=2027-04-01 13:30:00+00}"
        ]
    );
    // Cleared, it is counted anew; a schedule that needs none has none.
    let hourly = update.action;
    let cleared = super::fixtures::update(&hourly, [(Column::StartsAt, Value::Null)]);
    assert!(change(&hourly, &changes([(Column::StartsAt, now().into())])).is_none());
    assert_eq!(cleared.unwrap().action.get(Column::StartsAt), now().into());
    let daily = running([(Column::StartsAt, at("2027-03-01T00:00:00Z").into())]);
    let cleared = super::fixtures::update(&daily, [(Column::StartsAt, Value::Null)]);
    assert_eq!(cleared.unwrap().action.get(Column::StartsAt), Value::Null);
}

#[test]
fn misfire_skip_has_a_grace() {
    let skip = || (Column::Misfire, "skip".into());
    assert_eq!(created([], Column::MisfireGrace), Value::Null);
    assert_eq!(created([skip()], Column::MisfireGrace), MINUTE.into());
    let hour = || (Column::MisfireGrace, Interval::seconds(3_600).into());
    assert_eq!(
        created([skip(), hour()], Column::MisfireGrace),
        Interval::seconds(3_600).into()
    );
    let grace = |before: Action<Text>, pair| {
        let update = update(&before, [pair]).unwrap();
        update.action.get(Column::MisfireGrace)
    };
    assert_eq!(grace(running([]), skip()), MINUTE.into());
    assert_eq!(
        grace(running([hour()]), skip()),
        Interval::seconds(3_600).into()
    );
    // Cleared, it is the default again. Where it is the default, that changes nothing.
    let null = || (Column::MisfireGrace, Value::Null);
    assert_eq!(grace(running([skip(), hour()]), null()), MINUTE.into());
    assert!(change(&running([skip()]), &changes([null()])).is_none());
}

#[test]
fn the_default_grace_goes_with_misfire_skip() {
    let skip = || (Column::Misfire, "skip".into());
    let once = || (Column::Misfire, "once".into());
    let hour = Interval::seconds(3_600);
    let after = |before: Action<Text>| {
        let update = update(&before, [once()]).unwrap();
        update.action.get(Column::MisfireGrace)
    };
    assert_eq!(after(running([skip()])), Value::Null);
    let patient = running([skip(), (Column::MisfireGrace, hour.into())]);
    assert_eq!(after(patient), hour.into());
    let update = update(
        &running([skip()]),
        [once(), (Column::MisfireGrace, MINUTE.into())],
    );
    assert_eq!(
        update.unwrap().action.get(Column::MisfireGrace),
        MINUTE.into()
    );
}

/// An upsert that says the same changes nothing.
#[test]
fn an_upsert_derives_the_same_again() {
    let given = arguments([
        (Column::Misfire, "skip".into()),
        (Column::Schedule, "1h".into()),
    ]);
    let before = action([
        (Column::Misfire, "skip".into()),
        (Column::Schedule, "1h".into()),
    ]);
    assert!(change(&before, &given.for_upsert()).is_none());
}

#[test]
fn a_window_needs_a_key() {
    let (key, window) = (Column::DedupKey, Column::DedupWindow);
    let given = || (window, Value::Interval(MINUTE));
    let invalid = create(&arguments([given()]), now(), &environment()).unwrap_err();
    assert_eq!(
        invalid.message,
        "invalid dedup_window \"00:01:00\": means nothing without a dedup_key"
    );
    let both = [(key, "k".into()), given()];
    assert_eq!(created(both.clone(), window), MINUTE.into());
    let invalid = update(&running(both), [(key, Value::Null)]).unwrap_err();
    assert_eq!(
        invalid.hint.as_deref(),
        Some("Give dedup_key as well, or leave dedup_window out.")
    );
}

#[test]
fn an_endpoint_is_for_webhooks() {
    let (endpoint, provider) = (Column::Endpoint, Column::Provider);
    let webhook = [(provider, "webhook".into()), (endpoint, "crm".into())];
    assert_eq!(created(webhook.clone(), endpoint), "crm".into());
    let refused = |given| {
        create(&arguments(given), now(), &environment())
            .unwrap_err()
            .message
    };
    assert_eq!(
        refused([(provider, "mail".into()), (endpoint, "crm".into())]),
        "invalid endpoint \"crm\": means nothing unless provider is \"webhook\""
    );
    assert_eq!(
        refused([
            (provider, "webhook".into()),
            (endpoint, "operator:erp".into())
        ]),
        "invalid endpoint \"operator:erp\": must not begin with \"operator:\""
    );
    let invalid = update(&running(webhook), [(provider, "mail".into())]).unwrap_err();
    assert!(
        invalid.message.starts_with("invalid endpoint"),
        "{}",
        invalid.message
    );
}
