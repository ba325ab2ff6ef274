-- Gives pending dispatches the payloads of other actions' occurrences, or of later ones.
-- $1 uuid[]: dispatches; $2 uuid[]: actions; $3 jsonb: the payload instead of the actions', or NULL
UPDATE recur_internal.live_dispatches AS l
   SET payload = coalesce($3, t.payload), updated_at = recur.clock()
  FROM unnest($1, $2) AS u (dispatch_id, action_id)
  JOIN recur_internal.dispatch_templates AS t ON t.action_id = u.action_id
 WHERE l.id = u.dispatch_id AND l.status = 'pending' AND l.payload IS DISTINCT FROM coalesce($3, t.payload)
