SELECT status, attempt, available_at, cancel_requested FROM recur.complete($1, $2, $3, $4)
