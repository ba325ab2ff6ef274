-- Makes running dispatches, which the caller has locked, pending again: a retry, a release, an expired lease.
-- {announced} is announced_columns.sql, {kept_errors} is kept_errors.sql: the errors of the last hundred attempts are
-- kept. {subject} is subject_of_enqueued.sql: recur.forget_subject finds the events of an enqueued dispatch by it.
-- $1 uuid[]: dispatches; $2 timestamptz[]: when each is available; $3 text[]: why each failed, NULL for a release
UPDATE recur_internal.live_dispatches AS l
   SET status = 'pending', available_at = u.available_at, lease_expires_at = NULL, updated_at = recur.clock(),
       releases = l.releases + (u.reason IS NULL)::int,
       error = coalesce(u.reason, l.error),
       errors = CASE WHEN u.reason IS NULL THEN l.errors
                     ELSE {{kept_errors}}
                          || jsonb_build_object('attempt', l.attempt, 'at', recur.clock(), 'reason', u.reason) END
  FROM unnest($1, $2, $3) AS u (id, available_at, reason)
 WHERE l.id = u.id
RETURNING {{announced}}, l.attempt, l.available_at, l.owner_id, l.claimed_by, l.record_events, u.reason,
          {{subject}}
