-- How many webhooks of an owner wait for their endpoints, counted up to a limit.
-- $1 int: owner; $2 bigint: count no further
SELECT count(*)
  FROM (SELECT FROM recur_internal.live_dispatches AS l
         WHERE l.owner_id = $1 AND l.status <> 'running' AND l.endpoint IS NOT NULL AND l.primary_agent IS NULL
         LIMIT $2) AS waiting
