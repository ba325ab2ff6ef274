-- The owners, of these, that have a dispatch for the database to run which is available, those first that wait longest.
-- $1 int[]: owners; $2 timestamptz: now
SELECT o.owner_id
  FROM unnest($1) AS o (owner_id)
 CROSS JOIN LATERAL (
    SELECT p.available_at
      FROM recur_internal.live_dispatches AS p
     WHERE p.in_database AND p.status <> 'running' AND p.owner_id = o.owner_id AND p.available_at <= $2
     ORDER BY p.available_at
     LIMIT 1) AS first
 ORDER BY first.available_at
