-- Locks webhooks for endpoints that are gone, whenever they are due.
-- $1 int[]: owners; $2 text[]: endpoints; $3 int: at most this many
SELECT o.id
  FROM unnest($1, $2) AS w (owner_id, endpoint)
 CROSS JOIN LATERAL (
    SELECT p.id
      FROM recur_internal.live_dispatches AS p
     WHERE {{deliverable}}
       AND (SELECT e.name FROM recur_internal.endpoints AS e
             WHERE e.owner_id = w.owner_id AND e.name = w.endpoint) IS NULL
     LIMIT $3
       FOR UPDATE SKIP LOCKED) AS o
 LIMIT $3
