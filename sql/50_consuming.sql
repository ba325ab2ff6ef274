-- Claiming dispatches and reporting back.

CREATE FUNCTION recur.claim(
    "limit"      int      DEFAULT 1,
    providers    text[]   DEFAULT NULL,
    action_types text[]   DEFAULT NULL,
    namespaces   text[]   DEFAULT NULL,
    tenants      text[]   DEFAULT NULL,
    lease        interval DEFAULT '5 minutes',
    consumer     text     DEFAULT NULL
) RETURNS SETOF recur.dispatches
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
BEGIN
    IF claim."limit" IS NULL OR claim."limit" < 1 THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('invalid limit "%s": must be at least 1', claim."limit");
    END IF;
    IF claim.lease IS NULL OR claim.lease <= interval '0' THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('invalid lease "%s": must be longer than nothing', claim.lease),
            HINT = 'Give it as long as the work may take; recur.extend is for work that takes longer.';
    END IF;
    RETURN QUERY
    UPDATE recur.dispatches AS d
       SET status = 'running',
           attempt = d.attempt + 1,
           claimed_by = coalesce(claim.consumer, nullif(current_setting('application_name'), ''), session_user::text),
           started_at = clock_timestamp(),
           lease_expires_at = clock_timestamp() + claim.lease
      FROM (SELECT p.id
              FROM recur.dispatches AS p
             WHERE p.status = 'pending'
               AND p.available_at <= clock_timestamp()
               AND (claim.providers IS NULL OR p.provider = ANY (claim.providers))
               AND (claim.action_types IS NULL OR p.action_type = ANY (claim.action_types))
               AND (claim.namespaces IS NULL OR p.namespace = ANY (claim.namespaces))
               AND (claim.tenants IS NULL OR p.tenant = ANY (claim.tenants))
             ORDER BY p.priority DESC, p.available_at
             LIMIT claim."limit"
               FOR UPDATE SKIP LOCKED) AS chosen
     WHERE d.id = chosen.id
    RETURNING d.*;
END
$$;
COMMENT ON FUNCTION recur.claim IS
    'Takes up to "limit" pending dispatches for this consumer; each is to be completed before its lease expires';

CREATE FUNCTION recur.complete(id uuid, attempt int, result jsonb DEFAULT NULL) RETURNS recur.dispatches
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    dispatch recur.dispatches;
BEGIN
    SELECT d.* INTO dispatch FROM recur.dispatches AS d WHERE d.id = complete.id FOR UPDATE;
    IF NOT FOUND THEN
        RAISE no_data_found USING
            MESSAGE = format('no dispatch has the id %s', coalesce(complete.id::text, 'NULL'));
    END IF;
    -- The attempt number fences: a consumer that was given up on can't speak for the one that took over.
    IF dispatch.status <> 'running' OR dispatch.attempt IS DISTINCT FROM complete.attempt THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('attempt %s of dispatch %s is not running', complete.attempt, dispatch.id),
            DETAIL = format('The dispatch is %s, at attempt %s.', dispatch.status, dispatch.attempt);
    END IF;
    UPDATE recur.dispatches AS d
       SET status = 'completed', finished_at = clock_timestamp(), lease_expires_at = NULL, result = complete.result
     WHERE d.id = dispatch.id
    RETURNING d.* INTO dispatch;
    RETURN dispatch;
END
$$;
COMMENT ON FUNCTION recur.complete IS 'Reports that a claimed dispatch has been done';
