-- $1 uuid: a dispatch
SELECT FROM recur.live_dispatches AS l WHERE l.id OPERATOR(pg_catalog.=) $1 FOR UPDATE SKIP LOCKED
