-- Ends the lease of attempts whose executor is gone: they expire at once. What has been reported meanwhile is another
-- attempt, or over.
-- $1 uuid[]: dispatches; $2 int[]: attempts
UPDATE recur_internal.live_dispatches AS l
   SET lease_expires_at = recur.clock(), updated_at = recur.clock()
  FROM (SELECT o.id, u.attempt
          FROM unnest($1, $2) AS u (id, attempt)
          JOIN recur_internal.live_dispatches AS o ON o.id = u.id
         WHERE o.status = 'running' AND o.attempt = u.attempt AND o.lease_expires_at = 'infinity'
           FOR UPDATE OF o SKIP LOCKED) AS gone
 WHERE l.id = gone.id
