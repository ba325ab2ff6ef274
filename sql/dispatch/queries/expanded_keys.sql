-- The keys of occurrences, in their order.
-- $1 text[]: templates; $2 uuid[]: actions; $3 timestamptz[]: occurrences
SELECT recur_internal.expanded_key(u.template, u.action_id, u.scheduled_at)
  FROM unnest($1, $2, $3) WITH ORDINALITY AS u (template, action_id, scheduled_at, number)
 ORDER BY u.number
