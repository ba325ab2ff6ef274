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
        for vector in lines(include_str!("../recurrence/tests/vectors/cron.jsonl"))
            .chain(lines(include_str!("../recurrence/tests/vectors/dst.jsonl")))
        {
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
        for vector in lines(include_str!("../recurrence/tests/vectors/every.jsonl")) {
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
        for vector in lines(include_str!("../recurrence/tests/vectors/invalid.jsonl")) {
            if !vector["contested"].is_null() {
                continue;
            }
            let text = vector["expr"].as_str().unwrap();
            let question = match vector["what"].as_str().unwrap() {
                "timezone" => continue,
                "rrule" => format!("RRULE:{text}"),
                _ => text.to_owned(),
            };
            let valid = Spi::get_one_with_args::<bool>(
                "SELECT recur.is_valid_schedule($1)",
                &[question.as_str().into()],
            );
            assert_eq!(valid, Ok(Some(false)), "{}: {question}", vector["id"]);
        }
    }
}
