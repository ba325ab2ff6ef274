-- Journeys: graphs of states that a program runs through. An action may schedule one, from one of its states on.

CREATE TABLE recur_internal.journeys (
    owner_id   int         NOT NULL,
    name       text        NOT NULL,
    version    text        NOT NULL,
    states     jsonb       NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    CONSTRAINT journeys_pkey PRIMARY KEY (owner_id, name, version)
);
COMMENT ON TABLE recur_internal.journeys IS 'The journeys that actions may schedule; read recur.journeys instead';
COMMENT ON COLUMN recur_internal.journeys.owner_id IS 'The owner: the role that stored the journey';
COMMENT ON COLUMN recur_internal.journeys.name IS 'The name of the journey';
COMMENT ON COLUMN recur_internal.journeys.version IS 'The version of the journey';
COMMENT ON COLUMN recur_internal.journeys.states IS
    'The states by their ids, each with its type and the states that may follow it';
COMMENT ON COLUMN recur_internal.journeys.created_at IS 'When the journey was stored';
COMMENT ON COLUMN recur_internal.journeys.updated_at IS 'When the states last changed';
SELECT pg_catalog.pg_extension_config_dump('recur_internal.journeys', '');

-- The schedules of a journey: a change of its states checks each state in which they start.
CREATE INDEX definitions_by_journey ON recur_internal.definitions (owner_id, journey, journey_version, start_state)
    WHERE journey IS NOT NULL;

CREATE VIEW recur.journeys WITH (security_barrier) AS
SELECT j.name, j.version, recur_internal.owner_name(j.owner_id) AS owner, j.states,
       (SELECT count(*) FROM recur_internal.definitions AS d
         WHERE d.owner_id = j.owner_id AND d.journey = j.name AND d.journey_version = j.version) AS schedules,
       j.created_at, j.updated_at
  FROM recur_internal.journeys AS j
 WHERE (SELECT recur_internal.sees_all()) OR j.owner_id = ANY ((SELECT recur_internal.visible_owners())::int[]);
COMMENT ON VIEW recur.journeys IS 'Journeys that actions may schedule, with the number of actions that do';
COMMENT ON COLUMN recur.journeys.owner IS
    'The role that the journey belongs to: roles that may act as this role see it';
COMMENT ON COLUMN recur.journeys.schedules IS 'How many actions schedule the journey';
