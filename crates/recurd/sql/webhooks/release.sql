-- $1 uuid: dispatch; $2 int: attempt
SELECT r.status
  FROM recur.release_webhook($1::uuid, $2::int) AS r
