-- $1 the key; $2 a hash of the request
SELECT b.status, b.response::text AS body FROM recur.begin_request($1::text, $2::text) AS b
