#!/usr/bin/env bash
# Makes a private mirror of the chosen PostgreSQL: programs that start servers are copied, everything else is linked.
#
# PostgreSQL finds its libraries and extensions relative to its program's path, so a server started from the mirror
# looks for them in the mirror. The extension under development is installed there: this needs no root, and no other
# server on this machine sees or loses a file.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/env.sh"

stamp="$("$PG_CONFIG" --version) $PG_CONFIG"
[ "$(cat "$PRIVATE_PG/.mirror" 2>/dev/null)" = "$stamp" ] && exit 0

say "Mirroring $("$PG_CONFIG" --version) privately"
rm -rf "$PRIVATE_PG"
mkdir -p "$PRIVATE_PG"
chmod 755 "$STATE" "$PRIVATE_PG"

bindir=$("$PG_CONFIG" --bindir)
mkdir -p "$PRIVATE_PG$bindir"
for program in postgres initdb pg_ctl pg_config; do
  # A program resolves links to its own path: these four must be copies.
  cp -L "$bindir/$program" "$PRIVATE_PG$bindir/"
done

# Folders that we add to are real and hold links; the rest are links.
link_entries() {
  mkdir -p "$PRIVATE_PG$1"
  find "$1" -mindepth 1 -maxdepth 1 -exec ln -sfn -t "$PRIVATE_PG$1" {} +
}
link_folder() {
  [ -e "$PRIVATE_PG$1" ] && return
  mkdir -p "$PRIVATE_PG$(dirname "$1")"
  ln -s "$1" "$PRIVATE_PG$1"
}
for program in "$bindir"/*; do
  [ -e "$PRIVATE_PG$program" ] || ln -s "$program" "$PRIVATE_PG$program"
done
pkglibdir=$("$PG_CONFIG" --pkglibdir)
sharedir=$("$PG_CONFIG" --sharedir)
link_entries "$pkglibdir"
link_entries "$sharedir"
rm -f "$PRIVATE_PG$sharedir/extension"
link_entries "$sharedir/extension"
rm -f "$PRIVATE_PG$pkglibdir"/pg_recur* "$PRIVATE_PG$sharedir/extension"/pg_recur*
for kind in includedir-server includedir libdir localedir; do
  folder=$("$PG_CONFIG" "--$kind")
  [ ! -d "$folder" ] || link_folder "$folder"
done
# Programs from a wheel load libraries from a folder beside their package, found relative to themselves.
package=$(dirname "$(dirname "$bindir")")
[ ! -d "$package.libs" ] || link_folder "$package.libs"
printf '%s' "$stamp" > "$PRIVATE_PG/.mirror"
