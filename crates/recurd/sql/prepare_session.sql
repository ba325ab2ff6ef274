-- Every new connection, before its first use.
-- $1 statement_timeout; $2 lock_timeout, both in milliseconds
SELECT pg_catalog.set_config('statement_timeout', $1, false),
       pg_catalog.set_config('lock_timeout', $2, false),
       pg_catalog.set_config('idle_in_transaction_session_timeout', $1, false),
       pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', false),
       pg_catalog.set_config('timezone', 'UTC', false),
       pg_catalog.set_config('intervalstyle', 'iso_8601', false),
       (SELECT r.rolsuper FROM pg_catalog.pg_roles AS r WHERE r.rolname = session_user) AS is_superuser
