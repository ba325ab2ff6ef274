-- Due timers that a batch has not locked, for the server's log at debug1: another transaction has.
-- $1 timestamptz: low-water mark; $2 timestamptz: now; $3 uuid[]: those that the batch has locked; $4 bigint: at most
SELECT t.action_id
  FROM recur_internal.timers AS t
 WHERE t.due_at >= $1 AND t.due_at <= $2 AND t.action_id <> ALL ($3)
 ORDER BY t.due_at
 LIMIT $4
