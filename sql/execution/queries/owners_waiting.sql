-- The owners, of these, that have dispatches for the database to run which are available, and how many. Those come
-- first that wait longest.
-- $1 int[]: owners; $2 timestamptz: now; $3 bigint: count no further
SELECT o.owner_id, waiting.dispatches
  FROM unnest($1) AS o (owner_id)
 CROSS JOIN LATERAL (
    SELECT count(*) AS dispatches, min(p.available_at) AS since
      FROM (SELECT p.available_at
              FROM recur_internal.live_dispatches AS p
             WHERE p.in_database AND p.status <> 'running' AND p.owner_id = o.owner_id AND p.available_at <= $2
             ORDER BY p.available_at
             LIMIT $3) AS p) AS waiting
 WHERE waiting.dispatches > 0
 ORDER BY waiting.since
