-- What the decision needs of the locked actions. A statement of its own, after the lock: it sees every edit that was
-- committed before the lock was granted. Spans are in microseconds and computed only where there are any, because that
-- is arithmetic on numerics.
-- $1 uuid[]: actions
SELECT d.id, d.schedule::text, d.timezone::text, d.starts_at, d.ends_at, d.max_runs, d.on_dst_gap, d.on_dst_fold,
       d.misfire, (extract(epoch FROM d.misfire_grace) * 1000000)::bigint, d.catchup_limit, d.overlap,
       CASE WHEN d.jitter <> '0' THEN (extract(epoch FROM d.jitter) * 1000000)::bigint END,
       (extract(epoch FROM d.horizon) * 1000000)::bigint, d.horizon_count,
       d.notify_channel, d.provider, d.action_type, d.namespace, d.tenant,
       d.keep_history = 'all', d.ctid, d.owner_id,
       d.max_runs IS NOT NULL AND d.count_runs = 'completed', pg_column_size(d.payload) + pg_column_size(d.metadata),
       d.dedup_key, (extract(epoch FROM d.dedup_window) * 1000000)::bigint,
       CASE WHEN d.dedup_key IS NOT NULL THEN d.on_duplicate END
  FROM recur_internal.definitions AS d
 WHERE d.id = ANY ($1)
