#!/usr/bin/env bash
# Checks the dependencies' licences, sources and bans against deny.toml. Installs cargo-deny where it is missing.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/env.sh"
cd "$ROOT"

if ! cargo deny --version 2>/dev/null | grep -q " $CARGO_DENY_VERSION\$"; then
  say "Installing cargo-deny $CARGO_DENY_VERSION (about 5 minutes on 2 cores, once)"
  cargo install cargo-deny --version "=$CARGO_DENY_VERSION" --locked
fi
# Not advisories: their database is a repository that a build machine may not reach.
cargo deny check licenses bans sources
