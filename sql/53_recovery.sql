-- What happens to dispatches other than by their consumers' reports: leases expire, people cancel and retry.

-- Tells those who listen of dispatches that can be claimed again, as the dispatcher does of new ones: one message a
-- dispatch, or, if they are many, one a channel and provider.
CREATE FUNCTION recur._announce(ids uuid[], each_max int DEFAULT NULL) RETURNS void
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF cardinality(_announce.ids) <= coalesce(_announce.each_max, current_setting('recur.notify_each_max', true)::int, 100) THEN
        -- Four names of 255 characters can be longer than a notification may be: whoever needs them has the id.
        PERFORM pg_notify(coalesce(l.notify_channel, current_setting('recur.notify_channel', true), 'recur'),
                          CASE WHEN octet_length(m.whole) < 8000 THEN m.whole ELSE m.short END)
           FROM recur.live_dispatches AS l,
                to_char(l.scheduled_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS') AS second,
        LATERAL (SELECT second || coalesce('.' || nullif(to_char(l.scheduled_at, 'US'), '000000'), '') || 'Z' AS instant) AS i,
        LATERAL (SELECT json_build_object('id', l.id, 'action_id', l.action_id, 'scheduled_at', i.instant)::text AS short,
                        json_build_object('id', l.id, 'action_id', l.action_id, 'scheduled_at', i.instant,
                                          'namespace', l.namespace, 'tenant', l.tenant, 'provider', l.provider,
                                          'action_type', l.action_type)::text AS whole) AS m
          WHERE l.id = ANY (_announce.ids);
    ELSE
        PERFORM pg_notify(o.channel, json_build_object('provider', o.provider, 'count', o.number)::text)
           FROM (SELECT coalesce(l.notify_channel, current_setting('recur.notify_channel', true), 'recur') AS channel, l.provider,
                        count(*) AS number
                   FROM recur.live_dispatches AS l
                  WHERE l.id = ANY (_announce.ids)
                  GROUP BY 1, 2) AS o;
    END IF;
END
$$;
COMMENT ON FUNCTION recur._announce IS 'Internal: sends the notifications of dispatches that are available again';

-- Nobody but the extension writes events. Whoever may recover may have that recorded.
CREATE FUNCTION recur._record_recoveries(dispatches recur.dispatches[], reason text) RETURNS void
    LANGUAGE sql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
AS $$
    INSERT INTO recur.events (kind, action_id, dispatch_id, owner, detail, partition)
    SELECT 'dispatch.recovered', d.action_id, d.id, d.owner,
           jsonb_build_object('reason', _record_recoveries.reason, 'attempt', d.attempt, 'status', d.status, 'claimed_by', d.claimed_by),
           (SELECT recur._history_partition())
      FROM unnest(_record_recoveries.dispatches) AS d
$$;
COMMENT ON FUNCTION recur._record_recoveries IS 'Internal: records that dispatches were taken from consumers that did not report';

-- Consumers that did not come back. Set-wise, and past whatever somebody else has locked: no claim and no report waits
-- for it for long, and it waits for none of them.
--
-- What fails for good is counted in its action's row of recur.progress. A consumer that has reported in a transaction which is
-- still open has that row; then what would have to be counted there is left for later, and it alone. That row comes first here,
-- and not after the dispatches, as it does elsewhere: what is left for later is then not locked either, each time anew. Nobody
-- can wait in a circle, because here nobody waits.
CREATE FUNCTION recur._expire_leases(
    at      timestamptz DEFAULT clock_timestamp(),
    "limit" int         DEFAULT 10000,
    ids     uuid[]      DEFAULT NULL)
    RETURNS bigint
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    failing   uuid[];
    countable uuid[];
    expired   uuid[];
    outcome   record;
    recovered recur.dispatches[];
    available uuid[];
BEGIN
    SELECT array_agg(DISTINCT l.action_id) INTO failing
      FROM recur.live_dispatches AS l
     WHERE l.status = 'running' AND l.lease_expires_at <= _expire_leases.at
       AND NOT l.cancel_requested AND l.attempt - l.releases >= l.max_attempts
       AND (_expire_leases.ids IS NULL OR l.id IN (SELECT unnest(_expire_leases.ids)));
    SELECT array_agg(x.action_id) INTO countable
      FROM (SELECT p.action_id
              FROM recur.progress AS p
             WHERE p.action_id = ANY (failing)
             ORDER BY p.action_id
             LIMIT _expire_leases."limit"
               FOR UPDATE SKIP LOCKED) AS x;
    SELECT array_agg(x.id) INTO expired
      FROM (SELECT l.id
              FROM recur.live_dispatches AS l
             WHERE l.status = 'running' AND l.lease_expires_at <= _expire_leases.at
               AND (l.cancel_requested OR l.attempt - l.releases < l.max_attempts
                    OR l.action_id IS NULL OR l.action_id IN (SELECT unnest(countable))
                    OR NOT EXISTS (SELECT FROM recur.progress AS p WHERE p.action_id = l.action_id))
               AND (_expire_leases.ids IS NULL OR l.id IN (SELECT unnest(_expire_leases.ids)))
             ORDER BY l.lease_expires_at
             LIMIT _expire_leases."limit"
               FOR UPDATE OF l SKIP LOCKED) AS x;
    IF expired IS NULL THEN
        RETURN 0;
    END IF;
    -- A lease that ran out is no reason to wait: the next consumer may start at once.
    WITH again AS (
        UPDATE recur.live_dispatches AS l
           SET status = 'pending', available_at = clock_timestamp(), lease_expires_at = NULL, error = 'lease expired',
               errors = coalesce(l.errors, '[]')
                        || jsonb_build_object('attempt', l.attempt, 'at', clock_timestamp(), 'reason', 'lease expired')
         WHERE l.id = ANY (expired) AND NOT l.cancel_requested AND l.attempt - l.releases < l.max_attempts
        RETURNING l.*
    )
    SELECT array_agg(ROW(g.*)::recur.dispatches), array_agg(g.id) INTO recovered, available FROM again AS g;
    FOR outcome IN
        SELECT o.status, array_agg(o.id) AS ids
          FROM (SELECT l.id, CASE WHEN l.cancel_requested THEN 'cancelled' ELSE 'failed' END AS status
                  FROM recur.live_dispatches AS l
                 WHERE l.id = ANY (expired) AND l.status <> 'pending') AS o
         GROUP BY o.status
    LOOP
        SELECT recovered || array_agg(ROW(f.*)::recur.dispatches) INTO recovered
          FROM recur._finish(outcome.ids, outcome.status, NULL,
                             array_fill('lease expired'::text, ARRAY[cardinality(outcome.ids)])) AS f;
    END LOOP;
    PERFORM recur._record_recoveries(recovered, 'lease expired');
    IF available IS NOT NULL THEN
        PERFORM recur._announce(available, 0);
    END IF;
    RETURN cardinality(expired);
END
$$;
COMMENT ON FUNCTION recur._expire_leases IS
    'Internal: takes running dispatches from consumers whose lease has expired; returns how many. What the maintenance worker does';

CREATE FUNCTION recur.recover(max_age interval) RETURNS bigint
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    lost      uuid[];
    recovered recur.dispatches[];
BEGIN
    IF recover.max_age IS NULL OR recover.max_age < interval '0' THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('invalid max_age "%s": must be zero or longer', coalesce(recover.max_age::text, 'NULL')),
            HINT = 'Runs that started longer ago are given up; choose it longer than any run takes.';
    END IF;
    SELECT array_agg(x.id) INTO lost
      FROM (SELECT l.id
              FROM recur.live_dispatches AS l
             WHERE l.status = 'running' AND l.started_at < clock_timestamp() - recover.max_age
               FOR UPDATE SKIP LOCKED) AS x;
    IF lost IS NULL THEN
        RETURN 0;
    END IF;
    SELECT array_agg(ROW(f.*)::recur.dispatches) INTO recovered
      FROM recur._finish(lost, 'failed', NULL, array_fill('recovered from restart'::text, ARRAY[cardinality(lost)])) AS f;
    PERFORM recur._record_recoveries(recovered, 'recovered from restart');
    RETURN cardinality(lost);
END
$$;
COMMENT ON FUNCTION recur.recover IS
    'Gives up the runs that started longer ago than max_age: they have failed for good. Returns how many';

CREATE FUNCTION recur.cancel(id uuid, reason text DEFAULT NULL) RETURNS recur.dispatches
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    dispatch recur.dispatches;
BEGIN
    SELECT l.* INTO dispatch FROM recur.live_dispatches AS l WHERE l.id = cancel.id FOR UPDATE;
    IF NOT FOUND THEN
        SELECT f.* INTO dispatch FROM recur.dispatches AS f WHERE f.id = cancel.id;
        IF NOT FOUND THEN
            RAISE no_data_found USING MESSAGE = format('no dispatch has the id %s', coalesce(cancel.id::text, 'NULL'));
        END IF;
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('dispatch %s is %s already', cancel.id, dispatch.status);
    END IF;
    IF dispatch.status = 'pending' THEN
        SELECT f.* INTO dispatch FROM recur._finish(ARRAY[cancel.id], 'cancelled', NULL, ARRAY[cancel.reason]) AS f;
    ELSE
        UPDATE recur.live_dispatches AS l
           SET cancel_requested = true, error = coalesce(cancel.reason, l.error)
         WHERE l.id = cancel.id
        RETURNING l.* INTO dispatch;
    END IF;
    RETURN dispatch;
END
$$;
COMMENT ON FUNCTION recur.cancel IS
    'Cancels a pending dispatch. A running one is asked to stop: its consumer sees cancel_requested when it extends its lease';

CREATE FUNCTION recur.retry(id uuid) RETURNS recur.dispatches
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    dispatch recur.dispatches;
BEGIN
    WITH back AS (
        DELETE FROM recur.finished_dispatches AS f
         WHERE f.id = retry.id AND f.status IN ('failed', 'cancelled')
        RETURNING f.*
    )
    INSERT INTO recur.live_dispatches AS l
           (id, action_id, scheduled_at, trigger, namespace, tenant, owner, subject, provider, action_type, payload,
            raw_payload, metadata, dedup_key, primary_agent, fallback_agent, priority, lock_group, notify_channel, attempt,
            releases, max_attempts, retry_backoff, lease, available_at, claimed_by, started_at, error, errors, created_at)
    SELECT b.id, b.action_id, b.scheduled_at, b.trigger, b.namespace, b.tenant, b.owner, b.subject, b.provider,
           b.action_type, b.payload, b.raw_payload, b.metadata, b.dedup_key, b.primary_agent, b.fallback_agent, b.priority,
           b.lock_group, b.notify_channel, b.attempt, b.releases,
           greatest(b.max_attempts, b.attempt - b.releases + 1), b.retry_backoff, b.lease, clock_timestamp(),
           b.claimed_by, b.started_at, b.error, b.errors, b.created_at
      FROM back AS b
    RETURNING l.* INTO dispatch;
    IF NOT FOUND THEN
        SELECT d.* INTO dispatch FROM recur.dispatches AS d WHERE d.id = retry.id;
        IF NOT FOUND THEN
            RAISE no_data_found USING MESSAGE = format('no dispatch has the id %s', coalesce(retry.id::text, 'NULL'));
        END IF;
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('dispatch %s is %s: only what has failed or was cancelled can be retried', retry.id, dispatch.status);
    END IF;
    PERFORM recur._announce(ARRAY[retry.id]);
    RETURN dispatch;
END
$$;
COMMENT ON FUNCTION recur.retry IS 'Lets a dispatch that has failed for good, or was cancelled, be claimed once more, at once';

CREATE VIEW recur.dead_letters WITH (security_invoker = true) AS
SELECT f.id, f.action_id, d.name, f.scheduled_at, f.namespace, f.tenant, f.owner, f.subject, f.provider, f.action_type,
       f.payload, f.attempt, f.finished_at, f.error, f.errors
  FROM recur.finished_dispatches AS f
  LEFT JOIN recur.definitions AS d ON d.id = f.action_id
 WHERE f.status = 'failed'
 ORDER BY f.finished_at DESC;
COMMENT ON VIEW recur.dead_letters IS 'What has failed for good, the newest first; recur.retry gives one another chance';
