//! How changes are taken: by argument, by key, from a row.

use super::columns::MAINTAINED;
use super::fixtures::{Text, arguments, json};
use super::journey;
use super::{Changes, Column, Interval, Invalid, Value};

type Taken = Result<Changes<Text>, Invalid>;

#[test]
fn keys_are_columns() {
    let taken: Changes<Text> =
        Changes::from_keys([("priority", 5.into()), ("contact", Value::Null)]).unwrap();
    let pairs: Vec<(Column, &Value<Text>)> = taken.iter().collect();
    assert_eq!(
        pairs,
        [
            (Column::Priority, &Value::Int(5)),
            (Column::Contact, &Value::Null)
        ]
    );
    assert_eq!(taken.get(Column::Contact), Some(&Value::Null));
    assert_eq!(taken.given(Column::Contact), None);
    assert_eq!(taken.get(Column::Name), None);
    assert!(!taken.is_empty());
    assert!(Changes::<Text>::from_keys([]).unwrap().is_empty());
}

#[test]
fn maintained_and_unknown_keys_are_refused_by_name() {
    assert_eq!(MAINTAINED.len(), 24);
    for key in MAINTAINED {
        let invalid = Changes::<Text>::column(key).unwrap_err();
        let message = format!("invalid change \"{key}\": this column is maintained by pg_recur");
        assert_eq!(invalid.message, message);
    }
    for (key, meant) in [
        ("schedul", "Did you mean schedule? "),
        ("Name", "Did you mean name? "),
        ("name ", "Did you mean name? "),
        ("time_zone", "Did you mean timezone? "),
        ("", ""),
        ("x", ""),
        ("id\"; DROP TABLE recur.timers; --", ""),
    ] {
        let invalid = Changes::<Text>::column(key).unwrap_err();
        let message = format!("invalid change \"{key}\": an action has no such column");
        assert_eq!(invalid.message, message);
        let hint = invalid.hint.unwrap();
        let all = "What can be changed: name, namespace, tenant, subject, ";
        assert!(hint.starts_with(&format!("{meant}{all}")), "{key}: {hint}");
        assert!(hint.ends_with(", paused_reason."), "{hint}");
    }
}

#[test]
fn a_column_is_given_once() {
    let twice = [(Column::Name, "a".into()), (Column::Name, "b".into())];
    let taken: Taken = Changes::from_arguments(twice);
    let message = "invalid change \"name\": the column is given twice";
    assert_eq!(taken.unwrap_err().message, message);
    let taken: Taken = Changes::from_keys([("name", Value::Null), ("name", "b".into())]);
    assert_eq!(taken.unwrap_err().message, message);
}

#[test]
fn an_inserted_row_has_no_values_of_its_own_for_what_is_maintained() {
    let row = |name: &'static str, value: Value<Text>| {
        [
            ("id", Value::Null),
            ("name", "n".into()),
            ("lease", Value::Null),
            (name, value),
        ]
    };
    let taken = Changes::from_insert(row("run_count", Value::Null)).unwrap();
    assert_eq!(taken.given(Column::Name), Some(&"n".into()));
    assert_eq!(taken.get(Column::Lease), Some(&Value::Null));
    for (name, value) in [("owner", "alice".into()), ("duplicate", true.into())] {
        assert_eq!(
            Changes::from_insert(row(name, value)),
            Ok(taken.clone()),
            "{name}"
        );
    }
    for name in MAINTAINED
        .iter()
        .filter(|name| !["owner", "duplicate"].contains(name))
        .filter(|name| !journey::COLUMNS.contains(name))
    {
        assert_eq!(
            Changes::from_insert(row(name, 1.into()))
                .unwrap_err()
                .message,
            "an action's id, counters and times can not be given: they are worked out"
        );
    }
    assert_eq!(
        Changes::from_insert(row("journey", "billing".into()))
            .unwrap_err()
            .message,
        "invalid journey \"billing\": an INSERT makes no schedule of a journey"
    );
}

#[test]
fn of_an_updated_row_only_what_differs_is_a_change() {
    let same = ("payload", json("{\"n\": 1e400}"), json("{\"n\": 1e400}"));
    let taken: Changes<Text> = Changes::from_update([
        same.clone(),
        ("run_count", 1.into(), 1.into()),
        ("contact", "me".into(), Value::Null),
    ])
    .unwrap();
    let pairs: Vec<(Column, &Value<Text>)> = taken.iter().collect();
    assert_eq!(pairs, [(Column::Contact, &Value::Null)]);
    let refused: Taken = Changes::from_update([same, ("run_count", 1.into(), 0.into())]);
    assert_eq!(
        refused.unwrap_err().message,
        "invalid change \"run_count\": this column is maintained by pg_recur"
    );
}

#[test]
fn an_upsert_resets_what_is_left_out_and_keeps_the_state() {
    let given = arguments([
        (Column::Tenant, "t".into()),
        (Column::Description, "d".into()),
        (Column::Lease, Value::Null),
        (Column::Enabled, Value::Null),
        (Column::Overlap, "skip".into()),
    ]);
    let upsert = given.for_upsert();
    for identity in [
        Column::Name,
        Column::Namespace,
        Column::Tenant,
        Column::Subject,
    ] {
        assert_eq!(upsert.get(identity), None);
    }
    for kept in [
        Column::Timezone,
        Column::StartsAt,
        Column::Context,
        Column::Enabled,
        Column::PausedReason,
    ] {
        assert_eq!(upsert.get(kept), None, "{}", kept.name());
    }
    for (column, value) in [
        (Column::Description, "d".into()),
        (Column::Overlap, "skip".into()),
        (Column::Lease, Interval::seconds(300).into()),
        (Column::Payload, json("{}")),
        (Column::EndsAt, Value::Null),
        (Column::Contact, Value::Null),
        (Column::MaxAttempts, 3.into()),
    ] {
        assert_eq!(upsert.get(column), Some(&value), "{}", column.name());
    }
    // Left out although it is required: the check of the update refuses it.
    let incomplete: Changes<Text> = Changes::from_arguments([(Column::Name, "n".into())]).unwrap();
    assert_eq!(
        incomplete.for_upsert().get(Column::Provider),
        Some(&Value::Null)
    );
}
