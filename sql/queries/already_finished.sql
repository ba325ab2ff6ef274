-- Which of these dispatches are over already. Asked only for occurrences that are not later than the last one: after a
-- clock was set back, or a timer by hand.
-- $1 uuid[]: dispatch ids
SELECT f.id FROM recur.finished_dispatches AS f WHERE f.id = ANY ($1)
