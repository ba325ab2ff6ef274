-- An action as users see it, in one row.

CREATE VIEW recur.recurring_actions WITH (security_barrier) AS
SELECT d.id, d.name, d.namespace, d.tenant, d.subject, d.duplicate, recur_internal.owner_name(d.owner_id) AS owner,
       d.journey, d.journey_version, d.start_state,
       d.description, d.labels, d.schedule, d.timezone, d.starts_at, d.ends_at, d.max_runs, d.count_runs,
       d.on_dst_gap, d.on_dst_fold,
       d.provider, d.action_type, d.payload, d.metadata, d.dedup_key, d.dedup_window, d.on_duplicate,
       p.context, p.context_version,
       t.enabled, t.paused_reason, t.ended_reason,
       d.misfire, d.misfire_grace, d.catchup_limit, d.overlap, d.jitter, d.horizon, d.horizon_count,
       d.max_attempts, d.retry_backoff, d.lease, d.priority, d.lock_group, d.notify_channel,
       d.primary_agent, d.fallback_agent, d.fallback_after, d.contact, d.mute, d.mute_interval,
       d.error_threshold, d.record_events, d.late_after, d.max_runtime, d.max_silence, d.keep_history,
       d.endpoint,
       CASE WHEN t.enabled THEN least(t.next_ahead, t.next_run_at) END AS next_run_at,
       CASE WHEN t.next_ahead IS NULL THEN t.last_run_at ELSE t.ran_at END AS last_run_at,
       t.run_count, p.completed_count, p.failed_count, p.interactive_count,
       p.failed_in_a_row, p.failing_since, p.last_run_error, p.last_run_error_at,
       t.error_count, t.last_error, t.last_error_at, p.last_notified_at, d.created_at, d.updated_at
  FROM recur_internal.definitions AS d
  JOIN recur_internal.timers AS t ON t.action_id = d.id
  JOIN recur_internal.progress AS p ON p.action_id = d.id
 WHERE (SELECT recur_internal.sees_all()) OR d.owner_id = ANY ((SELECT recur_internal.visible_owners())::int[]);
COMMENT ON VIEW recur.recurring_actions IS
    'All actions: what they do, when, and how they are doing. INSERT, UPDATE and DELETE do what create, update and '
    'delete do';
COMMENT ON COLUMN recur.recurring_actions.next_run_at IS
    'The next occurrence to come due, also if its dispatch was generated ahead; NULL while the action is not enabled';
COMMENT ON COLUMN recur.recurring_actions.last_run_at IS
    'The latest occurrence that has come due and was dispatched; a dispatch that lies ahead does not count';
COMMENT ON COLUMN recur.recurring_actions.owner IS
    'The role that the action belongs to: roles that may act as this role see the action';

-- Every write, function or plain DML, passes the same checks and has the same consequences. A column that an INSERT
-- leaves out, or gives as NULL, has its default.
CREATE FUNCTION recur_internal.insert_action() RETURNS trigger
    LANGUAGE c
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'insert_action_wrapper';
COMMENT ON FUNCTION recur_internal.insert_action IS 'Internal: what an INSERT into recur.recurring_actions does';
CREATE TRIGGER insert_action INSTEAD OF INSERT ON recur.recurring_actions
    FOR EACH ROW EXECUTE FUNCTION recur_internal.insert_action();

CREATE FUNCTION recur_internal.update_action() RETURNS trigger
    LANGUAGE c
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'update_action_wrapper';
COMMENT ON FUNCTION recur_internal.update_action IS 'Internal: what an UPDATE of recur.recurring_actions does';
CREATE TRIGGER update_action INSTEAD OF UPDATE ON recur.recurring_actions
    FOR EACH ROW EXECUTE FUNCTION recur_internal.update_action();

CREATE FUNCTION recur_internal.delete_action() RETURNS trigger
    LANGUAGE c
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'delete_action_wrapper';
COMMENT ON FUNCTION recur_internal.delete_action IS 'Internal: what a DELETE from recur.recurring_actions does';
CREATE TRIGGER delete_action INSTEAD OF DELETE ON recur.recurring_actions
    FOR EACH ROW EXECUTE FUNCTION recur_internal.delete_action();
