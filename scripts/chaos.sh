#!/usr/bin/env bash
# Faults at random, under load, with consumers in three languages; the books are checked after every round.
#   ROUNDS=1000       how many
#   SERVERS=2         how many servers at the same time
#   SEED=…            repeats the faults of a run, with the seed that it printed
#   UPDATE_DOCS=1     writes the tables of docs/reliability.md
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/env.sh"
cd "$ROOT"
export PG_RECUR_CHAOS_ROUNDS=${ROUNDS:-1000}
export PG_RECUR_CHAOS_SERVERS=${SERVERS:-2}
if [ -n "${SEED:-}" ]; then export PG_RECUR_CHAOS_SEED=$SEED; fi
say "Chaos: $PG_RECUR_CHAOS_ROUNDS rounds"
# Disks that a killed run leaves mounted are gone with its namespace.
apart=()
if [ "$(id -u)" = 0 ]; then apart=(unshare --mount --propagation private); fi
"${apart[@]}" cargo test -p pg_recur-tests --test long -- --nocapture chaos::
