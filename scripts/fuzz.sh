#!/usr/bin/env bash
# Fuzzes the crates that need no server: parsers, searches, decisions and encoders against slow models.
#   fuzz.sh               10^8 executions over all targets, on all cores: some minutes
#   fuzz.sh 2000000       that many
#   fuzz.sh --target cron --seed 7 --executions 1000000
# A failure prints its seed and a minimized input, and stores the input under fuzz/corpus/.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/env.sh"
cd "$ROOT"
case "${1:-100000000}" in
  --*) arguments=("$@") ;;
  *) arguments=(--executions "${1:-100000000}" "${@:2}") ;;
esac
cargo build --quiet --release -p pg_recur-fuzz
exec target/release/pg_recur-fuzz "${arguments[@]}"
