//! Schedules from SQL.

use pgrx::prelude::*;

#[pg_schema]
mod tests {
    use pgrx::prelude::*;

    fn texts(query: &str) -> Vec<String> {
        Spi::connect(|client| {
            client
                .select(query, None, &[])
                .unwrap()
                .map(|row| row.get::<String>(1).unwrap().unwrap_or("NULL".into()))
                .collect()
        })
    }

    #[pg_test]
    fn preview_shows_the_occurrence_that_a_clock_change_moved() {
        let rows = texts(
            "SELECT concat_ws(' | ', occurrence AT TIME ZONE 'UTC', local_time, note)
               FROM recur.preview('30 2 * * *', 'America/Chicago', '2027-03-13', 4)",
        );
        assert_eq!(
            rows,
            [
                "2027-03-13 08:30:00 | 2027-03-13 02:30:00",
                "2027-03-14 08:00:00 | 2027-03-14 03:00:00 | 2027-03-14 02:30:00 does not exist here (clocks go \
                 forward): moved to the first instant after the gap",
                "2027-03-15 07:30:00 | 2027-03-15 02:30:00",
                "2027-03-16 07:30:00 | 2027-03-16 02:30:00",
            ]
        );
    }

    #[pg_test]
    fn preview_follows_the_policies_it_is_given() {
        let skipped = texts(
            "SELECT local_time::text
               FROM recur.preview('30 2 * * *', 'America/Chicago', '2027-03-13', 2, on_dst_gap => 'skip')",
        );
        assert_eq!(skipped, ["2027-03-13 02:30:00", "2027-03-15 02:30:00"]);
        let both = texts(
            "SELECT (occurrence AT TIME ZONE 'UTC')::text
               FROM recur.preview('30 1 * * *', 'America/Chicago', '2027-11-07', 2, on_dst_fold => 'both')",
        );
        assert_eq!(both, ["2027-11-07 06:30:00", "2027-11-07 07:30:00"]);
    }

    #[pg_test]
    fn preview_holds_to_its_bounds() {
        let rows = texts(
            "SELECT (occurrence AT TIME ZONE 'UTC')::text
               FROM recur.preview('1h', 'UTC', '2027-01-01 00:00Z', 10,
                                  starts_at => '2027-01-01 00:30Z', ends_at => '2027-01-01 02:30Z')",
        );
        assert_eq!(
            rows,
            [
                "2027-01-01 00:30:00",
                "2027-01-01 01:30:00",
                "2027-01-01 02:30:00"
            ]
        );
        let counted = texts(
            "SELECT (occurrence AT TIME ZONE 'UTC')::text
               FROM recur.preview('1h', 'UTC', '2027-01-01 01:00Z', 10,
                                  starts_at => '2027-01-01 00:30Z', max_runs => 3)",
        );
        assert_eq!(counted, ["2027-01-01 01:30:00", "2027-01-01 02:30:00"]);
    }

    #[pg_test]
    fn next_occurrence_is_the_first_of_preview_or_null() {
        let same = Spi::get_one::<bool>(
            "SELECT recur.next_occurrence('0 12 * * 5#2', 'Europe/Paris', '2027-01-01Z')
                  = (SELECT occurrence FROM recur.preview('0 12 * * 5#2', 'Europe/Paris', '2027-01-01Z', 1))",
        );
        assert_eq!(same, Ok(Some(true)));
        let none = Spi::get_one::<bool>(
            "SELECT recur.next_occurrence('at 2027-01-31T09:00:00', 'UTC', '2027-02-01Z') IS NULL",
        );
        assert_eq!(none, Ok(Some(true)));
    }

    #[pg_test]
    fn is_valid_schedule_never_raises() {
        let answers = texts(
            "SELECT recur.is_valid_schedule(s)::text
               FROM unnest(ARRAY['@daily', '90m', 'RRULE:FREQ=DAILY', 'soon', '', '* * *']) AS s",
        );
        assert_eq!(answers, ["true", "true", "true", "false", "false", "false"]);
    }

    #[pg_test]
    fn the_domains_take_good_values_and_null() {
        assert_eq!(
            Spi::get_one::<&str>("SELECT '@daily'::recur.schedule::text"),
            Ok(Some("@daily"))
        );
        assert_eq!(
            Spi::get_one::<bool>("SELECT NULL::recur.schedule IS NULL"),
            Ok(Some(true))
        );
        assert_eq!(
            Spi::get_one::<bool>("SELECT NULL::recur.timezone IS NULL"),
            Ok(Some(true))
        );
    }

    #[pg_test(error = "invalid timezone \"EST4EDT\": not an IANA time zone")]
    fn the_timezone_domain_refuses_what_is_no_zone() {
        Spi::run("SELECT 'EST4EDT'::recur.timezone").unwrap();
    }

    #[pg_test(error = "invalid count \"-1\": must lie between 0 and 10000")]
    fn preview_is_bounded() {
        Spi::run("SELECT recur.preview('@daily', count => -1)").unwrap();
    }

    #[pg_test(error = "invalid from \"infinity\": must be a finite point in time")]
    fn preview_needs_a_point_in_time() {
        Spi::run("SELECT recur.preview('@daily', \"from\" => 'infinity')").unwrap();
    }

    #[pg_test]
    fn the_zone_database_is_known_by_its_version() {
        let version = Spi::get_one::<String>("SELECT recur.tzdata_version()")
            .unwrap()
            .unwrap();
        assert!(version.starts_with("20"), "{version}");
    }

    #[pg_test(error = "invalid schedule \"NULL\": must have a value")]
    fn nothing_is_no_schedule() {
        Spi::run("SELECT recur.preview(NULL)").unwrap();
    }

    #[pg_test(error = "invalid from \"NULL\": must have a value")]
    fn preview_needs_an_instant_to_start_from() {
        Spi::run("SELECT recur.next_occurrence('@daily', \"from\" => NULL)").unwrap();
    }

    #[pg_test(error = "invalid schedule \"NULL\": must have a value")]
    fn nothing_can_not_be_described() {
        Spi::run("SELECT recur.describe(NULL::text)").unwrap();
    }

    #[pg_test]
    fn null_means_the_default_elsewhere() {
        let rows = texts(
            "SELECT occurrence::text
               FROM recur.preview('@daily', NULL, '2027-01-01Z', NULL, NULL, NULL, NULL, NULL, NULL)
             EXCEPT SELECT occurrence::text FROM recur.preview('@daily', \"from\" => '2027-01-01Z')",
        );
        assert!(rows.is_empty(), "{rows:?}");
    }
}
