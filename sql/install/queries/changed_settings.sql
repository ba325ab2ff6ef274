-- Settings that ALTER DATABASE or ALTER ROLE has changed for this process, and what they are without: a worker takes
-- none that the owner of a database, or any role, may set. Names and operators are qualified: the search_path may be
-- one of these settings.
SELECT s.name, s.boot_val
  FROM pg_catalog.pg_settings AS s
 WHERE s.context OPERATOR(pg_catalog.=) 'user'
   AND (s.source OPERATOR(pg_catalog.=) 'database' OR s.source OPERATOR(pg_catalog.=) 'user'
        OR s.source OPERATOR(pg_catalog.=) 'database user')
   AND s.boot_val IS NOT NULL
