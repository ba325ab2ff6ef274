#!/usr/bin/env bash
# Measures this build beside that of another revision, in rounds that take turns: bench/RESULTS.md.
#   compare.sh REVISION [ROUNDS]
# The other revision is checked out and built under $STATE, with a private mirror of PostgreSQL of its own.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/env.sh"
cd "$ROOT"

revision=$(git rev-parse --verify --quiet "${1:?usage: compare.sh REVISION [ROUNDS]}^{commit}") ||
  die "there is no revision $1"
other=$STATE/compare-$PG_MAJOR/$revision
if [ ! -e "$other/.built" ]; then
  say "Building $(git log -1 --format='%h %s' "$revision")"
  rm -rf "$other"
  mkdir -p "$other"
  git archive "$revision" | tar -x -C "$other"
  (unset PG_RECUR_BIN PGRX_HOME CARGO_TARGET_DIR && "$other/scripts/setup.sh" && "$other/scripts/install.sh")
  touch "$other/.built"
fi
bindir=$(. "$other/scripts/env.sh" && echo "$PRIVATE_BIN")

scripts/install.sh
say "Building the benchmarks"
cargo build --quiet --profile measured -p pg_recur-bench
"${CARGO_TARGET_DIR:-$ROOT/target}/measured/pg_recur-bench" compare --with="$bindir" --rounds="${2:-15}"
say "Results: bench/RESULTS.md, Compared with an earlier build"
