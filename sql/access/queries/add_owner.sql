-- Makes a role an owner, unless it is one. A session that waited for another one's row finds it in the next statement.
-- $1 oid: the role; $2 text: its name
INSERT INTO recur_internal.owners (role, name) VALUES ($1, $2) ON CONFLICT (role) DO NOTHING
