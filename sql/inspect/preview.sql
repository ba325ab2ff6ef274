-- What a schedule means. NULL for on_dst_gap or on_dst_fold means the default of an action.
--
-- A literal or a parameter without a type resolves to text, also where it is the id of an action: preview and describe
-- understand such a text. The other functions read no table.

CREATE FUNCTION recur.is_valid_schedule(schedule text) RETURNS boolean
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
    AS 'MODULE_PATHNAME', 'is_valid_schedule_wrapper';
COMMENT ON FUNCTION recur.is_valid_schedule IS
    'Is this text a schedule? Never raises; recur.preview shows what it means, or what is wrong with it';

CREATE FUNCTION recur_internal.checked_count(count int) RETURNS int
    LANGUAGE c IMMUTABLE PARALLEL SAFE
    AS 'MODULE_PATHNAME', 'checked_count_wrapper';
COMMENT ON FUNCTION recur_internal.checked_count IS
    'Internal: how many occurrences are asked for; raises where it is too many';

CREATE FUNCTION recur.preview(
    schedule    text,
    timezone    text        DEFAULT NULL,
    "from"      timestamptz DEFAULT recur.clock(),
    count       int         DEFAULT 10,
    starts_at   timestamptz DEFAULT NULL,
    ends_at     timestamptz DEFAULT NULL,
    max_runs    int         DEFAULT NULL,
    on_dst_gap  text        DEFAULT NULL,
    on_dst_fold text        DEFAULT NULL
) RETURNS TABLE (occurrence timestamptz, local_time timestamp, note text)
    LANGUAGE c STABLE PARALLEL SAFE
    AS 'MODULE_PATHNAME', 'preview_wrapper';
COMMENT ON FUNCTION recur.preview IS
    'The next occurrences of a schedule strictly after "from", in a time zone, by default UTC; a schedule that counts '
    'from starts_at, and has none, starts at "from" itself. note says where a clock change moved or doubled one, and '
    'after which one there is none for more than a year. A text that is the id of an action means its schedule';

CREATE FUNCTION recur.next_occurrence(
    schedule    text,
    timezone    text        DEFAULT NULL,
    "from"      timestamptz DEFAULT recur.clock(),
    starts_at   timestamptz DEFAULT NULL,
    ends_at     timestamptz DEFAULT NULL,
    max_runs    int         DEFAULT NULL,
    on_dst_gap  text        DEFAULT NULL,
    on_dst_fold text        DEFAULT NULL
) RETURNS timestamptz
    LANGUAGE c IMMUTABLE PARALLEL SAFE
    AS 'MODULE_PATHNAME', 'next_occurrence_wrapper';
COMMENT ON FUNCTION recur.next_occurrence IS
    'The first occurrence of a schedule strictly after "from", in a time zone, by default UTC; NULL if there is none. '
    'A schedule that counts from starts_at, and has none, is counted from "from"';

CREATE FUNCTION recur.describe(schedule text, timezone text DEFAULT NULL, style text DEFAULT NULL) RETURNS text
    LANGUAGE c STABLE PARALLEL SAFE
    AS 'MODULE_PATHNAME', 'describe_wrapper';
COMMENT ON FUNCTION recur.describe IS
    'A schedule in plain English, with its time zone if one is given; style is 24h (at 09:00), the default, or 12h '
    '(at 9:00 AM). A text that is the id of an action means its schedule';

CREATE FUNCTION recur_internal.describe_within(
    schedule text, timezone text, style text, starts_at timestamptz, ends_at timestamptz, max_runs int
) RETURNS text
    LANGUAGE c IMMUTABLE PARALLEL SAFE
    AS 'MODULE_PATHNAME', 'describe_within_wrapper';
COMMENT ON FUNCTION recur_internal.describe_within IS 'Internal: a schedule in plain English, with its bounds';

CREATE FUNCTION recur.lint(schedule text, timezone text DEFAULT NULL, starts_at timestamptz DEFAULT NULL)
    RETURNS TABLE (code text, finding text, remedy text)
    LANGUAGE c STABLE PARALLEL SAFE
    AS 'MODULE_PATHNAME', 'lint_wrapper';
COMMENT ON FUNCTION recur.lint IS
    'What is valid in a schedule and probably not meant, and how to write it instead: silences of more than a year, '
    'days that not every month has, steps that do not divide their field, local times that a clock change removes or '
    'repeats';

CREATE FUNCTION recur.tzdata_version() RETURNS text
    LANGUAGE c IMMUTABLE PARALLEL SAFE
    AS 'MODULE_PATHNAME', 'tzdata_version_wrapper';
COMMENT ON FUNCTION recur.tzdata_version IS
    'The version of the IANA time zone database that schedules are evaluated with; it is compiled in';

CREATE FUNCTION recur_internal.occurrences_around(
    schedule text, timezone text, at timestamptz, starts_at timestamptz, ends_at timestamptz, on_dst_gap text,
    on_dst_fold text
) RETURNS TABLE (previous timestamptz, next timestamptz)
    LANGUAGE c STABLE ROWS 1 PARALLEL SAFE
    AS 'MODULE_PATHNAME', 'occurrences_around_wrapper';
COMMENT ON FUNCTION recur_internal.occurrences_around IS
    'Internal: the last occurrence at or before an instant, and the first after it';
