-- $1 timestamptz: older keys are forgotten
SELECT FROM recur_internal.request_keys AS k WHERE k.created_at <= $1 LIMIT 1
