-- $1 uuid: a dispatch
SELECT l.id FROM recur_internal.live_dispatches AS l WHERE l.id = $1 FOR UPDATE SKIP LOCKED
