-- What is checked of an action, each check with the one error text that create, update and a plain UPDATE all show.

CREATE FUNCTION recur._check_name(argument text, value text) RETURNS boolean
    LANGUAGE c IMMUTABLE PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'check_name_wrapper';
COMMENT ON FUNCTION recur._check_name IS 'Internal: raises unless value is a text of 1 to 255 characters';

CREATE FUNCTION recur._check_object(argument text, value jsonb) RETURNS boolean
    LANGUAGE c IMMUTABLE PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'check_object_wrapper';
COMMENT ON FUNCTION recur._check_object IS 'Internal: raises unless value is a JSON object';

CREATE FUNCTION recur._check_labels(argument text, value jsonb) RETURNS boolean
    LANGUAGE c IMMUTABLE PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'check_labels_wrapper';
COMMENT ON FUNCTION recur._check_labels IS 'Internal: raises unless value is a JSON object of strings';

CREATE FUNCTION recur._check_choice(argument text, value text, choices text[]) RETURNS boolean
    LANGUAGE c IMMUTABLE PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'check_choice_wrapper';
COMMENT ON FUNCTION recur._check_choice IS 'Internal: raises unless value is one of the choices';

CREATE FUNCTION recur._check_number(argument text, value int, at_least int) RETURNS boolean
    LANGUAGE c IMMUTABLE PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'check_number_wrapper';
COMMENT ON FUNCTION recur._check_number IS 'Internal: raises unless value is at least that';

CREATE FUNCTION recur._check_spacing(schedule text) RETURNS boolean
    LANGUAGE c STABLE PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'check_spacing_wrapper';
COMMENT ON FUNCTION recur._check_spacing IS
    'Internal: raises if two occurrences of the schedule can be closer together than recur.min_interval';

CREATE FUNCTION recur._check_interval(argument text, value interval, may_be_zero boolean) RETURNS boolean
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF value IS NULL OR value < interval '0' OR (value = interval '0' AND NOT may_be_zero) THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('invalid %s "%s": must be %s', argument, coalesce(value::text, 'NULL'),
                             CASE WHEN may_be_zero THEN 'zero or longer' ELSE 'longer than nothing' END),
            HINT = format('Give %s as an interval such as ''5 minutes''.', argument);
    END IF;
    -- From now on, it must end before the calendar does. Its parts are added one after the other, hence each by itself.
    IF value > interval '100 years'
       OR greatest(abs(extract(year FROM value)), abs(extract(day FROM value)) / 366, abs(extract(hour FROM value)) / 8784) > 100 THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('invalid %s "%s": must not be longer than 100 years, nor have a part that is', argument, value),
            HINT = format('Give %s as an interval such as ''5 minutes''.', argument);
    END IF;
    RETURN true;
END
$$;
COMMENT ON FUNCTION recur._check_interval IS 'Internal: raises unless value is an interval that can be waited for';

CREATE FUNCTION recur._check_backoff(value jsonb) RETURNS boolean
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    base   interval;
    cap    interval;
    factor numeric;
    sound  boolean := false;
BEGIN
    PERFORM recur._check_object('retry_backoff', value);
    IF value ?& ARRAY['base', 'factor', 'cap'] AND value - ARRAY['base', 'factor', 'cap'] = '{}' THEN
        BEGIN
            base := value ->> 'base';
            cap := value ->> 'cap';
            factor := value ->> 'factor';
            sound := base > interval '0' AND cap BETWEEN base AND interval '100 years' AND factor BETWEEN 1 AND 100;
        EXCEPTION WHEN data_exception THEN
            sound := false;
        END;
    END IF;
    IF sound IS NOT TRUE THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('invalid retry_backoff "%s": must have a base longer than nothing, a factor from 1 to 100, and a cap not below the base and not above 100 years', value),
            HINT = 'For instance {"base": "30 seconds", "factor": 2, "cap": "1 hour"}.';
    END IF;
    RETURN true;
END
$$;
COMMENT ON FUNCTION recur._check_backoff IS 'Internal: raises unless value is a retry_backoff';

-- In C, because an SQL function is planned anew by each call: 20 µs for a value that is not even there.
CREATE FUNCTION recur._check_optional_name(argument text, value text) RETURNS boolean
    LANGUAGE c IMMUTABLE PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'check_optional_name_wrapper';
COMMENT ON FUNCTION recur._check_optional_name IS 'Internal: the same for a value that may be NULL';

CREATE FUNCTION recur._check_routing(
    provider text, action_type text, namespace text, tenant text, subject text, dedup_key text, lock_group text
) RETURNS boolean
    LANGUAGE c IMMUTABLE PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'check_routing_wrapper';
COMMENT ON FUNCTION recur._check_routing IS 'Internal: the same for all names of a dispatch, in one call';

-- Whatever writes a definition, a restore included, passes here. Only what is true of a row at any time is checked:
-- last year's rows must come back as they were.
CREATE FUNCTION recur._definition_written() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM recur._check_name('name', NEW.name);
    PERFORM recur._check_name('namespace', NEW.namespace);
    PERFORM recur._check_name('tenant', NEW.tenant);
    PERFORM recur._check_name('provider', NEW.provider);
    PERFORM recur._check_name('action_type', NEW.action_type);
    PERFORM recur._check_optional_name('subject', NEW.subject);
    PERFORM recur._check_optional_name('dedup_key', NEW.dedup_key);
    PERFORM recur._check_optional_name('lock_group', NEW.lock_group);
    PERFORM recur._check_optional_name('primary_agent', NEW.primary_agent);
    PERFORM recur._check_optional_name('fallback_agent', NEW.fallback_agent);
    PERFORM recur._check_optional_name('contact', NEW.contact);
    PERFORM recur._check_object('payload', NEW.payload);
    PERFORM recur._check_labels('metadata', NEW.metadata);
    PERFORM recur._check_labels('labels', NEW.labels);
    PERFORM recur._check_choice('on_dst_gap', NEW.on_dst_gap, '{roll_forward,skip}');
    PERFORM recur._check_choice('on_dst_fold', NEW.on_dst_fold, '{first,second,both}');
    PERFORM recur._check_choice('misfire', NEW.misfire, '{once,skip,all}');
    PERFORM recur._check_choice('overlap', NEW.overlap, '{allow,skip,queue_one,cancel_previous}');
    PERFORM recur._check_choice('keep_history', NEW.keep_history, '{all,failures,none}');
    PERFORM recur._check_number('catchup_limit', NEW.catchup_limit, 1);
    PERFORM recur._check_number('max_attempts', NEW.max_attempts, 1);
    IF NEW.max_runs IS NOT NULL THEN
        PERFORM recur._check_number('max_runs', NEW.max_runs, 1);
    END IF;
    IF NEW.horizon_count IS NOT NULL THEN
        PERFORM recur._check_number('horizon_count', NEW.horizon_count, 1);
    END IF;
    PERFORM recur._check_interval('jitter', NEW.jitter, true);
    PERFORM recur._check_interval('lease', NEW.lease, false);
    IF NEW.misfire_grace IS NOT NULL THEN
        PERFORM recur._check_interval('misfire_grace', NEW.misfire_grace, true);
    END IF;
    IF NEW.horizon IS NOT NULL THEN
        PERFORM recur._check_interval('horizon', NEW.horizon, false);
    END IF;
    IF NEW.mute_interval IS NOT NULL THEN
        PERFORM recur._check_interval('mute_interval', NEW.mute_interval, false);
    END IF;
    PERFORM recur._check_backoff(NEW.retry_backoff);
    IF NEW.notify_channel = '' OR octet_length(NEW.notify_channel) > 63 THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('invalid notify_channel "%s": must have 1 to 63 bytes', NEW.notify_channel),
            HINT = 'Leave it out to use recur.notify_channel.';
    END IF;
    IF NEW.ends_at < NEW.starts_at THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('invalid ends_at "%s": must not lie before starts_at, which is %s', NEW.ends_at, NEW.starts_at),
            HINT = 'Leave it out for no end.';
    END IF;
    NEW.schedule := recur._canonical_schedule(coalesce(NEW.schedule, ''));
    NEW.timezone := recur._canonical_timezone(NEW.timezone);
    RETURN NEW;
END
$$;
COMMENT ON FUNCTION recur._definition_written IS 'Internal: validates a definition and brings it into canonical form';

CREATE TRIGGER validate
    BEFORE INSERT OR UPDATE ON recur.definitions
    FOR EACH ROW EXECUTE FUNCTION recur._definition_written();
