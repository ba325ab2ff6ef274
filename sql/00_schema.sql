-- Plain CREATE SCHEMA: should a schema of this name exist already, somebody else made it, and installing into it
-- would hand him our objects.
CREATE SCHEMA recur;
COMMENT ON SCHEMA recur IS 'pg_recur: recurring actions, their dispatches, and the functions that run them';
