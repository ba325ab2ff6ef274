//! Definitions from SQL.

use pgrx::prelude::*;

#[pg_schema]
mod tests {
    use pgrx::prelude::*;

    fn one(query: &str) -> Option<String> {
        Spi::get_one::<String>(query).unwrap()
    }

    #[pg_test]
    fn create_stores_the_canonical_form_and_the_defaults() {
        Spi::run("SELECT recur.create('a', '  0   9 * *  mon-fri ', 'p', 't', timezone => 'europe/BERLIN')").unwrap();
        assert_eq!(
            one("SELECT concat_ws(' | ', schedule, timezone, namespace, tenant, owner, enabled, payload, metadata)
                   FROM recur.recurring_actions"),
            Some(format!("0 9 * * MON-FRI | Europe/Berlin | default | default | {} | t | {{}} | {{}}",
                one("SELECT current_user::text").unwrap()))
        );
    }

    #[pg_test]
    fn the_default_zone_is_a_setting() {
        Spi::run("SET recur.default_timezone = 'Asia/Tokyo'").unwrap();
        Spi::run("SELECT recur.create('a', '@daily', 'p', 't')").unwrap();
        assert_eq!(
            one("SELECT timezone::text FROM recur.recurring_actions"),
            Some("Asia/Tokyo".into())
        );
    }

    #[pg_test]
    fn an_interval_runs_at_once_and_counts_from_its_start() {
        Spi::run("SELECT recur.create('a', '90m', 'p', 't')").unwrap();
        assert_eq!(
            one("SELECT (next_run_at = starts_at)::text FROM recur.recurring_actions"),
            Some("true".into())
        );
        Spi::run("SELECT recur.create('b', '1h', 'p', 't', starts_at => '2020-01-01 00:17Z')")
            .unwrap();
        assert_eq!(
            one("SELECT (extract(minute FROM next_run_at) = 17
                         AND next_run_at > now() AND next_run_at <= now() + interval '1 hour')::text
                   FROM recur.recurring_actions WHERE name = 'b'"),
            Some("true".into())
        );
    }

    #[pg_test]
    fn what_is_created_disabled_has_no_next_run() {
        Spi::run("SELECT recur.create('a', '@daily', 'p', 't', enabled => false)").unwrap();
        assert_eq!(
            one("SELECT (next_run_at IS NULL AND NOT enabled)::text FROM recur.recurring_actions"),
            Some("true".into())
        );
        Spi::run("SELECT recur.resume(id) FROM recur.recurring_actions").unwrap();
        assert_eq!(
            one("SELECT (next_run_at > now() AND enabled)::text FROM recur.recurring_actions"),
            Some("true".into())
        );
    }

    #[pg_test(
        error = "invalid schedule \"at 2020-01-01T00:00:00\": its time has passed, it was 2020-01-01 00:00:00+00"
    )]
    fn a_schedule_that_is_over_is_refused() {
        Spi::run("SELECT recur.create('a', 'at 2020-01-01T00:00:00', 'p', 't')").unwrap();
    }

    #[pg_test(
        error = "new row for relation \"timers\" violates check constraint \"timers_disabled_has_no_next\""
    )]
    fn a_disabled_action_can_not_have_a_next_run() {
        Spi::run("SELECT recur.create('a', '@daily', 'p', 't')").unwrap();
        Spi::run("UPDATE recur_internal.timers SET enabled = false").unwrap();
    }

    #[pg_test(error = "action \"a\" has had all of its 1 runs")]
    fn an_exhausted_action_can_not_be_resumed() {
        Spi::run("SELECT recur.mark_test_database()").unwrap();
        Spi::run("SELECT recur.create('a', '@hourly', 'p', 't', max_runs => 1)").unwrap();
        Spi::run("SELECT recur.tick(next_run_at) FROM recur.recurring_actions").unwrap();
        Spi::run("SELECT recur.resume(id) FROM recur.recurring_actions").unwrap();
    }
}
