-- $1 text: channel; $2 text[]: payloads
SELECT pg_notify($1, u.payload) FROM unnest($2) AS u (payload)
