-- Looks at the alarms of an action at once.
-- $1 uuid: action; $2 timestamptz: now; $3 boolean: max_silence counts from now
INSERT INTO recur_internal.alarms AS a (action_id, look_at, counts_from) VALUES ($1, $2, $2)
    ON CONFLICT (action_id) DO UPDATE
   SET look_at = $2, counts_from = CASE WHEN $3 THEN $2 ELSE a.counts_from END
