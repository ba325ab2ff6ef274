-- The types of a schedule and of a time zone. A text is validated wherever it enters, a plain UPDATE or a restore
-- included.

CREATE FUNCTION recur_internal.canonical_schedule(schedule text) RETURNS text
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
    AS 'MODULE_PATHNAME', 'canonical_schedule_wrapper';
COMMENT ON FUNCTION recur_internal.canonical_schedule IS
    'Internal: the form in which a schedule is stored; raises what is wrong with a text that is none';

CREATE FUNCTION recur_internal.canonical_timezone(timezone text) RETURNS text
    LANGUAGE c STABLE PARALLEL SAFE
    AS 'MODULE_PATHNAME', 'canonical_timezone_wrapper';
COMMENT ON FUNCTION recur_internal.canonical_timezone IS
    'Internal: a time zone in its own spelling, NULL meaning recur.default_timezone; raises if there is no such zone';

CREATE DOMAIN recur.schedule AS text
    CONSTRAINT schedule_is_valid CHECK (recur_internal.canonical_schedule(VALUE) IS NOT NULL OR VALUE IS NULL);
COMMENT ON DOMAIN recur.schedule IS
    'When an action recurs: cron of 5 to 7 fields, a nickname, an interval, a structured rule, an RRULE, or one time';

CREATE DOMAIN recur.timezone AS text
    CONSTRAINT timezone_is_known CHECK (VALUE IS NULL OR recur_internal.canonical_timezone(VALUE) IS NOT NULL);
COMMENT ON DOMAIN recur.timezone IS 'The name of an IANA time zone, such as Europe/Berlin';

