-- $1 uuid: dispatch; $2 int: attempt; $3 float8: the lease in seconds
SELECT e.cancel_requested
  FROM recur.extend_webhook($1::uuid, $2::int, make_interval(secs => $3::float8)) AS e
