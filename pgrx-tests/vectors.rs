//! The vectors of other implementations, through SQL: what `recur.preview` shows is what the engine says.

use pgrx::prelude::*;

#[pg_schema]
mod tests {
    use pgrx::datum::DatumWithOid;
    use pgrx::prelude::*;
    use serde_json::{Value, json};

    fn lines(text: &'static str) -> impl Iterator<Item = Value> {
        text.lines().map(|line| serde_json::from_str(line).unwrap())
    }

    fn preview(
        schedule: &str,
        vector: &Value,
        starts_at: Option<&str>,
        count: usize,
    ) -> Vec<String> {
        let text = |key: &str| vector[key].as_str();
        let arguments: [DatumWithOid; 7] = [
            schedule.into(),
            text("tz").into(),
            text("after").into(),
            (count as i32).into(),
            starts_at.into(),
            text("end_at").into(),
            vector["count"].as_i64().map(|runs| runs as i32).into(),
        ];
        Spi::connect(|client| {
            client
                .select(
                    "SELECT to_char(occurrence AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')
                       FROM recur.preview($1, $2, $3::timestamptz, $4, starts_at => $5::timestamptz,
                                          ends_at => $6::timestamptz, max_runs => $7)",
                    None,
                    &arguments,
                )
                .unwrap()
                .map(|row| row.get::<String>(1).unwrap().unwrap())
                .collect()
        })
    }

    fn check(schedule: &str, vector: &Value, starts_at: Option<&str>) {
        let expected: Vec<&str> = vector["expect"]
            .as_array()
            .unwrap()
            .iter()
            .map(|at| at.as_str().unwrap())
            .collect();
        let count = vector["n"].as_u64().unwrap() as usize;
        assert_eq!(
            preview(schedule, vector, starts_at, count),
            expected,
            "{}: {schedule}",
            vector["id"]
        );
    }

    #[pg_test]
    fn cron_vectors() {
        for vector in lines(include_str!(
            "../crates/recurrence/tests/vectors/cron.jsonl"
        ))
        .chain(lines(include_str!(
            "../crates/recurrence/tests/vectors/dst.jsonl"
        ))) {
            let schedule = vector["expr"].as_str().unwrap();
            let valid = Spi::get_one_with_args::<bool>(
                "SELECT recur.is_valid_schedule($1)",
                &[schedule.into()],
            );
            if vector["expect"] == json!([]) && valid == Ok(Some(false)) {
                continue; // No run exists, and we say so at once.
            }
            if valid == Ok(Some(false)) && !vector["contested"].is_null() {
                continue; // The engine's own tests list these, each with its reason.
            }
            check(schedule, &vector, None);
        }
    }

    #[pg_test]
    fn structured_rule_vectors() {
        for vector in lines(include_str!(
            "../crates/recurrence/tests/vectors/every.jsonl"
        )) {
            if vector.get("between").is_some() && vector.get("between_hours").is_none() {
                continue; // Windows with minutes: ours are of whole hours.
            }
            let mut rule = json!({ "every": vector["every"], "unit": vector["unit"] });
            for key in ["days_of_week", "week_parity", "between_hours"] {
                if let Some(value) = vector.get(key) {
                    rule[key] = value.clone();
                }
            }
            check(&rule.to_string(), &vector, vector["start_at"].as_str());
        }
    }

    #[pg_test]
    fn invalid_vectors() {
        for vector in lines(include_str!(
            "../crates/recurrence/tests/vectors/invalid.jsonl"
        )) {
            if !vector["contested"].is_null() {
                continue;
            }
            let text = vector["expr"].as_str().unwrap();
            let what = vector["what"].as_str().unwrap();
            if what == "timezone" {
                let known = PgTryBuilder::new(|| {
                    Spi::get_one_with_args::<String>(
                        "SELECT recur_internal.canonical_timezone($1)",
                        &[text.into()],
                    )
                    .unwrap()
                })
                .catch_when(PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE, |_| None)
                .execute();
                assert_eq!(known, None, "{}: {text}", vector["id"]);
                continue;
            }
            let question = match what {
                "rrule" if !text.starts_with("RRULE:") => format!("RRULE:{text}"),
                _ => text.to_owned(),
            };
            let valid = Spi::get_one_with_args::<bool>(
                "SELECT recur.is_valid_schedule($1)",
                &[question.as_str().into()],
            );
            assert_eq!(valid, Ok(Some(false)), "{}: {question}", vector["id"]);
        }
    }

    #[pg_test]
    fn rrule_vectors() {
        for mut vector in lines(include_str!(
            "../crates/recurrence/tests/vectors/rrule.jsonl"
        )) {
            let mut schedule = format!("RRULE:{}", vector["rrule"].as_str().unwrap());
            for name in ["EXDATE", "RDATE"] {
                if let Some(times) = vector[name.to_lowercase()].as_array() {
                    let times: Vec<_> = times.iter().map(|time| time.as_str().unwrap()).collect();
                    schedule += &format!("\n{name}:{}", times.join(","));
                }
            }
            // For a time in a gap `expect_alt` has the product's policy, the first instant after it.
            if !vector["expect_alt"].is_null() {
                vector["expect"] = vector["expect_alt"].take();
            }
            let starts_at = Spi::get_one_with_args::<String>(
                "SELECT (to_timestamp($1, 'YYYYMMDD\"T\"HH24MISS')::timestamp
                         AT TIME ZONE 'UTC' AT TIME ZONE 'UTC' AT TIME ZONE $2)::text",
                &[
                    vector["dtstart"].as_str().into(),
                    vector["tz"].as_str().into(),
                ],
            )
            .unwrap();
            check(&schedule, &vector, starts_at.as_deref());
        }
    }

    #[pg_test]
    fn duration_vectors() {
        for vector in lines(include_str!(
            "../crates/recurrence/tests/vectors/duration.jsonl"
        )) {
            if !vector["contested"].is_null() {
                continue; // The engine's own tests list these, each with its reason.
            }
            let text = vector["expr"].as_str().unwrap();
            let part = |name: &str| vector["expect"][name].as_i64().unwrap() as i32;
            let same = Spi::get_one_with_args::<bool>(
                "SELECT recur.next_occurrence($1, 'UTC', '2027-01-01Z', starts_at => '2027-01-01Z')
                      = timestamptz '2027-01-01Z' + make_interval(months => $2, days => $3, secs => $4)",
                &[
                    text.into(),
                    part("months").into(),
                    part("days").into(),
                    f64::from(part("seconds")).into(),
                ],
            );
            assert_eq!(same, Ok(Some(true)), "{}: {text}", vector["id"]);
        }
    }

    /// The zones that both know, every six hours from 2024 to 2030: the wall clock of a schedule is the server's. The
    /// two have their zones from different releases, and a year's releases change a few zones and their old names: so
    /// many may differ, and are listed. Whatever is wrong with how zones are read shows in hundreds.
    #[pg_test]
    fn zones_agree_with_the_server() {
        const MAY_DIFFER: usize = 40;
        Spi::run("SET LOCAL timezone = 'UTC'").unwrap();
        let names = Spi::get_one::<Vec<String>>("SELECT array_agg(name) FROM pg_timezone_names")
            .unwrap()
            .unwrap();
        let known: Vec<String> = names
            .into_iter()
            .filter(|name| recurrence::Zone::parse(name).is_ok())
            .collect();
        assert!(known.len() > 400, "{} zones", known.len());
        let differing = Spi::get_one_with_args::<Vec<String>>(
            "SELECT array_agg(DISTINCT z.name)
               FROM unnest($1) AS z (name),
                    LATERAL recur.preview('6h', z.name, '2023-12-31Z', 10000, starts_at => '2024-01-01Z') AS p
              WHERE p.occurrence AT TIME ZONE z.name <> p.local_time",
            &[known.into()],
        )
        .unwrap()
        .unwrap_or_default();
        eprintln!("zones that differ from the server's: {differing:?}");
        assert!(differing.len() <= MAY_DIFFER, "{differing:?}");
    }
}
