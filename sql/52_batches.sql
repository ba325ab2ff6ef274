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

CREATE FUNCTION recur.complete_many(ids uuid[], attempts int[], results jsonb[] DEFAULT NULL)
    RETURNS TABLE (id uuid, accepted boolean, status text, problem text)
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    chosen   uuid[];
    numbers  int[];
    given    jsonb[];
BEGIN
    PERFORM recur._check_lengths('attempts', cardinality(complete_many.attempts), cardinality(complete_many.ids));
    IF complete_many.results IS NOT NULL THEN
        PERFORM recur._check_lengths('results', cardinality(complete_many.results), cardinality(complete_many.ids));
    END IF;
    SELECT array_agg(a.id), array_agg(a.number), array_agg(r.result)
      INTO chosen, numbers, given
      FROM recur._accept(complete_many.ids, complete_many.attempts) AS a
      LEFT JOIN unnest(complete_many.results) WITH ORDINALITY AS r (result, number) ON r.number = a.number;
    IF chosen IS NOT NULL THEN
        PERFORM FROM recur._finish(chosen, 'completed', given);
    END IF;
    RETURN QUERY
    SELECT a.* FROM recur._answer(complete_many.ids, complete_many.attempts, numbers,
                                  array_fill('completed'::text, ARRAY[coalesce(cardinality(numbers), 0)])) AS a;
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
