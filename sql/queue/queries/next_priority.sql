-- The highest priority below one bound and above another at which owners have pending dispatches. {pending} as in
-- claim.sql.
-- $1 bigint: below; $2 bigint: above; $3 text: the provider, if there is only one; $4 int[]: owners
SELECT h.priority
  FROM unnest($4) AS o (owner_id)
 CROSS JOIN LATERAL (
    SELECT p.priority FROM recur_internal.live_dispatches AS p
     WHERE {{pending}} AND p.owner_id = o.owner_id AND p.priority < $1 AND p.priority > $2
     ORDER BY p.priority DESC LIMIT 1) AS h
 ORDER BY h.priority DESC
 LIMIT 1
