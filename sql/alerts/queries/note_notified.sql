-- Notes that contacts were notified. A row that another transaction has locked is skipped, at the price of one message
-- too many.
-- $1 uuid[]: actions; $2 timestamptz: now
UPDATE recur_internal.progress AS p
   SET last_notified_at = $2
 WHERE p.action_id IN (SELECT l.action_id FROM recur_internal.progress AS l
                        WHERE l.action_id = ANY ($1)
                          FOR UPDATE SKIP LOCKED)
