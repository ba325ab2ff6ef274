-- Takes back those of these dispatches that are over already. Asked only for occurrences that are not later than the last
-- one: after a clock was set back, or a timer by hand. After they were inserted, not before: a consumer's report may just
-- have been moving one from the one table to the other. Of the same owner, because consumers may write into the history: what
-- one has written there in his own name says nothing of others.
-- $1 uuid[]: dispatch ids
DELETE FROM recur.live_dispatches AS l
 WHERE l.id = ANY ($1) AND EXISTS (SELECT FROM recur.finished_dispatches AS f
                                     WHERE f.id = l.id AND f.action_id = l.action_id AND f.owner = l.owner)
RETURNING l.id
