-- Endpoints for which something waits, in the order of their owners and names, what is known of each, and whether it
-- may get something by now. The index is entered once for each endpoint, however much waits for it. Nothing is left
-- out: the caller goes on behind the last one. Of an endpoint, a hundred priorities are looked at: {priorities} is
-- priorities.sql. Endpoints of the operator are not in the table. Which endpoint is behind which, the database says, as
-- its collation is not that of the caller.
-- $1 int, $2 text: the owner and the name to begin behind; $3 timestamptz: now; $4 int: at most this many; $5 int, $6
-- text: the owner and the name of another endpoint: which are behind that?
WITH RECURSIVE seen AS (
    (SELECT p.owner_id, p.endpoint, 1 AS number FROM recur_internal.live_dispatches AS p
      WHERE p.status <> 'running' AND p.endpoint IS NOT NULL AND p.primary_agent IS NULL
        AND (p.owner_id, p.endpoint) > ($1, $2)
      ORDER BY p.owner_id, p.endpoint LIMIT 1)
    UNION ALL
    SELECT n.owner_id, n.endpoint, s.number + 1
      FROM seen AS s
     CROSS JOIN LATERAL (
        SELECT p.owner_id, p.endpoint FROM recur_internal.live_dispatches AS p
         WHERE p.status <> 'running' AND p.endpoint IS NOT NULL AND p.primary_agent IS NULL
           AND (p.owner_id, p.endpoint) > (s.owner_id, s.endpoint)
         ORDER BY p.owner_id, p.endpoint LIMIT 1) AS n
     WHERE s.number < $4
)
SELECT w.owner_id, w.endpoint, w.endpoint ^@ 'operator:', h.endpoint IS NOT NULL, e.name IS NOT NULL, e.concurrency,
       e.rate, (w.owner_id, w.endpoint) > ($5, $6),
       CASE WHEN e.name IS NULL AND NOT w.endpoint ^@ 'operator:' OR NOT e.enabled OR h.disabled_at IS NOT NULL
                 OR h.paused_until > $3 OR h.throttled_until > $3
            THEN false
            ELSE coalesce((SELECT true
                             FROM ({{priorities}}
                                   SELECT h.priority FROM priorities AS h WHERE h.priority IS NOT NULL) AS h
                            WHERE (SELECT p.available_at FROM recur_internal.live_dispatches AS p
                                    WHERE {{deliverable}} AND p.priority = h.priority
                                    ORDER BY p.available_at LIMIT 1) <= $3
                            LIMIT 1), false) END
  FROM seen AS w
  LEFT JOIN recur_internal.endpoints AS e ON e.owner_id = w.owner_id AND e.name = w.endpoint
  LEFT JOIN recur_internal.endpoint_health AS h
    ON h.owner_id = CASE WHEN w.endpoint ^@ 'operator:' THEN 0 ELSE w.owner_id END AND h.endpoint = w.endpoint
 ORDER BY w.number
