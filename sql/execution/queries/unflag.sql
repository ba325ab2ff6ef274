-- A dispatch whose handler is gone waits for consumers again.
-- $1 uuid: dispatch
UPDATE recur_internal.live_dispatches AS l SET in_database = NULL WHERE l.id = $1
