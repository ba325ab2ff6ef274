-- Takes pending dispatches of one priority and returns them as recur.dispatches shows them.
--
-- {chosen} selects them: chosen_of_owner.sql or chosen_of_owners.sql. Within an owner and a priority, the index is in
-- the order of time: a scan ends at the first dispatch that is not available yet. {pending} selects the index by owner
-- or by owner and provider, because a kept plan uses one index. {selected} is selected.sql. Whether a higher priority
-- waits is asked with ORDER BY: for EXISTS the planner may read another index from end to end. A restored row may have
-- a lease that is longer than {longest}, the longest that is allowed. The rows come in the order of the array: to sort
-- them after the update, with all of their columns, would take a tenth of the claim.
-- $1 timestamptz: now; $2 int: priority; $3, $4 timestamptz: available_at and created_at to begin at; $5 text[]:
-- providers, if there are several; $6 text: the provider, if there is only one; $7 text[]: action types; $8 text[]:
-- namespaces; $9 text[]: tenants (each NULL for all); $10 int: the owner, or int[]: the owners; $11 text[]: beginnings
-- of other action types, or NULL; $12 text: the agent as which the consumer claims, or NULL; $13 boolean: only if no
-- higher priority waits; $14 int: at most this many; $15 text: consumer; $16 interval: lease, or NULL; for several
-- owners, $17 boolean: the first in the order of time, over all owners
UPDATE recur_internal.live_dispatches AS l
   SET status = 'running', attempt = l.attempt + 1, claimed_by = $15, started_at = $1, cancel_requested = false,
       lease_expires_at = recur.clock()
           + least(coalesce($16, l.lease, recur_internal.default_lease()), interval '{{longest}}'),
       (context, context_version) = (SELECT p.context, p.context_version FROM recur_internal.progress AS p
                                      WHERE p.action_id = l.action_id)
  FROM unnest(ARRAY({{chosen}})) AS u (id)
 WHERE l.id = u.id
RETURNING {{public live_dispatches l}}, NULL::timestamptz, NULL::jsonb
