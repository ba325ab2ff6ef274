-- The same for tenant default, which is not in the index by tenant: those without tenants do not pay for it. Behind
-- another tenant's backlog its timers are found by walking past that backlog, once: the lower bound remembers how far.
-- $1 timestamptz: none is due before; $2 timestamptz: now; $3 bigint: how many at the most
SELECT t.action_id, t.due_at, coalesce(t.next_run_at, t.due_at), t.last_run_at, t.run_count, t.ctid
  FROM recur.timers AS t
 WHERE t.due_at >= $1 AND t.due_at <= $2 AND t.tenant = 'default'
 ORDER BY t.due_at
 LIMIT $3
   FOR UPDATE SKIP LOCKED
