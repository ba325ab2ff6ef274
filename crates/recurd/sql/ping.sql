-- The server answers.
SELECT true AS answers
