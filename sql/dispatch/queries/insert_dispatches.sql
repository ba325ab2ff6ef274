-- One dispatch for each occurrence; the template is copied inside the server.
--
-- On the optimistic path {key} is the definition's tid, which was just read: that saves a descent of the index. The
-- primary key refuses an occurrence that has a dispatch already; to ask first, with ON CONFLICT, would take another
-- descent and a tenth more WAL. On the verified path {key} is the action, and such an occurrence keeps its dispatch.
-- $1 uuid[]: dispatch ids; $2 tid[] or uuid[]: definitions; $3 timestamptz[]: occurrences; $4 timestamptz[]: when each
-- is available
INSERT INTO recur_internal.live_dispatches
       (id, scheduled_at, trigger, available_at, dedup_key, {{dispatch_templates except definition, dedup_key}})
SELECT u.id, u.scheduled_at, '{{trigger}}', u.available_at,
       recur_internal.expanded_key(t.dedup_key, t.action_id, u.scheduled_at),
       {{dispatch_templates t except definition, dedup_key}}
  FROM unnest($1, $2, $3, $4) AS u (id, key, scheduled_at, available_at)
  JOIN recur_internal.dispatch_templates AS t ON {{key}}
{{conflict}}
