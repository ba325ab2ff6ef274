#!/usr/bin/env bash
# Builds the extension and installs it.
#   install.sh            a release build, into the private mirror: for the demo, the tests and the benchmarks
#   install.sh --debug    a debug build, which is quicker to make
#   install.sh --system   a release build, into the PostgreSQL that PG_CONFIG names
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/env.sh"

target=$PRIVATE_BIN/pg_config
run=env
profile=release
case ${1:-} in
  "") ;;
  --debug) profile=dev ;;
  --system)
    target=$PG_CONFIG
    [ -w "$("$target" --pkglibdir)" ] || run=as_root ;;
  *) die "usage: install.sh [--debug | --system]" ;;
esac

say "Building pg_recur for PostgreSQL $PG_MAJOR ($profile)"
cd "$ROOT"
out=${CARGO_TARGET_DIR:-$ROOT/target}/package-pg$PG_MAJOR
rm -rf "$out"
mkdir -p "$(dirname "$out")"
cargo pgrx package --profile "$profile" --pg-config "$PRIVATE_BIN/pg_config" --out-dir "$out" $FEATURES \
  >"$out.log" 2>&1 &
build=$!
# cargo's output goes to the log; its latest line is shown as progress.
while kill -0 $build 2>/dev/null; do
  sleep 1
  line=$(tail -c 300 "$out.log" 2>/dev/null | tr '\r' '\n' | sed '/^$/d' | tail -n 1 | cut -c1-100)
  if [ -n "$line" ] && [ "$line" != "${shown:-}" ]; then printf '    %s\n' "$line"; shown=$line; fi
done
wait $build || { tail -n 40 "$out.log" >&2; die "the build failed; its log is $out.log"; }

# Under a temporary name first, then renamed: overwriting a library in place crashes every server that has it mapped.
put() {
  $run install -m "$1" "$2" "$3/.$(basename "$2").new"
  $run mv -f "$3/.$(basename "$2").new" "$3/$(basename "$2")"
}
find "$out" -name 'pg_recur.so' | while read -r file; do put 755 "$file" "$("$target" --pkglibdir)"; done
find "$out" \( -name 'pg_recur.control' -o -name 'pg_recur--*.sql' \) | while read -r file; do
  put 644 "$file" "$("$target" --sharedir)/extension"
done
# The frozen scripts of earlier versions, and the upgrades from them to this one.
find "$ROOT/sql/upgrades" -name 'pg_recur--*.sql' | while read -r file; do
  put 644 "$file" "$("$target" --sharedir)/extension"
done
say "Installed into $("$target" --pkglibdir)"
