-- What the decision needs of the locked actions. A statement of its own, after the lock: it sees every edit that
-- was committed before the lock was granted.
-- $1 uuid[]: actions
SELECT d.id, d.schedule::text, d.timezone::text, d.starts_at, d.ends_at, d.max_runs::bigint, d.on_dst_gap, d.on_dst_fold,
       d.notify_channel
  FROM recur.definitions AS d
 WHERE d.id = ANY ($1)
