#!/usr/bin/env bash
# Installs Debian's pg_cron where its packages have it, and links it into the private mirror: a test and a benchmark
# compare with it. Where there is none, they leave it out. Quick where nothing is missing.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/env.sh"

library=$("$PG_CONFIG" --pkglibdir)
extensions=$("$PG_CONFIG" --sharedir)/extension
package=postgresql-$PG_MAJOR-cron
if [ ! -e "$library/pg_cron.so" ] && [[ $PG_CONFIG == /usr/lib/postgresql/* ]] &&
  apt-cache show "$package" >/dev/null 2>&1 && { [ "$(id -u)" = 0 ] || sudo -n true 2>/dev/null; }; then
  say "Installing $package"
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$package" >/dev/null ||
    echo "    it can't be installed: the test and the benchmark leave pg_cron out"
fi
if [ -e "$library/pg_cron.so" ]; then
  ln -sfn -t "$PRIVATE_PG$library" "$library/pg_cron.so"
  ln -sfn -t "$PRIVATE_PG$extensions" "$extensions"/pg_cron*
fi
