#!/usr/bin/env bash
# The tests that depend on the server, on these major versions of PostgreSQL, each fetched by script.
#   test-on.sh MAJOR…
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

for major in "$@"; do
  PG_CONFIG=$(scripts/fetch-postgres.sh "$major")
  export PG_CONFIG
  scripts/setup.sh
  scripts/test.sh --server
done
