#!/usr/bin/env bash
# Starts the private cluster afresh, creates a few schedules in different zones and shows them firing.
set -euo pipefail
here=$(dirname "${BASH_SOURCE[0]}")
. "$here/env.sh"

# The cluster stops with the demo, also when the demo fails; make psql starts it again.
trap '"$here/cluster.sh" stop >/dev/null' EXIT

say "Building the viewer and recurd"
(cd "$ROOT" && cargo build --quiet -p pg_recur-examples -p recurd)
# The server's user owns the socket and must be able to run the viewer.
install -m 755 "${CARGO_TARGET_DIR:-$ROOT/target}/debug/watch" "$STATE/watch"
install -m 755 "${CARGO_TARGET_DIR:-$ROOT/target}/debug/recurd" "$STATE/recurd"

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

say "The same over HTTP: recurd, as roles of the database"
"$here/cluster.sh" psql -X -q -c "DO 'BEGIN IF to_regrole(''recurd'') IS NULL THEN CREATE ROLE recurd LOGIN NOINHERIT;
    CREATE ROLE demo_app; CREATE ROLE demo_deliverer; GRANT demo_app, demo_deliverer TO recurd; END IF; END'" \
  -c "SELECT recur.grant_access('demo_app', 'author'), recur.grant_access('demo_deliverer', 'deliverer')" >/dev/null
random() { head -c 24 /dev/urandom | base64; }
token=$(random)
SECRET=whsec_$(random)
export SECRET
cat >"$STATE/recurd.toml" <<TOML
listen = "127.0.0.1:8032"
[auth]
allowed_roles = ["demo_app", "demo_deliverer"]
[[auth.tokens]]
role = "demo_app"
sha256 = "$(printf %s "$token" | sha256sum | cut -c1-64)"
[deliver]
role = "demo_deliverer"
[[deliver.endpoints]]
name = "receiver"
url_env = "RECEIVER_URL"
secret_env = "SECRET"
patterns = ["demo:*"]
private = true
TOML
python3 "$ROOT/examples/python/receiver.py" 8033 >"$STATE/received" &
receiver=$!
RECEIVER_URL=http://127.0.0.1:8033/ RECURD_DATABASE_URL=$("$here/cluster.sh" url | sed 's/user=postgres/user=recurd/') \
  "$STATE/recurd" --config "$STATE/recurd.toml" serve --deliver >"$STATE/recurd.log" 2>&1 &
recurd=$!
trap 'kill $recurd $receiver 2>/dev/null; "$here/cluster.sh" stop >/dev/null' EXIT
curl --silent --output /dev/null --retry 20 --retry-connrefused --retry-delay 1 http://127.0.0.1:8032/livez ||
  { tail -n 5 "$STATE/recurd.log" >&2; die "recurd did not start; its log is $STATE/recurd.log"; }
request() {
  curl --silent --show-error -H "Authorization: Bearer $token" "http://127.0.0.1:8032$1" "${@:2}"
  echo
}
request /v1/recurring -H 'Content-Type: application/json' \
  -d '{"name": "made over http", "schedule": "every 2 days", "provider": "demo", "action_type": "ping"}'
request "/v1/recurring?fields=name,owner,schedule,next_run_at"

say "A webhook: recur.enqueue_webhook(action_type => 'demo:greeting', …), delivered, signed and verified"
"$here/cluster.sh" psql -X -q -c "SELECT recur.enqueue_webhook(action_type => 'demo:greeting',
                                                               payload => '{\"hello\": \"webhook\"}')" >/dev/null
for _ in $(seq 300); do
  [ ! -s "$STATE/received" ] || break
  sleep 0.1
done
[ -s "$STATE/received" ] || { tail -n 5 "$STATE/recurd.log" >&2; die "no webhook arrived within half a minute"; }
cat "$STATE/received"

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
