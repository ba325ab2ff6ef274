-- Reporting on many at once: a few statements, however many they are. What can't be accepted is said, report by
-- report, and stops no other. Names of their own: drivers that leave types to the server could not call them otherwise.

CREATE FUNCTION recur._check_lengths(argument text, length int, expected int) RETURNS void
    LANGUAGE plpgsql IMMUTABLE
    SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF coalesce(length, 0) <> coalesce(expected, 0) THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('invalid %s: must have as many elements as ids, %s, and has %s', argument,
                             coalesce(expected, 0), coalesce(length, 0));
    END IF;
END
$$;
COMMENT ON FUNCTION recur._check_lengths IS 'Internal: raises unless an array is as long as it must be';

-- The reports that are accepted, by their number, their dispatches locked. Of two reports on one dispatch it is the
-- first. again: may it be tried again?
CREATE FUNCTION recur._accept(ids uuid[], attempts int[])
    RETURNS TABLE (number int, id uuid, again boolean, cancel_requested boolean)
    LANGUAGE sql
    SET search_path = pg_catalog, pg_temp
    SET enable_seqscan = off SET jit = off
AS $$
    WITH locked AS (
        SELECT l.id, l.status, l.attempt, l.releases, l.max_attempts, l.lease_expires_at, l.cancel_requested
          FROM recur.live_dispatches AS l
         WHERE l.id = ANY (_accept.ids)
         ORDER BY l.id
           FOR UPDATE
    )
    SELECT DISTINCT ON (k.id) u.number::int, k.id, k.attempt - k.releases < k.max_attempts, k.cancel_requested
      FROM unnest(_accept.ids, _accept.attempts) WITH ORDINALITY AS u (id, attempt, number)
      JOIN locked AS k ON k.id = u.id AND k.attempt = u.attempt
     WHERE k.status = 'running' AND k.lease_expires_at > clock_timestamp()
     ORDER BY k.id, u.number
$$;
COMMENT ON FUNCTION recur._accept IS 'Internal: locks the dispatches of the reports that are accepted';

-- The answer: what was accepted, and what is wrong with the rest.
CREATE FUNCTION recur._answer(ids uuid[], attempts int[], numbers int[], statuses text[])
    RETURNS TABLE (id uuid, accepted boolean, status text, problem text)
    LANGUAGE sql
    SET search_path = pg_catalog, pg_temp
AS $$
    SELECT u.id, a.number IS NOT NULL, coalesce(a.status, s.status), s.problem || coalesce(': ' || s.detail, '')
      FROM unnest(_answer.ids, _answer.attempts) WITH ORDINALITY AS u (id, attempt, number)
      LEFT JOIN unnest(_answer.numbers, _answer.statuses) AS a (number, status) ON a.number = u.number
      -- OFFSET 0: only what was not accepted is looked at.
      LEFT JOIN LATERAL (SELECT t.* FROM recur._standing(u.id, u.attempt) AS t WHERE a.number IS NULL OFFSET 0) AS s ON true
     ORDER BY u.number
$$;
COMMENT ON FUNCTION recur._answer IS 'Internal: what a batch of reports is answered';

-- The most frequent report in batches, hence a statement of its own, like recur.complete. The reports are sorted, so that two
-- batches lock in the same order; of two reports on one attempt the first counts.
CREATE FUNCTION recur.complete_many(ids uuid[], attempts int[], results jsonb[] DEFAULT NULL)
    RETURNS TABLE (id uuid, accepted boolean, status text, problem text)
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
    -- One plan, made once; see recur.claim.
    SET plan_cache_mode = force_generic_plan
    SET enable_seqscan = off
    SET jit = off
AS $$
DECLARE
    numbers int[];
    actions uuid[];
BEGIN
    IF cardinality(complete_many.attempts) IS DISTINCT FROM cardinality(complete_many.ids) THEN
        PERFORM recur._check_lengths('attempts', cardinality(complete_many.attempts), cardinality(complete_many.ids));
    END IF;
    IF complete_many.results IS NOT NULL THEN
        PERFORM recur._check_lengths('results', cardinality(complete_many.results), cardinality(complete_many.ids));
    END IF;
    WITH reports AS (
        SELECT DISTINCT ON (u.id, u.attempt) u.id, u.attempt, u.result, u.number::int
          FROM unnest(complete_many.ids, complete_many.attempts, complete_many.results) WITH ORDINALITY
                   AS u (id, attempt, result, number)
         ORDER BY u.id, u.attempt, u.number
    ), gone AS (
        DELETE FROM recur.live_dispatches AS l
         USING reports AS u
         WHERE l.id = u.id AND l.status <> 'pending' AND l.attempt = u.attempt AND l.lease_expires_at > clock_timestamp()
        RETURNING u.number, l.id, l.action_id, l.scheduled_at, l.trigger, l.namespace, l.tenant, l.owner, l.subject, l.provider,
                  l.action_type, l.payload, l.raw_payload, l.metadata, l.dedup_key, l.context, l.context_version,
                  l.primary_agent, l.fallback_agent, l.priority, l.lock_group, l.notify_channel,
                  l.attempt, l.releases, l.max_attempts, l.retry_backoff, l.lease, l.available_at, l.claimed_by,
                  l.started_at, l.cancel_requested, u.result, l.error, l.errors, l.created_at
    ), kept AS (
        INSERT INTO recur.finished_dispatches
               (id, action_id, scheduled_at, trigger, namespace, tenant, owner, subject, provider, action_type, payload, raw_payload,
                metadata, dedup_key, context, context_version, primary_agent, fallback_agent, priority, lock_group, notify_channel,
                status, attempt, releases, max_attempts, retry_backoff, lease, available_at, claimed_by, started_at,
                finished_at, cancel_requested, result, error, errors, created_at, partition)
        SELECT g.id, g.action_id, g.scheduled_at, g.trigger, g.namespace, g.tenant, g.owner, g.subject, g.provider, g.action_type, g.payload,
               g.raw_payload, g.metadata, g.dedup_key, g.context, g.context_version, g.primary_agent, g.fallback_agent, g.priority,
               g.lock_group, g.notify_channel, 'completed', g.attempt, g.releases, g.max_attempts, g.retry_backoff, g.lease,
               g.available_at, g.claimed_by, g.started_at, clock_timestamp(), g.cancel_requested, g.result, g.error,
               g.errors, g.created_at,
               (SELECT recur._history_partition())
          FROM gone AS g
         WHERE g.action_id IS NULL
            OR coalesce((SELECT d.keep_history FROM recur.definitions AS d WHERE d.id = g.action_id), 'all') = 'all'
    )
    SELECT array_agg(g.number), array_agg(g.action_id) FILTER (WHERE g.action_id IS NOT NULL)
      INTO numbers, actions
      FROM gone AS g;
    IF actions IS NOT NULL THEN
        WITH locked AS (
            SELECT p.action_id, c.number
              FROM recur.progress AS p
              JOIN (SELECT u.action_id, count(*)::int AS number FROM unnest(actions) AS u (action_id) GROUP BY u.action_id) AS c
                ON c.action_id = p.action_id
             ORDER BY p.action_id
               FOR UPDATE OF p
        )
        UPDATE recur.progress AS p
           SET completed_count = p.completed_count + k.number, failed_in_a_row = 0
          FROM locked AS k
         WHERE p.action_id = k.action_id;
    END IF;
    IF cardinality(numbers) = cardinality(complete_many.ids) THEN
        RETURN QUERY SELECT u.id, true, 'completed'::text, NULL::text FROM unnest(complete_many.ids) AS u (id);
    ELSE
        RETURN QUERY
        SELECT a.* FROM recur._answer(complete_many.ids, complete_many.attempts, numbers,
                                      array_fill('completed'::text, ARRAY[coalesce(cardinality(numbers), 0)])) AS a;
    END IF;
END
$$;
COMMENT ON FUNCTION recur.complete_many IS
    'Reports that claimed dispatches have been done; returns for each whether the report was accepted, and if not, why';

CREATE FUNCTION recur.fail_many(ids uuid[], attempts int[], reasons text[], retry boolean DEFAULT true)
    RETURNS TABLE (id uuid, accepted boolean, status text, problem text)
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    outcome   record;
    numbers  int[]  := '{}';
    statuses text[] := '{}';
BEGIN
    PERFORM recur._check_lengths('attempts', cardinality(fail_many.attempts), cardinality(fail_many.ids));
    PERFORM recur._check_lengths('reasons', cardinality(fail_many.reasons), cardinality(fail_many.ids));
    FOR outcome IN
        SELECT o.status, array_agg(o.id) AS ids, array_agg(o.number) AS numbers, array_agg(o.reason) AS reasons
          FROM (SELECT a.id, a.number, coalesce(r.reason, 'no reason given') AS reason,
                       CASE WHEN a.cancel_requested THEN 'cancelled'
                            WHEN fail_many.retry AND a.again THEN 'pending' ELSE 'failed' END AS status
                  FROM recur._accept(fail_many.ids, fail_many.attempts) AS a
                  JOIN unnest(fail_many.reasons) WITH ORDINALITY AS r (reason, number) ON r.number = a.number) AS o
         GROUP BY o.status
    LOOP
        IF outcome.status = 'pending' THEN
            PERFORM FROM recur._try_again(outcome.ids, outcome.reasons);
        ELSE
            PERFORM FROM recur._finish(outcome.ids, outcome.status, NULL, outcome.reasons);
        END IF;
        numbers := numbers || outcome.numbers;
        statuses := statuses || array_fill(outcome.status, ARRAY[cardinality(outcome.ids)]);
    END LOOP;
    RETURN QUERY SELECT a.* FROM recur._answer(fail_many.ids, fail_many.attempts, numbers, statuses) AS a;
END
$$;
COMMENT ON FUNCTION recur.fail_many IS
    'Reports that attempts have failed; returns for each what the dispatch is now, or why the report was not accepted';
