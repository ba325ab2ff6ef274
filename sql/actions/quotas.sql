-- How many actions a tenant, and a subject of a tenant, may have: for each owner.

CREATE TABLE recur_internal.quotas (
    tenant                  text,
    max_actions             int,
    max_actions_per_subject int,
    CONSTRAINT quotas_once UNIQUE NULLS NOT DISTINCT (tenant),
    CONSTRAINT quotas_limit CHECK (max_actions >= 0 AND max_actions_per_subject >= 0)
);
COMMENT ON TABLE recur_internal.quotas IS 'How many actions tenants may have; read recur.quotas instead';
COMMENT ON COLUMN recur_internal.quotas.tenant IS 'The tenant; NULL for all tenants that have no quota of their own';
COMMENT ON COLUMN recur_internal.quotas.max_actions IS
    'How many actions an owner may have in the tenant; NULL for any number';
COMMENT ON COLUMN recur_internal.quotas.max_actions_per_subject IS
    'How many of them may have the same subject; NULL for any number';
SELECT pg_catalog.pg_extension_config_dump('recur_internal.quotas', '');
CREATE TRIGGER changed AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON recur_internal.quotas
    FOR EACH STATEMENT EXECUTE FUNCTION recur_internal.cached_table_changed();
ALTER TABLE recur_internal.quotas ENABLE ALWAYS TRIGGER changed;

CREATE VIEW recur.quotas WITH (security_barrier) AS
SELECT q.tenant, q.max_actions, q.max_actions_per_subject FROM recur_internal.quotas AS q;
COMMENT ON VIEW recur.quotas IS
    'How many actions an owner may have in each tenant; the row without a tenant is for all others';

-- Admins may call it.
CREATE FUNCTION recur.set_quota(tenant text, max_actions int DEFAULT NULL, max_actions_per_subject int DEFAULT NULL)
    RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF length(set_quota.tenant) NOT BETWEEN 1 AND 255 THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('invalid tenant "%s": must be 1 to 255 characters', left(set_quota.tenant, 120)),
            HINT = 'NULL is for all tenants that have no quota of their own.';
    END IF;
    IF least(set_quota.max_actions, set_quota.max_actions_per_subject) < 0 THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('invalid %s "%s": must be 0 or more',
                             CASE WHEN set_quota.max_actions < 0 THEN 'max_actions'
                                  ELSE 'max_actions_per_subject' END,
                             least(set_quota.max_actions, set_quota.max_actions_per_subject)),
            HINT = 'Leave it out for any number.';
    END IF;
    IF set_quota.max_actions IS NULL AND set_quota.max_actions_per_subject IS NULL THEN
        DELETE FROM recur_internal.quotas AS q WHERE q.tenant IS NOT DISTINCT FROM set_quota.tenant;
        RETURN;
    END IF;
    INSERT INTO recur_internal.quotas AS q (tenant, max_actions, max_actions_per_subject)
    VALUES (set_quota.tenant, set_quota.max_actions, set_quota.max_actions_per_subject)
        ON CONFLICT ON CONSTRAINT quotas_once
        DO UPDATE SET max_actions = EXCLUDED.max_actions, max_actions_per_subject = EXCLUDED.max_actions_per_subject;
END
$$;
COMMENT ON FUNCTION recur.set_quota IS
    'How many actions an owner may have in a tenant, and how many of one subject; without a number, the tenant has no '
    'quota of its own. A NULL tenant stands for all others';
