-- Dispatches that no schedule asked for: triggered by hand, made up for, enqueued, received from outside. And those that
-- have to give way.

CREATE FUNCTION recur._new_id(at timestamptz) RETURNS uuid
    LANGUAGE c VOLATILE STRICT PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'new_id_wrapper';
COMMENT ON FUNCTION recur._new_id IS 'Internal: a new id, sorted by this time';

CREATE FUNCTION recur._cancel_pending(action_id uuid, reason text) RETURNS bigint
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    ids uuid[];
BEGIN
    ids := ARRAY(SELECT l.id FROM recur.live_dispatches AS l
                  WHERE l.action_id = _cancel_pending.action_id AND l.status = 'pending'
                  ORDER BY l.id FOR UPDATE);
    PERFORM recur._finish(ids, 'cancelled', NULL, array_fill(_cancel_pending.reason, ARRAY[cardinality(ids)]));
    RETURN cardinality(ids);
END
$$;
COMMENT ON FUNCTION recur._cancel_pending IS 'Internal: cancels the pending dispatches of an action and returns how many';

CREATE FUNCTION recur._make_room(actions uuid[]) RETURNS void
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    ids uuid[];
BEGIN
    -- Skipping what is locked: a consumer is about to claim or report it, and the dispatcher waits for nobody.
    ids := ARRAY(SELECT l.id FROM recur.live_dispatches AS l
                  WHERE l.action_id = ANY (_make_room.actions) AND l.status = 'pending'
                  ORDER BY l.id FOR UPDATE SKIP LOCKED);
    PERFORM recur._finish(ids, 'cancelled', NULL, array_fill('the next occurrence was due'::text, ARRAY[cardinality(ids)]));
    UPDATE recur.live_dispatches AS l
       SET cancel_requested = true
     WHERE l.id IN (SELECT r.id FROM recur.live_dispatches AS r
                     WHERE r.action_id = ANY (_make_room.actions) AND r.status = 'running' AND NOT r.cancel_requested
                       FOR UPDATE SKIP LOCKED);
END
$$;
COMMENT ON FUNCTION recur._make_room IS 'Internal: what is pending of these actions is cancelled, what runs is asked to stop';

-- Takes back what was dispatched ahead of its time: it was decided on what the action was then.
CREATE FUNCTION recur._withdraw(action_id uuid, at timestamptz) RETURNS int
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    withdrawn int;
BEGIN
    DELETE FROM recur.live_dispatches AS l
     WHERE l.action_id = _withdraw.action_id AND l.status = 'pending' AND l.trigger = 'schedule' AND l.attempt = 0
       -- Neither due, by everybody's clock, nor made available by recur.tick with a clock of its own.
       AND l.scheduled_at > _withdraw.at AND l.available_at > _withdraw.at;
    GET DIAGNOSTICS withdrawn = ROW_COUNT;
    IF withdrawn > 0 THEN
        UPDATE recur.timers AS t
           SET run_count = t.run_count - withdrawn,
               last_run_at = (SELECT max(d.scheduled_at) FROM recur.dispatches AS d
                               WHERE d.action_id = _withdraw.action_id AND d.trigger = 'schedule'
                                 -- In the history there may be what others have written.
                                 AND d.owner = (SELECT a.owner FROM recur.definitions AS a WHERE a.id = _withdraw.action_id))
         WHERE t.action_id = _withdraw.action_id;
    END IF;
    RETURN withdrawn;
END
$$;
COMMENT ON FUNCTION recur._withdraw IS 'Internal: removes the dispatches of an action that were created ahead of their time; returns how many';

CREATE FUNCTION recur.trigger(id uuid, payload jsonb DEFAULT NULL) RETURNS recur.dispatches
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    dispatch_id uuid;
    dispatch    recur.dispatches;
BEGIN
    PERFORM recur.get(trigger.id);
    IF trigger.payload IS NOT NULL THEN
        PERFORM recur._check_object('payload', trigger.payload);
    END IF;
    dispatch_id := recur._dispatch_by_hand(trigger.id, trigger.payload);
    IF dispatch_id IS NULL THEN
        -- Deleted while we waited for it.
        PERFORM recur.get(trigger.id);
    END IF;
    SELECT d.* INTO dispatch FROM recur.dispatches AS d WHERE d.id = dispatch_id;
    RETURN dispatch;
END
$$;
COMMENT ON FUNCTION recur.trigger IS
    'Dispatches an action now, whatever its schedule says and even while it is paused; a payload replaces the action''s. The schedule goes on as it was';

-- These two look whether their caller sees the action, and then have the owner of the tables do the work: nobody else
-- may write dispatches of an action, or hold its timer.
CREATE FUNCTION recur._dispatch_by_hand(action_id uuid, payload jsonb) RETURNS uuid
    LANGUAGE c
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'dispatch_by_hand_wrapper';
COMMENT ON FUNCTION recur._dispatch_by_hand IS 'Internal: dispatches an action that the caller sees, now; NULL if there is none';

CREATE FUNCTION recur._dispatch_missing(action_id uuid, "from" timestamptz, until timestamptz, "limit" int) RETURNS uuid[]
    LANGUAGE c
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'dispatch_missing_wrapper';
COMMENT ON FUNCTION recur._dispatch_missing IS 'Internal: dispatches what an action that the caller sees has missed';

CREATE FUNCTION recur._insert_by_hand(action_id uuid, trigger text, scheduled_at timestamptz, payload jsonb) RETURNS uuid
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    dispatch_id uuid;
BEGIN
    INSERT INTO recur.live_dispatches AS l
           (id, action_id, scheduled_at, trigger, namespace, tenant, owner, subject, provider, action_type, payload, metadata,
            dedup_key, primary_agent, fallback_agent, priority, lock_group, notify_channel, max_attempts, lease, available_at)
    SELECT CASE _insert_by_hand.trigger WHEN 'backfill' THEN recur._dispatch_id(d.id, _insert_by_hand.scheduled_at)
                ELSE recur._new_id(_insert_by_hand.scheduled_at) END,
           d.id, _insert_by_hand.scheduled_at, _insert_by_hand.trigger, d.namespace, d.tenant, d.owner, d.subject,
           d.provider, d.action_type, coalesce(_insert_by_hand.payload, d.payload),
           d.metadata || jsonb_build_object('_recurring_dispatch', 'true', '_recurring_id', d.id),
           recur._expanded_key(d.dedup_key, d.id, _insert_by_hand.scheduled_at),
           d.primary_agent, d.fallback_agent, d.priority, d.lock_group, d.notify_channel, d.max_attempts, d.lease,
           clock_timestamp()
      FROM recur.definitions AS d
     WHERE d.id = _insert_by_hand.action_id
       -- Whoever deletes the action waits for this, and then finds the dispatch.
       FOR KEY SHARE OF d
        ON CONFLICT (id) DO NOTHING
    RETURNING l.id INTO dispatch_id;
    -- Only now is it certain: before, it may have been on its way from the one table to the other. What another owner's
    -- consumers have written into the history does not count.
    IF dispatch_id IS NOT NULL THEN
        DELETE FROM recur.live_dispatches AS l
         WHERE l.id = dispatch_id
           AND EXISTS (SELECT FROM recur.finished_dispatches AS f
                        WHERE f.id = l.id AND f.action_id = l.action_id AND f.owner = l.owner);
        IF FOUND THEN
            dispatch_id := NULL;
        END IF;
    END IF;
    IF dispatch_id IS NOT NULL THEN
        PERFORM recur._announce(ARRAY[dispatch_id]);
    END IF;
    RETURN dispatch_id;
END
$$;
COMMENT ON FUNCTION recur._insert_by_hand IS 'Internal: one dispatch of an action, unless it is there already';

CREATE FUNCTION recur.backfill(id uuid, "from" timestamptz, until timestamptz, "limit" int DEFAULT 1000)
    RETURNS SETOF recur.dispatches
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    made uuid[];
BEGIN
    PERFORM recur.get(backfill.id);
    PERFORM recur._check_number('limit', backfill."limit", 1);
    IF backfill."limit" > 10000 THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('invalid limit "%s": must not be more than 10000', backfill."limit"),
            HINT = 'Call it again: what has been dispatched before is left out.';
    END IF;
    IF backfill."from" IS NULL OR backfill.until IS NULL OR backfill.until < backfill."from" THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('invalid until "%s": must not lie before "from", which is "%s"',
                             coalesce(backfill.until::text, 'NULL'), coalesce(backfill."from"::text, 'NULL'));
    END IF;
    IF backfill.until > clock_timestamp() THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('invalid until "%s": must not lie in the future', backfill.until),
            HINT = 'The schedule itself dispatches what is to come.';
    END IF;
    made := recur._dispatch_missing(backfill.id, backfill."from", backfill.until, backfill."limit");
    RETURN QUERY
    SELECT d.* FROM recur.dispatches AS d
     WHERE d.id = ANY (made)
     ORDER BY d.scheduled_at;
END
$$;
COMMENT ON FUNCTION recur.backfill IS
    'Dispatches the occurrences of an action from one instant to another, both included, that have no dispatch, oldest first, "limit" at the most; returns the new dispatches';

-- Holding the timer, it can't meet the dispatcher over an occurrence.
CREATE FUNCTION recur._backfill(action_id uuid, "from" timestamptz, until timestamptz, "limit" int) RETURNS uuid[]
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    definition recur.definitions;
    timer      recur.timers;
    cursor     timestamptz := _backfill."from" - interval '1 microsecond';
    page       int;
    occurrence timestamptz;
    dispatch   uuid;
    made       uuid[] := '{}';
    latest     timestamptz;
BEGIN
    SELECT t.* INTO timer FROM recur.timers AS t WHERE t.action_id = _backfill.action_id FOR UPDATE;
    SELECT d.* INTO definition FROM recur.definitions AS d
     WHERE d.id = _backfill.action_id;
    IF NOT FOUND THEN
        RETURN made;
    END IF;
    WHILE cardinality(made) < _backfill."limit" LOOP
        page := 0;
        FOR occurrence IN
            SELECT p.occurrence
              FROM recur.preview(definition.schedule, definition.timezone, cursor, 1000, definition.starts_at,
                                 least(definition.ends_at, _backfill.until), NULL, definition.on_dst_gap, definition.on_dst_fold) AS p
        LOOP
            page := page + 1;
            cursor := occurrence;
            -- From next_run_at on, the dispatcher sees to it.
            CONTINUE WHEN timer.next_run_at <= occurrence;
            CONTINUE WHEN EXISTS (SELECT FROM recur.finished_dispatches AS f
                                   WHERE f.id = recur._dispatch_id(definition.id, occurrence)
                                     AND f.action_id = definition.id AND f.owner = definition.owner);
            dispatch := recur._insert_by_hand(definition.id, 'backfill', occurrence, NULL);
            CONTINUE WHEN dispatch IS NULL;
            made := made || dispatch;
            latest := occurrence;
            EXIT WHEN cardinality(made) = _backfill."limit";
        END LOOP;
        EXIT WHEN page < 1000;
    END LOOP;
    IF latest > timer.last_run_at OR (timer.last_run_at IS NULL AND latest IS NOT NULL) THEN
        UPDATE recur.timers AS t SET last_run_at = latest WHERE t.action_id = _backfill.action_id;
    END IF;
    RETURN made;
END
$$;
COMMENT ON FUNCTION recur._backfill IS 'Internal: dispatches the occurrences of an action that have no dispatch';

CREATE FUNCTION recur.enqueue(
    provider       text,
    action_type    text,
    payload        jsonb       DEFAULT '{}',
    run_at         timestamptz DEFAULT NULL,
    namespace      text        DEFAULT 'default',
    tenant         text        DEFAULT 'default',
    subject        text        DEFAULT NULL,
    dedup_key      text        DEFAULT NULL,
    dedup_window   interval    DEFAULT NULL,
    metadata       jsonb       DEFAULT '{}',
    priority       int         DEFAULT 0,
    lock_group     text        DEFAULT NULL,
    notify_channel text        DEFAULT NULL,
    max_attempts   int         DEFAULT 3,
    retry_backoff  jsonb       DEFAULT NULL,
    lease          interval    DEFAULT NULL
) RETURNS recur.dispatches
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    -- The type is asked for first: the check would take the whole payload apart.
    IF jsonb_typeof(payload) IS DISTINCT FROM 'object' THEN
        PERFORM recur._check_object('payload', payload);
    END IF;
    RETURN recur._enqueue('enqueue', current_user, provider, action_type, payload, NULL, run_at, namespace, tenant, subject,
                          dedup_key, dedup_window, metadata, priority, lock_group, notify_channel, max_attempts,
                          retry_backoff, lease);
END
$$;
COMMENT ON FUNCTION recur.enqueue IS
    'One dispatch, now or at run_at, that belongs to no action. Where one with the same dedup_key is still pending, and no older than dedup_window if that is given, it gets the new payload and keeps its id; a dedup_window of 0 never merges';

CREATE FUNCTION recur.receive(
    provider     text,
    action_type  text,
    raw_payload  bytea,
    content_type text     DEFAULT NULL,
    headers      jsonb    DEFAULT '{}',
    namespace    text     DEFAULT 'default',
    tenant       text     DEFAULT 'default',
    subject      text     DEFAULT NULL,
    dedup_key    text     DEFAULT NULL,
    dedup_window interval DEFAULT NULL,
    priority     int      DEFAULT 0,
    lock_group   text     DEFAULT NULL,
    max_attempts int      DEFAULT 3
) RETURNS recur.dispatches
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF raw_payload IS NULL THEN
        RAISE invalid_parameter_value USING
            MESSAGE = 'invalid raw_payload "NULL": must have a value',
            HINT = 'An empty body is ''''::bytea.';
    END IF;
    PERFORM recur._check_object('headers', headers);
    RETURN recur._enqueue('webhook', current_user, provider, action_type, jsonb_build_object('headers', headers), raw_payload,
                          NULL, namespace, tenant, subject, dedup_key, dedup_window,
                          jsonb_strip_nulls(jsonb_build_object('content_type', content_type)), priority, lock_group, NULL,
                          max_attempts, NULL, NULL);
END
$$;
COMMENT ON FUNCTION recur.receive IS
    'Stores what an HTTP front end has received as a dispatch: the body byte for byte in raw_payload, the headers in payload, the content type in metadata';

-- Whoever has the row at hand need not have it read again.
CREATE FUNCTION recur._announce_one(
    id uuid, action_id uuid, scheduled_at timestamptz, namespace text, tenant text, provider text, action_type text,
    notify_channel text
) RETURNS boolean
    LANGUAGE c VOLATILE
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'announce_one_wrapper';
COMMENT ON FUNCTION recur._announce_one IS 'Internal: sends the notification of a dispatch that is available';

CREATE FUNCTION recur._enqueue(
    trigger text, owner text, provider text, action_type text, payload jsonb, raw_payload bytea, run_at timestamptz,
    namespace text, tenant text, subject text, dedup_key text, dedup_window interval, metadata jsonb, priority int,
    lock_group text, notify_channel text, max_attempts int, retry_backoff jsonb, lease interval
) RETURNS recur.dispatches
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    at       timestamptz := clock_timestamp();
    -- Assigned, not performed: plpgsql evaluates an expression by itself, and has the executor do the other.
    sound    boolean     := recur._check_routing(provider, action_type, namespace, tenant, subject, dedup_key, lock_group);
    dispatch recur.dispatches;
BEGIN
    IF metadata IS DISTINCT FROM '{}' THEN
        sound := recur._check_labels('metadata', metadata);
    END IF;
    IF max_attempts IS NULL OR max_attempts < 1 THEN
        sound := recur._check_number('max_attempts', max_attempts, 1);
    END IF;
    IF retry_backoff IS NOT NULL THEN
        PERFORM recur._check_backoff(retry_backoff);
    END IF;
    IF lease IS NOT NULL THEN
        sound := recur._check_interval('lease', lease, false);
    END IF;
    IF dedup_window IS NOT NULL THEN
        sound := recur._check_interval('dedup_window', dedup_window, true);
    END IF;
    IF notify_channel = '' OR octet_length(notify_channel) > 63 THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('invalid notify_channel "%s": must have 1 to 63 bytes', notify_channel),
            HINT = 'Leave it out to use recur.notify_channel.';
    END IF;
    IF NOT isfinite(run_at) THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('invalid run_at "%s": must be a finite point in time', run_at),
            HINT = 'Leave it out for now.';
    END IF;
    IF dedup_key IS NOT NULL AND dedup_window IS DISTINCT FROM interval '0' THEN
        -- Of two that come at the same time, the second finds the first.
        PERFORM pg_advisory_xact_lock('recur.live_dispatches'::regclass::oid::int,
                                      hashtext(concat_ws(E'\x1f', namespace, tenant, owner, dedup_key)));
        UPDATE recur.live_dispatches AS l
           SET payload = payload, raw_payload = raw_payload, metadata = metadata
         WHERE l.id = (SELECT p.id FROM recur.live_dispatches AS p
                        WHERE p.dedup_key = dedup_key AND p.status = 'pending' AND p.namespace = namespace
                          AND p.tenant = tenant AND p.owner = owner AND p.provider = provider
                          AND p.action_type = action_type AND p.trigger = trigger
                          AND (dedup_window IS NULL OR p.created_at > at - dedup_window)
                        ORDER BY p.created_at DESC LIMIT 1
                          FOR UPDATE)
           AND l.status = 'pending'
        RETURNING l.* INTO dispatch;
        IF FOUND THEN
            RETURN dispatch;
        END IF;
    END IF;
    INSERT INTO recur.live_dispatches AS l
           (id, scheduled_at, trigger, namespace, tenant, owner, subject, provider, action_type, payload, raw_payload,
            metadata, dedup_key, priority, lock_group, notify_channel, max_attempts, retry_backoff, lease, available_at)
    VALUES (recur._new_id(coalesce(run_at, at)), coalesce(run_at, at), trigger, namespace, tenant, owner, subject, provider,
            action_type, payload, raw_payload, metadata, dedup_key, priority, lock_group, notify_channel, max_attempts,
            retry_backoff, lease, coalesce(run_at, at))
    RETURNING l.* INTO dispatch;
    -- Of what is available later the dispatcher tells then.
    IF dispatch.available_at <= clock_timestamp() THEN
        sound := recur._announce_one(dispatch.id, dispatch.action_id, dispatch.scheduled_at, namespace, tenant, provider,
                                     action_type, notify_channel);
    END IF;
    RETURN dispatch;
END
$$;
COMMENT ON FUNCTION recur._enqueue IS 'Internal: a dispatch that belongs to no action';
