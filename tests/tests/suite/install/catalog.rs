//! What a database knows of the extension, as text to compare.

use pg_recur_tests::Session;

/// Functions, relations, columns, constraints, indexes, triggers, rules, policies, types, the schemas and the extension
/// itself: definitions, storage options, comments, rights and owners. Nothing in it depends on the order of creation.
const CATALOG: &str = "
    WITH schemas AS (SELECT n.oid FROM pg_namespace AS n WHERE n.nspname IN ('recur', 'recur_internal')),
    rels AS (SELECT c.* FROM pg_class AS c WHERE c.relnamespace IN (TABLE schemas)),
    acl (kind, class, object, acl) AS (
        SELECT 'f'::\"char\", 'pg_proc'::regclass, p.oid, coalesce(p.proacl, acldefault('f', p.proowner))
          FROM pg_proc AS p WHERE p.pronamespace IN (TABLE schemas)
        UNION ALL
        SELECT c.relkind, 'pg_class', c.oid,
               coalesce(c.relacl, acldefault(CASE c.relkind WHEN 'S' THEN 's' ELSE 'r' END::\"char\", c.relowner))
          FROM rels AS c WHERE c.relkind IN ('r', 'p', 'v', 'm', 'S')
        UNION ALL
        SELECT 'n', 'pg_namespace', n.oid, n.nspacl FROM pg_namespace AS n WHERE n.oid IN (TABLE schemas)
        UNION ALL
        SELECT 'T', 'pg_type', t.oid, coalesce(t.typacl, acldefault('T', t.typowner))
          FROM pg_type AS t WHERE t.typnamespace IN (TABLE schemas) AND t.typtype IN ('d', 'e', 'r')
        UNION ALL
        SELECT 'c', 'pg_class', a.attrelid, a.attacl
          FROM pg_attribute AS a JOIN rels AS c ON c.oid = a.attrelid WHERE a.attacl IS NOT NULL)
    SELECT concat_ws(' | ', 'function', p.oid::regprocedure, pg_get_functiondef(p.oid), 'cost', p.procost, p.prorows,
                     'flags', p.provolatile, p.proparallel, p.proisstrict, p.prosecdef, p.proleakproof,
                     obj_description(p.oid, 'pg_proc'), p.proowner::regrole)
      FROM pg_proc AS p WHERE p.pronamespace IN (TABLE schemas)
    UNION ALL
    SELECT concat_ws(' | ', 'relation', c.oid::regclass, c.relkind, c.relpersistence,
                     obj_description(c.oid, 'pg_class'), c.relowner::regrole, c.relrowsecurity,
                     c.relforcerowsecurity, c.reloptions::text, c.relreplident,
                     (SELECT am.amname FROM pg_am AS am WHERE am.oid = c.relam), c.reltablespace,
                     pg_get_partkeydef(c.oid), pg_get_expr(c.relpartbound, c.oid))
      FROM rels AS c
    UNION ALL
    SELECT concat_ws(' | ', 'view', c.oid::regclass, pg_get_viewdef(c.oid)) FROM rels AS c WHERE c.relkind IN ('v', 'm')
    UNION ALL
    SELECT concat_ws(' | ', 'rule', r.ev_class::regclass, pg_get_ruledef(r.oid))
      FROM pg_rewrite AS r JOIN rels AS c ON c.oid = r.ev_class WHERE c.relkind <> 'v'
    UNION ALL
    SELECT concat_ws(' | ', 'inherits', i.inhrelid::regclass, i.inhparent::regclass)
      FROM pg_inherits AS i JOIN rels AS c ON c.oid = i.inhrelid
    UNION ALL
    SELECT concat_ws(' | ', 'sequence', s.seqrelid::regclass, s.seqtypid::regtype, s.seqstart, s.seqincrement, s.seqmin,
                     s.seqmax, s.seqcache, s.seqcycle)
      FROM pg_sequence AS s JOIN rels AS c ON c.oid = s.seqrelid
    UNION ALL
    SELECT concat_ws(' | ', 'column', a.attrelid::regclass, a.attname, format_type(a.atttypid, a.atttypmod),
                     a.attnotnull, pg_get_expr(d.adbin, d.adrelid), a.attidentity, a.attgenerated, a.attstorage,
                     a.attcompression, a.attstattarget,
                     -- Debian's 15.20 stamps every column with a number of its own.
                     ARRAY(SELECT o FROM unnest(a.attoptions) AS o WHERE o NOT LIKE 'pg\\_attver=%' ORDER BY 1),
                     a.attcollation::regcollation,
                     col_description(a.attrelid, a.attnum),
                     'position', count(*) OVER (PARTITION BY a.attrelid ORDER BY a.attnum))
      FROM rels AS c JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
      LEFT JOIN pg_attrdef AS d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
    UNION ALL
    SELECT concat_ws(' | ', 'constraint', conrelid::regclass, contypid::regtype, conname, pg_get_constraintdef(oid),
                     convalidated, obj_description(oid, 'pg_constraint'))
      FROM pg_constraint WHERE connamespace IN (TABLE schemas)
    UNION ALL
    SELECT concat_ws(' | ', 'index', i.indexrelid::regclass, pg_get_indexdef(i.indexrelid), i.indisvalid, i.indisready,
                     i.indisclustered, i.indisreplident, obj_description(i.indexrelid, 'pg_class'))
      FROM pg_index AS i JOIN rels AS c ON c.oid = i.indexrelid
    UNION ALL
    SELECT concat_ws(' | ', 'trigger', t.tgrelid::regclass, pg_get_triggerdef(t.oid), t.tgenabled,
                     obj_description(t.oid, 'pg_trigger'))
      FROM pg_trigger AS t JOIN rels AS c ON c.oid = t.tgrelid WHERE NOT t.tgisinternal
    UNION ALL
    SELECT concat_ws(' | ', 'policy', p.polrelid::regclass, p.polname, p.polcmd, p.polpermissive, p.polroles::regrole[],
                     pg_get_expr(p.polqual, p.polrelid), pg_get_expr(p.polwithcheck, p.polrelid))
      FROM pg_policy AS p JOIN rels AS c ON c.oid = p.polrelid
    UNION ALL
    SELECT concat_ws(' | ', 'type', t.oid::regtype, t.typtype, format_type(t.typbasetype, t.typtypmod), t.typnotnull,
                     t.typdefault, t.typcollation::regcollation, t.typowner::regrole, obj_description(t.oid, 'pg_type'))
      FROM pg_type AS t WHERE t.typnamespace IN (TABLE schemas) AND t.typtype IN ('d', 'e', 'r')
    UNION ALL
    SELECT concat_ws(' | ', 'schema', n.nspname, n.nspowner::regrole, obj_description(n.oid, 'pg_namespace'))
      FROM pg_namespace AS n WHERE n.oid IN (TABLE schemas)
    UNION ALL
    SELECT concat_ws(' | ', 'right', pg_describe_object(acl.class, acl.object, 0), acl.kind, x.grantor::regrole,
                     CASE x.grantee WHEN 0 THEN 'PUBLIC' ELSE x.grantee::regrole::text END, x.privilege_type,
                     x.is_grantable)
      FROM acl, aclexplode(acl.acl) AS x
    UNION ALL
    SELECT concat_ws(' | ', 'right that a dump leaves out', pg_describe_object(i.classoid, i.objoid, i.objsubid),
                     CASE x.grantee WHEN 0 THEN 'PUBLIC' ELSE x.grantee::regrole::text END, x.privilege_type)
      FROM pg_init_privs AS i
      JOIN pg_depend AS d ON (d.classid, d.objid) = (i.classoid, i.objoid) AND d.deptype = 'e'
      JOIN pg_extension AS e ON e.oid = d.refobjid AND e.extname = 'pg_recur',
           aclexplode(i.initprivs) AS x
    UNION ALL
    SELECT concat_ws(' | ', 'member', pg_describe_object(d.classid, d.objid, d.objsubid))
      FROM pg_depend AS d JOIN pg_extension AS e ON e.oid = d.refobjid AND e.extname = 'pg_recur'
     WHERE d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e'
    UNION ALL
    SELECT concat_ws(' | ', 'extension', e.extname, e.extversion, e.extrelocatable, e.extnamespace::regnamespace,
                     obj_description(e.oid, 'pg_extension'))
      FROM pg_extension AS e WHERE e.extname = 'pg_recur'
    UNION ALL
    SELECT concat_ws(' | ', 'dumped', u.relation::regclass, u.condition)
      FROM pg_extension AS e, unnest(e.extconfig, e.extcondition) AS u (relation, condition)
     WHERE e.extname = 'pg_recur'
    ORDER BY 1";

pub(super) fn catalog(session: &mut Session) -> Vec<String> {
    // As everything is shown with its schema.
    session.batch("SET search_path = pg_catalog");
    session.texts(CATALOG, &[])
}

/// What one of them has and the other has not.
pub(super) fn differences(expected: &[String], found: &[String]) -> Vec<String> {
    let lacks = |from: &[String], of: &[String], sign: &str| -> Vec<String> {
        let missing = of.iter().filter(|line| !from.contains(line));
        missing.map(|line| format!("{sign} {line}")).collect()
    };
    [
        lacks(found, expected, "missing:"),
        lacks(expected, found, "unexpected:"),
    ]
    .concat()
}
