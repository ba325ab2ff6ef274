SELECT status, attempt, available_at, cancel_requested FROM recur.extend($1, $2, make_interval(secs => $3))
