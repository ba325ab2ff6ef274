-- The dispatches that were created ahead and are not due yet: neither by the clock nor by a tick with a clock of its
-- own. {{lock}} is FOR UPDATE where they are to be withdrawn.
-- $1 uuid: action; $2 timestamptz: now
SELECT l.id FROM recur_internal.live_dispatches AS l
 WHERE l.action_id = $1 AND CASE l.status WHEN 'pending' THEN true END AND l.trigger = 'schedule' AND l.attempt = 0
   AND l.scheduled_at > $2 AND l.available_at > $2
 ORDER BY l.id
   {{lock}}
