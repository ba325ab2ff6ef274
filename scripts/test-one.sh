#!/usr/bin/env bash
# Some of the tests from outside, on a debug build of the extension.
#   test-one.sh [ARGS…]    as for cargo test: --test FILE, part of a name
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/env.sh"
cd "$ROOT"

scripts/install.sh --debug
cargo test -p pg_recur-tests "$@"
