-- The clock of a test database; where it is ahead, by how many microseconds.
SELECT c.at, (extract(epoch FROM c.ahead) * 1000000)::bigint FROM recur_internal.test_clock AS c
