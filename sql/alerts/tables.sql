-- Alarms that need no failure.

-- One row for each action that has an alarm set: late_after, max_runtime or max_silence. A look at
-- alarms reads these rows in the order of look_at, and nothing of other actions.
CREATE TABLE recur_internal.alarms (
    action_id         uuid        NOT NULL,
    look_at           timestamptz NOT NULL,
    counts_from       timestamptz NOT NULL,
    late_since        timestamptz,
    overrunning_since timestamptz,
    silent_since      timestamptz,
    CONSTRAINT alarms_pkey PRIMARY KEY (action_id),
    CONSTRAINT alarms_action FOREIGN KEY (action_id) REFERENCES recur_internal.definitions (id) ON DELETE CASCADE
);
CREATE INDEX alarms_due ON recur_internal.alarms (look_at);
-- Rewritten at each look.
ALTER TABLE recur_internal.alarms SET (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000);
COMMENT ON TABLE recur_internal.alarms IS 'Actions that have an alarm set, and which of them are raised';
COMMENT ON COLUMN recur_internal.alarms.action_id IS 'The action';
COMMENT ON COLUMN recur_internal.alarms.look_at IS 'When an alarm could be raised, or be over';
COMMENT ON COLUMN recur_internal.alarms.counts_from IS
    'When max_silence began to count: when the alarm was set, or the action was resumed';
COMMENT ON COLUMN recur_internal.alarms.late_since IS
    'While the alarm of late_after is raised: since when a dispatch has waited to be started';
COMMENT ON COLUMN recur_internal.alarms.overrunning_since IS
    'While the alarm of max_runtime is raised: when the attempt was started';
COMMENT ON COLUMN recur_internal.alarms.silent_since IS
    'While the alarm of max_silence is raised: when a dispatch was last completed, or the alarm began to count';
SELECT pg_catalog.pg_extension_config_dump('recur_internal.alarms', '');
