-- A dispatch's occurrence in the time zone of its action.
SELECT a.name,
       a.timezone::text,
       to_char(d.scheduled_at AT TIME ZONE a.timezone, 'Dy HH24:MI:SS') AS local_time
  FROM recur.dispatches AS d
  JOIN recur.recurring_actions AS a ON a.id = d.action_id
 WHERE d.id = $1
