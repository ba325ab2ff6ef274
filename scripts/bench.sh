#!/usr/bin/env bash
# Runs the benchmarks against clusters of their own and writes bench/RESULTS.md.
#   bench.sh [--full] [--actions=N,…] [--finished=N] [SECTION …]
# All sections, or these: engine cache throughput lateness herds idle databases consume sql history snapshot growth.
# --actions and --finished set how many of each there are.
# Installs the peers to compare with where they are missing: Debian's pg_cron, and two job queues from npm.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/env.sh"
cd "$ROOT"

# Is this section to be measured? All are where none is named.
wants() {
  local word named=false
  for word in "${words[@]}"; do
    case $word in
      --*) ;;
      "$1") return 0 ;;
      *) named=true ;;
    esac
  done
  ! $named
}
words=("$@")

# Only the benchmark's own servers preload pg_cron.
if wants lateness || wants sql; then "$ROOT/scripts/pg-cron.sh"; fi
if wants consume && [ ! -d bench/peers/node_modules ]; then
  if command -v npm >/dev/null; then
    say "Installing graphile-worker and pg-boss from npm"
    (cd bench/peers && npm install --no-audit --no-fund --silent)
  else
    echo "    npm is missing: graphile-worker and pg-boss are left out"
  fi
fi

say "Building the benchmarks"
cargo build --quiet --profile measured -p pg_recur-bench
"${CARGO_TARGET_DIR:-$ROOT/target}/measured/pg_recur-bench" "$@"
say "Results: bench/RESULTS.md"
