-- Which of these dispatches exist, finished or not.
-- $1 uuid[]: dispatch ids
SELECT l.id FROM recur_internal.live_dispatches AS l WHERE l.id = ANY ($1)
UNION ALL
SELECT f.id FROM recur_internal.finished_dispatches AS f WHERE f.id = ANY ($1)
