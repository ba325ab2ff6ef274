#!/usr/bin/env bash
# Everything that must hold: formatting, lints, the engine, the tests inside a server, and the tests that drive real
# servers from outside. Each server is made for the test and removed after it.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/env.sh"
cd "$ROOT"

say "Formatting"
cargo fmt --all --check
say "Lints"
cargo clippy --workspace --all-targets $FEATURES -- -D warnings
say "The engine, and the examples in the client's documentation"
cargo test -p recurrence -p recur-client

say "Inside the server (PostgreSQL $PG_MAJOR)"
pgdata=$(mktemp -d /tmp/pg_recur-pgdata.XXXXXX)
cleanup() { as_root rm -rf "$pgdata"; }
trap cleanup EXIT
runas=()
if [ "$(id -u)" = 0 ]; then
  chown "$SERVER_USER" "$pgdata"
  runas=(--runas "$SERVER_USER")
fi
# cargo-pgrx installs over what is there, and a demo's server may have it mapped: unlinked, the old file stays its own.
rm -f "$("$PRIVATE_BIN/pg_config" --pkglibdir)/pg_recur.so"
cargo pgrx test "pg$PG_MAJOR" --package pg_recur --pgdata "$pgdata" "${runas[@]}" --no-default-features

# After the in-server tests: they install a build of their own into the private mirror.
"$ROOT/scripts/install.sh"
say "From outside (PostgreSQL $PG_MAJOR)"
export PG_RECUR_BIN=$PRIVATE_BIN PG_RECUR_SERVER_USER=$SERVER_USER PG_RECUR_STATE=$STATE
cargo test -p pg_recur-tests
