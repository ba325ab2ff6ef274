//! What is to come: preview, compare and forecast.

use pg_recur_tests::actions::row;
use pg_recur_tests::{Cluster, Session};
use serde_json::{Value, json};
use uuid::Uuid;

/// Every day at nine in Berlin, five times.
fn create_in_berlin(session: &mut Session) -> Uuid {
    session.value(
        "SELECT recur.create('n', '0 9 * * *', 'p', 'a', timezone => 'Europe/Berlin', starts_at => '2099-01-01Z',
                             max_runs => 5)",
        &[],
    )
}

/// What a query returns, as an array of objects.
fn rows(session: &mut Session, query: &str) -> Value {
    session.value(
        &format!("SELECT coalesce(jsonb_agg(to_jsonb(q)), '[]') FROM {query} AS q"),
        &[],
    )
}

#[test]
fn preview_shows_the_occurrences_of_an_action() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    session.batch("SET timezone = 'UTC'");
    let id = create_in_berlin(&mut session);
    let preview = rows(
        &mut session,
        &format!("recur.preview('{id}'::uuid, NULL, '2099-06-01Z', 2)"),
    );
    assert_eq!(preview[0]["occurrence"], "2099-06-01T07:00:00+00:00");
    assert_eq!(preview[0]["local_time"], "2099-06-01T09:00:00");
    assert_eq!(preview.as_array().unwrap().len(), 2);
    // No more than max_runs leaves it.
    let whole = rows(
        &mut session,
        &format!("recur.preview('{id}'::uuid, NULL, '2099-06-01Z', 20)"),
    );
    assert_eq!(whole.as_array().unwrap().len(), 5);
    assert_eq!(
        session.value::<String>("SELECT recur.describe($1::uuid)", &[&id]),
        "at 09:00, Europe/Berlin, starting Jan 1, 2099, 5 times"
    );
}

#[test]
fn compare_shows_what_an_update_would_do_and_does_nothing() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    session.batch("SET timezone = 'UTC'");
    let id = create_in_berlin(&mut session);
    let before = row(&mut session, id);
    let compared = rows(
        &mut session,
        &format!("recur.compare('{id}', '{{\"schedule\": \"0 10 * * *\"}}', 2)"),
    );
    assert_eq!(
        compared,
        json!([
            {"number": 1, "current_occurrence": "2099-01-01T08:00:00+00:00",
             "new_occurrence": "2099-01-01T09:00:00+00:00", "note": "01:00:00 later"},
            {"number": 2, "current_occurrence": "2099-01-02T08:00:00+00:00",
             "new_occurrence": "2099-01-02T09:00:00+00:00", "note": "01:00:00 later"},
        ])
    );
    let notes = |session: &mut Session, changes: &str| -> Vec<String> {
        session.value(
            &format!(
                "SELECT array_agg(note ORDER BY number) FROM recur.compare('{id}', '{changes}', 3)"
            ),
            &[],
        )
    };
    assert_eq!(
        notes(&mut session, "{\"priority\": 1}"),
        ["same", "same", "same"]
    );
    assert_eq!(
        notes(&mut session, "{\"ends_at\": \"2099-01-02T12:00:00Z\"}"),
        ["same", "same", "not any more"]
    );
    assert_eq!(
        notes(&mut session, "{\"max_runs\": 1}"),
        ["same", "not any more", "not any more"]
    );
    assert_eq!(
        notes(&mut session, "{\"timezone\": \"Asia/Tokyo\"}"),
        ["08:00:00 earlier", "08:00:00 earlier", "08:00:00 earlier"]
    );
    let (code, message, _) = session.error(&format!(
        "SELECT recur.compare('{id}', '{{\"schedule\": \"soon\"}}')"
    ));
    assert_eq!(code, "22023");
    assert!(
        message.starts_with("invalid schedule \"soon\": "),
        "{message}"
    );
    session.assert_error(
        &format!("SELECT recur.compare('{id}', '{{\"x\": 1}}')"),
        "22023",
        "invalid change \"x\": an action has no such column",
    );
    let after = row(&mut session, id);
    assert_eq!(before, after);
}

#[test]
fn the_forecast_counts_what_is_coming_minute_by_minute() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    session.batch(
        "SET timezone = 'UTC';
         SELECT recur.create('a' || i, '0 9 * * *', 'p', 'a', starts_at => '2099-01-01Z')
           FROM generate_series(1, 40) AS i;
         SELECT recur.create('b', '*/15 * * * * *', 'p', 'a', starts_at => '2099-01-01 09:00Z', max_runs => 6);
         SELECT recur.create('c', '0 9 * * *', 'p', 'a', starts_at => '2099-01-01Z', enabled => false);
         SELECT recur.create('d', '0 10 * * *', 'p', 'a', timezone => 'Europe/Berlin', starts_at => '2099-01-01Z');
         SELECT recur.create('e', '0 9 * * *', 'p', 'a', starts_at => '2099-01-01Z', ends_at => '2099-01-01 09:00Z')",
    );
    let forecast: Value = session.value(
        "SELECT jsonb_object_agg(to_char(minute, 'DD HH24:MI'), dispatches)
           FROM recur.forecast('2099-01-01Z', '2099-01-03Z')",
        &[],
    );
    // Forty, one in Berlin, one on its last day, and four of the six that come every 15 seconds.
    assert_eq!(
        forecast,
        json!({"01 09:00": 46, "01 09:01": 2, "02 09:00": 41})
    );
    session.assert_error("SELECT recur.forecast('2099-01-01Z', '2099-03-01Z')", "22023", "invalid until \"2099-03-01 \
                                                                                          00:00:00+00\": must lie \
                                                                                          within 31 days after \
                                                                                          \"from\", which is \
                                                                                          2099-01-01 00:00:00+00");
}

/// Literals have no type: with three of them, the form for ids must not be as good a match.
#[test]
fn literals_alone_mean_a_schedule() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    session.batch("SET timezone = 'UTC'");
    for (arguments, first) in [
        ("'0 9 * * *'", None),
        ("'0 9 * * *', 'UTC'", None),
        (
            "'0 9 * * *', 'UTC', '2027-01-01'",
            Some("2027-01-01T09:00:00+00:00"),
        ),
        (
            "'0 9 * * *', 'Europe/Berlin', '2027-01-01', '3'",
            Some("2027-01-01T08:00:00+00:00"),
        ),
    ] {
        let shown = rows(&mut session, &format!("recur.preview({arguments})"));
        assert!(shown.as_array().unwrap().len() >= 3, "{arguments}");
        if let Some(first) = first {
            assert_eq!(shown[0]["occurrence"], first, "{arguments}");
        }
    }
    // An action, as it is and as it would be in another zone.
    let id = create_in_berlin(&mut session);
    for (zone, occurrence) in [
        ("NULL", "2099-06-01T07:00:00+00:00"),
        ("'Asia/Tokyo'", "2099-06-01T00:00:00+00:00"),
    ] {
        let call = format!("recur.preview('{id}'::uuid, {zone}, '2099-05-31 23:00Z', 1)");
        let shown = rows(&mut session, &call);
        assert_eq!(shown[0]["occurrence"], occurrence, "{zone}");
        assert_eq!(shown[0]["local_time"], "2099-06-01T09:00:00", "{zone}");
    }
}
