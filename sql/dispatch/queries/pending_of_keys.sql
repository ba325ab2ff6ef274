-- The pending dispatches that stand for occurrences with their keys: the place of the occurrence, the dispatch, and
-- whether the dispatch can take over the payload. Asked with the locks of the keys held.
-- $1 text[]: keys; $2 int[]: owners; $3 text[]: namespaces; $4 text[]: tenants; $5 text[]: providers; $6 text[]: action
-- types; $7 timestamptz[]: written after; $8 uuid[]: the occurrences' own dispatches; $9 uuid[]: actions whose
-- dispatches do not count, because they are about to be cancelled, or NULL
SELECT (u.number - 1)::int, p.id, p.is_alike
  FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9) WITH ORDINALITY
           AS u (key, owner_id, namespace, tenant, provider, action_type, written_after, own, cancelled, number),
       LATERAL (SELECT l.id, l.created_at,
                       l.provider = u.provider AND l.action_type = u.action_type AND l.raw_payload IS NULL AS is_alike
                  FROM recur_internal.live_dispatches AS l
                 WHERE l.dedup_key = u.key AND l.owner_id = u.owner_id AND l.status = 'pending'
                   AND l.namespace = u.namespace AND l.tenant = u.tenant AND l.created_at > u.written_after
                   AND l.id <> u.own AND (u.cancelled IS NULL OR l.action_id IS DISTINCT FROM u.cancelled)
                 ORDER BY is_alike DESC, l.created_at DESC, l.id
                 LIMIT 1) AS p
