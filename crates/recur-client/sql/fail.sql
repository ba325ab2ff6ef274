SELECT status, attempt, available_at, cancel_requested
  FROM recur.fail($1, $2, $3, $4, make_interval(secs => $5))
