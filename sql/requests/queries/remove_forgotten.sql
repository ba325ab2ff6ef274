-- Removes forgotten keys, of one owner or of all, but for those that a session is taking again.
-- $1 timestamptz: older ones are forgotten; $2 bigint: at most this many; $3 int: owner, or NULL for all
DELETE FROM recur_internal.request_keys AS k
 WHERE k.ctid = ANY (ARRAY(
           SELECT e.ctid FROM recur_internal.request_keys AS e
            WHERE e.created_at <= $1 AND ($3 IS NULL OR e.owner_id = $3)
            LIMIT $2
              FOR UPDATE SKIP LOCKED))
