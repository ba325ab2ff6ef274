#!/usr/bin/env bash
# Everything that must hold: formatting, lints, house rules, the crates without a server, the tests inside a server, and
# the tests that drive real servers from outside. Each server is made for its test and removed afterwards.
#   test.sh             all of it, on the server that PG_CONFIG names
#   test.sh --server    only what depends on the server
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/env.sh"
cd "$ROOT"

step() { say "$1"; shift; "$@"; }

without_server() {
  step "Formatting" cargo fmt --all --check
  step "Lints" cargo clippy --workspace --all-targets $FEATURES -- -D warnings
  step "House rules" cargo run -q -p pg_recur-checks
  step "Crates without a server" \
    cargo test --workspace --exclude pg_recur --exclude pg_recur-tests --exclude pg_recur-bench
  step "Fuzzing" scripts/fuzz.sh 2000000
}

inside_server() {
  local runas=()
  pgdata=$(mktemp -d /tmp/pg_recur-pgdata.XXXXXX)
  trap 'as_root rm -rf "$pgdata"' EXIT
  if [ "$(id -u)" = 0 ]; then
    chown "$SERVER_USER" "$pgdata"
    runas=(--runas "$SERVER_USER")
  fi
  # cargo-pgrx overwrites the library in place, and a demo's server may have it mapped: unlink the old file first.
  rm -f "$("$PRIVATE_BIN/pg_config" --pkglibdir)/pg_recur.so"
  # One after the other: they share a database, and each holds its locks until it is rolled back.
  RUST_TEST_THREADS=1 \
    cargo pgrx test "pg$PG_MAJOR" --package pg_recur --pgdata "$pgdata" "${runas[@]}" --no-default-features
}

if [ "${1:-}" != --server ]; then without_server; fi
step "Inside the server (PostgreSQL $PG_MAJOR)" inside_server
# After the tests inside the server, which install a debug build into the private mirror.
scripts/install.sh
step "From outside (PostgreSQL $PG_MAJOR)" cargo test -p pg_recur-tests
