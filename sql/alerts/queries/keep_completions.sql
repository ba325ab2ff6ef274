-- From now on reports note when they complete a dispatch of the action, or no longer do.
-- $1 uuid: action; $2 timestamptz: now; $3 boolean: are completions noted
UPDATE recur_internal.progress AS p
   SET completed_at = CASE WHEN $3 THEN $2 END
 WHERE p.action_id = $1 AND (p.completed_at IS NOT NULL) <> $3
