//! Good and bad values of every kind of column.

use super::fixtures::{Text, at, environment, json};
use super::{Code, Column, Interval, Invalid, Kind, Value, checked};

fn refused(column: Column, value: Value<Text>) -> Invalid {
    let invalid = checked(column, &value, &environment()).unwrap_err();
    assert_eq!(invalid.code, Code::InvalidParameter);
    invalid
}

#[track_caller]
fn refuses(column: Column, value: impl Into<Value<Text>>, message: &str, hint: &str) {
    let invalid = refused(column, value.into());
    assert_eq!(invalid.message, message);
    assert_eq!(invalid.hint.unwrap_or_default(), hint, "{message}");
}

#[track_caller]
fn accepts(column: Column, value: impl Into<Value<Text>>) {
    let value = value.into();
    assert_eq!(
        checked(column, &value, &environment()),
        Ok(value),
        "{}",
        column.name()
    );
}

fn of_kind(kind: Kind) -> impl Iterator<Item = Column> {
    Column::ALL
        .iter()
        .copied()
        .filter(move |column| column.spec().kind == kind)
}

#[test]
fn null_is_a_value_where_the_table_allows_it() {
    for column in Column::ALL.iter().copied() {
        let result = checked(column, &Value::<Text>::Null, &environment());
        match column.spec().is_nullable() {
            true => assert_eq!(result, Ok(Value::Null)),
            false => {
                let message = format!("invalid {} \"NULL\": must have a value", column.name());
                assert_eq!(result.unwrap_err().message, message);
            }
        }
    }
}

#[test]
fn names() {
    let columns: Vec<Column> = of_kind(Kind::Name).collect();
    assert_eq!(columns.len(), 12);
    for column in columns {
        let name = column.name();
        let hint = format!("Give {name} as a text of 1 to 255 characters.");
        for blank in ["", " \t ", "\u{3000}"] {
            let message = format!("invalid {name} \"{blank}\": must not be empty");
            refuses(column, blank, &message, &hint);
        }
        let message = format!(
            "invalid {name} \"{}…\": must not be longer than 255 characters",
            "ü".repeat(120)
        );
        refuses(column, "ü".repeat(256), &message, &hint);
        accepts(column, "ü".repeat(255));
        accepts(column, " x ");
    }
}

#[test]
fn texts() {
    for column in [Column::Description, Column::PausedReason] {
        let name = column.name();
        accepts(column, "");
        accepts(column, "ü".repeat(10_000));
        refuses(
            column,
            "ü".repeat(10_001),
            &format!(
                "invalid {name} \"{}…\": must not be longer than 10000 characters",
                "ü".repeat(120)
            ),
            &format!("Give {name} as a text of at most 10000 characters."),
        );
    }
}

#[test]
fn channels_have_63_bytes() {
    let hint = "Leave it out to use recur.notify_channel.";
    accepts(Column::NotifyChannel, "c".repeat(63));
    for bad in [String::new(), "c".repeat(64), "ü".repeat(32)] {
        let message = format!("invalid notify_channel \"{bad}\": must have 1 to 63 bytes");
        refuses(Column::NotifyChannel, bad, &message, hint);
    }
}

#[test]
fn schedules_and_zones_are_stored_in_canonical_form() {
    let canonical =
        |column, text: &str| checked(column, &Value::<Text>::from(text), &environment()).unwrap();
    assert_eq!(
        canonical(Column::Schedule, "  0   9 * *  mon-fri "),
        "0 9 * * MON-FRI".into()
    );
    assert_eq!(
        canonical(Column::Timezone, "europe/BERLIN"),
        "Europe/Berlin".into()
    );
    let bad = refused(Column::Schedule, "61 * * * *".into());
    assert!(
        bad.message.starts_with("invalid schedule \"61 * * * *\": "),
        "{bad}"
    );
    let empty = refused(Column::Schedule, "".into());
    assert!(
        empty.message.starts_with("invalid schedule \"\": "),
        "{empty}"
    );
    assert!(empty.hint.unwrap().contains("cron"));
    for zone in ["Mars/Olympus", "GMT+25", "5", ""] {
        refuses(
            Column::Timezone,
            zone,
            &format!("invalid timezone \"{zone}\": not an IANA time zone"),
            "Use an IANA name such as UTC, Europe/Berlin or America/New_York.",
        );
    }
}

#[test]
fn numbers() {
    let counts: Vec<Column> = of_kind(Kind::Count { min: 1 }).collect();
    assert_eq!(
        counts,
        [
            Column::MaxRuns,
            Column::CatchupLimit,
            Column::HorizonCount,
            Column::MaxAttempts,
            Column::ErrorThreshold
        ]
    );
    for column in counts {
        let name = column.name();
        accepts(column, 1);
        accepts(column, 2_147_483_647);
        for bad in [0, -1] {
            refuses(
                column,
                bad,
                &format!("invalid {name} \"{bad}\": must be at least 1"),
                "",
            );
        }
        let message = format!("invalid {name} \"2147483648\": must be at most 2147483647");
        refuses(column, 2_147_483_648, &message, "");
    }
    for good in [-2_147_483_648, 0, 2_147_483_647] {
        accepts(Column::Priority, good);
    }
    refuses(
        Column::Priority,
        -2_147_483_649,
        "invalid priority \"-2147483649\": must be at least -2147483648",
        "",
    );
}

#[test]
fn choices() {
    for (column, allowed) in [
        (Column::OnDstGap, "roll_forward or skip"),
        (Column::OnDstFold, "first, second or both"),
        (Column::Misfire, "once, skip or all"),
        (Column::Overlap, "allow, skip, queue_one or cancel_previous"),
        (Column::OnDuplicate, "merge or skip"),
        (Column::KeepHistory, "all, failures or none"),
    ] {
        for bad in ["maybe", "", "ALL"] {
            let message = format!("invalid {} \"{bad}\": must be {allowed}", column.name());
            refuses(column, bad, &message, "");
        }
        let Kind::Choice(choices) = column.spec().kind else {
            panic!("{} is no choice", column.name());
        };
        for choice in choices {
            accepts(column, *choice);
        }
    }
}

#[test]
fn intervals_may_be_zero_where_the_table_allows_it() {
    for (column, problem) in [
        (Column::Jitter, None),
        (Column::MisfireGrace, None),
        (Column::DedupWindow, None),
        (Column::Lease, Some("longer than nothing")),
        (Column::Horizon, Some("longer than nothing")),
        (Column::MuteInterval, Some("longer than nothing")),
    ] {
        accepts(column, Interval::seconds(1));
        match problem {
            None => accepts(column, Interval::ZERO),
            Some(problem) => refuses(
                column,
                Interval::ZERO,
                &format!("invalid {} \"00:00:00\": must be {problem}", column.name()),
                &format!("Give {} as an interval such as '5 minutes'.", column.name()),
            ),
        }
    }
}

#[test]
fn recorded_events_are_stored_in_canonical_form() {
    let given: Value<Text> = "triggered,failed".into();
    let stored = checked(Column::RecordEvents, &given, &environment());
    assert_eq!(stored, Ok("failed, triggered".into()));
    refuses(
        Column::RecordEvents,
        "most",
        "invalid record_events \"most\": must be all, none, or some of completed, failed, cancelled, retrying, \
         triggered, separated by commas",
        "Leave it out to use recur.record_events.",
    );
}

#[test]
fn objects() {
    for column in [Column::Payload, Column::Context, Column::RetryBackoff] {
        let name = column.name();
        for bad in ["[1, 2]", "\"text\"", "null", "7"] {
            refuses(
                column,
                json(bad),
                &format!("invalid {name} \"{bad}\": must be a JSON object"),
                &format!("Give {name} as an object such as '{{\"key\": \"value\"}}'."),
            );
        }
    }
    // A payload is not read: any number comes out as it went in.
    for payload in [
        "{}",
        r#"{"n": 12345678901234567890.123456789}"#,
        r#"{"n": 1e400}"#,
    ] {
        accepts(Column::Payload, json(payload));
    }
}

#[test]
fn json_has_a_size_limit() {
    for column in [
        Column::Payload,
        Column::Context,
        Column::Metadata,
        Column::Labels,
        Column::RetryBackoff,
    ] {
        let large = |size: usize| format!("{{\"k\": \"{}\"}}", "x".repeat(size - 9));
        assert_eq!(large(1_000_000).len(), 1_000_000);
        if column != Column::RetryBackoff {
            accepts(column, json(&large(1_000_000)));
        }
        refuses(
            column,
            json(&large(1_000_001)),
            &format!(
                "invalid {} \"1000001 bytes\": must not have more than 1000000 bytes",
                column.name()
            ),
            "Store large data in a table, and refer to its row.",
        );
    }
}

#[test]
fn labels_are_flat_objects_of_strings() {
    for column in [Column::Labels, Column::Metadata] {
        let name = column.name();
        for good in ["{}", r#"{"team": "billing", "": ""}"#] {
            accepts(column, json(good));
        }
        let deep = format!("{{\"a\": {}1{}}}", "[".repeat(500), "]".repeat(500));
        for bad in [
            r#"{"a": 1}"#,
            r#"{"a": null}"#,
            r#"{"a": {}}"#,
            "[]",
            r#"{"a": 1e400}"#,
        ] {
            refuses(
                column,
                json(bad),
                &format!(
                    "invalid {name} \"{bad}\": must be a JSON object with only strings as values"
                ),
                &format!("Give {name} as a flat object such as '{{\"team\": \"billing\"}}'."),
            );
        }
        assert!(
            refused(column, json(&deep))
                .message
                .contains("only strings")
        );
    }
}

#[test]
fn backoffs() {
    for good in [
        r#"{"base": "30 seconds", "factor": 2, "cap": "1 hour"}"#,
        r#"{"base": "1 day", "factor": 100, "cap": "100 years"}"#,
        r#"{"base": "1 hour", "factor": 1, "cap": "1 hour"}"#,
        r#"{"base": "30 days", "factor": 1.5, "cap": "1 mon"}"#,
        r#"{"base": "30s", "factor": "2", "cap": "PT1M"}"#,
    ] {
        accepts(Column::RetryBackoff, json(good));
    }
    for bad in [
        "{}",
        r#"{"base": "30 seconds", "factor": 2}"#,
        r#"{"cap": "1 second", "base": "1 minute", "factor": 2}"#,
        r#"{"cap": "1 hour", "base": "soon", "factor": 2}"#,
        r#"{"cap": "1 hour", "base": "0 seconds", "factor": 2}"#,
        // The server reads these as seconds, and others as minutes.
        r#"{"base": 30, "factor": "2", "cap": "60"}"#,
        r#"{"cap": "1 hour", "base": "1 minute", "factor": 0}"#,
        r#"{"cap": "1 hour", "base": "1 minute", "factor": 0.99}"#,
        r#"{"cap": "1 hour", "base": "1 minute", "factor": 101}"#,
        r#"{"cap": "1 hour", "base": "1 minute", "factor": "NaN"}"#,
        r#"{"cap": "1 hour", "base": "1 minute", "factor": null}"#,
        r#"{"cap": "1 hour", "base": "1 minute", "factor": 1e400}"#,
        r#"{"cap": "1 hour", "base": "1 minute", "extra": 1, "factor": 2}"#,
        r#"{"cap": "101 years", "base": "1 minute", "factor": 2}"#,
        r#"{"cap": "1 hour", "base": "1 mon -30 days", "factor": 2}"#,
        r#"{"cap": "2 mons", "base": "1 mon -29 days", "factor": 2}"#,
    ] {
        refuses(
            Column::RetryBackoff,
            json(bad),
            &format!(
                "invalid retry_backoff \"{bad}\": must have a base longer than nothing, a factor from 1 to 100, \
                 and a cap not below the base and not above 100 years"
            ),
            r#"For instance {"base": "30 seconds", "factor": 2, "cap": "1 hour"}."#,
        );
    }
}

#[test]
fn a_value_of_another_type_is_refused() {
    for (column, value, message) in [
        (
            Column::Name,
            5.into(),
            "invalid name \"5\": must be of type text",
        ),
        (
            Column::Priority,
            "high".into(),
            "invalid priority \"high\": must be of type int",
        ),
        (
            Column::Mute,
            1.into(),
            "invalid mute \"1\": must be of type boolean",
        ),
        (
            Column::Lease,
            5.into(),
            "invalid lease \"5\": must be of type interval",
        ),
        (
            Column::EndsAt,
            "soon".into(),
            "invalid ends_at \"soon\": must be of type timestamptz",
        ),
        (
            Column::Payload,
            "{}".into(),
            "invalid payload \"{}\": must be of type jsonb",
        ),
        (
            Column::Overlap,
            json("{}"),
            "invalid overlap \"{}\": must be of type text",
        ),
        (
            Column::Labels,
            at("2027-01-01T00:00:00Z").into(),
            "invalid labels \"2027-01-01 00:00:00+00\": must be of type jsonb",
        ),
    ] {
        refuses(column, value, message, "");
    }
    accepts(Column::Mute, true);
    accepts(Column::EndsAt, at("2001-01-01T00:00:00Z"));
}
