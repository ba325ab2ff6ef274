-- $1 text[]: channels; $2 text[]: payloads
SELECT pg_notify(u.channel, u.payload) FROM unnest($1, $2) AS u (channel, payload)
