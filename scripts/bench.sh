#!/usr/bin/env bash
# Runs the benchmarks against clusters of their own.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/env.sh"
cd "$ROOT"
export PG_RECUR_BIN=$PRIVATE_BIN PG_RECUR_SERVER_USER=$SERVER_USER PG_RECUR_STATE=$STATE
say "Lateness (about two minutes)"
cargo run --quiet -p pg_recur-bench --bin lateness
