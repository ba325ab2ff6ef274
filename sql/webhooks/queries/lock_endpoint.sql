-- What there is of an endpoint, locked.
-- $1 int: owner; $2 text: name
SELECT e.url, e.patterns, e.headers, e.timeout, e.rate, e.concurrency, e.enabled, e.description
  FROM recur_internal.endpoints AS e
 WHERE e.owner_id = $1 AND e.name = $2
   FOR UPDATE
