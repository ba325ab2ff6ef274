-- Where webhooks are delivered, how deliveries are signed, and how each endpoint is doing.

CREATE TABLE recur_internal.endpoints (
    owner_id    int         NOT NULL,
    name        text        NOT NULL,
    url         text        NOT NULL,
    patterns    text[]      NOT NULL,
    headers     jsonb       NOT NULL,
    timeout     interval    NOT NULL,
    rate        float8,
    concurrency int         NOT NULL,
    enabled     boolean     NOT NULL,
    description text,
    created_at  timestamptz NOT NULL,
    updated_at  timestamptz NOT NULL,
    CONSTRAINT endpoints_pkey PRIMARY KEY (owner_id, name),
    CONSTRAINT endpoints_short CHECK (octet_length(name) <= 1024 AND octet_length(url) <= 2048
                                      AND cardinality(patterns) <= 100),
    CONSTRAINT endpoints_of_owners CHECK (name !~~ 'operator:%')
);
COMMENT ON TABLE recur_internal.endpoints IS 'Where webhooks are delivered; read recur.webhook_endpoints instead';
COMMENT ON COLUMN recur_internal.endpoints.owner_id IS 'The owner, whose webhooks the endpoint gets, and no others';
COMMENT ON COLUMN recur_internal.endpoints.name IS 'The name, of which an owner has one; the URL where none was given';
COMMENT ON COLUMN recur_internal.endpoints.url IS 'Where webhooks are sent with POST';
COMMENT ON COLUMN recur_internal.endpoints.patterns IS
    'Which action types it gets, such as task:created, subscription:* or *; with none, what names the endpoint';
COMMENT ON COLUMN recur_internal.endpoints.headers IS 'Headers of every request, by name';
COMMENT ON COLUMN recur_internal.endpoints.timeout IS 'How long a delivery may take';
COMMENT ON COLUMN recur_internal.endpoints.rate IS 'How many deliveries may begin in a second; NULL for no limit';
COMMENT ON COLUMN recur_internal.endpoints.concurrency IS 'How many deliveries may run at once';
COMMENT ON COLUMN recur_internal.endpoints.enabled IS 'False while its owner wants nothing delivered';
COMMENT ON COLUMN recur_internal.endpoints.description IS 'For people';
COMMENT ON COLUMN recur_internal.endpoints.created_at IS 'When the endpoint was created';
COMMENT ON COLUMN recur_internal.endpoints.updated_at IS 'When a person last changed the endpoint';

-- A dump carries them, in clear text, as it carries payloads.
CREATE TABLE recur_internal.endpoint_secrets (
    owner_id   int         NOT NULL,
    endpoint   text        NOT NULL,
    secret     text        NOT NULL,
    created_at timestamptz NOT NULL,
    expires_at timestamptz,
    CONSTRAINT endpoint_secrets_pkey PRIMARY KEY (owner_id, endpoint, secret),
    CONSTRAINT endpoint_secrets_short CHECK (octet_length(endpoint) <= 1024 AND octet_length(secret) <= 128)
);
COMMENT ON TABLE recur_internal.endpoint_secrets IS
    'What deliveries are signed with; only a role of level deliverer gets to read them';
COMMENT ON COLUMN recur_internal.endpoint_secrets.owner_id IS 'The owner of the endpoint';
COMMENT ON COLUMN recur_internal.endpoint_secrets.endpoint IS 'The name of the endpoint';
COMMENT ON COLUMN recur_internal.endpoint_secrets.secret IS 'whsec_ and the key in base64';
COMMENT ON COLUMN recur_internal.endpoint_secrets.created_at IS 'When it was made';
COMMENT ON COLUMN recur_internal.endpoint_secrets.expires_at IS
    'Until when deliveries are signed with it as well; NULL for the current one';

-- A row for each endpoint that something was claimed for; endpoints of the operator belong to owner 0. Deliveries that
-- succeed in a row write it once a second, so that they don't wait for each other.
CREATE TABLE recur_internal.endpoint_health (
    owner_id          int    NOT NULL,
    endpoint          text   NOT NULL,
    failures          int    NOT NULL DEFAULT 0,
    failing_since     timestamptz,
    paused_until      timestamptz,
    throttled_until   timestamptz,
    disabled_at       timestamptz,
    disabled_reason   text,
    last_status       int,
    last_error        text,
    last_failed_at    timestamptz,
    last_delivered_at timestamptz,
    tokens            float8,
    tokens_at         timestamptz,
    CONSTRAINT endpoint_health_pkey PRIMARY KEY (owner_id, endpoint)
);
-- Written in place.
ALTER TABLE recur_internal.endpoint_health SET (fillfactor = 70);
COMMENT ON TABLE recur_internal.endpoint_health IS 'How endpoints are doing; read recur.webhook_endpoints instead';
COMMENT ON COLUMN recur_internal.endpoint_health.owner_id IS 'The owner of the endpoint; 0 for those of the operator';
COMMENT ON COLUMN recur_internal.endpoint_health.endpoint IS 'The name of the endpoint';
COMMENT ON COLUMN recur_internal.endpoint_health.failures IS 'How many deliveries have failed in a row';
COMMENT ON COLUMN recur_internal.endpoint_health.failing_since IS 'When the first of them did';
COMMENT ON COLUMN recur_internal.endpoint_health.paused_until IS
    'Until when nothing is delivered because of them; then one delivery is tried';
COMMENT ON COLUMN recur_internal.endpoint_health.throttled_until IS 'Until when the endpoint has asked for time';
COMMENT ON COLUMN recur_internal.endpoint_health.disabled_at IS
    'Since when nothing is delivered any more, until recur.resume_endpoint';
COMMENT ON COLUMN recur_internal.endpoint_health.disabled_reason IS 'Why nothing is delivered any more';
COMMENT ON COLUMN recur_internal.endpoint_health.last_status IS 'The HTTP status of a recent response';
COMMENT ON COLUMN recur_internal.endpoint_health.last_error IS 'Why a delivery last failed: the first 500 characters';
COMMENT ON COLUMN recur_internal.endpoint_health.last_failed_at IS 'When a delivery last failed';
COMMENT ON COLUMN recur_internal.endpoint_health.last_delivered_at IS
    'When a delivery last succeeded, to the second';
COMMENT ON COLUMN recur_internal.endpoint_health.tokens IS 'With a rate: how many deliveries may begin at once';
COMMENT ON COLUMN recur_internal.endpoint_health.tokens_at IS 'As of when';

SELECT pg_catalog.pg_extension_config_dump('recur_internal.endpoints', '');
SELECT pg_catalog.pg_extension_config_dump('recur_internal.endpoint_secrets', '');
SELECT pg_catalog.pg_extension_config_dump('recur_internal.endpoint_health', '');

CREATE VIEW recur.webhook_endpoints WITH (security_barrier) AS
SELECT e.name, recur_internal.owner_name(e.owner_id) AS owner, e.url, e.patterns,
       ARRAY(SELECT k.name FROM jsonb_object_keys(CASE jsonb_typeof(e.headers) WHEN 'object' THEN e.headers END)
                             AS k (name) ORDER BY k.name) AS headers,
       e.timeout, e.rate, e.concurrency, e.enabled, e.description,
       CASE WHEN NOT e.enabled OR h.disabled_at IS NOT NULL THEN 'disabled'
            WHEN h.paused_until > recur.clock() THEN 'paused'
            WHEN h.paused_until IS NOT NULL THEN 'probing'
            WHEN h.throttled_until > recur.clock() THEN 'throttled'
            WHEN h.failures > 0 THEN 'failing'
            ELSE 'healthy' END AS state,
       coalesce(h.failures, 0) AS failures, h.failing_since, h.paused_until, h.throttled_until, h.disabled_at,
       h.disabled_reason, h.last_status, h.last_error, h.last_failed_at, h.last_delivered_at,
       (SELECT max(s.expires_at) FROM recur_internal.endpoint_secrets AS s
         WHERE s.owner_id = e.owner_id AND s.endpoint = e.name AND s.expires_at > recur.clock()) AS rotating_until,
       e.created_at, e.updated_at
  FROM recur_internal.endpoints AS e
  LEFT JOIN recur_internal.endpoint_health AS h ON h.owner_id = e.owner_id AND h.endpoint = e.name
 WHERE (SELECT recur_internal.sees_all()) OR e.owner_id = ANY ((SELECT recur_internal.visible_owners())::int[]);
COMMENT ON VIEW recur.webhook_endpoints IS 'Where webhooks are delivered, and how each endpoint is doing';
COMMENT ON COLUMN recur.webhook_endpoints.owner IS
    'The role that the endpoint belongs to: it gets webhooks of this owner, and no others';
COMMENT ON COLUMN recur.webhook_endpoints.headers IS
    'The names of the headers of every request; their values may be credentials, and are not shown';
COMMENT ON COLUMN recur.webhook_endpoints.state IS
    'healthy; failing, while the last delivery has failed; throttled, while it has asked for time; paused, while '
    'nothing is delivered because of failures; probing, while one delivery is tried; or disabled';
COMMENT ON COLUMN recur.webhook_endpoints.rotating_until IS
    'Until when deliveries are signed with a former secret as well';
