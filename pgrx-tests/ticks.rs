//! `recur.tick` with a clock of its own.

use pgrx::prelude::*;

#[pg_schema]
mod tests {
    use pgrx::prelude::*;

    fn one(query: &str) -> Option<String> {
        Spi::get_one::<String>(query).unwrap()
    }

    fn tick(at: &str) -> String {
        one(&format!(
            "SELECT concat_ws(' ', dispatched, skipped, ended, failed) FROM recur.tick('{at}')"
        ))
        .unwrap()
    }

    /// In a test database, whose actions may be ticked ahead of time.
    fn create(name: &str, schedule: &str) {
        Spi::run("SELECT recur.mark_test_database()").unwrap();
        Spi::run_with_args(
            "SELECT recur.create($1, $2, 'p', 't', starts_at => '2030-01-01Z')",
            &[name.into(), schedule.into()],
        )
        .unwrap();
    }

    #[pg_test]
    fn nothing_is_due_before_its_time() {
        create("a", "0 12 * * *");
        assert_eq!(tick("2030-01-01 11:59:59.999999Z"), "0 0 0 0");
        assert_eq!(tick("2030-01-01 12:00:00Z"), "1 0 0 0");
        assert_eq!(tick("2030-01-01 12:00:00Z"), "0 0 0 0");
    }

    #[pg_test]
    fn of_many_missed_occurrences_the_latest_fires_once() {
        create("a", "* * * * *");
        assert_eq!(tick("2030-02-01 00:00:30Z"), "1 44640 0 0");
        assert_eq!(
            one("SELECT concat_ws(' ', scheduled_at AT TIME ZONE 'UTC',
                                  (SELECT next_run_at AT TIME ZONE 'UTC' FROM recur_internal.timers))
                   FROM recur.dispatches"),
            Some("2030-02-01 00:00:00 2030-02-01 00:01:00".into())
        );
    }

    #[pg_test]
    fn an_action_that_can_not_be_evaluated_does_not_stop_the_others() {
        create("good", "0 12 * * *");
        create("bad", "0 12 * * *");
        // A row that no function of ours would write.
        Spi::run("ALTER DOMAIN recur.schedule DROP CONSTRAINT schedule_is_valid").unwrap();
        Spi::run("UPDATE recur_internal.definitions SET schedule = 'garbage' WHERE name = 'bad'")
            .unwrap();
        assert_eq!(tick("2030-01-01 12:00:00Z"), "1 0 0 1");
        assert_eq!(
            one(
                "SELECT concat_ws(' ', error_count, next_run_at AT TIME ZONE 'UTC', last_error)
                   FROM recur.recurring_actions WHERE name = 'bad'"
            )
            .map(|text| text.contains("1 2030-01-01 12:00:00 ") && text.contains("garbage")),
            Some(true)
        );
        assert_eq!(
            one("SELECT count(*)::text FROM recur.dispatches"),
            Some("1".into())
        );
    }

    #[pg_test]
    fn an_occurrence_that_was_dispatched_before_is_not_dispatched_again() {
        create("a", "0 12 * * *");
        assert_eq!(tick("2030-01-01 12:00:00Z"), "1 0 0 0");
        // As after a restore of the timers alone, or a clock that was set back.
        Spi::run(
            "UPDATE recur_internal.timers
                SET next_run_at = '2030-01-01 12:00:00Z', due_at = '2030-01-01 12:00:00Z'",
        )
        .unwrap();
        assert_eq!(tick("2030-01-01 12:00:00Z"), "0 0 0 0");
        assert_eq!(
            one("SELECT count(*)::text FROM recur.dispatches"),
            Some("1".into())
        );
        assert_eq!(
            one("SELECT (next_run_at AT TIME ZONE 'UTC')::text FROM recur_internal.timers"),
            Some("2030-01-02 12:00:00".into())
        );
    }

    #[pg_test]
    fn a_dispatch_carries_the_template_of_its_time() {
        create("a", "0 12 * * *");
        tick("2030-01-01 12:00:00Z");
        Spi::run("UPDATE recur_internal.definitions SET payload = '{\"edited\": true}'").unwrap();
        tick("2030-01-02 12:00:00Z");
        assert_eq!(
            one(
                "SELECT string_agg(payload::text, ' ' ORDER BY scheduled_at) FROM recur.dispatches"
            ),
            Some("{} {\"edited\": true}".into())
        );
    }

    #[pg_test]
    fn a_backlog_larger_than_a_batch_is_drained() {
        Spi::run("SELECT recur.mark_test_database()").unwrap();
        Spi::run(
            "SELECT count(recur.create('a' || n, '0 12 * * *', 'p', 't', starts_at => '2030-01-01Z'))
               FROM generate_series(1, 2500) AS n",
        )
        .unwrap();
        assert_eq!(tick("2030-01-01 12:00:00Z"), "2500 0 0 0");
    }
}
