-- Records that dispatches were taken from consumers that did not report.
-- $1 uuid[]: dispatches; $2 uuid[]: actions; $3 int[]: owners; $4 text[]: details, as JSON; $5 text: actor; $6 text:
-- role that logged in, if another; $7 smallint: history partition
INSERT INTO recur_internal.events (kind, dispatch_id, action_id, owner_id, detail, actor, login, partition)
SELECT '{{kind}}', u.dispatch_id, u.action_id, u.owner_id, u.detail::jsonb, $5, $6, $7
  FROM unnest($1, $2, $3, $4) AS u (dispatch_id, action_id, owner_id, detail)
