#!/usr/bin/env bash
# The long form of five tests: chaos, crashes, a large backlog, executors, and hostile neighbours.
# SEED=… and PG_RECUR_CRASH_SEED=… repeat a failed run, with the seed that it printed.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/env.sh"
cd "$ROOT"
ROUNDS=${ROUNDS:-50} scripts/chaos.sh
say "Crashes: ${PG_RECUR_CRASH_ROUNDS:=50} rounds"
export PG_RECUR_CRASH_ROUNDS
cargo test -p pg_recur-tests --test long -- --nocapture crash_rounds::
say "A backlog of ${PG_RECUR_BACKLOG:=1000000}"
export PG_RECUR_BACKLOG
cargo test -p pg_recur-tests --test long -- --nocapture draining::
say "Executors: ${PG_RECUR_EXECUTOR_ROUNDS:=200} kills, ${PG_RECUR_SQL_OWNERS:=100} owners"
export PG_RECUR_EXECUTOR_ROUNDS PG_RECUR_SQL_OWNERS PG_RECUR_SQL_ACTIONS=${PG_RECUR_SQL_ACTIONS:-100}
export PG_RECUR_CRON_MINUTES=${PG_RECUR_CRON_MINUTES:-5}
cargo test -p pg_recur-tests --test long -- --nocapture executors::
say "Hostile neighbours: ${PG_RECUR_HOSTILE_SECONDS:=300} s"
export PG_RECUR_HOSTILE_SECONDS
cargo test -p pg_recur-tests --test long -- --nocapture hostile::
