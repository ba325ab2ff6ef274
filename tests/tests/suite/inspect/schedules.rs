//! Schedules as people write them: what is understood, what is refused and how, what is said of it.

use pg_recur_tests::{Cluster, Session};
use uuid::Uuid;

/// Every second week and only in odd weeks. The year 2093 has 53 of them: then every second week is an even one.
const SILENT: &str =
    r#"{"every":2,"unit":"week","days_of_week":["tue","thu"],"week_parity":"odd"}"#;

/// The schedule that is stored for a text.
fn stored(session: &mut Session, name: &str, text: &str) -> String {
    let create = "SELECT recur.create($1, $2, 'p', 'a', starts_at => '2099-01-31 15:30Z')";
    let id: Uuid = session.value(create, &[&name, &text]);
    let schedule = "SELECT schedule::text FROM recur.recurring_actions WHERE id = $1";
    session.value(schedule, &[&id])
}

#[test]
fn notations_of_other_systems_are_understood_and_stored_in_one_form() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    for (text, expected) in [
        (
            r#"{"every": {"interval": 2, "unit": "week"}, "daysOfWeek": ["tue", "thu"], "weekParity": "odd",
                "betweenHoursStart": 9, "betweenHoursEnd": 17}"#,
            r#"{"every":2,"unit":"week","days_of_week":["tue","thu"],"week_parity":"odd","between_hours":[9,17]}"#,
        ),
        (
            r#"{"every": 1, "unit": "year"}"#,
            r#"{"every":1,"unit":"year"}"#,
        ),
        ("hourly", "1h"),
        ("daily", "1d"),
        ("weekly", "1w"),
        ("@daily", "0 0 * * *"),
        ("30 seconds", "30s"),
        ("1 day", "1d"),
        ("every 30 seconds", "30s"),
        ("every 2 days", "2d"),
        ("0 9 $ * *", "0 9 L * *"),
        ("*,5 * * * *", "* * * * *"),
        ("FREQ=DAILY", "RRULE:FREQ=DAILY"),
    ] {
        assert_eq!(stored(&mut session, text, text), expected, "{text}");
    }
}

#[test]
fn presets_run_at_the_time_of_their_start() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    session.batch("SET timezone = 'UTC'");
    for (preset, expected) in [
        ("hourly", ["01-31 15:30", "01-31 16:30", "01-31 17:30"]),
        ("daily", ["01-31 15:30", "02-01 15:30", "02-02 15:30"]),
        ("weekly", ["01-31 15:30", "02-07 15:30", "02-14 15:30"]),
        ("@daily", ["02-01 00:00", "02-02 00:00", "02-03 00:00"]),
    ] {
        stored(&mut session, preset, preset);
        let times: Vec<String> = session.value(
            "SELECT array_agg(to_char(p.occurrence, 'MM-DD HH24:MI') ORDER BY p.occurrence)
               FROM recur.preview(recur.id_of($1), count => 3) AS p",
            &[&preset],
        );
        assert_eq!(times, expected, "{preset}");
        let next = "SELECT to_char(next_run_at, 'MM-DD HH24:MI') FROM recur.recurring_actions WHERE name = $1";
        assert_eq!(session.value::<String>(next, &[&preset]), expected[0]);
    }
}

#[test]
fn refusals_say_what_was_probably_meant() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    for (schedule, zone, message, hint) in [
        (
            "*/100 * * * * *",
            "UTC",
            "invalid schedule \"*/100 * * * * *\": cron second \"*/100\" has step \"100\", expected at most 60",
            "A step begins anew with every minute; the interval 100s goes on.",
        ),
        (
            "at 2020-01-01T00:00:00",
            "UTC",
            "invalid schedule \"at 2020-01-01T00:00:00\": its time has passed, it was 2020-01-01 00:00:00+00",
            "recur.enqueue makes a dispatch that is due at once.",
        ),
        (
            "@daily",
            "Europe/Berln",
            "invalid timezone \"Europe/Berln\": not an IANA time zone",
            "Did you mean \"Europe/Berlin\"?",
        ),
        (
            r#"{"every":1,"unit":"day","days_of_weeks":[1]}"#,
            "UTC",
            "invalid schedule \"{\"every\":1,\"unit\":\"day\",\"days_of_weeks\":[1]}\": rule has unknown key \
             \"days_of_weeks\", expected every, unit, days_of_week, week_parity, between_hours, day_of_month or \
             nth_weekday",
            "Did you mean \"days_of_week\"?",
        ),
    ] {
        let create =
            format!("SELECT recur.create('n', '{schedule}', 'p', 'a', timezone => '{zone}')");
        let (code, found, hinted) = session.error(&create);
        assert_eq!(code, "22023", "{schedule}");
        assert_eq!(found, message);
        assert_eq!(hinted, hint);
    }
}

#[test]
fn lint_lists_what_is_probably_not_meant() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let silence = format!(
        "SELECT finding FROM recur.lint('{SILENT}', 'America/Chicago', '2093-02-10 09:00 America/Chicago')
          WHERE code = 'long_silence' AND remedy <> ''"
    );
    assert_eq!(
        session.value::<String>(&silence, &[]),
        "after 2093-12-31 there is no run until 2100-01-05"
    );
    for (schedule, expected) in [
        ("0 9 * * MON-FRI", "{}"),
        ("*/7 * 31 * FRI", "{either_day,uneven_step,short_months}"),
        ("30 2 * * *", "{clock_change}"),
    ] {
        let codes = "SELECT coalesce(array_agg(l.code), '{}')::text FROM recur.lint($1, 'America/Chicago') AS l";
        let found: String = session.value(codes, &[&schedule]);
        assert_eq!(found, expected, "{schedule}");
    }
    session.assert_error(
        "SELECT * FROM recur.lint('@daily', 'Europe/Berln')",
        "22023",
        "invalid timezone \"Europe/Berln\": not an IANA time zone",
    );
}

#[test]
fn a_silence_is_said_on_creation_and_noted_in_the_preview() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let create = |name: &str, schedule: &str, more: &str| {
        format!(
            "SELECT recur.create('{name}', '{schedule}', 'p', 'a', timezone => 'America/Chicago',
                                 starts_at => '2093-02-10 09:00 America/Chicago'{more});"
        )
    };
    let said = cluster.run_script("app", &create("silent", SILENT, ""));
    assert!(
        said.contains(
            "NOTICE:  action \"silent\" falls silent for more than a year: after 2093-12-31 there is no run until \
             2100-01-05"
        ) && said.contains("HINT:  recur.lint("),
        "{said}"
    );
    let far = "SELECT recur.create('far', '0 0 29 2 *', 'p', 'a', starts_at => '2097-01-01Z')";
    assert!(cluster.run_script("app", far).contains(
        "NOTICE:  action \"far\": the first run is more than a year away, on 2104-02-29"
    ));
    // Not where it ends before, nor where every week counts.
    let weekly = SILENT.replace("\"every\":2", "\"every\":1");
    let short = create("short", SILENT, ", max_runs => 5");
    let ended = create("ended", SILENT, ", ends_at => '2093-12-31Z'");
    let quiet = [short, ended, create("weekly", &weekly, "")].concat();
    assert_eq!(cluster.run_script("app", &quiet), "");
    let notes = |session: &mut Session, name: &str, from: &str| -> Vec<Option<String>> {
        let preview = format!(
            "SELECT coalesce(array_agg(p.note ORDER BY p.occurrence), '{{}}')
               FROM recur.preview(recur.id_of('{name}'), \"from\" => '{from}', count => 2) AS p"
        );
        session.value(&preview, &[])
    };
    let gap = Some("after 2093-12-31 there is no run until 2100-01-05".to_owned());
    // On the row before the gap, and on the last row too.
    assert_eq!(
        notes(&mut session, "silent", "2093-12-29Z"),
        [None, gap.clone()]
    );
    assert_eq!(notes(&mut session, "silent", "2093-12-31Z"), [gap, None]);
    // The last run of all is before no gap.
    session.batch(&create("one", SILENT, ", max_runs => 1"));
    assert_eq!(notes(&mut session, "one", "2093-12-30Z"), [None]);
}

#[test]
fn descriptions_have_styles_and_bounds() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let weekdays =
        "SELECT recur.describe('0 9 * * MON-FRI', 'America/New_York', style => $1::text)";
    for (style, expected) in [
        (
            Some("24h"),
            "at 09:00, Monday through Friday, America/New_York",
        ),
        (None, "at 09:00, Monday through Friday, America/New_York"),
        (Some("12h"), "Every weekday at 9:00 AM, New York time"),
    ] {
        assert_eq!(session.value::<String>(weekdays, &[&style]), expected);
    }
    session.assert_error(
        "SELECT recur.describe('@daily', style => '25h')",
        "22023",
        "invalid style \"25h\": must be 24h or 12h",
    );
    let id: Uuid = session.value(
        "SELECT recur.create('n', '{\"every\":2,\"unit\":\"week\",\"days_of_week\":[\"tue\",\"thu\"]}', 'p', 'a',
                             timezone => 'America/Chicago', starts_at => '2099-02-10 09:00 America/Chicago',
                             max_runs => 12, ends_at => '2100-01-01Z')",
        &[],
    );
    assert_eq!(
        session.value::<String>("SELECT recur.describe($1::uuid)", &[&id]),
        "every 2 weeks on Tuesday and Thursday at 09:00, America/Chicago, starting Feb 10, 2099, until Dec 31, 2099, \
         12 times"
    );
    assert_eq!(
        session.value::<String>("SELECT recur.describe($1::uuid, style => '12h')", &[&id]),
        "Every 2 weeks on Tuesday and Thursday at 9:00 AM, Chicago time, starting Feb 10, 2099, until Dec 31, 2099, \
         12 times"
    );
}
