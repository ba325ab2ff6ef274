coalesce({{row}}.lease, recur_internal.default_lease()) AS lease
