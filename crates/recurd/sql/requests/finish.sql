-- $1 the key; $2 the status; $3 the answer
SELECT recur.finish_request($1::text, $2::text::int, $3::text::jsonb)
