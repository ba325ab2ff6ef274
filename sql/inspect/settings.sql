-- The settings that a database may decide for itself.

CREATE VIEW recur.settings WITH (security_barrier) AS
SELECT s.name, coalesce(s.value, current_setting(s.name)) AS value, s.source, s.namespace, p.unit,
       CASE p.vartype WHEN 'integer' THEN p.min_val || ' to ' || p.max_val WHEN 'bool' THEN 'on, off' END AS allowed,
       concat_ws(' ', p.short_desc, nullif(p.extra_desc, '')) AS description
  FROM recur_internal.settings_in_force() AS s
  JOIN pg_settings AS p ON p.name = s.name
 WHERE s.namespace IS NULL OR recur_internal.sees_all() OR pg_has_role('pg_database_owner', 'MEMBER')
 ORDER BY s.name, s.namespace NULLS FIRST;
COMMENT ON VIEW recur.settings IS
    'The settings that this database may decide for itself with recur.set_setting, and the values in force';
COMMENT ON COLUMN recur.settings.name IS 'The setting';
COMMENT ON COLUMN recur.settings.value IS 'The value in force';
COMMENT ON COLUMN recur.settings.source IS
    'Where the value comes from: namespace or database (recur.set_setting), session, server (the configuration) or '
    'default';
COMMENT ON COLUMN recur.settings.namespace IS
    'The namespace that the value is for; NULL for all that have none of their own';
COMMENT ON COLUMN recur.settings.unit IS 'The unit of a number without one';
COMMENT ON COLUMN recur.settings.allowed IS 'What is allowed, in that unit';
COMMENT ON COLUMN recur.settings.description IS 'What the setting is for';
