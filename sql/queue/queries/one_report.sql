SELECT ($1)[1] AS id, ($2)[1] AS attempt, ($3)[1] AS result, ($4)[1] AS reason, 1::bigint AS number
