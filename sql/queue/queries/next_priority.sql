-- The highest priority below one bound and above another that has pending dispatches. {pending} as in claim.sql.
-- $1 bigint: below; $2 bigint: above; $3 text: the provider, if there is only one; $4 int: the owner, if there
-- is only one
SELECT p.priority FROM recur_internal.live_dispatches AS p
 WHERE {{pending}} AND p.priority < $1 AND p.priority > $2
 ORDER BY p.priority DESC LIMIT 1
