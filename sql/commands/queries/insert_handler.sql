-- Sets a handler, unless the pattern has one.
-- $1 int: owner; $2 text: pattern; $3 text: function; $4 text: timeout, or NULL
INSERT INTO recur_internal.handlers (owner_id, pattern, function, timeout) VALUES ($1, $2, $3, $4)
    ON CONFLICT (owner_id, pattern) DO NOTHING
