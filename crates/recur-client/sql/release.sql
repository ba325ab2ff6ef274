SELECT status, attempt, available_at, cancel_requested FROM recur.release($1, $2, make_interval(secs => $3))
