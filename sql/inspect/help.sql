-- What to call: \df shows every argument of every function, which is more than a screen.

CREATE FUNCTION recur.help(INOUT topic text DEFAULT NULL, OUT call text, OUT purpose text) RETURNS SETOF record
    LANGUAGE plpgsql STABLE
    SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    topics CONSTANT text[] := '{define,look,run,sql,consume,journeys,webhooks,operate,more}';
BEGIN
    IF help.topic <> ALL (topics) THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('invalid topic "%s": must be one of %s', left(help.topic, 120),
                             array_to_string(topics, ', ')),
            HINT = 'Leave it out for all of them.';
    END IF;
    RETURN QUERY
    WITH listed (topic, names) AS (
        VALUES ('define', '{create,create_many,update,pause,resume,delete,pause_all,resume_all,'
                          'restore_context}'::text[]),
               ('look', '{get,id_of,list,history,preview,describe,explain,compare,forecast,lint,next_occurrence,'
                        'is_valid_schedule,context_history,tzdata_version,help}'),
               ('run', '{trigger,backfill,enqueue,receive,begin_request,finish_request,tick}'),
               ('sql', '{create_sql,enqueue_sql,set_handler,drop_handler,arm_sql,import_pg_cron}'),
               ('consume', '{claim,complete,fail,extend,release,cancel,retry,complete_many,fail_many,'
                           'fail_interactive}'),
               ('journeys', '{set_journey,schedule_journey,drop_journey}'),
               ('webhooks', '{create_webhook,enqueue_webhook,create_endpoint,update_endpoint,rotate_webhook_secret,'
                            'resume_endpoint,drop_endpoint,route_webhooks,claim_webhooks,report_webhook,'
                            'extend_webhook,release_webhook}'),
               ('operate', '{doctor,metrics,recover,purge,grant_access,revoke_access,set_setting,reset_setting,'
                           'set_quota,reassign_owner,forget_subject,arm,expect_move,mark_test_database,set_clock,'
                           'clock}')
    ), functions AS (
        -- One form of each: the one that takes a name where there are several.
        SELECT DISTINCT ON (p.proname) p.proname::text AS name,
               ARRAY(SELECT p.proargnames[n] FROM generate_series(1, p.pronargs - p.pronargdefaults) AS n) AS needed,
               p.pronargdefaults > 0 AS has_more,
               substring(obj_description(p.oid, 'pg_proc') FROM '^(.*?)(?:[;:.] |$)') AS purpose
          FROM pg_proc AS p
         WHERE p.pronamespace = 'recur'::regnamespace
         ORDER BY p.proname, p.proargtypes[0] = 'uuid'::regtype, p.oid
    )
    SELECT coalesce(l.topic, 'more'),
           format('recur.%s(%s)', f.name,
                  concat_ws(', ', nullif(array_to_string(f.needed, ', '), ''), CASE WHEN f.has_more THEN '…' END)),
           CASE WHEN length(f.purpose) > 100 THEN left(f.purpose, 99) || '…' ELSE f.purpose END
      FROM functions AS f
      LEFT JOIN listed AS l ON f.name = ANY (l.names)
     WHERE help.topic IS NULL OR coalesce(l.topic, 'more') = help.topic
     ORDER BY array_position(topics, coalesce(l.topic, 'more')), array_position(l.names, f.name), f.name;
END
$$;
COMMENT ON FUNCTION recur.help IS
    'The functions by topic, with the arguments that each needs: define, look, run, sql, consume, journeys, webhooks '
    'or operate; '
    'docs/sql-reference.md has all arguments';
