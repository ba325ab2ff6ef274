#!/usr/bin/env bash
# Proves that the fuzzer finds bugs: applies each patch of fuzz/seeded to a copy of the crates, one at a time, and
# fuzzes the copy until it fails. The corpus is left out, so that generators and mutation alone must find the bug.
#   fuzz-seeded.sh                  all of them: a line of a table each
#   fuzz-seeded.sh fuzz/seeded/07*  some of them
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/env.sh"
cd "$ROOT"
patches=("$@")
[ $# -gt 0 ] || patches=(fuzz/seeded/*.patch)
copy=$STATE/seeded
mkdir -p "$copy"
export CARGO_TARGET_DIR=$copy/target
missed=0
rm -rf "$copy/tree"
mkdir -p "$copy/tree"
cp -r Cargo.lock crates fuzz "$copy/tree/"
# The workspace without the extension, which has nothing to do with it.
sed -n '/^\[workspace/,$p' Cargo.toml | sed 's/^members = .*/members = ["crates\/*", "fuzz"]/' >"$copy/tree/Cargo.toml"
echo "| bug | found by | executions | seconds |"
echo "| --- | --- | --- | --- |"
for patch in "${patches[@]}"; do
  # Both directions give the file a new time, by which cargo knows that it has changed.
  patch --quiet -d "$copy/tree" -p1 <"$patch"
  name=$(basename "$patch" .patch)
  (cd "$copy/tree" && RUSTFLAGS=-Awarnings cargo build --quiet --profile measured -p pg_recur-fuzz)
  rm -rf "$copy/corpus" && mkdir -p "$copy/corpus"
  if PG_RECUR_FUZZ_CORPUS=$copy/corpus "$CARGO_TARGET_DIR/measured/pg_recur-fuzz" \
    --executions "${EXECUTIONS:-16000000}" --stop-at-first >"$copy/$name.log" 2>&1; then
    echo "| $name | nothing | | |"
    missed=$((missed + 1))
  else
    awk -v bug="$name" '
      /^FAILED/ && !target { target = $2 }
      /^[a-z]/ && NF == 5 && $2 ~ /^[0-9]+$/ { executions += $2 }
      /^seed/ { seconds = $3 }
      END { printf "| %s | `%s` | %d | %s |\n", bug, target, executions, seconds }' "$copy/$name.log"
  fi
  patch --quiet --reverse -d "$copy/tree" -p1 <"$patch"
  sleep 1 # the next build must see another time
done
[ "$missed" = 0 ] || die "$missed of ${#patches[@]} bugs were not found"
