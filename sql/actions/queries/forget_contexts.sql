-- Removes the contexts that actions had when they were of a subject, and have no more. A change of subject and context
-- writes the context just before its event. {periods} is periods_of_subject.sql.
-- $1 text: subject; $2 text: namespace; $3 text: tenant; $4 int[]: owners that the caller sees, each NULL for all
DELETE FROM recur_internal.contexts AS c
 USING ({{periods}}) AS f, recur_internal.progress AS p
 WHERE c.action_id = f.action_id
   AND c.at <= f.until_at AND c.version::text IS DISTINCT FROM f.next_version
   AND (f.from_at IS NULL OR c.at > f.from_at OR c.version::text = f.first_version)
   AND p.action_id = c.action_id AND c.version < p.context_version
