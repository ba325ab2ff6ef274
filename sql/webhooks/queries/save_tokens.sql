-- What is left of the rates of endpoints that the caller has locked.
-- $1 int[]: owners; $2 text[]: names; $3 float8[]: tokens; $4 timestamptz: now
UPDATE recur_internal.endpoint_health AS h
   SET tokens = u.tokens, tokens_at = $4
  FROM unnest($1, $2, $3) AS u (owner_id, endpoint, tokens)
 WHERE h.owner_id = u.owner_id AND h.endpoint = u.endpoint
