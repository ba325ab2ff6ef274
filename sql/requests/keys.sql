-- Requests that must happen once, however often a client sends them: an HTTP front end notes the client's key in the
-- transaction that does the work, with the answer. A dump has none of this: a copy is asked anew.

CREATE TABLE recur_internal.request_keys (
    owner_id    int         NOT NULL,
    status      int,
    created_at  timestamptz NOT NULL,
    key         text        NOT NULL,
    fingerprint text        NOT NULL,
    response    jsonb,
    -- A key of one role neither says anything to another, nor holds it up.
    CONSTRAINT request_keys_pkey PRIMARY KEY (owner_id, key)
);
CREATE INDEX request_keys_by_age ON recur_internal.request_keys (created_at);
COMMENT ON TABLE recur_internal.request_keys IS 'The requests of roles that recur.begin_request has noted';
COMMENT ON COLUMN recur_internal.request_keys.owner_id IS 'The role that made the request';
COMMENT ON COLUMN recur_internal.request_keys.status IS 'The status of the answer; NULL until the request is finished';
COMMENT ON COLUMN recur_internal.request_keys.created_at IS 'When the request was begun';
COMMENT ON COLUMN recur_internal.request_keys.key IS 'What the client calls the request';
COMMENT ON COLUMN recur_internal.request_keys.fingerprint IS 'A hash of the request';
COMMENT ON COLUMN recur_internal.request_keys.response IS 'The answer';

CREATE FUNCTION recur.begin_request(key text, fingerprint text)
    RETURNS TABLE (status int, response jsonb)
    LANGUAGE c ROWS 1
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'begin_request_wrapper';
COMMENT ON FUNCTION recur.begin_request IS
    'Begins a request that must happen once. No row means: do the work in this transaction, and call '
    'recur.finish_request. A row is the answer of an earlier request with the same key of this role. While that one is '
    'under way, the call waits for it, for ten seconds at most';

CREATE FUNCTION recur.finish_request(key text, status int, response jsonb DEFAULT NULL) RETURNS void
    LANGUAGE c
    SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'finish_request_wrapper';
COMMENT ON FUNCTION recur.finish_request IS
    'Keeps the answer of a request that was begun in this transaction, for recur.request_key_retention';
