-- Inserts an endpoint, unless its owner has one of the name.
-- $1 int: owner; $2 text: name; $3 text: url; $4 text[]: patterns; $5 jsonb: headers; $6 interval: timeout; $7 float8:
-- rate; $8 int: concurrency; $9 boolean: enabled; $10 text: description; $11 timestamptz: now
INSERT INTO recur_internal.endpoints
       ({{endpoints}})
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $11)
    ON CONFLICT DO NOTHING
