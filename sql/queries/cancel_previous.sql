-- Makes room: what is pending is cancelled, what runs is asked to stop. A dispatch that a consumer is about to claim is
-- left to him.
-- $1 uuid[]: actions
SELECT recur._make_room($1)
