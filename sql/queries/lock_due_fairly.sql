-- The same, tenant by tenant: a share for each tenant that has anything due, beginning after the one that was served
-- last, so that a tenant with a hundred thousand due actions does not keep the others waiting. The tenants are found by
-- hopping from one to the next in the index, so many at the most, whether anything of theirs is due or not. The last column
-- is the one at which the hopping ended if there may be more behind it, also where nothing is due: then all others are NULL.
-- $1 timestamptz: no timer is due before; $2 timestamptz: now; $3 bigint: how many at the most; $4 text: after this tenant;
-- $5 int: how many tenants at the most
WITH RECURSIVE tenants (tenant, number) AS (
    (SELECT t.tenant, 1 FROM recur.timers AS t
      WHERE t.tenant > $4 AND t.tenant <> 'default' AND t.due_at IS NOT NULL
      ORDER BY t.tenant LIMIT 1)
    UNION ALL
    SELECT following.tenant, n.number + 1
      FROM tenants AS n,
           LATERAL (SELECT t.tenant FROM recur.timers AS t
                     WHERE t.tenant > n.tenant AND t.tenant <> 'default' AND t.due_at IS NOT NULL
                     ORDER BY t.tenant LIMIT 1) AS following
     WHERE n.number < $5
), waiting AS (
    SELECT n.tenant, count(*) OVER () AS tenants
      FROM tenants AS n
     WHERE EXISTS (SELECT FROM recur.timers AS t
                    WHERE t.tenant = n.tenant AND t.tenant <> 'default' AND t.due_at >= $1 AND t.due_at <= $2)
)
SELECT due.action_id, due.due_at, due.next_run_at, due.last_run_at, due.run_count, due.place, due.tenant, hop.tenant
  FROM (SELECT (SELECT n.tenant FROM tenants AS n WHERE n.number = $5) AS tenant) AS hop
  LEFT JOIN (SELECT share.*, w.tenant
               FROM waiting AS w,
                    LATERAL (SELECT t.action_id, t.due_at, coalesce(t.next_run_at, t.due_at) AS next_run_at, t.last_run_at, t.run_count,
                                    t.ctid AS place
                               FROM recur.timers AS t
                              WHERE t.tenant = w.tenant AND t.tenant <> 'default' AND t.due_at >= $1 AND t.due_at <= $2
                              ORDER BY t.due_at
                              LIMIT greatest($3 / w.tenants, 1)
                                FOR UPDATE SKIP LOCKED) AS share
              LIMIT $3) AS due ON true
