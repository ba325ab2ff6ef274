#!/usr/bin/env bash
# Starts the private cluster afresh, creates a few schedules in different zones and shows them firing.
set -euo pipefail
here=$(dirname "${BASH_SOURCE[0]}")
. "$here/env.sh"

# The cluster stops with the demo, also when the demo fails; make psql starts it again.
trap '"$here/cluster.sh" stop >/dev/null' EXIT

say "Building the viewer"
(cd "$ROOT" && cargo build --quiet -p pg_recur-examples)
# The server's user owns the socket and must be able to run the viewer.
install -m 755 "${CARGO_TARGET_DIR:-$ROOT/target}/debug/watch" "$STATE/watch"

say "Starting the private cluster"
"$here/cluster.sh" stop >/dev/null # a running server keeps the old library
"$here/cluster.sh" start
"$here/cluster.sh" psql -X -q -d postgres -c 'SET client_min_messages = warning' \
  -c 'DROP DATABASE IF EXISTS demo' -c 'CREATE DATABASE demo'
"$here/cluster.sh" psql -X -q -f - < "$ROOT/examples/demo.sql"

say "Dispatches as they arrive through LISTEN, for 15 seconds"
as_server "$STATE/watch" "$("$here/cluster.sh" url)" 15

say "What the database has run by itself meanwhile: SELECT * FROM recur.runs"
"$here/cluster.sh" psql -X -q -P footer=off -c "SELECT action, began::time(3), duration, outcome, rows
                                                  FROM recur.runs ORDER BY began DESC LIMIT 3"

cat <<TEXT
What to try next
  make psql     a shell on this cluster (which starts again, and the schedules go on)
                  SELECT * FROM recur.overview \\watch 1
                  SELECT * FROM recur.explain(recur.id_of('heartbeat'),
                                              date_trunc('second', now()) - interval '1 second');
                  SELECT * FROM recur.preview('30 2 * * *', 'America/Chicago', '2027-03-13', 4);
                  SELECT id, attempt, payload FROM recur.claim(5);
                  SELECT recur.enqueue_sql('VACUUM (ANALYZE) pings');
                  SELECT * FROM recur.stats;
  make stop     stop the cluster
  make clean    remove the cluster
TEXT
