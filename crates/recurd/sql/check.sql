-- What is missing for this login and the roles that it may become, with the statement that remedies it.
-- $1 the allow-list; $2, $3, $4 roles, the function that each calls for recurd itself, and the level that has it
WITH roles AS (
    SELECT w.name, r.oid, r.rolsuper FROM unnest($1::text[]) AS w (name) LEFT JOIN pg_roles AS r ON r.rolname = w.name
), functions AS (
    SELECT p.oid, p.proname FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace WHERE n.nspname = 'recur'
)
SELECT format('the login %I inherits the rights of its roles', r.rolname) AS problem,
       format('ALTER ROLE %I NOINHERIT', r.rolname) AS remedy
  FROM pg_roles AS r
 WHERE r.rolname = session_user AND r.rolinherit AND current_setting('server_version_num')::int < 160000
UNION ALL
SELECT format('database %I does not have the extension', current_database()), 'CREATE EXTENSION pg_recur'
 WHERE NOT EXISTS (SELECT FROM pg_extension AS e WHERE e.extname = 'pg_recur')
UNION ALL
SELECT format('role %I does not exist', r.name), format('CREATE ROLE %I', r.name) FROM roles AS r WHERE r.oid IS NULL
UNION ALL
SELECT format('role %I is a superuser, and is refused', r.name), format('ALTER ROLE %I NOSUPERUSER', r.name)
  FROM roles AS r WHERE r.rolsuper
UNION ALL
SELECT format('%I may not become %I', session_user, r.name), format('GRANT %I TO %I', r.name, session_user)
  FROM roles AS r
 WHERE NOT r.rolsuper
   AND NOT pg_has_role(session_user, r.oid,
                       CASE WHEN current_setting('server_version_num')::int >= 160000 THEN 'SET' ELSE 'MEMBER' END)
UNION ALL
SELECT format('role %I has no level', r.name), format('SELECT recur.grant_access(%L, ''reader'')', r.name)
  FROM roles AS r
 WHERE NOT r.rolsuper
   AND EXISTS (SELECT FROM functions)
   AND NOT EXISTS (SELECT FROM functions AS f WHERE has_function_privilege(r.oid, f.oid, 'EXECUTE'))
UNION ALL
SELECT format('role %I may not call recur.%s', r.name, n.function),
       format('SELECT recur.grant_access(%L, %L)', r.name, n.level)
  FROM unnest($2::text[], $3::text[], $4::text[]) AS n (role, function, level)
  JOIN roles AS r ON r.name = n.role
 WHERE NOT r.rolsuper
   AND EXISTS (SELECT FROM functions)
   AND NOT EXISTS (SELECT FROM functions AS f
                    WHERE f.proname = n.function AND has_function_privilege(r.oid, f.oid, 'EXECUTE'))
